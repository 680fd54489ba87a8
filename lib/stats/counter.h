/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures for statistics: declared _Atomic, named by what they count, and written by one thread,
 * unless by counter_add_shared alone; any thread reads them. Relaxed: a figure may be a moment old,
 * and nothing else is read through it. What no other thread reads is a plain number. */
#ifndef PLX_COUNTER_H
#define PLX_COUNTER_H

#include <stdatomic.h>

#define counter_get(counter)        atomic_load_explicit((counter), memory_order_relaxed)
#define counter_set(counter, value) atomic_store_explicit((counter), (value), memory_order_relaxed)
#define counter_add(counter, more)  counter_set((counter), counter_get(counter) + (more))
/* Keep the greatest, or the least. */
#define counter_raise(counter, value) \
	((value) > counter_get(counter) ? counter_set((counter), (value)) : (void)0)
#define counter_lower(counter, value) \
	((value) < counter_get(counter) ? counter_set((counter), (value)) : (void)0)
/* For those that many threads write. */
#define counter_add_shared(counter, more) \
	((void)atomic_fetch_add_explicit((counter), (more), memory_order_relaxed))

#endif
