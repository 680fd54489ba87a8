/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of one lcore: a stack of pointers, used with plain loads and stores. Objects from other
 * threads wait on the list, which the owner takes as a whole when the stack runs out. */
#include "mem_priv.h"

/* Bounds the work of one get: a long list moves to the stack in parts. */
#define REFILL_MAX 32

/* Move up to REFILL_MAX returned objects to the stack. Return: how many. */
static uint32_t refill(struct pool *pool, struct pool_cache *own)
{
	void **stack = plx_pool_stack(&own->pub);
	uint32_t cached = pool_cached(own);
	uint32_t count = 0;

	if (!own->taken)
		own->taken = pool_list_take(pool);
	while (own->taken && count < REFILL_MAX) {
		stack[cached + count++] = own->taken;
		own->taken = own->taken->next;
	}
	counter_add(&own->collected, count);
	pool_set_cached(own, cached + count);
	return count;
}

/* Update the marks before `count` objects leave the stack. */
static void set_marks(struct pool *pool, struct pool_cache *own, uint32_t count)
{
	uint32_t left = pool_available(pool);
	uint32_t low_water;

	counter_lower(&own->low_water, left - count);
	low_water = counter_get(&own->low_water);
	/* The number outside the stack only grows until the next refill, so the low-water mark
	 * cannot drop while the stack holds more than this. */
	uint32_t outside = left - pool_cached(own);
	own->pub.floor = low_water > outside ? low_water - outside : 0;
}

uint32_t pool_owned_get(struct pool *pool, void **objects, uint32_t count)
{
	struct pool_cache *own = pool->own;

	while (pool_cached(own) < count && refill(pool, own) > 0)
		continue;

	uint32_t cached = pool_cached(own);
	if (cached < count) {
		counter_add(&own->empty, 1);
		set_marks(pool, own, 0);
		return 0;
	}
	set_marks(pool, own, count);
	plx_pool_copy(objects, plx_pool_stack(&own->pub) + cached - count, count);
	pool_set_cached(own, cached - count);
	return count;
}
