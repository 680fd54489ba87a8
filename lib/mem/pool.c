/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of equal objects. The owner works on a stack of pointers with plain loads and stores. Other
 * threads push on a list linked through the objects themselves; the owner takes that list as a
 * whole, and never pops from it, so it needs no protection against ABA.
 *
 * One allocation holds it all: the pool, the stack, the objects. */
#include "mem_priv.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#ifdef NDEBUG
#define CHECKED 0
#else
#define CHECKED 1 /* marks per object, and a canary behind each */
#endif

#define NAME_BYTES   32
#define CANARY       UINT64_C(0x5afec0deca5cade5)
#define CANARY_BYTES (CHECKED ? sizeof(uint64_t) : 0)
/* A bound on the work of one get: a long list of returned objects is taken over in parts. */
#define REFILL_MAX 32

enum { MARK_FREE, MARK_USED };

/* What lies at the start of an object while it is on the list. */
struct returned {
	struct returned *next;
};

struct plx_pool {
	/* The owner's. Atomic for those who ask for statistics from elsewhere; relaxed, as a figure
	 * may be a moment old and nothing else is read through it. */
	void **stack;
	_Atomic uint32_t free_count; /* in the stack */
	uint32_t watch;              /* at or below this many, a get takes the slow way */
	uint32_t owner;
	_Atomic uint32_t low_water;
	_Atomic uint64_t empty;
	struct returned *taken;     /* off the list, not yet in the stack */
	_Atomic uint32_t collected; /* of pushed_count, how many got into the stack */

	/* Constant. */
	PLX_ALIGNED_LINE char *objects;
	size_t stride_bytes;
	size_t object_bytes;
	uint32_t object_count;
	const struct plx_zone *zone;
	_Atomic uint8_t *marks; /* one per object; NULL in release builds */
	struct plx_pool *next;
	char name[NAME_BYTES];

	/* Written by threads that are not the owner. */
	PLX_ALIGNED_LINE _Atomic(struct returned *) pushed;
	_Atomic uint32_t pushed_count;
};

_Static_assert(offsetof(struct plx_pool, objects) == PLX_CACHE_LINE, "the owner's part is a line");

/* All pools, to name those that are left at the end. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct plx_pool *list;

/* Checks of debug builds ------------------------------------------------------------------- */

static uint32_t object_index(const struct plx_pool *pool, const void *object)
{
	return (uint32_t)((size_t)((const char *)object - pool->objects) / pool->stride_bytes);
}

static bool is_object_of(const struct plx_pool *pool, const void *object)
{
	uintptr_t offset = (uintptr_t)object - (uintptr_t)pool->objects;

	return (uintptr_t)object >= (uintptr_t)pool->objects &&
	       offset < pool->stride_bytes * pool->object_count && offset % pool->stride_bytes == 0;
}

static bool canary_lives(const struct plx_pool *pool, const void *object)
{
	uint64_t canary = CANARY;

	return memcmp((const char *)object + pool->object_bytes, &canary, sizeof(canary)) == 0;
}

static void check_get(struct plx_pool *pool, const void *object)
{
	/* Relaxed: whoever gets an object has its last put before it by way of the list. */
	atomic_store_explicit(&pool->marks[object_index(pool, object)], MARK_USED,
			      memory_order_relaxed);
}

static void check_put(struct plx_pool *pool, const void *object)
{
	bool is_ours = is_object_of(pool, object);
	bool is_whole = is_ours && canary_lives(pool, object);

	assert(is_ours && "an object put into a pool it is not of");
	assert(is_whole && "written past the end of an object");

	/* Relaxed: only the exchange itself counts, one of two puts must see the other. */
	uint8_t mark = atomic_exchange_explicit(&pool->marks[object_index(pool, object)], MARK_FREE,
						memory_order_relaxed);
	assert(mark == MARK_USED && "an object put twice");
	(void)is_whole;
	(void)mark;
}

/* Marks what lies free, but for the link. */
static void poison(const struct plx_pool *pool, void *object)
{
	mem_poison((char *)object + sizeof(struct returned),
		   pool->object_bytes - sizeof(struct returned));
}

/* Create and destroy ----------------------------------------------------------------------- */

static int check_attr(const struct plx_pool_attr *attr)
{
	if (!attr->name || !attr->name[0])
		return plx_fail(EINVAL, "plx_pool_create: give the pool a name");
	if (attr->object_count == 0 || attr->object_count > INT32_MAX)
		return plx_fail(EINVAL, "pool %s: object_count %u: give 1 to %d", attr->name,
				attr->object_count, INT32_MAX);
	if (attr->object_bytes == 0 || attr->object_bytes > UINT32_MAX)
		return plx_fail(EINVAL, "pool %s: object_bytes %zu: give 1 to %u", attr->name,
				attr->object_bytes, UINT32_MAX);
	return 0;
}

