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
	PLX_NUMA_PREFER, /**< the node asked for; another one, counted, where that has no room, or
			      no memory for this process (none at all, or not in its cpuset) */
	PLX_NUMA_STRICT, /**< the node asked for or -ENOMEM */
	PLX_NUMA_ANY,    /**< wherever the system puts it: node ids are not even looked at */
};

/** What a zone really got. */
enum plx_backing {
	PLX_BACKING_HUGETLB, /**< memfd with MFD_HUGETLB: reserved huge pages */
	PLX_BACKING_THP,     /**< private memory with MADV_HUGEPAGE */
	PLX_BACKING_4K,      /**< ordinary pages */
};

struct plx_mem_conf {
	enum plx_huge huge;
	enum plx_numa numa;
	const size_t *node_bytes; /**< memory to take at init on node 0, 1, ...; NULL: on demand */
	unsigned node_count;      /**< length of node_bytes */
};

/** A contiguous stretch of memory. Zones only get more until plx_mem_fini. */
struct plx_zone {
	void *base;
	size_t size_bytes;
	size_t page_bytes; /**< smaller than asked for after a fallback */
	int node;          /**< asked for and usable, or PLX_NODE_ANY */
	uint32_t index; /**< 0 to PLX_ZONE_MAX - 1; a fabric domain keeps its registration there */
	enum plx_backing backing;
};

struct plx_mem_stats {
	uint64_t zones;
	uint64_t bytes;      /**< in zones */
	uint64_t bytes_used; /**< handed out of them */
	/** prefer: zones that lie on another node than asked for, and requests for a node that has
	 * no memory for this process. */
	uint64_t node_fallbacks;
	uint64_t page_fallbacks; /**< zones on smaller pages than asked for */
};

/** Set up memory for this process. conf NULL: 2 MiB pages, prefer, on demand. Falls back from huge
 * pages to transparent ones to ordinary ones, and says so in one log line that tells what smaps
 * shows. Thread: setup. Return: 0; -EALREADY; -EINVAL no such node (prefer, strict), or no such
 * policy; -ENOMEM no room, or strict: no memory for this process on the node. */
int plx_mem_init(const struct plx_mem_conf *conf);

/** Give everything back. All pools must be gone: those left are named in the log. After
 * plx_lcores_fini, as lanes between lcores are in zones (plx_eal_fini does both).
 * Thread: setup. Does nothing before init. */
void plx_mem_fini(void);

/** How many zones there are: the indices below it are valid, until fini. Thread: any. */
uint32_t plx_zone_count(void);

/** The zone of that index, or NULL. Thread: any. */
const struct plx_zone *plx_zone_get(uint32_t index);

/** Allocate size bytes on a node (an id, or PLX_NODE_ANY), aligned to a power of two (0: a cache
 * line), zeroed, from a zone, adding one where none has room. zone_out may be NULL. What the policy
 * makes of a node without room or memory is said at enum plx_numa; under prefer and strict, a node
 * that this host does not have is refused.
 * Thread: any, but it locks: set-up work. Return: the memory, or NULL with plx_error() telling. */
void *plx_mem_alloc(size_t size_bytes, size_t align_bytes, int node,
		    const struct plx_zone **zone_out);

/** Give memory of plx_mem_alloc back. Accepts NULL. Thread: any; locks. */
void plx_mem_free(void *memory);

void plx_mem_stats(struct plx_mem_stats *stats_out);

/** Describe the zones in one line, for people: "4 MiB in 2 MiB hugetlb pages on node 0". */
const char *plx_mem_describe(char *out, size_t size);

/* Pools ------------------------------------------------------------------------------------ */

