/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that a thread brings along when it becomes an lcore. Its stack and its thread-local
 * variables are in use before it is pinned: its creator writes to them, and it runs its first calls
 * wherever the system starts it. What was written first on another node is moved. */
#include "lcore_priv.h"

#include <numaif.h>

#define PAGE_BYTES ((size_t)4096)
#define PAGES_MAX  64 /* moved by one call */
/* Of the stack, at the end that was used first. The rest is first written by the lcore. */
#define STACK_BYTES ((size_t)1 << 20)

/* Pages that are not there yet, or that the system does not let move, stay as they are. */
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
	/* The main thread's are not on its stack. */
	move_pages_at(&loop_self, 1, node);
	move_pages_at(&plx_lcore_id_tls, 1, node);
}
