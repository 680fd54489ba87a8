/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU sets, the length-limited lists that print them, and the error texts of both parsers: what was
 * given, the position of the error, what is allowed there. */
#include "topo_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WORDS PLX_ARRAY_LEN(((struct plx_cpuset *)0)->words)

unsigned plx_cpuset_count(const struct plx_cpuset *set)
{
	unsigned count = 0;

	for (size_t i = 0; i < WORDS; i++)
		count += (unsigned)__builtin_popcountll(set->words[i]);
	return count;
}

unsigned plx_cpuset_next(const struct plx_cpuset *set, unsigned from)
{
	if (from >= PLX_CPU_MAX)
		return PLX_CPU_MAX;

	size_t i = from / 64;
	uint64_t word = set->words[i] & UINT64_MAX << (from % 64);

	while (!word) {
		if (++i == WORDS)
			return PLX_CPU_MAX;
		word = set->words[i];
	}
	return (unsigned)i * 64 + (unsigned)__builtin_ctzll(word);
}

bool plx_cpuset_equal(const struct plx_cpuset *a, const struct plx_cpuset *b)
{
	return memcmp(a->words, b->words, sizeof(a->words)) == 0;
}

void topo_cpuset_add_range(struct plx_cpuset *set, unsigned first, unsigned last)
{
	if (last >= PLX_CPU_MAX)
		last = PLX_CPU_MAX - 1;
	for (unsigned cpu = first; cpu <= last; cpu++)
		plx_cpuset_add(set, cpu);
}

struct plx_cpuset topo_cpuset_and(const struct plx_cpuset *a, const struct plx_cpuset *b)
{
	struct plx_cpuset both;

	for (size_t i = 0; i < WORDS; i++)
		both.words[i] = a->words[i] & b->words[i];
	return both;
}

const char *plx_cpuset_format(const struct plx_cpuset *set, char *out, size_t size)
{
	struct topo_text text;

	topo_text_start(&text, out, size);
	if (plx_cpuset_next(set, 0) == PLX_CPU_MAX)
		topo_text_add(&text, "none");
	topo_text_ids(&text, set);
	return topo_text_end(&text);
}

void topo_text_start(struct topo_text *text, char *out, size_t size)
{
	*text = (struct topo_text){.out = out, .size = size};
	if (size)
		out[0] = '\0';
}

void topo_text_item(struct topo_text *text)
{
	if (!text->nested && !text->cut && text->used + sizeof(",...") <= text->size)
		text->keep = text->used;
	if (text->used && !strchr("(@,", text->out[text->used - 1]))
		topo_text_add(text, ",");
}

void topo_text_add(struct topo_text *text, const char *format, ...)
{
	va_list args;

	if (text->cut)
		return;
	va_start(args, format);
	int n = vsnprintf(text->out + text->used, text->size - text->used, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= text->size - text->used)
		text->cut = true;
	else
		text->used += (size_t)n;
}

void topo_text_ids(struct topo_text *text, const struct plx_cpuset *ids)
{
	for (unsigned first = plx_cpuset_next(ids, 0); first < PLX_CPU_MAX && !text->cut;) {
		unsigned last = first;

		while (plx_cpuset_has(ids, last + 1))
			last++;
		topo_text_item(text);
		topo_text_add(text, "%u", first);
		if (last > first)
			topo_text_add(text, "-%u", last);
		first = plx_cpuset_next(ids, last + 1);
	}
}

const char *topo_text_end(struct topo_text *text)
{
	if (text->cut && text->size)
		snprintf(text->out + text->keep, text->size - text->keep, "%s...",
			 text->keep ? "," : "");
	return text->out;
}

/* Errors ----------------------------------------------------------------------------------- */

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
