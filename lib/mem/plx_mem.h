/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Memory: zones of huge pages on a NUMA node, pools of equal objects, and message buffers.
 */
#ifndef PLX_MEM_H
#define PLX_MEM_H

#include "plx_base.h"

#include <string.h>

PLX_BEGIN_DECLS

/* Zones ------------------------------------------------------------------------------------ */

#define PLX_ZONE_MAX 256
#define PLX_NODE_ANY (-1)

enum plx_huge {
	PLX_HUGE_2M,   /**< 2 MiB pages, the default */
	PLX_HUGE_1G,   /**< 1 GiB pages */
	PLX_HUGE_NONE, /**< ordinary pages */
};

enum plx_numa {
	PLX_NUMA_PREFER, /**< the requested node; another one, counted, if that node has no room, or
			      no memory for this process (none at all, or outside its cpuset) */
	PLX_NUMA_STRICT, /**< the requested node or -ENOMEM */
	PLX_NUMA_ANY,    /**< any node the system chooses; node ids are ignored */
};

/** Actual backing of a zone. */
enum plx_backing {
	PLX_BACKING_HUGETLB, /**< memfd with MFD_HUGETLB: reserved huge pages */
	PLX_BACKING_THP,     /**< private memory with MADV_HUGEPAGE */
	PLX_BACKING_4K,      /**< ordinary pages */
};

struct plx_mem_conf {
	enum plx_huge huge;
	enum plx_numa numa;
	const size_t *node_bytes; /**< bytes taken at init on node 0, 1, ...; NULL: on demand */
	unsigned node_count;      /**< length of node_bytes */
};

/** A contiguous range of memory. Zones are only added until plx_mem_fini. */
struct plx_zone {
	void *base;
	size_t size_bytes;
	size_t page_bytes; /**< smaller than requested after a fallback */
	int node;          /**< the requested node if usable, else PLX_NODE_ANY */
	uint32_t index;    /**< 0 to PLX_ZONE_MAX - 1; fabric domains store registrations by it */
	enum plx_backing backing;
};

struct plx_mem_stats {
	uint64_t bytes;      /**< in zones */
	uint64_t bytes_used; /**< allocated from them */
	/** With PREFER: zones on another node than requested, and requests for a node without
	 * memory for this process. */
	uint64_t node_fallbacks;
	uint64_t page_fallbacks; /**< zones on smaller pages than requested */
};

/** Set up memory for this process. conf NULL: 2 MiB pages, prefer, on demand. Falls back from huge
 * pages to transparent ones to ordinary ones, with one log line that states what smaps shows.
 * Thread: setup.
 * Return: 0; -EALREADY; -EINVAL no such node (prefer, strict) or policy; -ENOMEM no room, or
 * strict: no memory for this process on the node. */
int plx_mem_init(const struct plx_mem_conf *conf);

/** Release all memory. Destroy all pools first; remaining ones are logged. Call it after
 * plx_lcores_fini, because lanes between lcores are in zones (plx_eal_fini does both): earlier it
 * only logs an error. Does nothing before init.
 * Thread: setup. */
void plx_mem_fini(void);

/** Number of zones; lower indices are valid until fini. Thread: any. */
uint32_t plx_zone_count(void);

/** The zone with that index, or NULL. Thread: any. */
const struct plx_zone *plx_zone_get(uint32_t index);

/** Allocate zeroed memory on a node (an id, or PLX_NODE_ANY), aligned to a power of two (0: a
 * cache line). Adds a zone if none has room. A node without room or memory is handled by enum
 * plx_numa; prefer and strict refuse a node that this host does not have. zone_out may be NULL.
 * Thread: any, but it locks: for set-up.
 * Return: the memory; NULL with plx_error(). */
void *plx_mem_alloc(size_t size_bytes, size_t align_bytes, int node,
		    const struct plx_zone **zone_out);

/** Free memory of plx_mem_alloc. Accepts NULL. Thread: any; locks. */
void plx_mem_free(void *memory);

void plx_mem_stats_read(struct plx_mem_stats *stats_out);

/** Describe the zones in one line, for people: "4 MiB in 2 MiB hugetlb pages on node 0". Return:
 * out. */
const char *plx_mem_describe(char *out, size_t size);

/* Pools ------------------------------------------------------------------------------------ */

