/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/mem know of each other: extents hand out parts of a stretch of addresses,
 * a block is memory mapped from the system, and the host says what there is to be had. */
#ifndef MEM_PRIV_H
#define MEM_PRIV_H

#include "plx_mem.h"

#define MEM_4K ((size_t)4 << 10)
#define MEM_2M ((size_t)2 << 20)
#define MEM_1G ((size_t)1 << 30)

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEM_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define MEM_ASAN 1
#endif

/* AddressSanitizer sees a use of what lies free in a pool as it sees one of freed heap memory. */
#ifdef MEM_ASAN
#include <sanitizer/asan_interface.h>
#define mem_poison(memory, size)   ASAN_POISON_MEMORY_REGION((memory), (size))
#define mem_unpoison(memory, size) ASAN_UNPOISON_MEMORY_REGION((memory), (size))
#else
#define mem_poison(memory, size)   ((void)(memory), (void)(size))
#define mem_unpoison(memory, size) ((void)(memory), (void)(size))
#endif

/** The component "mem". */
extern struct plx_log_component *const mem_log;

/** The next multiple of unit, a power of two. */
static inline size_t mem_round_up(size_t size, size_t unit)
{
	return (size + unit - 1) & ~(unit - 1);
}

/* Extents: bookkeeping of addresses, kept outside the memory they stand for. Not thread-safe. */

struct mem_extent;

struct mem_extents {
	struct mem_extent *first; /* by address, without gaps, no two free ones side by side */
};

/** One free extent from base on. Return: 0; -ENOMEM. */
int mem_extents_init(struct mem_extents *extents, void *base, size_t size_bytes);
void mem_extents_fini(struct mem_extents *extents);

/** Take the first free stretch that fits; align_bytes is a power of two. NULL: no room. */
void *mem_extents_take(struct mem_extents *extents, size_t size_bytes, size_t align_bytes);

/** Give back what take returned. Returns its size; 0: that address is not one. */
size_t mem_extents_give(struct mem_extents *extents, const void *memory);

/* Blocks: memory from the system, on a node. Not thread-safe. */

struct mem_ask {
	size_t size_bytes;
	enum plx_huge huge;
	enum plx_numa numa;
	int node;
};

struct mem_block {
	void *base;
	size_t size_bytes; /* at least what was asked for */
	void *map;         /* what to unmap: with the guards on both sides */
	size_t map_bytes;
	size_t page_bytes;
	enum plx_backing backing;
	bool page_fallback;
	bool node_fallback;
};

/** Map, bind and populate. Return: 0; -ENOMEM with the text telling what is short. */
int mem_block_map(const struct mem_ask *ask, struct mem_block *block_out);
void mem_block_unmap(struct mem_block *block);

/** False if a look at some pages shows one on another node; true if not, or none can be looked at.
 */
bool mem_lies_on(const void *base, size_t size_bytes, int node);

/* The host. */

/** Node ids are below it, as in the kernel's largest configuration. */
#define MEM_NODE_MAX 1024

/** Whether the node has memory that this process may use. */
bool mem_node_exists(int node);

/** Write the nodes that exist as "0, 1". Returns out. */
const char *mem_nodes_format(char *out, size_t size);

/** Bytes that can be populated without driving the host, or this process' cgroup, out of memory:
 * on one node, or (PLX_NODE_ANY) anywhere. */
uint64_t mem_available(int node);

/** A counter of the pool of huge pages of that size ("nr_hugepages", "free_hugepages"). Returns 0
 * where the system has none. */
uint64_t mem_hugepages(size_t page_bytes, const char *counter);

/** What /proc/self/smaps says of a mapping. */
struct mem_smaps {
	size_t kernel_page_bytes;
	size_t anon_huge_bytes;
	size_t hugetlb_bytes;
};

/** Return: 0; -ENOENT no such mapping; -errno. */
int mem_smaps_read(const void *base, struct mem_smaps *smaps_out);

/** "2 MiB", "1.5 GiB". Returns out. */
const char *mem_format_bytes(char *out, size_t size, uint64_t bytes);

/* Zones and pools. */

/** plx_mem_alloc with its errno. */
int mem_alloc(size_t size_bytes, size_t align_bytes, int node, const struct plx_zone **zone_out,
	      void **memory_out);

/** The index of the zone that all those bytes lie in, or PLX_ZONE_NONE. Thread: any. */
uint32_t mem_zone_index(const void *memory, size_t size_bytes);

/** Log the name of each pool that is left, and forget them. */
void mem_pools_forget(void);

/** The i-th object of a pool, whether free or not. */
void *mem_pool_object(const struct plx_pool *pool, uint32_t i);

#endif
