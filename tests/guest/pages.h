/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of pages, queried page by page from the system (move_pages(2)) instead of the
 * library. */
#ifndef PAGES_H
#define PAGES_H

#include "plx_mem.h"
#include "plx_test.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES  ((size_t)4096)
#define SKIP_STATUS 77 /* meson's */

/** The number of nodes with memory in the guest, from the guest; 0: not in the guest. */
static inline int guest_nodes(void)
{
	const char *nodes = getenv("PLX_GUEST_NODES");

	return nodes ? atoi(nodes) : 0;
}

/** The guest's node with a CPU and no memory; -1: not in the guest. */
static inline int guest_bare_node(void)
{
	const char *node = getenv("PLX_GUEST_BARE_NODE");

	return node ? atoi(node) : -1;
}

/** The node of a page, or -errno: -ENOENT and -EFAULT if it does not exist yet. */
static inline int page_node(const void *address)
{
	void *page = (void *)((uintptr_t)address / PAGE_BYTES * PAGE_BYTES);
	int status = -EIO;

	return move_pages(0, 1, &page, NULL, &status, 0) == 0 ? status : -errno;
}

/** Whether this host reports page nodes: some containers forbid it. */
static inline bool pages_can_be_seen(void)
{
	int here;

	return page_node(&here) >= 0;
}

/** Fail unless all present pages are on the node, and at least `least` are present. what: for the
 * text. */
static inline void assert_pages_on(const char *what, const void *base, size_t size_bytes, int node,
				   size_t least)
{
	const char *start = (const char *)((uintptr_t)base / PAGE_BYTES * PAGE_BYTES);
	size_t present = 0;

	for (const char *at = start; at < (const char *)base + size_bytes; at += PAGE_BYTES) {
		int is_on = page_node(at);

		present += is_on >= 0;
		if (is_on >= 0 && is_on != node)
			fail_msg("%s: the page %zu bytes from its start lies on node %d, not %d",
				 what, (size_t)(at - start), is_on, node);
	}
	if (present < least)
		fail_msg("%s: %zu pages are there, not %zu", what, present, least);
}

static inline void assert_lies_on(const char *what, const void *base, size_t size_bytes, int node)
{
	assert_pages_on(what, base, size_bytes, node, 1);
}

/** Fail unless every page is present and on the node. */
static inline void assert_populated_on(const char *what, const void *base, size_t size_bytes,
				       int node)
{
	size_t first = (uintptr_t)base / PAGE_BYTES;
	size_t last = ((uintptr_t)base + size_bytes - 1) / PAGE_BYTES;

	assert_pages_on(what, base, size_bytes, node, last - first + 1);
}

/** Initialize memory with that policy. */
static inline void use(enum plx_huge huge, enum plx_numa numa)
{
	struct plx_mem_conf conf = {.huge = huge, .numa = numa};

	assert_works(plx_mem_init(&conf));
}

static inline struct plx_mem_stats mem_stats(void)
{
	struct plx_mem_stats stats;

	plx_mem_stats_read(&stats);
	return stats;
}

/** Free huge pages of 2 MiB on the node. */
static inline size_t node_free_huge(int node)
{
	char path[128];
	size_t count = 0;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/free_hugepages", node);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%zu", &count), 1);
	fclose(file);
	return count;
}

/** Allocate all huge pages of the node except `leave`. size_out: for munmap. Returns the
 * allocation. */
static inline void *node_fill_huge(int node, size_t leave, size_t *size_out)
{
	unsigned long nodes = 1ul << node;
	size_t count = node_free_huge(node);

	assert_true(count > leave);
	*size_out = (count - leave) << 21;
	void *taken = mmap(NULL, *size_out, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	assert_ptr_not_equal(taken, MAP_FAILED);
	assert_int_equal(mbind(taken, *size_out, MPOL_BIND, &nodes, 8 * sizeof(nodes), 0), 0);
	memset(taken, 1, *size_out);
	assert_int_equal(node_free_huge(node), leave);
	return taken;
}

#endif
