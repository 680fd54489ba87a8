/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-perf pool: cycles to get and put an object of a pool, on one lcore, and the memory of the
 * caches that make it cheap. */
#include "pool_bench.h"

#define MAKERS 3

struct bench {
	const struct perf_conf *conf;
	struct {
		const struct pool_maker *maker;
		void *pool;
	} pools[MAKERS]; /* the last one is the peer */
	struct perf_row rows[2 * PERF_BURSTS];
	struct {
		unsigned pool, burst;
	} subjects[2 * PERF_BURSTS];
	uint32_t row_count;
	size_t cache_bytes, peer_cache_bytes;
};

static const unsigned peer_pool = MAKERS - 1;

static int run_row(void *arg, uint32_t row, bool peer, uint32_t round, uint64_t count,
		   double *cycles_out)
{
	struct bench *bench = arg;
	unsigned pool = peer ? peer_pool : bench->subjects[row].pool;
	unsigned burst = bench->subjects[row].burst;
	uint64_t begin = plx_tsc();
	uint64_t failed = bench->pools[pool].maker->loops[burst](bench->pools[pool].pool, count);

	*cycles_out = (double)(plx_tsc() - begin) / (double)count;
	if (failed)
		return plx_fail(EIO, "%s, burst %u: %llu of %llu objects were not there",
				bench->pools[pool].maker->name, perf_bursts[burst],
				(unsigned long long)failed, (unsigned long long)count);
	return 0;
}

static void add_rows(struct bench *bench)
{
	for (unsigned pool = 0; pool < peer_pool; pool++) {
		for (unsigned burst = 0; burst < PERF_BURSTS; burst++) {
			uint32_t i = bench->row_count;

			if (!(bench->conf->bursts >> burst & 1))
				continue;
			bench->subjects[i].pool = pool;
			bench->subjects[i].burst = burst;
			bench->rows[i].name = "pool";
			bench->rows[i].variant = bench->pools[pool].maker->name;
			bench->rows[i].burst = perf_bursts[burst];
			bench->rows[i].lcores = 1;
			if (bench->pools[peer_pool].maker)
				bench->rows[i].peer = bench->pools[peer_pool].maker->name;
			bench->row_count++;
		}
	}
}

static int prepare(struct bench *bench)
{
	int rc = 0;

	bench->pools[0].maker = &pool_plx_shared;
	bench->pools[1].maker = &pool_plx_owned;
	if (bench->conf->compare)
		bench->pools[peer_pool].maker = pool_dpdk();
	add_rows(bench);
	if (bench->conf->compare)
		rc = perf_dpdk_open();
	for (unsigned i = 0; i < MAKERS && rc == 0; i++)
		if (bench->pools[i].maker)
			rc = bench->pools[i].maker->create(&bench->pools[i].pool);
	return rc;
}

static void clean_up(struct bench *bench)
{
	for (unsigned i = 0; i < MAKERS; i++)
		if (bench->pools[i].pool)
			bench->pools[i].maker->destroy(bench->pools[i].pool);
	if (bench->conf->compare)
		perf_dpdk_close();
}

static int weigh_caches(struct bench *bench)
{
	int rc = pool_plx_shared.cache_bytes(bench->pools[0].pool, &bench->cache_bytes);

	if (rc == 0 && bench->pools[peer_pool].maker)
		rc = bench->pools[peer_pool].maker->cache_bytes(bench->pools[peer_pool].pool,
								&bench->peer_cache_bytes);
	return rc;
}

static int report(const struct bench *bench)
{
	json_t *object = json_pack("{s:o, s:{s:i, s:i, s:I}}", "rows",
				   perf_rows_json(bench->rows, bench->row_count), "caches",
				   "lcores", (int)plx_lcore_count(), "objects", POOL_OBJECTS,
				   "bytes", (json_int_t)bench->cache_bytes);

	perf_rows_print(bench->rows, bench->row_count, "object got and put", stdout);
	printf("\ncaches of a shared pool, %u lcores: %zu bytes", plx_lcore_count(),
	       bench->cache_bytes);
	if (bench->peer_cache_bytes) {
		printf("; of rte_mempool: %zu", bench->peer_cache_bytes);
		json_object_set_new(json_object_get(object, "caches"), "peer_bytes",
				    json_integer((json_int_t)bench->peer_cache_bytes));
	}
	printf("\n");
	return perf_json_write(bench->conf, object);
}

int perf_pool_run(const struct perf_conf *conf)
{
	static struct bench bench;
	int rc;

	bench.conf = conf;
	rc = prepare(&bench);
	if (rc == 0)
		rc = perf_rows_run(conf, bench.rows, bench.row_count, 0, run_row, &bench);
	if (rc == 0)
		rc = weigh_caches(&bench);
	if (rc == 0)
		rc = report(&bench);
	clean_up(&bench);
	return rc;
}
