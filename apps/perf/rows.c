/* SPDX-License-Identifier: BSD-3-Clause */
/* Results: medians, a table for people, JSON for scripts. */
#include "perf.h"
#include "plx_lcore.h"
#include "plx_mem.h"
#include "ring_bench.h"

#include <stdlib.h>
#include <string.h>

#define REAL_PRECISION 6

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

static int run_row(struct perf_row *rows, uint32_t i, uint32_t round, perf_measure_fn measure,
		   void *bench)
{
	struct perf_row *row = &rows[i];
	int rc = 0;

	for (unsigned turn = 0; turn < 2 && rc == 0; turn++) {
		bool peer = (turn + round) % 2;

		if (!peer || row->peer)
			rc = measure(bench, i, peer, round,
				     peer ? &row->peer_cycles[round] : &row->cycles[round]);
		if (rc == 0 && plx_stopping())
			rc = plx_fail(EINTR, "interrupted");
	}
	row->rounds = round + 1;
	return rc;
}

int perf_rows_run(const struct perf_conf *conf, struct perf_row *rows, uint32_t count,
		  perf_measure_fn measure, void *bench)
{
	int rc = 0;

	for (uint32_t round = 0; round < conf->rounds && rc == 0; round++)
		for (uint32_t i = 0; i < count && rc == 0; i++)
			rc = run_row(rows, i, round, measure, bench);
	return rc;
}

/* A table -------------------------------------------------------------------------------------- */

static void print_row(const struct perf_row *row, FILE *out)
{
	struct perf_figures own = perf_figures(row->cycles, row->rounds);
	struct perf_figures peer = perf_figures(row->peer_cycles, row->rounds);
	char range[40];

	snprintf(range, sizeof(range), "%.2f-%.2f", own.least, own.greatest);
	fprintf(out, "%-4s %-10s %6u %6u  %8.2f  %-15s", row->name, row->variant, row->lcores,
		row->burst, own.median, range);
	if (row->peer) {
		snprintf(range, sizeof(range), "%.2f-%.2f", peer.least, peer.greatest);
		fprintf(out, "  %8.2f  %-15s  %5.2f  %s", peer.median, range,
			own.median / peer.median, row->peer);
	}
	fputc('\n', out);
}

void perf_rows_print(const struct perf_row *rows, uint32_t count, const char *unit, FILE *out)
{
	bool compared = count && rows[0].peer;

	if (!count)
		return;
	fprintf(out, "cycles of the %s per %s, medians of %u rounds (least-greatest)\n\n",
		plx_clock_info()->source, unit, rows[0].rounds);
	fprintf(out, "%-15s %6s %6s  %8s  %-15s", "", "lcores", "burst", "cycles", "");
	if (compared)
		fprintf(out, "  %8s  %-15s  %5s", "peer's", "", "ratio");
	fputc('\n', out);
	for (uint32_t i = 0; i < count; i++)
		print_row(&rows[i], out);
}

/* JSON ----------------------------------------------------------------------------------------- */

static void set_peer(json_t *object, const struct perf_row *row, const struct perf_figures *own)
{
	struct perf_figures peer = perf_figures(row->peer_cycles, row->rounds);

	json_object_set_new(object, "peer", json_string(row->peer));
	json_object_set_new(object, "peer_cycles_per_elem", json_real(peer.median));
	json_object_set_new(object, "peer_cycles_least", json_real(peer.least));
	json_object_set_new(object, "peer_cycles_greatest", json_real(peer.greatest));
	json_object_set_new(object, "ratio", json_real(own->median / peer.median));
}

static json_t *row_json(const struct perf_row *row)
{
	struct perf_figures own = perf_figures(row->cycles, row->rounds);
	json_t *object = json_pack("{s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f}", "name", row->name,
				   "variant", row->variant, "burst", (int)row->burst, "lcores",
				   (int)row->lcores, "rounds", (int)row->rounds, "cycles_per_elem",
				   own.median, "cycles_least", own.least, "cycles_greatest",
				   own.greatest);

	if (object && row->peer)
		set_peer(object, row, &own);
	return object;
}

json_t *perf_rows_json(const struct perf_row *rows, uint32_t count)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(array, row_json(&rows[i]));
	return array;
}

static json_t *environment_json(const struct perf_conf *conf)
{
	char memory[128];
	json_t *cpus = json_array();
	json_t *object = json_pack(
		"{s:s, s:s, s:f, s:s, s:I, s:f}", "version", plx_version(), "clock",
		plx_clock_info()->source, "clock_hz", plx_clock_info()->hz, "memory",
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
	FILE *file = NULL;
	int rc = 0;

	if (!conf->json_path)
		goto drop;
	json_object_set_new(object, "environment", environment_json(conf));
	file = fopen(conf->json_path, "w");
	if (!file) {
		rc = plx_fail(errno, "cannot write %s: %s", conf->json_path, strerror(errno));
		goto drop;
	}
	rc = json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_PRECISION));
	rc |= fputc('\n', file) == EOF;
	rc |= fclose(file);
	if (rc)
		rc = plx_fail(EIO, "cannot write %s", conf->json_path);
drop:
	json_decref(object);
	return rc;
}
