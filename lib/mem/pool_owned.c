/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of one lcore: a stack of pointers, used with plain loads and stores. Objects that other
 * threads put wait on a list, linked through the objects. Any thread may push at any time without
 * waiting. Only the owner takes it, as a whole when the stack runs out, so it needs no ABA
 * protection. */
#include "mem_priv.h"

/* Bounds the work of one get: a long list moves to the stack in parts. */
#define REFILL_MAX 32

void pool_list_push(struct pool *pool, void *const *objects, uint32_t count)
{
	/* Relaxed: the value is only compared and stored, never dereferenced. */
	struct pool_returned *head = atomic_load_explicit(&pool->list, memory_order_relaxed);
	struct pool_returned *first = objects[0], *last = objects[count - 1];

	for (uint32_t i = 0; i + 1 < count; i++)
		((struct pool_returned *)objects[i])->next = objects[i + 1];
	/* Before the push, which orders it: the number taken never exceeds it. */
	counter_add_shared(&pool->listed_count, count);
	do {
		last->next = head;
		/* P1 -> P2: the links, and all earlier writes to the objects, precede their get.
		 * Later pushes are read-modify-writes and so continue this release sequence. */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->list, &head, first, memory_order_release, memory_order_relaxed));
}

/* Move up to REFILL_MAX returned objects to the stack. Return: how many. */
static uint32_t refill(struct pool *pool, struct pool_cache *own)
{
	void **stack = plx_pool_stack(&own->pub);
	uint32_t cached = counter_get(&own->pub.count), count = 0;

	if (!own->taken) /* P2 <- P1 */
		own->taken = atomic_exchange_explicit(&pool->list, NULL, memory_order_acquire);
	while (own->taken && count < REFILL_MAX) {
		stack[cached + count++] = own->taken;
		own->taken = own->taken->next;
	}
	counter_add(&own->collected, count);
	counter_set(&own->pub.count, cached + count);
	return count;
}

/* Update the marks before `count` objects leave the stack. */
static void set_marks(struct pool *pool, struct pool_cache *own, uint32_t count)
{
	uint32_t left = pool_available(pool), low_water;

	counter_lower(&pool->low_water, left - count);
	low_water = counter_get(&pool->low_water);
	/* The number outside the stack only grows until the next refill, so the low-water mark
	 * cannot drop while the stack holds more than this. */
	uint32_t outside = left - counter_get(&own->pub.count);
	own->pub.floor = low_water > outside ? low_water - outside : 0;
}

uint32_t pool_owned_get(struct pool *pool, void **objects, uint32_t count)
{
	struct pool_cache *own = pool->own;

	while (counter_get(&own->pub.count) < count && refill(pool, own) > 0)
		continue;

	if (counter_get(&own->pub.count) < count) {
		counter_add(&pool->empty, 1);
		set_marks(pool, own, 0);
		return 0;
	}
	set_marks(pool, own, count);
	plx_pool_cache_take(&own->pub, objects, count); /* the marks allow it */
	return count;
}