/* `owner` selects one of two kinds. A pool with an owner serves gets of that lcore only. Any
 * thread may put; objects of other threads return to the owner. A shared pool serves every thread.
 * Each lcore has a cache, created on its node at first use. Caches are refilled from, and spilled
 * to, a shared ring, half a cache at a time. Other threads use the ring directly.
 *
 * Other lcores cannot get the objects in one lcore's cache. So set object_count of a shared pool
 * to at least the objects in use at once, plus cache_count for each lcore id that ever used it.
 * Then a get of one object returns NULL only while another thread is inside a get or put of that
 * pool. Objects put after a stalled put began become available when that put finishes: a moment,
 * unless its thread lost its CPU. Such a get counts as empty, nothing is lost, and the next get
 * may succeed. A stalled get withholds only the objects that it takes. A bulk get of more than
 * half a cache that fails may briefly withhold what there is.
 *
 * A cache belongs to an lcore id for the life of the pool. If lcores are set up anew without that
 * id, its objects stay there. They are free, count in available and in_caches, do not prevent
 * plx_pool_destroy, and serve the next lcore with that id. */

struct plx_pool;

struct plx_pool_attr {
	const char *name;      /**< for logs and statistics; copied */
	size_t object_bytes;   /**< size of an object; rounded up to a cache line */
	uint32_t object_count; /**< at least 1 */
	int node;              /**< NUMA node id or PLX_NODE_ANY */
	uint32_t owner;        /**< the lcore that gets from it, or PLX_LCORE_NONE: shared */
	uint32_t cache_count;  /**< shared pools: objects in the cache of each lcore, up to
				    PLX_POOL_CACHE_MAX; default a quarter of the objects, at most
				    256; PLX_NONE: no caches */
};

#define PLX_POOL_CACHE_MAX 512

struct plx_pool_stats {
	uint32_t object_count;
	uint32_t available; /**< free now: exact for the owner, or if no other thread uses it */
	uint32_t low_water; /**< lowest `available`; shared pools: as seen when a cache was filled
				 or the pool was empty */
	uint64_t empty;     /**< gets that found no object */
	uint32_t in_caches; /**< shared pools: available objects in caches, including those of lcore
				 ids no longer in use */
	uint64_t refills;   /**< caches filled from the ring; many mean that caches are small */
	uint64_t spills;    /**< caches that returned objects to the ring */
	size_t cache_bytes; /**< shared pools: memory of all caches and their table */
};

/** Create a pool.
 * Ownership: destroy with plx_pool_destroy.
 * Thread: setup, or the owner.
 * Return: 0; -EINVAL; -ENOMEM. */
int plx_pool_create(const struct plx_pool_attr *attr, struct plx_pool **pool_out);

/** Free a pool that has all its objects. Otherwise it stays usable and its name is logged: put the
 * objects back and call this again, or leave it to plx_mem_fini. Accepts NULL.
 * Thread: setup, or the owner.
 * Return: 0; -EBUSY objects are missing. */
int plx_pool_destroy(struct plx_pool *pool);

/* Private, down to plx_pool_get: for the inline functions only. */

/** Private: one lcore's cache of a pool, followed by a stack of pointers at the next cache line.
 * Only that lcore writes to it. */
struct plx_pool_cache {
	PLX_ATOMIC(uint32_t) count; /* relaxed: others read it for statistics only */
	uint32_t floor;             /* minimum that a fast get leaves */
	uint32_t size;              /* maximum of count */
};

/** Private: start of a pool. */
struct plx_pool {
	struct plx_pool_cache **caches; /* of lcore_count lcores, from lcore_first on; none is
					     NULL */
	uint32_t lcore_first;
	uint32_t lcore_count; /* 0: debug builds check each get and put */
};

/** Private: slow path: empty or full cache, no cache, checks. */
void *plx_pool_get_slowly(struct plx_pool *pool);
uint32_t plx_pool_get_bulk_slowly(struct plx_pool *pool, void **objects, uint32_t count);
void plx_pool_put_slowly(struct plx_pool *pool, void *object);
void plx_pool_put_bulk_slowly(struct plx_pool *pool, void *const *objects, uint32_t count);

/** Private. Copy pointers: few by hand, because a call of memcpy would double the cost; many by
 * memcpy, which uses the processor's widest registers. */
static inline void plx_pool_copy(void **to, void *const *from, uint32_t count)
{
	if (count >= 32) {
		size_t size_bytes = count * sizeof(*to);

		/* Hides a constant size: the compiler would replace the call by 16-byte copies
		 * (32 pointers there and back: 21 cycles instead of 17). */
		__asm__("" : "+r"(size_bytes));
		memcpy(to, from, size_bytes);
		return;
	}
	for (; count >= 8; count -= 8, to += 8, from += 8)
		memcpy(to, from, 8 * sizeof(*to));
	for (; count > 0; count--)
		*to++ = *from++;
}

/** Private. Bottom of a cache's stack. */
static inline void **plx_pool_stack(struct plx_pool_cache *cache)
{
	void *memory = cache;

	memory = PLX_CAST(char *, memory) + PLX_CACHE_LINE;
	return PLX_CAST(void **, memory);
}