/* Two kinds, by `owner`. The pool of an lcore is for that lcore to get from: any thread may put,
 * and what others put goes back to the owner. A shared pool is for every thread: each lcore has a
 * cache of it, made on its own node when it first uses the pool, and refilled from and spilled to a
 * ring that all share, half a cache at a time; other threads use the ring itself.
 *
 * What lies in the cache of one lcore no other one can get. So let object_count of a shared pool be
 * at least what is in use at once, and cache_count for each lcore id that ever used the pool. Then
 * a get of one object gives NULL only while another thread is in the middle of a get or put of that
 * pool: what was put since a put that stands still began is had when that goes on, which is a
 * moment unless its thread was taken off its CPU. That counts as empty, nothing is lost, and the
 * next get may succeed. A get that stands still keeps from others what it takes itself, and no
 * more; a bulk of more than half a cache that comes to nothing then may hold what there is for a
 * moment.
 *
 * A cache belongs to an lcore id for as long as the pool lives. Where lcores are set up anew
 * without that id, what lies in its cache stays there: free, counted in available and in in_caches,
 * no obstacle to plx_pool_destroy, and at hand for the next lcore of that id. */

struct plx_pool;

struct plx_pool_attr {
	const char *name;      /**< for logs and statistics; copied */
	size_t object_bytes;   /**< of each; rounded up to a cache line */
	uint32_t object_count; /**< how many; at least 1 */
	int node;              /**< NUMA node id or PLX_NODE_ANY */
	uint32_t owner;        /**< the lcore that gets from it, or PLX_LCORE_NONE: shared by all */
	uint32_t cache_count;  /**< shared pools: objects that each lcore may keep aside, up to
				    PLX_POOL_CACHE_MAX; default a quarter of the objects, at most
				    256; PLX_NONE: no caches */
};

#define PLX_POOL_CACHE_MAX 512

struct plx_pool_stats {
	uint32_t object_count;
	uint32_t available; /**< free just now: exact for an owner, and where nobody else uses it */
	uint32_t low_water; /**< least ever available; shared pools: as seen when a cache was
			       filled, or the pool found empty */
	uint64_t empty;     /**< gets that found nothing */
	uint32_t in_caches; /**< shared pools: of those available, how many lie in caches, also in
			       those of lcore ids that are gone */
	uint64_t refills;   /**< caches filled from what is shared: a measure of a cache's size */
	uint64_t spills;    /**< caches that gave back to it */
	size_t cache_bytes; /**< shared pools: memory of all caches, and of the table of them */
};

/** Ownership: destroy with plx_pool_destroy. Thread: setup, or the owner.
 * Return: 0; -EINVAL; -ENOMEM. */
int plx_pool_create(const struct plx_pool_attr *attr, struct plx_pool **pool_out);

/** Free a pool that has all its objects. One that lacks some stays as it is, and its name is
 * logged: put them back and call this again, or leave it to plx_mem_fini. Accepts NULL. Thread:
 * setup, or the owner. Return: 0; -EBUSY objects are out. */
int plx_pool_destroy(struct plx_pool *pool);

/* Private, down to plx_pool_get: here for the inline functions alone. */

/** Private: what one lcore has at hand of a pool. A stack of pointers stands behind it, at the next
 * cache line. All of it is that lcore's own. */
struct plx_pool_cache {
	PLX_ATOMIC(uint32_t) count; /* relaxed: others look at it for statistics alone */
	uint32_t floor;             /* that a get may leave, without more ado */
	uint32_t size;              /* that count may reach */
};

/** Private: how a pool begins. */
struct plx_pool {
	struct plx_pool_cache **caches; /* of lcore_count lcores, from lcore_first on; none NULL */
	uint32_t lcore_first;
	uint32_t lcore_count; /* 0: each get and put is checked, in a debug build */
};

/** Private: the same where there is more to do: nothing at hand, no room, no cache, checks. */
void *plx_pool_get_slowly(struct plx_pool *pool);
uint32_t plx_pool_get_bulk_slowly(struct plx_pool *pool, void **objects, uint32_t count);
void plx_pool_put_slowly(struct plx_pool *pool, void *object);
void plx_pool_put_bulk_slowly(struct plx_pool *pool, void *const *objects, uint32_t count);

/** Private. Copy pointers: few by hand, as a call of memcpy costs as much as they do; many by
 * memcpy, which uses the widest registers that the processor has. */
