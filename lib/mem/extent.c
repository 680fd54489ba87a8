/* SPDX-License-Identifier: BSD-3-Clause */
/* First fit over a list in the order of addresses. It is set-up work on few extents: the list is
 * short, and easier to trust than a tree. */
#include "mem_priv.h"

#include <stdlib.h>

struct mem_extent {
	uintptr_t start;
	size_t size_bytes;
	bool used;
	struct mem_extent *prev;
	struct mem_extent *next;
};

int mem_extents_init(struct mem_extents *extents, void *base, size_t size_bytes)
{
	struct mem_extent *e = calloc(1, sizeof(*e));

	if (!e)
		return plx_fail(ENOMEM, "no heap memory to keep account of a zone");
	e->start = (uintptr_t)base;
	e->size_bytes = size_bytes;
	extents->first = e;
	return 0;
}

void mem_extents_fini(struct mem_extents *extents)
{
	struct mem_extent *next;

	for (struct mem_extent *e = extents->first; e; e = next) {
		next = e->next;
		free(e);
	}
	extents->first = NULL;
}

/* Let e keep its first `keep` bytes; the rest becomes an extent of its own, returned. */
static struct mem_extent *split(struct mem_extent *e, size_t keep)
{
	struct mem_extent *rest = calloc(1, sizeof(*rest));

	if (!rest)
		return NULL;
	rest->start = e->start + keep;
	rest->size_bytes = e->size_bytes - keep;
	rest->prev = e;
	rest->next = e->next;
	if (e->next)
		e->next->prev = rest;
	e->next = rest;
	e->size_bytes = keep;
	return rest;
}

static void merge_with_next(struct mem_extent *e)
{
	struct mem_extent *gone = e->next;

	e->size_bytes += gone->size_bytes;
	e->next = gone->next;
	if (e->next)
		e->next->prev = e;
	free(gone);
}

void *mem_extents_take(struct mem_extents *extents, size_t size_bytes, size_t align_bytes)
{
	for (struct mem_extent *e = extents->first; e; e = e->next) {
		size_t gap = mem_round_up(e->start, align_bytes) - e->start;

		if (e->used || e->size_bytes < gap || e->size_bytes - gap < size_bytes)
			continue;
		if (gap && !(e = split(e, gap)))
			return NULL;
		if (e->size_bytes > size_bytes && !split(e, size_bytes)) {
			if (gap)
				merge_with_next(e->prev);
			return NULL;
		}
		e->used = true;
		return (void *)e->start;
	}
	return NULL;
}

size_t mem_extents_give(struct mem_extents *extents, const void *memory)
{
	struct mem_extent *e = extents->first;

	while (e && !(e->used && e->start == (uintptr_t)memory))
		e = e->next;
	if (!e)
		return 0;

	size_t size_bytes = e->size_bytes;
	e->used = false;
	if (e->next && !e->next->used)
		merge_with_next(e);
	if (e->prev && !e->prev->used)
		merge_with_next(e->prev);
	return size_bytes;
}