/** Private. The calling lcore's cache, or NULL. */
static inline struct plx_pool_cache *plx_pool_my_cache(const struct plx_pool *pool)
{
	uint32_t i = plx_lcore_id() - pool->lcore_first;

	return plx_likely(i < pool->lcore_count) ? pool->caches[i] : NULL;
}

/** Private. Take `count` objects from the top of the stack, or none. */
static inline bool plx_pool_cache_take(struct plx_pool_cache *cache, void **objects, uint32_t count)
{
	uint32_t cached = plx_atomic_load(&cache->count, PLX_RELAXED);

	if (plx_unlikely(cached < PLX_CAST(uint64_t, cache->floor) + count))
		return false;
	plx_pool_copy(objects, plx_pool_stack(cache) + cached - count, count);
	plx_atomic_store(&cache->count, cached - count, PLX_RELAXED);
	return true;
}

/** Private. Push `count` objects on the stack, or none. */
static inline bool plx_pool_cache_give(struct plx_pool_cache *cache, void *const *objects,
				       uint32_t count)
{
	uint32_t cached = plx_atomic_load(&cache->count, PLX_RELAXED);

	if (plx_unlikely(cache->size - cached < count))
		return false;
	plx_pool_copy(plx_pool_stack(cache) + cached, objects, count);
	plx_atomic_store(&cache->count, cached + count, PLX_RELAXED);
	return true;
}

/** Take an object with undefined content. Prefers the one this lcore put back last, which is still
 * in the CPU cache.
 * Thread: the owner lcore; any, if the pool is shared.
 * Return: the object; NULL if the pool is empty (shared pools: or appears so, see above), which is
 * counted. */
static inline void *plx_pool_get(struct plx_pool *pool)
{
	struct plx_pool_cache *cache = plx_pool_my_cache(pool);
	void *object;

	if (plx_likely(cache && plx_pool_cache_take(cache, &object, 1)))
		return object;
	return plx_pool_get_slowly(pool);
}

/** Put an object back. Never waits, never fails. On the owner lcore, or into the cache of a shared
 * pool, it is a plain store. Other threads push it on a lock-free list, which the owner takes as a
 * whole when it runs out, or on the shared ring.
 * Thread: any. */
static inline void plx_pool_put(struct plx_pool *pool, void *object)
{
	struct plx_pool_cache *cache = plx_pool_my_cache(pool);

	if (plx_unlikely(!cache || !plx_pool_cache_give(cache, &object, 1)))
		plx_pool_put_slowly(pool, object);
}

/** Take `count` objects or none; a shared pool gives at most PLX_RING_BURST_MAX at once.
 * Thread: as plx_pool_get.
 * Return: count; 0, counted as empty. */
static inline uint32_t plx_pool_get_bulk(struct plx_pool *pool, void **objects, uint32_t count)
{
	struct plx_pool_cache *cache = plx_pool_my_cache(pool);

	if (plx_likely(cache && plx_pool_cache_take(cache, objects, count)))
		return count;
	return plx_pool_get_bulk_slowly(pool, objects, count);
}

/** Put `count` objects back. Thread: any. */
static inline void plx_pool_put_bulk(struct plx_pool *pool, void *const *objects, uint32_t count)
{
	struct plx_pool_cache *cache = plx_pool_my_cache(pool);

	if (plx_unlikely(!cache || !plx_pool_cache_give(cache, objects, count)))
		plx_pool_put_bulk_slowly(pool, objects, count);
}

void plx_pool_stats_read(struct plx_pool *pool, struct plx_pool_stats *stats_out);

/** The zone of all objects of the pool. */
const struct plx_zone *plx_pool_zone(const struct plx_pool *pool);

/* Message buffers -------------------------------------------------------------------------- */

struct plx_buf;

/** Runs when the last reference to a buffer over external memory is dropped, on the thread that
 * drops it. */
typedef void (*plx_buf_free_fn)(void *memory, void *arg);

/** A piece of a message: `len` bytes at `data`, within `room` bytes at `base`. The bytes between
 * base and data are headroom, in which a lower layer writes its header without copying.
 * A message may be a chain of buffers. A reference to the first one holds them all. */
struct plx_buf {
	uint8_t *data;
	uint32_t len;
	uint32_t room; /**< bytes at base */
	uint8_t *base;
	struct plx_buf *next;      /**< the rest of the message, or NULL */
	PLX_ATOMIC(uint32_t) refs; /**< references; use plx_buf_ref and plx_buf_unref */
	uint32_t zone_index;       /**< of base; PLX_ZONE_NONE: outside zones */
	uint32_t owner;            /**< lcore whose pool it came from, or PLX_LCORE_NONE */
	uint32_t start;            /**< offset of the data of an empty buffer from base */
	struct plx_pool *pool;     /**< where it returns to; NULL: the heap */
	plx_buf_free_fn free_fn;   /**< for external memory; NULL for a pool's own */
	void *free_arg;
};

