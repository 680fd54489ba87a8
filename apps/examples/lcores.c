/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts primes. Each lcore reports its number to the main lcore, which calls it for each range.
 * Run it:  lcores -l 0,1 100      primes in 100 ranges, below 100000 */
#include <plx_eal.h>
#include <plx_lcore.h>
#include <stdio.h>

#define RANGE 1000 /* small: a call holds up all else on its lcore */

struct count { /* the main lcore's: no other lcore touches it */
	uint64_t next, ranges, primes;
	unsigned workers_left;
};

struct worker { /* travels to its lcore and back with the call */
	struct plx_call call;
	struct count *count;
	uint64_t first;     /* of the range */
	uint32_t id, calls; /* id: of the lcore */
} workers[PLX_LCORE_MAX];

/* On the worker's lcore. */
static int count_range(struct plx_call *call, void *arg)
{
	const struct worker *worker = arg;
	int primes = 0;

	for (uint64_t n = worker->first, d; n < worker->first + RANGE; n++) {
		for (d = 2; d * d <= n && n % d != 0; d++)
			;
		primes += n >= 2 && d * d > n;
	}
	return primes;
}

/* On the main lcore: adds what the worker has found, and gives it the next range. */
static void on_counted(struct plx_call *call, int result, void *arg)
{
	struct worker *worker = arg;
	struct count *count = worker->count;

	count->primes += (uint64_t)result;
	worker->first = count->next * RANGE;
	if (count->next < count->ranges && plx_lcore_call(worker->id, &worker->call) == 0) {
		worker->calls++;
		count->next++;
		return;
	}
	printf("lcore %u counted %u ranges\n", worker->id, worker->calls);
	if (--count->workers_left == 0)
		plx_stop(); /* all loops */
}

/* On the main lcore. data: a copy of the number that the worker sent. */
static void on_report(const void *data, size_t size_bytes)
{
	on_counted(NULL, 0, &workers[*(const uint32_t *)data]); /* no primes yet */
}

static int run(void *arg) /* on each lcore, the main one included */
{
	uint32_t id = plx_lcore_id();

	if (PLX_LCORE_SEND_VALUE(plx_lcore_main(), on_report, id) != 0) {
		fprintf(stderr, "lcores: %s\n", plx_error());
		plx_stop();
	}
	return plx_loop_run();
}

int main(int argc, char **argv)
{
	struct count count = {0};
	struct plx_eal_conf conf = {0};
	int used = plx_eal_parse(argc, argv, &conf), rc, result = 0;

	if (used < 0)
		fprintf(stderr, "lcores: %s\n", plx_error());
	if (used < 0 || argc - used != 2 ||
	    plx_parse_uint("RANGES", argv[1 + used], 1, 1 << 20, &count.ranges) != 0) {
		fprintf(stderr, "usage: lcores [EAL options] RANGES\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	rc = plx_eal_init(&conf);
	count.workers_left = plx_lcore_count();
	PLX_LCORE_FOREACH (id)
		workers[id] = (struct worker){
			.call = {.fn = count_range, .done = on_counted, .arg = &workers[id]},
			.count = &count,
			.id = id};
	rc = rc ? rc : plx_lcore_launch_all(run, NULL, &result);
	rc = rc || result ? -1 : plx_lcore_join_all(5 * PLX_NS_PER_S, &result);
	rc = rc || result || count.next < count.ranges;
	if (rc != 0)
		fprintf(stderr, "lcores: ended early: %s\n", plx_error());
	plx_eal_conf_fini(&conf);
	printf("%llu primes\n", (unsigned long long)count.primes);
	return plx_eal_fini() != 0 || rc;
}
