/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/mem know of each other: extents hand out parts of a stretch of addresses,
 * a block is memory mapped from the system, and the host says what there is to be had. */
#ifndef MEM_PRIV_H
#define MEM_PRIV_H

#include "counter.h"
#include "list.h"
#include "plx_mem.h"
#include "plx_ring.h"

#include <stdatomic.h>
#include <string.h>

#define MEM_4K ((size_t)4 << 10)
#define MEM_1M ((size_t)1 << 20)
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

/** The longest zone that is taken for less. For tests. */
extern size_t mem_growth_max;

/* Extents: bookkeeping of addresses, kept outside the memory they stand for. Not thread-safe. */

struct mem_extent;

#define MEM_EXTENT_LISTS 256

struct mem_extents {
	/* By address, without gaps, no two free ones side by side. */
	TAILQ_HEAD(mem_extent_row, mem_extent) all;
	LIST_HEAD(mem_extent_list, mem_extent) lists[MEM_EXTENT_LISTS]; /* free ones, by size */
	uint64_t any[MEM_EXTENT_LISTS / 64];                            /* whether a list has one */
	void *used;                                                     /* by address: tsearch(3) */
};

/** One free extent from base on. Return: 0; -ENOMEM. */
int mem_extents_init(struct mem_extents *extents, void *base, size_t size_bytes);
void mem_extents_fini(struct mem_extents *extents);

/** Take a free stretch that fits, of a size near that one; align_bytes is a power of two,
 * size_bytes a multiple of a cache line. NULL: none was found, or no heap memory. */
void *mem_extents_take(struct mem_extents *extents, size_t size_bytes, size_t align_bytes);

/** Give back what take returned. Returns its size; 0: that address is not one. */
size_t mem_extents_give(struct mem_extents *extents, const void *memory);

/* Blocks: memory from the system, on a node. Not thread-safe. */

struct mem_ask {
	size_t size_bytes;
	size_t first_bytes; /* of those, which are needed now; the others are mem_block_populate's
			     */
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

/** Later private blocks are taken for of that kind, and not looked at; NULL: they are looked at. */
void mem_block_learn(const struct mem_block *block);

/** How much is populated at a time: 512 ordinary pages may take 10 ms in a virtual machine. */
static inline size_t mem_populate_step(enum plx_huge huge)
{
	return huge == PLX_HUGE_NONE ? MEM_2M / 8 : MEM_2M;
}

/** Give the pages from there on their memory, before they are used. Return: 0; -ENOMEM. Thread:
 * any. */
int mem_block_populate(const struct mem_block *block, void *from, size_t size_bytes);

/** False if a look at some pages shows one on another node; true if not, or none can be looked at.
 */
bool mem_lies_on(const void *base, size_t size_bytes, int node);

/* The host. */

/** Node ids are below it, as in the kernel's largest configuration. */
#define MEM_NODE_MAX 1024

/** Whether this host has the node: be it without memory, or with memory for others alone. */
bool mem_node_exists(int node);

/** Whether the node has memory that this process may use. */
bool mem_node_usable(int node);

/** Of the usable nodes; at least 1. */
unsigned mem_node_count(void);

/** Write the usable nodes as "0, 1". Returns out. */
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

/* Zones. */

/** plx_mem_alloc with its errno. */
int mem_alloc(size_t size_bytes, size_t align_bytes, int node, const struct plx_zone **zone_out,
	      void **memory_out);

/** The index of the zone that all those bytes lie in, or PLX_ZONE_NONE. Thread: any. */
uint32_t mem_zone_index(const void *memory, size_t size_bytes);

/* Pools. pool.c makes them and looks at them. pool_use.c gets and puts where the inline functions
 * of plx_mem.h do not get on, with pool_owned.c and pool_shared.c for the two kinds. Each has a
 * place for what cannot go where it should: pool_list.c and pool_spare.c. */

#ifdef NDEBUG
#define POOL_CHECKED 0
#else
#define POOL_CHECKED 1 /* marks per object, and a canary behind each */
#endif
#define POOL_CANARY_BYTES (POOL_CHECKED ? sizeof(uint64_t) : 0)

/* Whether something is done to each object that leaves a pool or comes back. */
#if POOL_CHECKED || defined(MEM_ASAN)
#define POOL_WATCHED 1
#else
#define POOL_WATCHED 0
#endif

/** What lies at the start of an object of an owned pool while it is on the list. */
struct pool_returned {
	struct pool_returned *next;
};

/** What an lcore has at hand: a cache of a shared pool, or all that its own pool has. Atomic is
 * what others add up for statistics; relaxed, as a figure may be a moment old and nothing else is
 * read through it. */
struct pool_cache {
	struct plx_pool_cache pub;
	bool is_dry; /* shared: the last get found nothing */
	_Atomic uint64_t empty;

