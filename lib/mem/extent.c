/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocate parts of an address range. Free extents are in lists by size, so finding one takes
 * constant time: four lists per power of two (as in Masmano, Ripoll, Crespo, Real, "TLSF: a New
 * Dynamic Memory Allocator for Real-Time Systems", ECRTS 2004). Used extents are in a tree by
 * address. */
#include "mem_priv.h"

#include <search.h>
#include <stdlib.h>

#define UNIT_SHIFT 6 /* sizes are multiples of a cache line */
#define PARTS      4 /* lists per power of two */

/* Extents tried in a list where not all fit, before a longer one is cut. */
#define LOOKS 8

struct mem_extent {
	uintptr_t start; /* first: see by_start */
	size_t size_bytes;
	bool used;
	TAILQ_ENTRY(mem_extent) all;
	LIST_ENTRY(mem_extent) list; /* if free */
};

static int by_start(const void *a, const void *b)
{
	uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;

	return (left > right) - (left < right);
}

/* The list for this size: all higher lists hold longer extents. */
static unsigned list_of(size_t size_bytes)
{
	size_t units = size_bytes >> UNIT_SHIFT;
	unsigned log = units ? 63 - (unsigned)__builtin_clzll(units) : 0;

	return log * PARTS + (unsigned)(units * PARTS >> log) % PARTS;
}

static void put_free(struct mem_extents *extents, struct mem_extent *e)
{
	e->used = false;
	LIST_INSERT_HEAD(&extents->lists[list_of(e->size_bytes)], e, list);
}

static void take_free(struct mem_extent *e)
{
	e->used = true;
	LIST_REMOVE(e, list);
}

static size_t gap_before(const struct mem_extent *e, size_t align_bytes)
{
	return mem_round_up(e->start, align_bytes) - e->start;
}

static bool fits(const struct mem_extent *e, size_t size_bytes, size_t align_bytes)
{
	size_t gap = gap_before(e, align_bytes);

	return e->size_bytes >= gap && e->size_bytes - gap >= size_bytes;
}

/* In a higher list every extent fits, except for alignment; up to that list, try a few of each. */
static struct mem_extent *find(const struct mem_extents *extents, size_t size_bytes,
			       size_t align_bytes)
{
	for (unsigned list = list_of(size_bytes); list < MEM_EXTENT_LISTS; list++) {
		struct mem_extent *e = LIST_FIRST(&extents->lists[list]);

		for (unsigned looks = LOOKS; e && looks; looks--, e = LIST_NEXT(e, list)) {
			if (fits(e, size_bytes, align_bytes))
				return e;
		}
	}
	return NULL;
}

int mem_extents_init(struct mem_extents *extents, void *base, size_t size_bytes)
{
	struct mem_extent *e = calloc(1, sizeof(*e));

	*extents = (struct mem_extents){0};
	TAILQ_INIT(&extents->all);
	if (!e)
		return plx_fail(ENOMEM, "no heap memory to keep account of a zone");
	TAILQ_INSERT_HEAD(&extents->all, e, all);
	e->start = (uintptr_t)base;
	e->size_bytes = size_bytes;
	put_free(extents, e);
	return 0;
}

void mem_extents_fini(struct mem_extents *extents)
{
	struct mem_extent *e, *after;

	TAILQ_FOREACH_SAFE (e, &extents->all, all, after) {
		if (e->used)
			tdelete(e, &extents->used, by_start);
		free(e);
	}
	*extents = (struct mem_extents){0};
}

/* Shrink `e`, which is in use, to its first `keep` bytes. Return: the rest, in use too; NULL: no
 * heap memory. */
static struct mem_extent *split(struct mem_extents *extents, struct mem_extent *e, size_t keep)
{
	struct mem_extent *rest = calloc(1, sizeof(*rest));

	if (!rest)
		return NULL;
	rest->start = e->start + keep;
	rest->size_bytes = e->size_bytes - keep;
	rest->used = true;
	TAILQ_INSERT_AFTER(&extents->all, e, rest, all);
	e->size_bytes = keep;
	return rest;
}

/* Append `next` to `e`; neither is in a list. */
static void merge(struct mem_extents *extents, struct mem_extent *e, struct mem_extent *next)
{
	e->size_bytes += next->size_bytes;
	TAILQ_REMOVE(&extents->all, next, all);
	free(next);
}

/* Free the extent and merge it with free neighbours. */
static void join(struct mem_extents *extents, struct mem_extent *e)
{
	struct mem_extent *next = TAILQ_NEXT(e, all), *prev = TAILQ_PREV(e, mem_extent_row, all);

	if (next && !next->used) {
		take_free(next);
		merge(extents, e, next);
	}
	if (prev && !prev->used) {
		take_free(prev);
		merge(extents, prev, e);
		e = prev;
	}
	put_free(extents, e);
}

/* Cut a part out of a free extent. Return: NULL if heap memory is short; then nothing changes. */
static struct mem_extent *cut(struct mem_extents *extents, struct mem_extent *e, size_t size_bytes,
			      size_t align_bytes)
{
	struct mem_extent *gap = e, *rest = NULL;
	size_t gap_bytes = gap_before(e, align_bytes);

	take_free(e);
	if (gap_bytes) {
		e = split(extents, gap, gap_bytes);
		put_free(extents, gap);
	}
	if (e && e->size_bytes > size_bytes) {
		rest = split(extents, e, size_bytes);
		if (rest)
			put_free(extents, rest);
	}
	if (e && e->size_bytes == size_bytes && tsearch(e, &extents->used, by_start))
		return e;
	if (e)
		join(extents, e);
	return NULL;
}

void *mem_extents_take(struct mem_extents *extents, size_t size_bytes, size_t align_bytes)
{
	struct mem_extent *e = find(extents, size_bytes, align_bytes);

	e = e ? cut(extents, e, size_bytes, align_bytes) : NULL;
	return e ? (void *)e->start : NULL;
}

size_t mem_extents_give(struct mem_extents *extents, const void *memory)
{
	uintptr_t start = (uintptr_t)memory;
	struct mem_extent **found = tfind(&start, &extents->used, by_start);
	struct mem_extent *e = found ? *found : NULL;
	size_t size_bytes;

	if (!e)
		return 0;
	size_bytes = e->size_bytes;
	tdelete(e, &extents->used, by_start);
	join(extents, e);
	return size_bytes;
}
