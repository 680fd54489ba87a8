/* SPDX-License-Identifier: BSD-3-Clause */
/* Slow path of shared pools: an lcore's cache holds too few objects, or has no room. Objects then
 * move between the ring and the cache, half a cache at a time with one pop or push. Those that move
 * back are the bottom half of the stack: the least recently used.
 *
 * What the ring does not take goes to the spare stack. The ring has enough slots, but slots that a
 * preempted thread is still emptying are not free yet. A thread that finds the ring empty takes
 * spare objects. */
#include "mem_priv.h"

#include <sched.h>

/* Tests yield, or do something else, at these steps: refilled, spilled, popping. */
#ifndef POOL_STEP
#define POOL_STEP(where) ((void)0)
#endif

struct pool_cache pool_no_cache;

/* Like pool_no_cache, for an lcore whose cache could not be allocated: it is not retried. */
static struct pool_cache refused_cache;

/* Caches ----------------------------------------------------------------------------------- */

static int node_of_this_cpu(void)
{
	unsigned cpu, node;
	bool is_known = getcpu(&cpu, &node) == 0 && mem_node_usable((int)node);

	return is_known ? (int)node : PLX_NODE_ANY;
}

static struct pool_cache *make_cache(struct pool *pool, uint32_t id)
{
	size_t size_bytes = pool_cache_bytes(pool->cache_count);
	struct pool_cache *cache = &refused_cache;
	void *memory;

	if (mem_alloc(size_bytes, 2 * PLX_CACHE_LINE, node_of_this_cpu(), &memory)) {
		plx_log(mem_log, PLX_LOG_WARNING,
			"pool %s: lcore %u works without a cache, slower: %s", pool->name, id,
			plx_error());
	} else {
		cache = memory;
		cache->pub.size = pool->cache_count;
		/* Relaxed: the value is only stored and compared. */
		cache->next = atomic_load_explicit(&pool->first_cache, memory_order_relaxed);
		/* C1 -> C2: a cache is filled in before it is published. */
		while (!atomic_compare_exchange_weak_explicit(&pool->first_cache, &cache->next,
							      cache, memory_order_release,
							      memory_order_relaxed))
			continue;
	}
	/* For the calling lcore: no other thread reads its entry. */
	pool->pub.caches[id] = &cache->pub;
	return cache;
}

/* The cache to use when the inline one cannot serve: allocated on first use. */
static struct pool_cache *settle(struct pool *pool, struct pool_cache *cache)
{
	uint32_t id = plx_lcore_id();

	if (plx_unlikely(cache == &pool_no_cache && id < pool->lcore_count))
		return make_cache(pool, id);
	return cache;
}

/* Objects to move at a time: 0 without a cache. */
static uint32_t half_of(const struct pool_cache *cache)
{
	return (cache->pub.size + 1) / 2;
}

/* Lower the low-water mark if needed: only the minimum matters. Reads other lcores' caches only if
 * the ring alone does not decide. */
static void note_low_water(struct pool *pool)
{
	uint32_t low = counter_get(&pool->low_water);

	if (plx_likely(plx_ring_depth(pool->ring) >= low))
		return;

	uint32_t left = pool_available(pool);
	while (left < low &&
	       !atomic_compare_exchange_weak_explicit(&pool->low_water, &low, left,
						      memory_order_relaxed, memory_order_relaxed))
		continue;
}

static uint32_t note_empty(struct pool *pool, struct pool_cache *cache)
{
	if (cache->pub.size == 0) {
		counter_add_shared(&pool->empty, 1);
		note_low_water(pool);
		return 0;
	}
	counter_add(&cache->empty, 1);
	/* Once per dry period: the check slows down other lcores. */
	if (!cache->is_dry)
		note_low_water(pool);
	cache->is_dry = true;
	return 0;
}

/* Spare objects ---------------------------------------------------------------------------- */

/* Free objects that the ring has no slot for now: a stack of object numbers. Push and pop are one
 * atomic step each, so the stack never looks emptier than it is. While a thread is preempted in a
 * pop of the ring, all gets and puts of other threads may use the stack.
 *
 *   head: pops << 31 | number of the top object, counted from 1; or 0
 *
 * The links are outside the objects. A thread about to pop may read the link of an object that
 * another thread has popped and is writing to. The count of pops detects this: while it is
 * unchanged, no object has left the stack. It has 33 bits, so it fails only if exactly 2^33 pops
 * pass while one thread is preempted in a pop. */
#define NUMBER_BITS 31
#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)

_Static_assert(PLX_RING_CAPACITY_MAX <= NUMBER_MASK, "the number of an object fits into the head");

/* Relaxed: a link is read after S2 and used only if the head is unchanged. */
static void set_link(struct pool *pool, const void *object, uint64_t below)
{
	atomic_store_explicit(&pool->spare_links[pool_number(pool, object)], (uint32_t)below,
			      memory_order_relaxed);
}

