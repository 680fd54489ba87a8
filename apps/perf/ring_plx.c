/* SPDX-License-Identifier: BSD-3-Clause */
/* Pollux's rings in the loops of ring_bench.h. One push and one pop serve all kinds. */
#include "ring_bench.h"

BENCH_INLINE uint32_t push(void *ring, uint64_t *elements, uint32_t count)
{
	return plx_ring_push_burst(ring, elements, count);
}

BENCH_INLINE uint32_t pop(void *ring, uint64_t *elements, uint32_t count)
{
	return plx_ring_pop_burst(ring, elements, count);
}

DEFINE_RING_LOOPS(plx, push, pop)

static int size(enum plx_ring_kind kind, uint32_t capacity, size_t *bytes_out)
{
	struct plx_ring_attr attr = {.kind = kind, .capacity = capacity};

	return plx_ring_size(&attr, bytes_out);
}

static int init(void *memory, enum plx_ring_kind kind, uint32_t capacity, void **ring_out)
{
	struct plx_ring_attr attr = {.kind = kind, .capacity = capacity};
	struct plx_ring *ring;
	int rc = plx_ring_init(memory, &attr, &ring);

	if (rc == 0)
		*ring_out = ring;
	return rc;
}

const struct ring_maker ring_plx[PERF_KINDS] = {
	[PLX_RING_SPSC] = {.name = "spsc", .size = size, .init = init, RING_LOOPS(plx)},
	[PLX_RING_MPSC] = {.name = "mpsc", .size = size, .init = init, RING_LOOPS(plx)},
	[PLX_RING_MPMC] = {.name = "mpmc", .size = size, .init = init, RING_LOOPS(plx)},
};
