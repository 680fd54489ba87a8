/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's rte_mempool in the same loops, with its largest cache. It needs DPDK's EAL, started on the
 * main lcore's CPU without huge pages, devices or files. */
#include "pool_bench.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <sched.h>

static inline PLX_ALWAYS_INLINE bool get(void *pool, void **objects, uint32_t count)
{
	return rte_mempool_get_bulk(pool, objects, count) == 0;
}

static inline PLX_ALWAYS_INLINE void put(void *pool, void **objects, uint32_t count)
{
	rte_mempool_put_bulk(pool, objects, count);
}

DEFINE_POOL_LOOPS(rte, get, put)

static int create(void **pool_out)
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

static const struct pool_maker maker = {
	.name = "rte_mempool",
	.create = create,
	.destroy = destroy,
	.cache_bytes = cache_bytes,
	POOL_LOOPS(rte),
};

const struct pool_maker *pool_dpdk(void)
{
	return &maker;
}

int perf_dpdk_open(void)
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

void perf_dpdk_close(void)
{
	rte_eal_cleanup();
}
