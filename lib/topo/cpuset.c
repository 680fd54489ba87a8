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

struct plx_cpuset plx_cpuset_and(const struct plx_cpuset *a, const struct plx_cpuset *b)
{
	struct plx_cpuset both;

	for (size_t i = 0; i < WORDS; i++)
		both.words[i] = a->words[i] & b->words[i];
	return both;
}

void plx_cpuset_add_all(struct plx_cpuset *set, const struct plx_cpuset *more)
{
	for (size_t i = 0; i < WORDS; i++)
		set->words[i] |= more->words[i];
}

void plx_cpuset_remove_all(struct plx_cpuset *set, const struct plx_cpuset *less)
{
	for (size_t i = 0; i < WORDS; i++)
		set->words[i] &= ~less->words[i];
}

const char *plx_cpuset_format(const struct plx_cpuset *set, char *out, size_t size)
{
	struct plx_text text = {.out = out, .size = size};

	if (plx_cpuset_next(set, 0) == PLX_CPU_MAX)
		plx_text_add(&text, "none");
	topo_text_ids(&text, set);
	return topo_text_end(&text);
}

void topo_text_item(struct plx_text *text)
{
	if (text->used && text->used < text->size && !strchr("(@,", text->out[text->used - 1]))
		plx_text_add(text, ",");
}

void topo_text_ids(struct plx_text *text, const struct plx_cpuset *ids)
{
	unsigned last;

	for (unsigned id = plx_cpuset_next(ids, 0); id < PLX_CPU_MAX;
	     id = plx_cpuset_next(ids, last + 1)) {
		for (last = id; plx_cpuset_has(ids, last + 1);)
			last++;
		topo_text_item(text);
		plx_text_add(text, last > id ? "%u-%u" : "%u", id, last);
	}
}

const char *topo_text_end(struct plx_text *text)
{
	size_t keep = text->size > sizeof(",...") ? text->size - sizeof(",...") : 0;

	if (text->size && !text->used)
		text->out[0] = '\0';
	if (!text->size || text->used < text->size)
		return text->out;
	while (keep && text->out[keep] != ',')
		keep--;
	snprintf(text->out + keep, text->size - keep, "%s...", keep ? "," : "");
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

int topo_fail_no_lcore(const struct topo_given *given, const char *at, const char *what,
		       unsigned cpu, const char *advice)
{
	return topo_fail_at(
		given, at,
		"%s%u is no lcore id (lcore ids are 0 to %d); to run an lcore on CPU %u "
		"%s ID@%u, with a free lcore id",
		what, cpu, PLX_LCORE_MAX - 1, cpu, advice, cpu);
}