static inline void plx_pool_copy(void **to, void *const *from, uint32_t count)
{
	if (count >= 32) {
		size_t size_bytes = count * sizeof(*to);

		/* Nor may the compiler know that it is a constant: it would not make it a call, but
		 * copy in 16-byte pieces (32 pointers there and back: 21 cycles instead of 17). */
		__asm__("" : "+r"(size_bytes));
		memcpy(to, from, size_bytes);
		return;
	}
	for (; count >= 8; count -= 8, to += 8, from += 8)
		memcpy(to, from, 8 * sizeof(*to));
	for (; count > 0; count--)
		*to++ = *from++;
}

/** Private. The bottom of a cache's stack. */
static inline void **plx_pool_stack(struct plx_pool_cache *cache)
{
	void *memory = cache;

	memory = PLX_CAST(char *, memory) + PLX_CACHE_LINE;
	return PLX_CAST(void **, memory);
}

/** Private. The calling lcore's, or NULL. */
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

/** Private. Put `count` objects there, or none. */
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

/** Take an object, its content undefined; of those that this lcore has at hand, the one put back
 * last, as it is still in the processor's cache. Thread: the owner lcore; any, where the pool is
 * shared.
 * Return: the object; NULL when the pool is empty (a shared one: or seems so, see above), which is
 * counted: the caller decides. */
static inline void *plx_pool_get(struct plx_pool *pool)
{
	struct plx_pool_cache *cache = plx_pool_my_cache(pool);
	void *object;

	if (plx_likely(cache && plx_pool_cache_take(cache, &object, 1)))
		return object;
	return plx_pool_get_slowly(pool);
}

/** Put an object back. A plain store on the owner lcore, or into the cache of a shared pool; from
 * any other thread it is pushed on a lock-free list that the owner takes as a whole when it runs
 * out, or on the shared ring. Never waits, never fails. Thread: any. */
static inline void plx_pool_put(struct plx_pool *pool, void *object)
{
	struct plx_pool_cache *cache = plx_pool_my_cache(pool);

	if (plx_unlikely(!cache || !plx_pool_cache_give(cache, &object, 1)))
		plx_pool_put_slowly(pool, object);
}

/** Take `count` objects or none; a shared pool has at most PLX_RING_BURST_MAX to give at once.
 * Thread: as plx_pool_get. Return: count; 0, counted as empty. */
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

void plx_pool_stats(struct plx_pool *pool, struct plx_pool_stats *stats_out);

/** The zone that all objects of the pool lie in. */
const struct plx_zone *plx_pool_zone(const struct plx_pool *pool);

/* Message buffers -------------------------------------------------------------------------- */

struct plx_buf;

/** Called when the last reference to a buffer over external memory is dropped, on the thread that
 * dropped it. */
typedef void (*plx_buf_free_fn)(void *memory, void *arg);

/** A piece of a message: `len` bytes at `data`, within `room` bytes at `base`. The bytes between
 * base and data are headroom, where a lower layer puts its header without copying.
 * A message may be a chain of buffers; whoever holds the first one holds them all. */
struct plx_buf {
	uint8_t *data;
	uint32_t len;
	uint32_t room; /**< bytes at base */
	uint8_t *base;
	struct plx_buf *next;      /**< the rest of the message, or NULL */
	PLX_ATOMIC(uint32_t) refs; /**< references; use plx_buf_ref and plx_buf_unref */
	uint32_t zone_index;       /**< of the zone base lies in, or PLX_ZONE_NONE */
	uint32_t owner;            /**< lcore whose pool it came from, or PLX_LCORE_NONE */
	uint32_t start;            /**< of the data of an empty one, from base */
	struct plx_pool *pool;     /**< where it goes back to; NULL: the heap */
	plx_buf_free_fn free_fn;   /**< for external memory; NULL for a pool's own */
	void *free_arg;
};

#define PLX_ZONE_NONE PLX_NONE

/** Headroom of every pooled buffer: enough for the headers of all lower layers. */
#define PLX_BUF_HEADROOM 64

/** Make a pool of buffers with `room_bytes` for data behind PLX_BUF_HEADROOM bytes of headroom.
 * Get from it with plx_buf_get, not plx_pool_get. Otherwise as plx_pool_create, whose object_bytes
 * is ignored. */
