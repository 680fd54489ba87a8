/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-perf pool: cycles to get and put an object of a pool, on one lcore, and the memory of the
 * caches that make it cheap. */
#include "bench.h"

enum { SHARED, OWNED, PEER, POOLS };

static struct pool {
	const char *name;
	const struct pool_maker *maker; /* NULL: none */
	void *pool;
	size_t cache_bytes;
} pools[POOLS] = {
	[SHARED] = {.name = "shared", .maker = &pool_plx},
	[OWNED] = {.name = "owned", .maker = &pool_plx},
	[PEER] = {.name = "rte_mempool"},
};

static int measure(const struct perf_row *row, bool peer, uint32_t round, uint64_t count,
		   double *cycles_out)
{
	const struct pool *pool = &pools[peer ? PEER : row->kind];
	uint64_t begin = plx_tsc();
	uint64_t failed = pool->maker->loops[row->burst](pool->pool, count);

	*cycles_out = (double)(plx_tsc() - begin) / (double)count;
	if (failed)
		return plx_fail(EIO, "%s, burst %u: %llu of %llu objects were not there",
				pool->name, perf_bursts[row->burst], (unsigned long long)failed,
				(unsigned long long)count);
	return 0;
}

static int prepare(void)
{
	int rc = 0;

	if (perf_conf.compare) {
		pools[PEER].maker = perf_dpdk->pool;
		rc = perf_dpdk->open();
	}
	for (unsigned i = 0; i < POOLS && rc == 0; i++) {
		if (pools[i].maker)
			rc = pools[i].maker->create(i == OWNED, &pools[i].pool);
		if (i != PEER)
			perf_rows_add((struct perf_row){
				.name = "pool",
				.variant = pools[i].name,
				.peer = pools[PEER].maker ? pools[PEER].name : NULL,
				.kind = i,
				.lcores = 1,
			});
	}
	return rc;
}

static int weigh_caches(struct pool *pool)
{
	return pool->maker ? pool->maker->cache_bytes(pool->pool, &pool->cache_bytes) : 0;
}

static int report(void)
{
	size_t bytes = pools[SHARED].cache_bytes, peer_bytes = pools[PEER].cache_bytes;
	json_t *rows = perf_rows_report("object got and put");

	printf("\ncaches of a shared pool, %u lcores: %zu bytes", plx_lcore_count(), bytes);
	if (peer_bytes)
		printf("; of rte_mempool: %zu", peer_bytes);
	printf("\n");
	return perf_json_write(json_pack("{s:o, s:{s:i, s:i, s:I, s:o*}}", "rows", rows, "caches",
					 "lcores", (int)plx_lcore_count(), "objects", POOL_OBJECTS,
					 "bytes", (json_int_t)bytes, "peer_bytes",
					 peer_bytes ? json_integer((json_int_t)peer_bytes) : NULL));
}

int perf_pool_run(void)
{
	int rc = prepare();

	rc = rc ? rc : perf_rows_run(0, measure);
	rc = rc ? rc : weigh_caches(&pools[SHARED]);
	rc = rc ? rc : weigh_caches(&pools[PEER]);
	rc = rc ? rc : report();
	for (unsigned i = 0; i < POOLS; i++)
		if (pools[i].pool)
			pools[i].maker->destroy(pools[i].pool);
	if (perf_conf.compare)
		perf_dpdk->close();
	return rc;
}