#define PLX_ZONE_NONE PLX_NONE

/** Headroom of every pooled buffer: room for the headers of all lower layers. */
#define PLX_BUF_HEADROOM 64

/** Create a pool of buffers with PLX_BUF_HEADROOM bytes of headroom followed by `room_bytes` for
 * data. Get from it with plx_buf_get, not plx_pool_get. Otherwise as plx_pool_create; object_bytes
 * is ignored. */
int plx_buf_pool_create(const struct plx_pool_attr *attr, size_t room_bytes,
			struct plx_pool **pool_out);

/** Take an empty buffer: one reference, len 0, data after the headroom.
 * Thread: as plx_pool_get.
 * Return: the buffer; NULL if the pool is empty. */
struct plx_buf *plx_buf_get(struct plx_pool *pool);

/** Create a buffer over the caller's memory: `headroom` free bytes at `memory`, then len bytes of
 * data. The header comes from the heap. zone_index is set if all of the memory is in one zone.
 * Ownership: the memory must stay valid until free_fn runs, once, with memory and arg. free_fn
 * NULL: the memory outlives the buffer.
 * Return: the buffer; NULL with plx_error(). */
struct plx_buf *plx_buf_wrap(void *memory, uint32_t headroom, uint32_t len, plx_buf_free_fn free_fn,
			     void *arg);

/** Take a buffer over len bytes at memory: plx_buf_wrap without the heap and without a callback.
 * The pool must serve only views, so its buffers need no room.
 * Ownership: the memory must not change until the last reference is dropped.
 * Thread: as plx_pool_get.
 * Return: the buffer; NULL if the pool is empty. */
struct plx_buf *plx_buf_view(struct plx_pool *pool, const void *memory, uint32_t len);

/** Allocate a buffer of room_bytes and PLX_BUF_HEADROOM from the heap: for set-up and rare large
 * messages.
 * Return: the buffer; NULL with plx_error(). */
struct plx_buf *plx_buf_alloc(uint32_t room_bytes);

/** Add a reference to the first buffer of a chain, and so to all. Thread: any. Return: buf. */
struct plx_buf *plx_buf_ref(struct plx_buf *buf);

/** Drop a reference. The last one returns the whole chain to its pools, or calls free_fn. An lcore
 * with links returns more than 1 MiB of plx_buf_alloc to the system over the following turns.
 * Accepts NULL.
 * Thread: any. */
void plx_buf_unref(struct plx_buf *buf);

/** Whether the caller holds the only reference. Thread: a holder. */
static inline bool plx_buf_unshared(const struct plx_buf *buf)
{
	/* B2 of buf.c: the caller may write now, after all writes of earlier holders. */
	return plx_atomic_load(&buf->refs, PLX_ACQUIRE) == 1;
}

/** Empty a buffer: len 0, data after the headroom, the rest of the chain unreferenced. */
static inline void plx_buf_reset(struct plx_buf *buf)
{
	struct plx_buf *rest = buf->next;

	buf->data = buf->base + buf->start;
	buf->len = 0;
	buf->next = NULL;
	if (plx_unlikely(rest != NULL))
		plx_buf_unref(rest);
}

/** Free bytes before the data. */
static inline uint32_t plx_buf_headroom(const struct plx_buf *buf)
{
	return PLX_CAST(uint32_t, buf->data - buf->base);
}

/** Free bytes after the data. */
static inline uint32_t plx_buf_tailroom(const struct plx_buf *buf)
{
	return buf->room - plx_buf_headroom(buf) - buf->len;
}

/** Append `len` bytes. Return: their start; NULL if they do not fit. */
void *plx_buf_append(struct plx_buf *buf, uint32_t len);

/** Move `len` bytes of headroom into the data. Return: its new start; NULL if there are too few. */
void *plx_buf_prepend(struct plx_buf *buf, uint32_t len);

/** Link `tail` (a chain; its reference moves) after the last buffer of `head`. */
void plx_buf_chain(struct plx_buf *head, struct plx_buf *tail);

/** Bytes of data in the whole chain. */
size_t plx_buf_total(const struct plx_buf *buf);

/** Copy up to `size` bytes, from `offset` on, out of the chain. Return: bytes copied. */
size_t plx_buf_copy_out(const struct plx_buf *buf, size_t offset, void *to, size_t size);

PLX_END_DECLS

#endif
