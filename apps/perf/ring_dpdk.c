/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's rte_ring in the same loops, with the functions for a fixed kind, which are its fastest.
 * Built only if libdpdk is available. */
#include "ring_bench.h"

#include <rte_ring.h>
#include <rte_version.h>

BENCH_INLINE uint32_t sp_push(void *ring, uint64_t *elements, uint32_t count)
{
	return rte_ring_sp_enqueue_burst(ring, (void *const *)elements, count, NULL);
}

BENCH_INLINE uint32_t mp_push(void *ring, uint64_t *elements, uint32_t count)
{
	return rte_ring_mp_enqueue_burst(ring, (void *const *)elements, count, NULL);
}

BENCH_INLINE uint32_t sc_pop(void *ring, uint64_t *elements, uint32_t count)
{
	return rte_ring_sc_dequeue_burst(ring, (void **)elements, count, NULL);
}

BENCH_INLINE uint32_t mc_pop(void *ring, uint64_t *elements, uint32_t count)
{
	return rte_ring_mc_dequeue_burst(ring, (void **)elements, count, NULL);
}

DEFINE_RING_LOOPS(spsc, sp_push, sc_pop)
DEFINE_RING_LOOPS(mpsc, mp_push, sc_pop)
DEFINE_RING_LOOPS(mpmc, mp_push, mc_pop)

/* A power-of-two ring keeps one slot free, as its users have it; other capacities are exact, in the
 * next power of two of slots. */
static unsigned flags_of(enum plx_ring_kind kind, uint32_t capacity)
{
	unsigned flags = capacity & (capacity - 1) ? RING_F_EXACT_SZ : 0;

	if (kind == PLX_RING_SPSC)
		flags |= RING_F_SP_ENQ;
	return kind == PLX_RING_MPMC ? flags : flags | RING_F_SC_DEQ;
}

static int size(enum plx_ring_kind kind, uint32_t capacity, size_t *bytes_out)
{
	ssize_t bytes = rte_ring_get_memsize(rte_align32pow2(capacity + 1));

	if (bytes < 0)
		return plx_fail((int)-bytes, "rte_ring of %u elements: error %zd", capacity, bytes);
	*bytes_out = (size_t)bytes;
	return 0;
}

static int init(void *memory, enum plx_ring_kind kind, uint32_t capacity, void **ring_out)
{
	int rc = rte_ring_init(memory, "plx-perf", capacity, flags_of(kind, capacity));

	if (rc)
		return plx_fail(-rc, "rte_ring_init of %u elements: error %d", capacity, rc);
	*ring_out = memory;
	return 0;
}

static const struct ring_maker makers[PERF_KINDS] = {
	[PLX_RING_SPSC] = {"rte_ring SP/SC", size, init, RING_LOOPS(spsc)},
	[PLX_RING_MPSC] = {"rte_ring MP/SC", size, init, RING_LOOPS(mpsc)},
	[PLX_RING_MPMC] = {"rte_ring MP/MC", size, init, RING_LOOPS(mpmc)},
};

const struct ring_maker *ring_dpdk(void)
{
	return makers;
}

const char *perf_dpdk_version(void)
{
	return rte_version();
}
