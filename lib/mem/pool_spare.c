/* SPDX-License-Identifier: BSD-3-Clause */
/* Free objects of a shared pool that its ring has no slot for now: a stack of object numbers. Push
 * and pop are one atomic step each, so the stack never looks emptier than it is. While a thread is
 * preempted in a pop of the ring, all gets and puts of other threads may use the stack.
 *
 *   head: pops << 31 | number of the top object, counted from 1; or 0
 *
 * The links are outside the objects. A thread about to pop may read the link of an object that
 * another thread has popped and is writing to. The count of pops detects this: while it is
 * unchanged, no object has left the stack. It has 33 bits, so it fails only if exactly 2^33 pops
 * pass while one thread is preempted in a pop. */
#include "mem_priv.h"

#define NUMBER_BITS 31
#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)

/* Tests yield, or do something else, at this step. */
#ifndef POOL_STEP
#define POOL_STEP() ((void)0)
#endif

_Static_assert(PLX_RING_CAPACITY_MAX <= NUMBER_MASK, "the number of an object fits into the head");

/* Relaxed: a link is read after S2 and used only if the head is unchanged. */
static void set_link(struct pool *pool, const void *object, uint64_t below)
{
	atomic_store_explicit(&pool->spare_links[pool_number(pool, object)], (uint32_t)below,
			      memory_order_relaxed);
}

void pool_spare_push(struct pool *pool, void *const *objects, uint32_t count)
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

uint32_t pool_spare_pop(struct pool *pool, void **objects, uint32_t count)
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
		POOL_STEP();
		/* S2 again if the head changed. */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->spare, &head, pops << NUMBER_BITS | number, memory_order_acquire,
		memory_order_acquire));
	counter_add_shared(&pool->listed_count, -got);
	return got;
}
