/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to lib/mem. Extents allocate parts of an address range, backing.c maps memory from
 * the system, and the host functions report what is available. */
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

/* AddressSanitizer reports use of a free pool object like use of freed heap memory. */
#ifdef MEM_ASAN
#include <sanitizer/asan_interface.h>
#define mem_poison(memory, size)   ASAN_POISON_MEMORY_REGION((memory), (size))
#define mem_unpoison(memory, size) ASAN_UNPOISON_MEMORY_REGION((memory), (size))
#else
#define mem_poison(memory, size)   ((void)(memory), (void)(size))
#define mem_unpoison(memory, size) ((void)(memory), (void)(size))
#endif

extern struct plx_log_component *const mem_log;
extern size_t mem_growth_max; /* of a zone for a smaller request; tests change it */

/** Round up to a multiple of unit, a power of two. */
static inline size_t mem_round_up(size_t size, size_t unit)
{
	return (size + unit - 1) & ~(unit - 1);
}

/* Extents: allocation of addresses, with bookkeeping outside that memory. Not thread-safe. */

struct mem_extent;

#define MEM_EXTENT_LISTS 256

struct mem_extents {
	/* Ordered by address, without gaps; no two neighbours are free. */
	TAILQ_HEAD(mem_extent_row, mem_extent) all;
	LIST_HEAD(mem_extent_list, mem_extent) lists[MEM_EXTENT_LISTS]; /* free extents, by size */
	void *used;                                                     /* by address: tsearch(3) */
};

/** Initialize with one free extent at `base`. Return: 0; -ENOMEM. */
int mem_extents_init(struct mem_extents *extents, void *base, size_t size_bytes);
void mem_extents_fini(struct mem_extents *extents);
/** Take a free range that fits closely. align_bytes is a power of two, size_bytes a multiple of a
 * cache line. Return: NULL if none was found or heap memory is short. */
void *mem_extents_take(struct mem_extents *extents, size_t size_bytes, size_t align_bytes);
/** Give back a range from mem_extents_take. Return: its size; 0 unknown address. */
size_t mem_extents_give(struct mem_extents *extents, const void *memory);

/* The memory of zones: backing.c. Not thread-safe. */

struct mem_ask {
	size_t size_bytes;
	size_t first_bytes; /* populated now; mem_block_populate populates the rest */
	enum plx_huge huge;
	enum plx_numa numa;
	int node;
};

struct mem_zone {
	struct plx_zone pub; /* at least the requested size */
	void *map;           /* the mapping, including the guards on both sides */
	size_t map_bytes;
	bool page_fallback, node_fallback;

	/* Allocation: zone.c. */
	struct mem_extents extents;
	char *clean;     /* never handed out from here on: still zero */
	char *populated; /* pages from here on may be unpopulated */
	size_t used_bytes;
};

/** Map, bind and populate an otherwise zeroed zone. Return: 0; -ENOMEM, the text names what is
 * short. */
int mem_block_map(const struct mem_ask *ask, struct mem_zone *zone);
void mem_block_unmap(struct mem_zone *zone);
/** Populate pages before their first use. Return: 0; -ENOMEM. Thread: any. */
int mem_block_populate(void *from, size_t size_bytes);
/** Assume that later private zones have this zone's page size. NULL: check them. */
void mem_block_learn(const struct plx_zone *zone);

/** Bytes to populate at a time: 512 ordinary pages may take 10 ms in a virtual machine. */
static inline size_t mem_populate_step(enum plx_huge huge)
{
	return huge == PLX_HUGE_NONE ? MEM_2M / 8 : MEM_2M;
}

/** Whether all pages that could be sampled are on that node. */
bool mem_lies_on(const void *base, size_t size_bytes, int node);

/* What the host offers: host.c. */

#define MEM_NODE_MAX 1024 /* node ids, in the kernel's largest configuration */

bool mem_node_exists(int node); /* even without memory, or without any for this process */
bool mem_node_usable(int node); /* it has memory that this process may use */
unsigned mem_node_count(void);  /* usable nodes; at least 1 */
const char *mem_nodes_format(char *out, size_t size); /* usable nodes, "0, 1". Return: out */

/** Bytes that can be populated without running the host or this process' cgroup out of memory: on
 * one node, or anywhere (PLX_NODE_ANY). */
uint64_t mem_available(int node);
/** Read a counter of the huge page pool of this page size ("nr_hugepages", "free_hugepages").
 * Return: 0 if the system has no such pool. */
uint64_t mem_hugepages(size_t page_bytes, const char *counter);

/** Bytes in transparent huge pages of the private mapping at `base`, as /proc/self/smaps shows; 0:
 * unknown. */
size_t mem_huge_bytes(const void *base);
/** Format as "2 MiB" or "1.5 GiB". Return: out. */
const char *mem_format_bytes(char *out, size_t size, uint64_t bytes);

