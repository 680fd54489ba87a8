/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics counters: declared _Atomic and written by one thread, except with counter_add_shared.
 * Any thread may read them. Relaxed: a reader may see a slightly old value, and no other data is
 * read through it. A number that no other thread reads needs no atomic. */
#ifndef PLX_COUNTER_H
#define PLX_COUNTER_H

#include <stdatomic.h>

#define counter_get(counter)        atomic_load_explicit((counter), memory_order_relaxed)
#define counter_set(counter, value) atomic_store_explicit((counter), (value), memory_order_relaxed)
#define counter_add(counter, more)  counter_set((counter), counter_get(counter) + (more))
/* Keep the minimum. */
#define counter_lower(counter, value) \
	((value) < counter_get(counter) ? counter_set((counter), (value)) : (void)0)
/* For counters that several threads write. */
#define counter_add_shared(counter, more) \
	((void)atomic_fetch_add_explicit((counter), (more), memory_order_relaxed))

#endif
