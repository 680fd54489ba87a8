/* SPDX-License-Identifier: BSD-3-Clause */
/* Error texts of both parsers: what was given, the position of the error, what is allowed there. */
#include "topo_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WINDOW      60 /* characters shown of a long text */
#define WINDOW_BACK 30 /* of these, before the error */

const char *topo_skip_blanks(const char *at)
{
	return at + strspn(at, " \t\n\v\f\r");
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

const char *topo_excerpt(const char *text, const char *at, char out[TOPO_EXCERPT_BYTES])
{
	bool whole = strnlen(text, WINDOW + 1) <= WINDOW;
	const char *from = whole || at - text <= WINDOW_BACK ? text : at - WINDOW_BACK;
	size_t len = strnlen(from, WINDOW);
	bool quoted = len == 0 || memchr(from, ' ', len) || memchr(from, '\t', len);

	snprintf(out, TOPO_EXCERPT_BYTES, "%s%s%.*s%s%s", quoted ? "\"" : "",
		 from > text ? "..." : "", (int)len, from, from[len] ? "..." : "",
		 quoted ? "\"" : "");
	for (char *c = out; *c; c++) {
		if (is_control(*c))
			*c = '?';
	}
	return out;
}

int topo_fail_at(const struct topo_given *given, const char *at, const char *format, ...)
{
	char excerpt[TOPO_EXCERPT_BYTES], what[384];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return plx_fail(EINVAL, "%s %s: column %zu: %s", given->option,
			topo_excerpt(given->text, at, excerpt), (size_t)(at - given->text) + 1,
			what);
}

int topo_fail_expected(const struct topo_given *given, const char *at, const char *expected,
		       const char *hint)
{
	unsigned char c = (unsigned char)*at;
	char found[24] = "the end";

	if (c)
		snprintf(found, sizeof(found),
			 is_control(*at) || c >= 0x80 ? "byte 0x%02x" : "'%c'", c);
	return topo_fail_at(given, at, "found %s where %s is expected%s%s", found, expected,
			    *hint ? "; " : "", hint);
}
