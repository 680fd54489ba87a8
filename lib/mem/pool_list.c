/* SPDX-License-Identifier: BSD-3-Clause */
/* What other threads put into an owned pool: a list of free objects, linked through the objects.
 * Any thread may push at any time without waiting. Only the owner takes it, and always the whole
 * list, so it needs no ABA protection. */
#include "mem_priv.h"

/* Prepend a chain to the list. */
static void push_chain(struct pool *pool, struct pool_returned *first, struct pool_returned *last)
{
	/* Relaxed: the value is only compared and stored, never dereferenced. */
	struct pool_returned *head = atomic_load_explicit(&pool->list, memory_order_relaxed);

	do {
		last->next = head;
		/* P1 -> P2: the links, and all earlier writes to the objects, precede their get.
		 * Later pushes are read-modify-writes and so continue this release sequence. */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->list, &head, first, memory_order_release, memory_order_relaxed));
}

void pool_list_push(struct pool *pool, void *const *objects, uint32_t count)
{
	for (uint32_t i = 0; i + 1 < count; i++)
		((struct pool_returned *)objects[i])->next = objects[i + 1];
	/* Before the push, which orders it: the number taken never exceeds it. */
	counter_add_shared(&pool->listed_count, count);
	push_chain(pool, objects[0], objects[count - 1]);
}

struct pool_returned *pool_list_take(struct pool *pool)
{
	/* P2 <- P1 */
	return atomic_exchange_explicit(&pool->list, NULL, memory_order_acquire);
}