/* Where things lie in the allocation, from its start. */
struct layout {
	size_t stride_bytes;
	size_t stack;
	size_t marks;
	size_t objects;
	size_t total;
};

static struct layout lay_out(const struct plx_pool_attr *attr)
{
	size_t count = attr->object_count;
	struct layout at;

	/* At most 2^31 objects of 2^32 bytes: no overflow. */
	at.stride_bytes = mem_round_up(attr->object_bytes + CANARY_BYTES, PLX_CACHE_LINE);
	at.stack = sizeof(struct plx_pool);
	at.marks = at.stack + count * sizeof(void *);
	at.objects = mem_round_up(at.marks + (CHECKED ? count : 0), PLX_CACHE_LINE);
	at.total = at.objects + count * at.stride_bytes;
	return at;
}

static void fill(struct plx_pool *pool)
{
	uint64_t canary = CANARY;

	/* Downwards, so that the first get gives the first object. */
	for (uint32_t i = pool->object_count; i-- > 0;) {
		char *object = mem_pool_object(pool, i);

		pool->stack[pool->object_count - 1 - i] = object;
		memcpy(object + pool->object_bytes, &canary, CANARY_BYTES);
		poison(pool, object);
	}
}

int plx_pool_create(const struct plx_pool_attr *attr, struct plx_pool **pool_out)
{
	const struct plx_zone *zone;
	void *memory;
	int err = check_attr(attr);

	if (err)
		return err;

	struct layout at = lay_out(attr);
	err = mem_alloc(at.total, PLX_CACHE_LINE, attr->node, &zone, &memory);
	if (err)
		return plx_fail_in(err, "pool %s, %u objects of %zu bytes: ", attr->name,
				   attr->object_count, attr->object_bytes);

	struct plx_pool *pool = memory;
	pool->stack = (void **)((char *)memory + at.stack);
	pool->owner = attr->owner;
	pool->objects = (char *)memory + at.objects;
	pool->stride_bytes = at.stride_bytes;
	/* A free object holds a link. */
	pool->object_bytes = attr->object_bytes < sizeof(struct returned) ? sizeof(struct returned)
									  : attr->object_bytes;
	pool->object_count = attr->object_count;
	pool->zone = zone;
	pool->marks = CHECKED ? (_Atomic uint8_t *)((char *)memory + at.marks) : NULL;
	pool->watch = attr->object_count;
	atomic_init(&pool->free_count, attr->object_count);
	atomic_init(&pool->low_water, attr->object_count);
	snprintf(pool->name, sizeof(pool->name), "%s", attr->name);
	fill(pool);

	pthread_mutex_lock(&list_lock);
	pool->next = list;
	list = pool;
	pthread_mutex_unlock(&list_lock);
	*pool_out = pool;
	return 0;
}

static uint32_t available(struct plx_pool *pool)
{
	/* Relaxed: exact for the owner, who alone changes the first two; near for others. */
	uint32_t free_count = atomic_load_explicit(&pool->free_count, memory_order_relaxed);
	uint32_t collected = atomic_load_explicit(&pool->collected, memory_order_relaxed);
	uint32_t pushed = atomic_load_explicit(&pool->pushed_count, memory_order_relaxed);
	uint32_t sum = free_count + (pushed - collected);

	return sum < pool->object_count ? sum : pool->object_count;
}

static void unlist(struct plx_pool *pool)
{
	struct plx_pool **at = &list;

	pthread_mutex_lock(&list_lock);
	while (*at && *at != pool)
		at = &(*at)->next;
	if (*at)
		*at = pool->next;
	pthread_mutex_unlock(&list_lock);
}

void plx_pool_destroy(struct plx_pool *pool)
{
	if (!pool)
		return;

	uint32_t missing = pool->object_count - available(pool);
	if (missing)
		plx_log(mem_log, PLX_LOG_WARNING, "pool %s is destroyed with %u of %u objects out",
			pool->name, missing, pool->object_count);
	assert(!missing && "a pool destroyed with objects out");
	unlist(pool);
	mem_unpoison(pool->objects, pool->stride_bytes * pool->object_count);
	plx_mem_free(pool);
}

void mem_pools_forget(void)
{
	pthread_mutex_lock(&list_lock);
	for (struct plx_pool *pool = list; pool; pool = pool->next)
		plx_log(mem_log, PLX_LOG_WARNING,
			"plx_mem_fini: pool %s is left (%u objects, %u of them out)", pool->name,
			pool->object_count, pool->object_count - available(pool));
	list = NULL;
	pthread_mutex_unlock(&list_lock);
}

/* Get and put ------------------------------------------------------------------------------ */

static inline uint32_t free_count_of(struct plx_pool *pool)
{
	/* Relaxed: the owner reads what it wrote itself. */
	return atomic_load_explicit(&pool->free_count, memory_order_relaxed);
}

