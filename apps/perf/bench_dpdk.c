/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's rte_ring in the same loops, with the functions for a fixed kind, which are its fastest;
 * and rte_mempool, with its largest cache. Built only if libdpdk is available. */
#include "bench.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <rte_version.h>
#include <sched.h>

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

BENCH_INLINE bool get(void *pool, void **objects, uint32_t count)
{
	return rte_mempool_get_bulk(pool, objects, count) == 0;
}

BENCH_INLINE void put(void *pool, void **objects, uint32_t count)
{
	rte_mempool_put_bulk(pool, objects, count);
}

DEFINE_POOL_LOOPS(rte, get, put)

static int create(bool is_owned, void **pool_out)
{
	struct rte_mempool *pool = rte_mempool_create("plx-perf", POOL_OBJECTS, POOL_OBJECT_BYTES,
						      RTE_MEMPOOL_CACHE_MAX_SIZE, 0, NULL, NULL,
						      NULL, NULL, SOCKET_ID_ANY, 0);

	if (!pool)
		return plx_fail(rte_errno, "rte_mempool_create: %s", rte_strerror(rte_errno));
	*pool_out = pool;
	return 0;
}

static void destroy(void *pool)
{
	rte_mempool_free(pool);
}

/* One for each possible lcore, in the pool itself. */
static int cache_bytes(void *pool, size_t *bytes_out)
{
	*bytes_out = sizeof(struct rte_mempool_cache) * RTE_MAX_LCORE;
	return 0;
}

static const struct pool_maker pool_maker = {create, destroy, cache_bytes, POOL_LOOPS(rte)};

/* On the main lcore's CPU, without huge pages, devices or files. */
static int start_eal(void)
{
	char lcore[32], name[] = "plx-perf", no_huge[] = "--no-huge", no_files[] = "--no-shconf";
	char no_pci[] = "--no-pci", quiet[] = "--log-level=error", memory[] = "-m", mb[] = "64";
	char no_telemetry[] = "--no-telemetry";
	char *argv[] = {name,         no_huge, no_files, no_pci, quiet,
			no_telemetry, memory,  mb,       lcore,  NULL};
	cpu_set_t before, after;

	snprintf(lcore, sizeof(lcore), "--lcores=0@%u", plx_lcore_cpu(plx_lcore_main()));
	if (sched_getaffinity(0, sizeof(before), &before) != 0)
		return plx_fail(errno, "sched_getaffinity failed");
	if (rte_eal_init(PLX_ARRAY_LEN(argv) - 1, argv) < 0)
		return plx_fail(EIO, "rte_eal_init: %s", rte_strerror(rte_errno));
	if (sched_getaffinity(0, sizeof(after), &after) != 0 || !CPU_EQUAL(&before, &after))
		return plx_fail(EIO, "rte_eal_init moved this thread to other CPUs");
	return 0;
}

static void end_eal(void)
{
	rte_eal_cleanup();
}

static const struct perf_dpdk dpdk = {makers, &pool_maker, start_eal, end_eal, rte_version};
const struct perf_dpdk *const perf_dpdk = &dpdk;