int plx_buf_pool_create(const struct plx_pool_attr *attr, size_t room_bytes,
			struct plx_pool **pool_out);

/** Take an empty buffer: one reference, len 0, data behind the headroom. Thread: as
 * plx_pool_get. Return: the buffer; NULL when the pool is empty. */
struct plx_buf *plx_buf_get(struct plx_pool *pool);

/** Make a buffer over the caller's memory, which must stay valid until free_fn is called (once,
 * with that memory and arg). len bytes of it are data, headroom bytes before data are free to use:
 * memory points to the headroom. free_fn NULL: the memory outlives the buffer anyway. The header
 * itself comes from the heap; zone_index is set where all of the memory lies in a zone.
 * Return: the buffer; NULL with plx_error(). */
struct plx_buf *plx_buf_wrap(void *memory, uint32_t headroom, uint32_t len, plx_buf_free_fn free_fn,
			     void *arg);

/** Make a pool of buffers over memory of their users, to be taken with plx_buf_view alone: of
 * headers, that is. Otherwise as plx_pool_create, whose object_bytes is ignored. */
int plx_buf_view_pool_create(const struct plx_pool_attr *attr, struct plx_pool **pool_out);

/** Take one of these for len bytes at memory, which must stay as it is until the last reference is
 * dropped: plx_buf_wrap without the heap, and without a call at the end. Thread: as plx_pool_get.
 * Return: the buffer; NULL when the pool is empty. */
struct plx_buf *plx_buf_view(struct plx_pool *pool, const void *memory, uint32_t len);

/** Make a buffer of room_bytes with PLX_BUF_HEADROOM from the heap: set-up and rare large messages.
 * Return: the buffer; NULL with plx_error(). */
struct plx_buf *plx_buf_alloc(uint32_t room_bytes);

/** One more reference to the first buffer of a chain (and so to all). Thread: any. Returns buf. */
struct plx_buf *plx_buf_ref(struct plx_buf *buf);

/** Drop a reference; the last one sends the whole chain back to its pools, or calls free_fn.
 * Accepts NULL. Thread: any. */
void plx_buf_unref(struct plx_buf *buf);

/** Whether the caller holds the only reference. Thread: a holder. */
static inline bool plx_buf_unshared(const struct plx_buf *buf)
{
	/* B2 of buf.c: the caller may write into it now, after all that other holders did. */
	return plx_atomic_load(&buf->refs, PLX_ACQUIRE) == 1;
}

/** Empty it again: len 0, data behind the headroom, no chain (which is unreferenced). */
static inline void plx_buf_reset(struct plx_buf *buf)
{
	struct plx_buf *rest = buf->next;

	buf->data = buf->base + buf->start;
	buf->len = 0;
	buf->next = NULL;
	if (plx_unlikely(rest != NULL))
		plx_buf_unref(rest);
}

/** Bytes free before data. */
static inline uint32_t plx_buf_headroom(const struct plx_buf *buf)
{
	return PLX_CAST(uint32_t, buf->data - buf->base);
}

/** Bytes free behind the data. */
static inline uint32_t plx_buf_tailroom(const struct plx_buf *buf)
{
	return buf->room - plx_buf_headroom(buf) - buf->len;
}

/** Append `len` bytes and return where they are; NULL where they do not fit. */
void *plx_buf_append(struct plx_buf *buf, uint32_t len);

/** Take `len` bytes of headroom into the data and return its new start; NULL where too few. */
void *plx_buf_prepend(struct plx_buf *buf, uint32_t len);

/** Link `tail` (a chain; its reference moves) behind the last buffer of `head`. */
void plx_buf_chain(struct plx_buf *head, struct plx_buf *tail);

/** Bytes of data in the whole chain. */
size_t plx_buf_total(const struct plx_buf *buf);

/** Copy up to `size` bytes, from `offset` on, out of the chain. Returns how many were copied. */
size_t plx_buf_copy_out(const struct plx_buf *buf, size_t offset, void *to, size_t size);

PLX_END_DECLS

#endif
