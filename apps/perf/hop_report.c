/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of `plx-perf hop`, as text and as JSON. */
#include "perf.h"

#define COLD_TURNS 16 /* loop turns per poll of a cold set of links */

static const struct {
	const char *name;
	double fraction;
} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

/* Of the rounds. */
static double median(const double *values)
{
	return perf_figures(values, perf_conf.rounds).median;
}

/* The ratio to the bare line of the same round, median of the rounds: a virtual machine's CPUs may
 * be nearer in one round than in the next. */
static double ratio_to_bare(const struct hop_results *hop, const struct hop_row *row)
{
	double ratios[PERF_ROUNDS_MAX];

	for (uint32_t round = 0; round < perf_conf.rounds; round++)
		ratios[round] = row->p50[round] / hop->rows[HOP_BARE].p50[round];
	return median(ratios);
}

static void print_row(const struct hop_results *hop, const struct hop_row *row)
{
	printf("%-9s %8llu %7llu", row->name, (unsigned long long)row->all.count,
	       (unsigned long long)row->all.min);
	for (size_t i = 0; i < PLX_ARRAY_LEN(quantiles); i++) {
		if (plx_hist_quantile_known(&row->all, quantiles[i].fraction))
			printf(" %7llu", (unsigned long long)plx_hist_quantile(
						 &row->all, quantiles[i].fraction));
		else
			printf(" %7s", "n/a");
	}
	printf(" %8llu  %6.0f  %5.2f\n", (unsigned long long)row->all.max, median(row->p50),
	       ratio_to_bare(hop, row));
}

static void print(const struct hop_results *hop)
{
	printf("round trips between CPUs %u and %u, nanoseconds; last columns: median p50 of %u "
	       "rounds,\nand of its ratio to the bare cache line's\n\n%-9s %8s %7s",
	       plx_lcore_cpu(plx_lcore_main()), plx_lcore_cpu(hop->away),
	       (unsigned)perf_conf.rounds, "", "trips", "min");
	for (size_t i = 0; i < PLX_ARRAY_LEN(quantiles); i++)
		printf(" %7s", quantiles[i].name);
	printf(" %8s  %6s  %5s\n", "max", "p50", "ratio");
	for (unsigned i = 0; i < HOP_ROWS; i++)
		if (hop->rows[i].all.count)
			print_row(hop, &hop->rows[i]);
	if (perf_conf.with_idle_tcp)
		printf("\nan idle turn: %.1f ns; with the idle link: %.1f ns\n",
		       median(hop->turn_ns), median(hop->turn_idle_tcp_ns));
}

static json_t *row_json(const struct hop_results *hop, const struct hop_row *row)
{
	struct perf_figures p50 = perf_figures(row->p50, perf_conf.rounds);

	return json_pack("{s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f}", "p50_ns", p50.median,
			 "p50_least_ns", p50.least, "p50_greatest_ns", p50.greatest, "p99_ns",
			 median(row->p99), "min_ns", (json_int_t)row->all.min, "max_ns",
			 (json_int_t)row->all.max, "count", (json_int_t)row->all.count, "ratio",
			 ratio_to_bare(hop, row));
}

/* The duration of a cold poll, and what it adds to a trip. A message meets each lcore in a poll
 * with the probability of the poll's share of time, and then waits half a poll. */
static json_t *cold_poll_json(const struct hop_results *hop)
{
	double turn = median(hop->turn_ns), with = median(hop->turn_idle_tcp_ns);
	double poll = (with - turn) * COLD_TURNS, share = (with - turn) / with;

	return json_pack("{s:f, s:f, s:f, s:f}", "turn_ns", turn, "turn_idle_tcp_ns", with,
			 "cold_poll_ns", poll, "cold_poll_wait_ns", 2 * share * poll / 2);
}

static json_t *to_json(const struct hop_results *hop)
{
	json_t *object = json_pack("{s:f, s:I}", "bare_ns", median(hop->rows[HOP_BARE].p50),
				   "gap_us", (json_int_t)perf_conf.gap_us);

	for (unsigned i = 0; i < HOP_ROWS; i++)
		if (hop->rows[i].all.count)
			json_object_set_new(object, hop->rows[i].name,
					    row_json(hop, &hop->rows[i]));
	if (perf_conf.with_idle_tcp)
		json_object_update_new(json_object_get(object, "idle-tcp"), cold_poll_json(hop));
	return json_pack("{s:o}", "hop", object);
}

int hop_report(const struct hop_results *results)
{
	const char *path = perf_conf.histogram_path;
	int rc;

	print(results);
	rc = path ? plx_app_write_hgrm(path, &results->rows[HOP_HOT].all) : 0;
	return rc ? rc : perf_json_write(to_json(results));
}
