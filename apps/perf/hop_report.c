/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of `plx-perf hop`, as text and as JSON. */
#include "hop.h"

#define COLD_TURNS 16 /* loop turns per poll of a cold set of links */

static const struct {
	const char *name;
	double fraction;
} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

/* The ratio to the bare line of the same round, median of the rounds: a virtual machine's CPUs may
 * be nearer in one round than in the next. */
static double ratio_to_bare(const struct hop_results *hop, const struct hop_row *row)
{
	double ratios[PERF_ROUNDS_MAX];

	for (uint32_t round = 0; round < hop->conf->rounds; round++)
		ratios[round] = row->p50[round] / hop->rows[HOP_BARE].p50[round];
	return perf_figures(ratios, (uint32_t)hop->conf->rounds).median;
}

static void print_row(const struct hop_results *hop, const struct hop_row *row)
{
	double p50 = perf_figures(row->p50, (uint32_t)hop->conf->rounds).median;

	printf("%-9s %8llu %7llu", row->name, (unsigned long long)row->all.count,
	       (unsigned long long)row->all.min);
	for (size_t i = 0; i < PLX_ARRAY_LEN(quantiles); i++) {
		if (plx_hist_quantile_known(&row->all, quantiles[i].fraction))
			printf(" %7llu", (unsigned long long)plx_hist_quantile(
						 &row->all, quantiles[i].fraction));
		else
			printf(" %7s", "n/a");
	}
	printf(" %8llu  %6.0f  %5.2f\n", (unsigned long long)row->all.max, p50,
	       ratio_to_bare(hop, row));
}

static void print(const struct hop_results *hop)
{
	uint32_t rounds = (uint32_t)hop->conf->rounds;

	printf("round trips between CPUs %u and %u, nanoseconds; last columns: median p50 of %u "
	       "rounds,\nand of its ratio to the bare cache line's\n\n%-9s %8s %7s",
	       hop->cpus[0], hop->cpus[1], rounds, "", "trips", "min");
	for (size_t i = 0; i < PLX_ARRAY_LEN(quantiles); i++)
		printf(" %7s", quantiles[i].name);
	printf(" %8s  %6s  %5s\n", "max", "p50", "ratio");
	for (unsigned i = 0; i < HOP_ROWS; i++)
		if (hop->rows[i].all.count)
			print_row(hop, &hop->rows[i]);
	if (hop->conf->with_idle_tcp)
		printf("\nan idle turn: %.1f ns; with the idle link: %.1f ns\n",
		       perf_figures(hop->turn_ns, rounds).median,
		       perf_figures(hop->turn_idle_tcp_ns, rounds).median);
}

static json_t *row_json(const struct hop_results *hop, const struct hop_row *row)
{
	uint32_t rounds = (uint32_t)hop->conf->rounds;
	struct perf_figures p50 = perf_figures(row->p50, rounds);

	return json_pack("{s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f}", "p50_ns", p50.median,
			 "p50_least_ns", p50.least, "p50_greatest_ns", p50.greatest, "p99_ns",
			 perf_figures(row->p99, rounds).median, "min_ns", (json_int_t)row->all.min,
			 "max_ns", (json_int_t)row->all.max, "count", (json_int_t)row->all.count,
			 "ratio", ratio_to_bare(hop, row));
}

/* The duration of a cold poll, and what it adds to a trip. A message meets each lcore in a poll
 * with the probability of the poll's share of time, and then waits half a poll. */
static void set_cold_poll(json_t *object, const struct hop_results *hop, uint32_t rounds)
{
	double turn = perf_figures(hop->turn_ns, rounds).median;
	double with = perf_figures(hop->turn_idle_tcp_ns, rounds).median;
	double poll = (with - turn) * COLD_TURNS, share = (with - turn) / with;

	json_object_set_new(object, "turn_ns", json_real(turn));
	json_object_set_new(object, "turn_idle_tcp_ns", json_real(with));
	json_object_set_new(object, "cold_poll_ns", json_real(poll));
	json_object_set_new(object, "cold_poll_wait_ns", json_real(2 * share * poll / 2));
}

static json_t *to_json(const struct hop_results *hop)
{
	uint32_t rounds = (uint32_t)hop->conf->rounds;
	double bare = perf_figures(hop->rows[HOP_BARE].p50, rounds).median;
	json_t *object = json_object();

	json_object_set_new(object, "bare_ns", json_real(bare));
	json_object_set_new(object, "gap_us", json_integer((json_int_t)hop->conf->gap_us));
	for (unsigned i = 0; i < HOP_ROWS; i++)
		if (hop->rows[i].all.count)
			json_object_set_new(object, hop->rows[i].name,
					    row_json(hop, &hop->rows[i]));
	if (hop->conf->with_idle_tcp)
		set_cold_poll(json_object_get(object, "idle-tcp"), hop, rounds);
	return json_pack("{s:o}", "hop", object);
}

int hop_report(const struct hop_results *results)
{
	int rc;

	print(results);
	rc = results->conf->histogram_path
		   ? plx_app_write_hgrm(results->conf->histogram_path, &results->rows[HOP_HOT].all)
		   : 0;
	return rc ? rc : perf_json_write(results->conf, to_json(results));
}