/* Push at least one object. Thread: any. */
static void spare_push(struct pool *pool, void *const *objects, uint32_t count)
{
	/* Relaxed: the value is only compared and stored. */
	uint64_t head = atomic_load_explicit(&pool->spare, memory_order_relaxed);
	uint64_t first = (uint64_t)pool_number(pool, objects[0]) + 1;

	for (uint32_t i = 0; i + 1 < count; i++)
		set_link(pool, objects[i], (uint64_t)pool_number(pool, objects[i + 1]) + 1);
	/* Before the push, which orders it. */
	counter_add_shared(&pool->listed_count, count);
	do {
		set_link(pool, objects[count - 1], head & NUMBER_MASK);
		/* S1 -> S2: the links, and all earlier writes to the objects, precede their get.
		 * Later pushes and pops are read-modify-writes and so continue this release
		 * sequence. */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->spare, &head, (head & ~NUMBER_MASK) | first, memory_order_release,
		memory_order_relaxed));
}

/* Pop up to `count`. Return: how many. Thread: any. */
static uint32_t spare_pop(struct pool *pool, void **objects, uint32_t count)
{
	/* S2 <- S1 */
	uint64_t head = atomic_load_explicit(&pool->spare, memory_order_acquire);
	uint64_t number, pops;
	uint32_t got;

	do {
		number = head & NUMBER_MASK;
		pops = (head >> NUMBER_BITS) + 1;
		for (got = 0; number && got < count; got++) {
			objects[got] = mem_pool_object(&pool->pub, (uint32_t)number - 1);
			number = atomic_load_explicit(&pool->spare_links[number - 1],
						      memory_order_relaxed);
		}
		if (got == 0)
			return 0;
		POOL_STEP(popping);
		/* S2 again if the head changed. */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->spare, &head, pops << NUMBER_BITS | number, memory_order_acquire,
		memory_order_acquire));
	counter_add_shared(&pool->listed_count, -got);
	return got;
}

/* The ring and the spare ones -------------------------------------------------------------- */

static bool has_spare(const struct pool *pool)
{
	/* An object is counted from before its push until after its pop. */
	return counter_get(&pool->listed_count) != 0;
}

/* Take up to `count`. Return: how many. */
static uint32_t take(struct pool *pool, void **objects, uint32_t count)
{
	uint32_t got = plx_ring_pop_burst(pool->ring, objects, count);

	if (plx_unlikely(got < count && has_spare(pool)))
		got += spare_pop(pool, objects + got, count - got);
	return got;
}

static void give(struct pool *pool, void *const *objects, uint32_t count)
{
	uint32_t given = 0, more;

	/* Repeats only for more than PLX_RING_BURST_MAX. */
	do {
		more = plx_ring_push_burst(pool->ring, objects + given, count - given);
		given += more;
	} while (more > 0 && given < count);
	if (plx_unlikely(given < count))
		spare_push(pool, objects + given, count - given);
}

/* Take `count` or none. Return: count or 0. */
static uint32_t take_all(struct pool *pool, void **objects, uint32_t count)
{
	uint32_t got = plx_ring_pop_bulk(pool->ring, objects, count);

	if (plx_likely(got == count) || !has_spare(pool))
		return got;
	got = take(pool, objects, count);
	if (got < count)
		give(pool, objects, got);
	return got < count ? 0 : count;
}

/* A large request takes what the cache has, and the rest directly from the ring: refilling the
 * cache would empty it again each time. */
static uint32_t get_past_cache(struct pool *pool, struct pool_cache *cache, void **objects,
			       uint32_t count)
{
	uint32_t cached = counter_get(&cache->pub.count);
	uint32_t rest = count - cached;

	if (take_all(pool, objects + cached, rest) < rest)
		return note_empty(pool, cache);
	if (cached > 0) {
		plx_pool_copy(objects, plx_pool_stack(&cache->pub), cached);
		counter_set(&cache->pub.count, 0);
	}
	if (cache->is_dry)
		cache->is_dry = false;
	note_low_water(pool);
	return count;
}

static uint32_t get_refilled(struct pool *pool, struct pool_cache *cache, void **objects,
			     uint32_t count)
{
	uint32_t cached = counter_get(&cache->pub.count);
	uint32_t got = take(pool, plx_pool_stack(&cache->pub) + cached, half_of(cache));

	POOL_STEP(refilled);
	if (got > 0)
		counter_add(&cache->refills, 1);
	counter_set(&cache->pub.count, cached + got);
	if (!plx_pool_cache_take(&cache->pub, objects, count))
		return note_empty(pool, cache);
	cache->is_dry = false;
	note_low_water(pool);
	return count;
}

uint32_t pool_shared_get(struct pool *pool, struct pool_cache *cache, void **objects,
			 uint32_t count)
{
	cache = settle(pool, cache);
	if (count > half_of(cache))
		return get_past_cache(pool, cache, objects, count);
	return get_refilled(pool, cache, objects, count);
}

static void spill(struct pool *pool, struct pool_cache *cache)
{
	void **stack = plx_pool_stack(&cache->pub);
	uint32_t half = half_of(cache);
	uint32_t left = counter_get(&cache->pub.count) - half;

	give(pool, stack, half);
	POOL_STEP(spilled);
	memmove(stack, stack + half, left * sizeof(*stack));
	counter_set(&cache->pub.count, left);
	counter_add(&cache->spills, 1);
}

void pool_shared_put(struct pool *pool, struct pool_cache *cache, void *const *objects,
		     uint32_t count)
{
	cache = settle(pool, cache);
	if (count > half_of(cache)) {
		give(pool, objects, count);
		return;
	}
	/* A new cache has room; any other is more than half full. */
	if (cache->pub.size - counter_get(&cache->pub.count) < count)
		spill(pool, cache);
	plx_pool_cache_give(&cache->pub, objects, count);
}
