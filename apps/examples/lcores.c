/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts primes. Each lcore reports its number to the main lcore, which calls it for each range.
 * Run it:  lcores -l 0,1 --ranges 100      primes in 100 ranges, below 100000 */
#include <plx_app.h>
#include <plx_lcore.h>
#include <stdio.h>

#define RANGE 1000 /* small: a call holds up all else on its lcore */

static uint64_t ranges = 100;
static const struct plx_option options[] = {
	PLX_UINT("ranges", "N", &ranges, 1, 1 << 20, "count up to N * 1000 (default 100)"),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "lcores", .summary = "Count primes on all lcores.", .options = options};

struct count { /* the main lcore's: no other lcore touches it */
	uint64_t next, primes;
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
	if (count->next < ranges && plx_lcore_call(worker->id, &worker->call) == 0) {
		worker->calls++;
		count->next++;
		return;
	}
	plx_app_say("lcore %u counted %u ranges", worker->id, worker->calls);
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
		plx_app_fail(&app);
		plx_stop();
	}
	return plx_loop_run();
}

int main(int argc, char **argv)
{
	struct count count = {0};
	int status = plx_app_start(argc, argv, &app), result = 0, rc;

	if (status != PLX_APP_RUN)
		return status;
	count.workers_left = plx_lcore_count();
	PLX_LCORE_FOREACH (id)
		workers[id] = (struct worker){
			.call = {.fn = count_range, .done = on_counted, .arg = &workers[id]},
			.count = &count,
			.id = id};
	rc = plx_lcore_launch_all(run, NULL, &result);
	rc = rc || result ? -1 : plx_lcore_join_all(5 * PLX_NS_PER_S, &result);
	rc = rc || result || count.next < ranges;
	if (rc != 0)
		fprintf(stderr, "lcores: ended early: %s\n", plx_error());
	plx_app_say("%llu primes", (unsigned long long)count.primes);
	return plx_app_finish(&app, rc);
}