static inline void *pop(struct plx_pool *pool, uint32_t free_count)
{
	void *object = pool->stack[free_count - 1];

	/* Relaxed: for statistics only. */
	atomic_store_explicit(&pool->free_count, free_count - 1, memory_order_relaxed);
	if (CHECKED)
		check_get(pool, object);
	mem_unpoison(object, pool->object_bytes);
	return object;
}

/* Move up to REFILL_MAX returned objects into the stack, which is empty. Returns how many. */
static uint32_t refill(struct plx_pool *pool)
{
	uint32_t count = 0;

	if (!pool->taken) {
		/* P2: see push. */
		pool->taken = atomic_exchange_explicit(&pool->pushed, NULL, memory_order_acquire);
	}
	while (pool->taken && count < REFILL_MAX) {
		pool->stack[count++] = pool->taken;
		pool->taken = pool->taken->next;
	}
	/* Relaxed: for the owner itself and for statistics. */
	uint32_t collected = atomic_load_explicit(&pool->collected, memory_order_relaxed);
	atomic_store_explicit(&pool->collected, collected + count, memory_order_relaxed);
	atomic_store_explicit(&pool->free_count, count, memory_order_relaxed);
	return count;
}

/* The stack is at its watch mark: empty, or there may be a new low-water mark. */
static __attribute__((noinline)) void *get_slowly(struct plx_pool *pool)
{
	uint32_t free_count = free_count_of(pool);

	if (free_count == 0)
		free_count = refill(pool);

	uint32_t left = available(pool);
	uint32_t low_water = atomic_load_explicit(&pool->low_water, memory_order_relaxed);
	/* Relaxed: for statistics only. */
	if (free_count == 0) {
		uint64_t empty = atomic_load_explicit(&pool->empty, memory_order_relaxed);

		atomic_store_explicit(&pool->empty, empty + 1, memory_order_relaxed);
		return NULL;
	}
	if (left - 1 < low_water) {
		low_water = left - 1;
		atomic_store_explicit(&pool->low_water, low_water, memory_order_relaxed);
	}
	/* What waits outside the stack only grows until the next refill, so the low-water mark
	 * cannot sink while the stack holds more than this. */
	uint32_t outside = left - free_count;
	pool->watch = low_water > outside ? low_water - outside : 0;
	return pop(pool, free_count);
}

void *plx_pool_get(struct plx_pool *pool)
{
	uint32_t free_count = free_count_of(pool);

	assert((pool->owner == PLX_LCORE_NONE || pool->owner == plx_lcore_id()) &&
	       "a pool used by an lcore that does not own it");
	if (plx_unlikely(free_count <= pool->watch))
		return get_slowly(pool);
	return pop(pool, free_count);
}

static __attribute__((noinline)) void push(struct plx_pool *pool, void *object)
{
	struct returned *node = object;
	/* Relaxed: the value is only compared and stored, never looked through. */
	struct returned *head = atomic_load_explicit(&pool->pushed, memory_order_relaxed);

	/* Counted before it can be taken, so that collected never passes it; relaxed, as the push
	 * below orders it. */
	atomic_fetch_add_explicit(&pool->pushed_count, 1, memory_order_relaxed);
	do {
		node->next = head;
		/* P1 -> P2: the link, and all that was done to the object, come before its get.
		 * Later pushes are read-modify-writes and so carry this one along. */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->pushed, &head, node, memory_order_release, memory_order_relaxed));
}

void plx_pool_put(struct plx_pool *pool, void *object)
{
	if (CHECKED)
		check_put(pool, object);
	poison(pool, object);
	/* Threads that are not lcores share one id: none of them can own the stack by it. */
	if (plx_unlikely(plx_lcore_id() != pool->owner || pool->owner == PLX_LCORE_NONE)) {
		push(pool, object);
		return;
	}

	uint32_t free_count = free_count_of(pool);
	pool->stack[free_count] = object;
	/* Relaxed: for statistics only. */
	atomic_store_explicit(&pool->free_count, free_count + 1, memory_order_relaxed);
}

/* Looking ---------------------------------------------------------------------------------- */

void plx_pool_stats(struct plx_pool *pool, struct plx_pool_stats *stats_out)
{
	/* Relaxed: figures of different moments when asked for from another thread. */
	*stats_out = (struct plx_pool_stats){
		.object_count = pool->object_count,
		.available = available(pool),
		.low_water = atomic_load_explicit(&pool->low_water, memory_order_relaxed),
		.empty = atomic_load_explicit(&pool->empty, memory_order_relaxed),
	};
}

const struct plx_zone *plx_pool_zone(const struct plx_pool *pool)
{
	return pool->zone;
}

void *mem_pool_object(const struct plx_pool *pool, uint32_t i)
{
	return pool->objects + (size_t)i * pool->stride_bytes;
}
