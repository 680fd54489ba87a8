/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to lib/ring and the tests of its indices. */
#ifndef RING_PRIV_H
#define RING_PRIV_H

#include "counter.h"
#include "plx_ring.h"

/* plx_ring_init for an empty ring that has already moved `start` elements, so that tests can reach
 * the index wrap. */
int ring_init_at(void *memory, const struct plx_ring_attr *attr, uint64_t start,
		 struct plx_ring **ring_out);
/* Initialize claims and marks at position `start`. */
void multi_init(struct plx_ring *ring, uint64_t start);
/* The depth of an MPSC or MPMC ring. */
uint32_t multi_depth(const struct plx_ring *ring);

#endif
