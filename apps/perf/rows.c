/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of rings and pools: measuring them; medians, a table for people, JSON for scripts. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX    (2 * PERF_KINDS * PERF_BURSTS)
#define PROBE_COUNT (1 << 14) /* elements of the calibration run */
#define TRIES       3
#define LINE_NS     PLX_NS_PER_MS /* duration of each bounce of a cache line */
#define FAR_FACTOR  2.2           /* cache line round trips this far apart are of two states */

static struct perf_row rows[ROWS_MAX];
static uint32_t row_count, other_lcore;
static perf_measure_fn measure_row;

void perf_rows_add(struct perf_row row)
{
	for (row.burst = 0; row.burst < PERF_BURSTS; row.burst++)
		if (perf_conf.bursts >> row.burst & 1)
			rows[row_count++] = row;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct perf_figures perf_figures(const double *values, uint64_t count)
{
	double sorted[PERF_ROUNDS_MAX];
	uint64_t half = count / 2;

	if (!count)
		return (struct perf_figures){0};
	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	return (struct perf_figures){
		.median = count % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2,
		.least = sorted[0],
		.greatest = sorted[count - 1],
	};
}

/* Measuring ------------------------------------------------------------------------------------ */

static bool differ(double a, double b)
{
	return a > b * FAR_FACTOR || b > a * FAR_FACTOR;
}

/* How many elements take about the requested time: the faster of two tries, because one may have
 * lost its CPU for a while, and the first one warms up. */
static int calibrate(const struct perf_row *row, bool peer, uint32_t round, uint64_t *count)
{
	double wanted = (double)plx_measure_tsc(perf_conf.duration_ns);
	double least = INFINITY, cycles = 0;
	int rc = 0;

	for (int try = 0; try < 2 && rc == 0; try++) {
		rc = measure_row(row, peer, round, PROBE_COUNT, &cycles);
		least = fmin(least, cycles);
	}
	*count = rc ? 0 : (uint64_t)(wanted / least);
	*count -= *count % perf_bursts[row->burst];
	if (*count < PROBE_COUNT)
		*count = PROBE_COUNT;
	return rc;
}

static int run_one(struct perf_row *row, bool peer, uint32_t round)
{
	uint64_t *count = peer ? &row->peer_count : &row->count;
	double *cycles = peer ? row->peer_cycles : row->cycles;
	int rc = *count ? 0 : calibrate(row, peer, round, count);

	rc = rc ? rc : measure_row(row, peer, round, *count, &cycles[round]);
	return rc == 0 && plx_stopping() ? plx_fail(EINTR, "interrupted") : rc;
}

static int run_pair(struct perf_row *row, uint32_t round)
{
	int rc = row->peer && round % 2 ? run_one(row, true, round) : 0;

	rc = rc ? rc : run_one(row, false, round);
	return rc == 0 && row->peer && round % 2 == 0 ? run_one(row, true, round) : rc;
}

static int run_line(struct perf_row *row, struct plx_hist *hist, double *ns_out)
{
	return row->lcores == 2 ? bare_run(other_lcore, LINE_NS, hist, ns_out) : 0;
}

static int run_steadily(struct perf_row *row, uint32_t round, struct plx_hist *hist)
{
	double *before = &row->line_ns[0][round], *after = &row->line_ns[1][round];
	int rc = 0;

	for (int try = 0; try < TRIES && rc == 0; try++) {
		rc = run_line(row, hist, before);
		rc = rc ? rc : run_pair(row, round);
		rc = rc ? rc : run_line(row, hist, after);
		if (!differ(*before, *after))
			break;
	}
	row->rounds = round + 1;
	return rc;
}

int perf_rows_run(uint32_t away, perf_measure_fn measure)
{
	struct plx_hist hist = {0}; /* of all trips of bare lines, unused */
	int rc = plx_hist_init(&hist, PLX_NS_PER_S, 3);

	if (rc)
		return plx_fail(ENOMEM, "out of memory");
	other_lcore = away;
	measure_row = measure;
	for (uint32_t round = 0; round < perf_conf.rounds; round++)
		for (uint32_t i = 0; i < row_count && rc == 0; i++)
			rc = run_steadily(&rows[i], round, &hist);
	plx_hist_fini(&hist);
	return rc;
}

/* States of the CPUs --------------------------------------------------------------------------- */

enum state { STATE_ONE, STATE_NEAR, STATE_FAR, STATES, STATE_CHANGED = STATES };

static const char *const state_names[STATES] = {"one", "near", "far"};

/* The geometric middle between the least and greatest round trip of a cache line, if they are far
 * enough apart for two states; 0: one state. */
static double threshold_of_states(void)
{
	double least = INFINITY, greatest = 0;

	for (uint32_t i = 0; i < row_count; i++) {
		for (uint32_t at = 0; at < 2 * rows[i].rounds; at++) {
			double ns = rows[i].line_ns[at % 2][at / 2];

			if (ns > 0) {
				least = fmin(least, ns);
				greatest = fmax(greatest, ns);
			}
		}
	}
	return differ(least, greatest) && greatest > 0 ? sqrt(least * greatest) : 0;
}

static unsigned state_of(const struct perf_row *row, uint32_t round, double threshold)
{
	bool far_before = row->line_ns[0][round] > threshold;
	bool far_after = row->line_ns[1][round] > threshold;

	if (threshold == 0 || row->lcores != 2)
		return STATE_ONE;
	if (far_before != far_after)
		return STATE_CHANGED;
	return far_before ? STATE_FAR : STATE_NEAR;
}

/* The rounds of a row in one state. */
struct view {
	unsigned state;
	uint32_t rounds;
	struct perf_figures own, peer;
	double ratio;   /* median of the pairs */
	double line_ns; /* median; 0: not measured */
};

static struct view view_of(const struct perf_row *row, unsigned state, double threshold)
{
	double own[PERF_ROUNDS_MAX], peer[PERF_ROUNDS_MAX], ratios[PERF_ROUNDS_MAX];
	double lines[PERF_ROUNDS_MAX];
	struct view view = {.state = state};

	for (uint32_t round = 0; round < row->rounds; round++) {
		uint32_t at = view.rounds;

		if (state_of(row, round, threshold) != state)
			continue;
		own[at] = row->cycles[round];
		peer[at] = row->peer_cycles[round];
		ratios[at] = own[at] / peer[at];
		lines[at] = row->line_ns[0][round];
		view.rounds++;
	}
	view.own = perf_figures(own, view.rounds);
	view.peer = perf_figures(peer, view.rounds);
	view.ratio = perf_figures(ratios, view.rounds).median;
	view.line_ns = perf_figures(lines, view.rounds).median;
	return view;
}

/* Results -------------------------------------------------------------------------------------- */

static void print_head(const char *unit)
{
	printf("cycles of the %s per %s, medians of %u rounds (least-greatest)\n\n",
	       plx_clock_info_read()->source, unit, rows[0].rounds);
	printf("%-15s %6s %6s  %8s  %-15s", "", "lcores", "burst", "cycles", "");
	if (rows[0].peer)
		printf("  %8s  %-15s  %5s", "peer's", "", "ratio");
	putchar('\n');
}

static void print_view(const struct perf_row *row, const struct view *view)
{
	char range[40];

	snprintf(range, sizeof(range), "%.2f-%.2f", view->own.least, view->own.greatest);
	printf("%-4s %-10s %6u %6u  %8.2f  %-15s", row->name, row->variant, row->lcores,
	       perf_bursts[row->burst], view->own.median, range);
	if (row->peer) {
		snprintf(range, sizeof(range), "%.2f-%.2f", view->peer.least, view->peer.greatest);
		printf("  %8.2f  %-15s  %5.2f  %s", view->peer.median, range, view->ratio,
		       row->peer);
	}
	if (view->state != STATE_ONE)
		printf("  CPUs %s (a cache line %.0f ns), %u rounds", state_names[view->state],
		       view->line_ns, view->rounds);
	putchar('\n');
}

static json_t *view_json(const struct perf_row *row, const struct view *view)
{
	json_t *object = json_pack(
		"{s:s, s:s, s:i, s:i, s:s, s:i, s:f, s:f, s:f, s:o*}", "name", row->name, "variant",
		row->variant, "burst", (int)perf_bursts[row->burst], "lcores", (int)row->lcores,
		"state", state_names[view->state], "rounds", (int)view->rounds, "cycles_per_elem",
		view->own.median, "cycles_least", view->own.least, "cycles_greatest",
		view->own.greatest, "line_ns", view->line_ns > 0 ? json_real(view->line_ns) : NULL);

	if (row->peer)
		json_object_update_new(object,
				       json_pack("{s:s, s:f, s:f, s:f, s:f}", "peer", row->peer,
						 "peer_cycles_per_elem", view->peer.median,
						 "peer_cycles_least", view->peer.least,
						 "peer_cycles_greatest", view->peer.greatest,
						 "ratio", view->ratio));
	return object;
}

json_t *perf_rows_report(const char *unit)
{
	double threshold = threshold_of_states();
	json_t *array = json_array();

	print_head(unit);
	for (uint32_t at = 0; at < row_count * STATES; at++) {
		const struct perf_row *row = &rows[at / STATES];
		struct view view = view_of(row, at % STATES, threshold);

		if (view.rounds) {
			print_view(row, &view);
			json_array_append_new(array, view_json(row, &view));
		}
	}
	return array;
}

static json_t *environment_json(void)
{
	const struct plx_clock_info *clock = plx_clock_info_read();
	bool has_capacity = perf_conf.mode == PERF_RING;
	char memory[128];
	json_t *cpus = json_array();

	PLX_LCORE_FOREACH (id)
		json_array_append_new(cpus, json_integer(plx_lcore_cpu(id)));
	return json_pack(
		"{s:s, s:s, s:f, s:s, s:I, s:f, s:o, s:o*, s:s*}", "version", plx_version(),
		"clock", clock->source, "clock_hz", clock->hz, "memory",
		plx_mem_describe(memory, sizeof(memory)), "rounds", (json_int_t)perf_conf.rounds,
		"duration_s", (double)perf_conf.duration_ns / (double)PLX_NS_PER_S, "cpus", cpus,
		"capacity", has_capacity ? json_integer((json_int_t)perf_conf.capacity) : NULL,
		"peer_version", perf_conf.compare ? perf_dpdk->version() : NULL);
}

int perf_json_write(json_t *object)
{
	int rc = 0;

	if (perf_conf.json_path) {
		json_object_set_new(object, "environment", environment_json());
		rc = plx_app_write_json(perf_conf.json_path, object);
	}
	json_decref(object);
	return rc;
}
