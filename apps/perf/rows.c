/* SPDX-License-Identifier: BSD-3-Clause */
/* Results: medians, a table for people, JSON for scripts. */
#include "perf.h"
#include "ring_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct perf_figures perf_figures(const double *values, uint32_t count)
{
	double sorted[PERF_ROUNDS_MAX];
	uint32_t half = count / 2;

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

#define PROBE_COUNT (1 << 14) /* elements of the calibration run */
#define TRIES       3
#define LINE_NS     PLX_NS_PER_MS /* duration of each bounce of a cache line */

static bool differ(double a, double b)
{
	return a > b * PERF_FAR_FACTOR || b > a * PERF_FAR_FACTOR;
}

/* What measures, and how. */
struct meter {
	const struct perf_conf *conf;
	struct perf_row *rows;
	uint32_t away;
	perf_measure_fn measure;
	void *bench;
	struct plx_hist hist; /* of all trips of bare lines, unused */
};

/* How many elements take about the requested time: the faster of two tries, because one may have
 * lost its CPU for a while, and the first one warms up. */
static int calibrate(struct meter *meter, uint32_t i, bool peer, uint32_t round, uint64_t *count)
{
	double wanted = (double)plx_measure_tsc(meter->conf->duration_ns);
	double least = INFINITY, cycles = 0;
	int rc = 0;

	for (int try = 0; try < 2 && rc == 0; try++) {
		rc = meter->measure(meter->bench, i, peer, round, PROBE_COUNT, &cycles);
		least = fmin(least, cycles);
	}
	*count = rc ? 0 : (uint64_t)(wanted / least);
	*count -= *count % meter->rows[i].burst;
	if (*count < PROBE_COUNT)
		*count = PROBE_COUNT;
	return rc;
}

static int run_one(struct meter *meter, uint32_t i, bool peer, uint32_t round)
{
	struct perf_row *row = &meter->rows[i];
	uint64_t *count = peer ? &row->peer_count : &row->count;
	int rc = *count ? 0 : calibrate(meter, i, peer, round, count);

	rc = rc ? rc
		: meter->measure(meter->bench, i, peer, round, *count,
				 peer ? &row->peer_cycles[round] : &row->cycles[round]);
	return rc == 0 && plx_stopping() ? plx_fail(EINTR, "interrupted") : rc;
}

static int run_pair(struct meter *meter, uint32_t i, uint32_t round)
{
	int rc = 0;

	for (unsigned turn = 0; turn < 2 && rc == 0; turn++) {
		bool peer = (turn + round) % 2;

		if (!peer || meter->rows[i].peer)
			rc = run_one(meter, i, peer, round);
	}
	return rc;
}

static int run_steadily(struct meter *meter, uint32_t i, uint32_t round)
{
	struct perf_row *row = &meter->rows[i];
	double *before = &row->line_ns[0][round], *after = &row->line_ns[1][round];
	int rc = 0;

	for (int try = 0; try < TRIES && rc == 0; try++) {
		if (row->lcores == 2)
			rc = bare_run(meter->away, LINE_NS, &meter->hist, before);
		if (rc == 0)
			rc = run_pair(meter, i, round);
		if (rc == 0 && row->lcores == 2)
			rc = bare_run(meter->away, LINE_NS, &meter->hist, after);
		if (!differ(*before, *after))
			break;
	}
	row->rounds = round + 1;
	return rc;
}

int perf_rows_run(const struct perf_conf *conf, struct perf_row *rows, uint32_t count,
		  uint32_t away, perf_measure_fn measure, void *bench)
{
	struct meter meter = {conf, rows, away, measure, bench, {0}};

	if (plx_hist_init(&meter.hist, PLX_NS_PER_S, 3) != 0)
		return plx_fail(ENOMEM, "out of memory");

	int rc = 0;

	for (uint32_t round = 0; round < conf->rounds && rc == 0; round++)
		for (uint32_t i = 0; i < count && rc == 0; i++)
			rc = run_steadily(&meter, i, round);
	plx_hist_fini(&meter.hist);
	return rc;
}

/* States of the CPUs --------------------------------------------------------------------------- */

enum state { STATE_ONE, STATE_NEAR, STATE_FAR, STATES, STATE_CHANGED = STATES };

static const char *const state_names[STATES] = {"one", "near", "far"};

/* The geometric middle between the least and greatest round trip of a cache line, if they are far
 * enough apart for two states; 0: one state. */
static double threshold_of(const struct perf_row *rows, uint32_t count)
{
	double least = INFINITY, greatest = 0;

	for (uint32_t i = 0; i < count; i++) {
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

/* A table -------------------------------------------------------------------------------------- */

static void print_view(const struct perf_row *row, const struct view *view, FILE *out)
{
	char range[40];

	snprintf(range, sizeof(range), "%.2f-%.2f", view->own.least, view->own.greatest);
	fprintf(out, "%-4s %-10s %6u %6u  %8.2f  %-15s", row->name, row->variant, row->lcores,
		row->burst, view->own.median, range);
	if (row->peer) {
		snprintf(range, sizeof(range), "%.2f-%.2f", view->peer.least, view->peer.greatest);
		fprintf(out, "  %8.2f  %-15s  %5.2f  %s", view->peer.median, range, view->ratio,
			row->peer);
	}
	if (view->state != STATE_ONE)
		fprintf(out, "  CPUs %s (a cache line %.0f ns), %u rounds",
			state_names[view->state], view->line_ns, view->rounds);
	fputc('\n', out);
}

void perf_rows_print(const struct perf_row *rows, uint32_t count, const char *unit, FILE *out)
{
	double threshold = threshold_of(rows, count);
	bool compared = count && rows[0].peer;

	if (!count)
		return;
	fprintf(out, "cycles of the %s per %s, medians of %u rounds (least-greatest)\n\n",
		plx_clock_info_read()->source, unit, rows[0].rounds);
	fprintf(out, "%-15s %6s %6s  %8s  %-15s", "", "lcores", "burst", "cycles", "");
	if (compared)
		fprintf(out, "  %8s  %-15s  %5s", "peer's", "", "ratio");
	fputc('\n', out);
	for (uint32_t at = 0; at < count * STATES; at++) {
		const struct perf_row *row = &rows[at / STATES];
		struct view view = view_of(row, at % STATES, threshold);

		if (view.rounds)
			print_view(row, &view, out);
	}
}

/* JSON ----------------------------------------------------------------------------------------- */

static void set_peer(json_t *object, const struct perf_row *row, const struct view *view)
{
	json_object_set_new(object, "peer", json_string(row->peer));
	json_object_set_new(object, "peer_cycles_per_elem", json_real(view->peer.median));
	json_object_set_new(object, "peer_cycles_least", json_real(view->peer.least));
	json_object_set_new(object, "peer_cycles_greatest", json_real(view->peer.greatest));
	json_object_set_new(object, "ratio", json_real(view->ratio));
}

static json_t *view_json(const struct perf_row *row, const struct view *view)
{
	json_t *object = json_pack("{s:s, s:s, s:i, s:i, s:s, s:i, s:f, s:f, s:f}", "name",
				   row->name, "variant", row->variant, "burst", (int)row->burst,
				   "lcores", (int)row->lcores, "state", state_names[view->state],
				   "rounds", (int)view->rounds, "cycles_per_elem", view->own.median,
				   "cycles_least", view->own.least, "cycles_greatest",
				   view->own.greatest);

	if (object && row->peer)
		set_peer(object, row, view);
	if (object && view->line_ns > 0)
		json_object_set_new(object, "line_ns", json_real(view->line_ns));
	return object;
}

json_t *perf_rows_json(const struct perf_row *rows, uint32_t count)
{
	double threshold = threshold_of(rows, count);
	json_t *array = json_array();

	for (uint32_t at = 0; at < count * STATES; at++) {
		const struct perf_row *row = &rows[at / STATES];
		struct view view = view_of(row, at % STATES, threshold);

		if (view.rounds)
			json_array_append_new(array, view_json(row, &view));
	}
	return array;
}

static json_t *environment_json(const struct perf_conf *conf)
{
	char memory[128];
	json_t *cpus = json_array();
	json_t *object = json_pack(
		"{s:s, s:s, s:f, s:s, s:I, s:f}", "version", plx_version(), "clock",
		plx_clock_info_read()->source, "clock_hz", plx_clock_info_read()->hz, "memory",
		plx_mem_describe(memory, sizeof(memory)), "rounds", (json_int_t)conf->rounds,
		"duration_s", (double)conf->duration_ns / (double)PLX_NS_PER_S);

	PLX_LCORE_FOREACH (id)
		json_array_append_new(cpus, json_integer(plx_lcore_cpu(id)));
	json_object_set_new(object, "cpus", cpus);
	if (conf->mode == PERF_RING)
		json_object_set_new(object, "capacity", json_integer((json_int_t)conf->capacity));
	if (conf->compare)
		json_object_set_new(object, "peer_version", json_string(perf_dpdk_version()));
	return object;
}

int perf_json_write(const struct perf_conf *conf, json_t *object)
{
	int rc = 0;

	if (conf->json_path) {
		json_object_set_new(object, "environment", environment_json(conf));
		rc = plx_app_write_json(conf->json_path, object);
	}
	json_decref(object);
	return rc;
}
