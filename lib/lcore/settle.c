/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves pages that a thread used before it became an lcore. Its stack and thread-local variables
 * are first written by its creator, and by its own first calls before it is pinned. They may be on
 * another NUMA node. */
#include "lcore_priv.h"

#include <numaif.h>

#define PAGE_BYTES ((size_t)4096)
#define PAGES_MAX  64 /* per call */
/* The part of the stack that is used first; the lcore is the first to write the rest. */
#define STACK_BYTES ((size_t)1 << 20)

/* Pages that do not exist yet, or that cannot be moved, stay. */
static void move_pages_at(const void *base, size_t count, int node)
{
	char *first = (char *)((uintptr_t)base / PAGE_BYTES * PAGE_BYTES);
	void *pages[PAGES_MAX];
	int nodes[PAGES_MAX];
	int status[PAGES_MAX];

	for (size_t i = 0; i < count; i++) {
		pages[i] = first + i * PAGE_BYTES;
		nodes[i] = node;
	}
	move_pages(0, count, pages, nodes, status, MPOL_MF_MOVE);
}

static void move_stack(int node)
{
	const size_t step_bytes = PAGES_MAX * PAGE_BYTES;
	size_t size_bytes = 0;
	void *stack = NULL;
	pthread_attr_t attr;

	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (pthread_attr_getstack(&attr, &stack, &size_bytes))
		size_bytes = 0;
	pthread_attr_destroy(&attr);
	for (size_t up = step_bytes; up <= STACK_BYTES && up <= size_bytes; up += step_bytes)
		move_pages_at((char *)stack + size_bytes - up, PAGES_MAX, node);
}

void lcore_settle(int node)
{
	if (node < 0)
		return;
	move_stack(node);
	/* The main thread's thread-local variables are not on its stack. */
	move_pages_at(&loop_self, 1, node);
	move_pages_at(&plx_lcore_id_tls, 1, node);
}