	/* Of an owned pool. */
	_Atomic uint32_t low_water;
	_Atomic uint32_t collected;  /* of listed_count, how many came to the stack */
	struct pool_returned *taken; /* off the list, not yet in the stack */

	/* Of a shared one. */
	_Atomic uint64_t refills;
	_Atomic uint64_t spills;
	struct pool_cache *next; /* of the pool's */
};

_Static_assert(sizeof(struct pool_cache) <= PLX_CACHE_LINE, "the stack begins at the next line");

struct pool {
	/* Constant. */
	struct plx_pool pub;
	uint32_t lcore_count; /* as pub.lcore_count, where that is not 0 for the sake of checks */
	uint32_t owner;
	uint32_t object_count;
	uint32_t cache_count;   /* objects of one cache of a shared pool */
	struct pool_cache *own; /* of an owned pool */
	struct plx_ring *ring;  /* of a shared pool: what lies free and in no cache */
	PLX_ALIGNED_LINE char *objects;
	size_t stride_bytes;
	size_t object_bytes;
	_Atomic uint8_t *marks;        /* one per object; NULL in release builds */
	_Atomic uint32_t *spare_links; /* shared: one per object */
	const struct plx_zone *zone;
	LIST_ENTRY(pool) all;

	/* Written by any thread. */
	PLX_ALIGNED_LINE _Atomic(struct pool_returned *) list; /* owned */
	_Atomic uint64_t spare;                                /* shared: see pool_spare.c */
	_Atomic uint32_t listed_count; /* owned: that ever were on the list; shared: spare ones */
	_Atomic uint32_t low_water;    /* shared */
	_Atomic uint64_t empty;        /* shared: for threads without a cache */
	_Atomic(struct pool_cache *) first_cache;

	char name[32];
};

static inline struct pool *pool_of(struct plx_pool *pub)
{
	return plx_container_of(pub, struct pool, pub);
}

static inline bool pool_is_shared(const struct pool *pool)
{
	return pool->owner == PLX_LCORE_NONE;
}

/* The caches of a shared pool, by next. */
static inline struct pool_cache *pool_first_cache(const struct pool *pool)
{
	/* C2 <- C1: a cache is filled in before others see it. */
	return atomic_load_explicit(&pool->first_cache, memory_order_acquire);
}

/* Relaxed: a cache is its lcore's own. */
static inline uint32_t pool_cached(const struct pool_cache *cache)
{
	return counter_get(&cache->pub.count);
}

static inline void pool_set_cached(struct pool_cache *cache, uint32_t count)
{
	counter_set(&cache->pub.count, count);
}

/** Which object it is, counted from 0. */
static inline uint32_t pool_number(const struct pool *pool, const void *object)
{
	return (uint32_t)((size_t)((const char *)object - pool->objects) / pool->stride_bytes);
}

/** Mark what lies free, but for the link. */
static inline void pool_poison(const struct pool *pool, void *object)
{
	mem_poison((char *)object + sizeof(struct pool_returned),
		   pool->object_bytes - sizeof(struct pool_returned));
}

/** Objects that are free just now. */
uint32_t pool_available(const struct pool *pool);

/** The checks of debug builds on an object that leaves a pool, and on one that comes back. */
void pool_check_get(struct pool *pool, const void *object);
void pool_check_put(struct pool *pool, const void *object);
void pool_put_canary(const struct pool *pool, void *object);

/** Put objects on the list of an owned pool. Thread: any. */
void pool_list_push(struct pool *pool, void *const *objects, uint32_t count);

/** Take the whole list: links, or NULL. Thread: the owner. */
struct pool_returned *pool_list_take(struct pool *pool);

/** Put at least one object on the spare ones of a shared pool. Thread: any. */
void pool_spare_push(struct pool *pool, void *const *objects, uint32_t count);

/** Take up to `count` of them. Returns how many. Thread: any. */
uint32_t pool_spare_pop(struct pool *pool, void **objects, uint32_t count);

/** Get where the stack holds too few, or there may be a new low-water mark. Thread: the owner. */
uint32_t pool_owned_get(struct pool *pool, void **objects, uint32_t count);

/** The cache of all who have none: always empty, always full. */
extern struct pool_cache pool_no_cache;

/** Get where the cache holds too few, and put where it has too little room. */
uint32_t pool_shared_get(struct pool *pool, struct pool_cache *cache, void **objects,
			 uint32_t count);
void pool_shared_put(struct pool *pool, struct pool_cache *cache, void *const *objects,
		     uint32_t count);

/** Objects in all caches. Thread: any. */
uint32_t pool_shared_in_caches(const struct pool *pool);

/** Bytes of one cache, or of the stack of an owned pool, with the lines that are its alone. */
size_t pool_cache_bytes(uint32_t object_count);

/** Log the name of each pool that is left, and forget them. */
void mem_pools_forget(void);

/** The i-th object of a pool, whether free or not. */
void *mem_pool_object(const struct plx_pool *pool, uint32_t i);

#endif