/* Zones: zone.c. */

/** plx_mem_alloc that returns its errno. */
int mem_alloc(size_t size_bytes, size_t align_bytes, int node, void **memory_out);
/** The index of the zone that contains all these bytes, or PLX_ZONE_NONE. Thread: any. */
uint32_t mem_zone_index(const void *memory, size_t size_bytes);

/* Pools. pool.c creates and inspects them. pool_use.c is the slow path of the inline get and put of
 * plx_mem.h; pool_owned.c and pool_shared.c implement it for the two kinds. */

#ifdef NDEBUG
#define POOL_CHECKED 0
#else
#define POOL_CHECKED 1 /* a mark per object, and a canary after it */
#endif
#define POOL_CANARY_BYTES (POOL_CHECKED ? sizeof(uint64_t) : 0)

/* Whether every get and put checks or poisons the objects. */
#if POOL_CHECKED || defined(MEM_ASAN)
#define POOL_WATCHED 1
#else
#define POOL_WATCHED 0
#endif

/** The start of an owned pool's object while it is on the list. */
struct pool_returned {
	struct pool_returned *next;
};

/** An lcore's objects: its cache of a shared pool, or the stack of a pool that it owns. Atomic
 * members are statistics. Relaxed: a figure may be slightly old and nothing else is read through
 * it. */
struct pool_cache {
	struct plx_pool_cache pub;

	/* Owned pools. */
	_Atomic uint32_t collected;  /* how many of listed_count reached the stack */
	struct pool_returned *taken; /* taken off the list, not yet on the stack */

	/* Shared pools. */
	bool is_dry; /* the last get found no object */
	_Atomic uint64_t empty, refills, spills;
	struct pool_cache *next; /* next cache of the pool */
};

_Static_assert(sizeof(struct pool_cache) <= PLX_CACHE_LINE, "the stack begins at the next line");

struct pool {
	/* Constant. */
	struct plx_pool pub;
	uint32_t lcore_count; /* pub.lcore_count, which checks may set to 0 */
	uint32_t owner;
	uint32_t object_count;
	uint32_t cache_count;   /* shared: objects per cache */
	struct pool_cache *own; /* owned */
	struct plx_ring *ring;  /* shared: free objects outside the caches */
	PLX_ALIGNED_LINE char *objects;
	size_t stride_bytes, object_bytes;
	_Atomic uint8_t *marks;        /* one per object; NULL in release builds */
	_Atomic uint32_t *spare_links; /* shared: one per object */
	LIST_ENTRY(pool) all;

	/* Written by any thread. */
	PLX_ALIGNED_LINE _Atomic(struct pool_returned *) list; /* owned */
	_Atomic uint64_t spare;                                /* shared: see pool_shared.c */
	_Atomic uint32_t listed_count; /* owned: objects ever listed; shared: spare objects */
	_Atomic uint32_t low_water;
	_Atomic uint64_t empty; /* shared: of threads without a cache */
	_Atomic(struct pool_cache *) first_cache;

	char name[32];
};

static inline struct pool *pool_of(const struct plx_pool *pub)
{
	return plx_container_of(pub, struct pool, pub);
}

static inline bool pool_is_shared(const struct pool *pool)
{
	return pool->owner == PLX_LCORE_NONE;
}

/** The number of the object, counted from 0. */
static inline uint32_t pool_number(const struct pool *pool, const void *object)
{
	return (uint32_t)((size_t)((const char *)object - pool->objects) / pool->stride_bytes);
}

/** Poison a free object, except its link. */
static inline void pool_poison(const struct pool *pool, void *object)
{
	mem_poison((char *)object + sizeof(struct pool_returned),
		   pool->object_bytes - sizeof(struct pool_returned));
}

uint32_t pool_available(const struct pool *pool);               /* free objects now */
void *mem_pool_object(const struct plx_pool *pool, uint32_t i); /* the i-th, free or not */
void pool_put_canary(const struct pool *pool, void *object);    /* if debug builds check it */
void mem_pools_forget(void); /* logs the name of each remaining pool */
/** The size of a cache, or of an owned pool's stack, in whole private lines. */
size_t pool_cache_bytes(uint32_t object_count);

/** Get when the stack holds too few objects, or the low-water mark may change. Thread: owner. */
uint32_t pool_owned_get(struct pool *pool, void **objects, uint32_t count);
/** Push objects to the list of an owned pool. Thread: any. */
void pool_list_push(struct pool *pool, void *const *objects, uint32_t count);

/** The cache of threads without one: always both empty and full. */
extern struct pool_cache pool_no_cache;
/** Get when the cache holds too few objects, and put when it has too little room. */
uint32_t pool_shared_get(struct pool *pool, struct pool_cache *cache, void **objects,
			 uint32_t count);
void pool_shared_put(struct pool *pool, struct pool_cache *cache, void *const *objects,
		     uint32_t count);

#endif
