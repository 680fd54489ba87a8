/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of plx-perf. */
#ifndef PERF_H
#define PERF_H

#include "app.h"

#include <jansson.h>
#include <stdio.h>

enum perf_mode { PERF_RING, PERF_POOL, PERF_HOP };
enum perf_on { PERF_ON_BOTH, PERF_ON_ONE, PERF_ON_TWO };

#define PERF_BURSTS     4 /* loops are compiled for these only: see perf_bursts */
#define PERF_KINDS      3
#define PERF_ROUNDS_MAX 101

extern const uint32_t perf_bursts[PERF_BURSTS]; /* 1, 8, 32, 256 */

/** The parsed command line. */
extern struct perf_conf {
	unsigned mode;   /**< enum perf_mode */
	unsigned kinds;  /**< bit n: enum plx_ring_kind n */
	unsigned bursts; /**< bit n: perf_bursts[n] */
	unsigned on;     /**< enum perf_on */
	uint64_t capacity;
	uint64_t rounds;
	uint64_t duration_ns; /**< per measurement; in hop, per round of one row */
	uint64_t gap_us;
	bool compare; /**< with DPDK's */
	bool with_idle_tcp;
	const char *json_path, *histogram_path;
} perf_conf;

/** A row: ours and, if there is one, its peer, both measured in each round. */
struct perf_row {
	const char *name;    /**< "ring", "pool" */
	const char *variant; /**< "spsc" */
	const char *peer;    /**< "rte_ring SP/SC"; NULL: not compared */
	unsigned kind;       /**< of ring or pool */
	unsigned burst;      /**< index of perf_bursts */
	uint32_t lcores;
	uint32_t rounds;
	double cycles[PERF_ROUNDS_MAX], peer_cycles[PERF_ROUNDS_MAX]; /**< per element, by round */
	double line_ns[2][PERF_ROUNDS_MAX]; /**< two lcores: bare line, before and after */
	uint64_t count, peer_count;         /**< elements of one measurement; 0: not calibrated */
};

/** Add a row for each burst that was asked for. row: all but the burst. */
void perf_rows_add(struct perf_row row);

/** Measure `count` elements of one row: ours or its peer. Return: 0, with cycles per element;
 * -errno. */
typedef int (*perf_measure_fn)(const struct perf_row *row, bool peer, uint32_t round,
			       uint64_t count, double *cycles_out);

/** Measure all rows in all rounds, each as many elements as take about the given duration, ours
 * next to its peer, taking turns to be first. A virtual machine's CPUs may move nearer or apart
 * meanwhile. So rows of two lcores also measure the round trip of a cache line before and after
 * each round; if it changed, the round is repeated, at most twice. away: the other lcore of such
 * rows. Return: 0; -EINTR a signal; the error of a measurement. */
int perf_rows_run(uint32_t away, perf_measure_fn measure);

/** Print all rows as a table with a headline, and a line for each CPU state that a row was measured
 * in. unit: "element", "object". Return: the same as a JSON array. */
json_t *perf_rows_report(const char *unit);

/** Median, least and greatest of the rounds. */
struct perf_figures {
	double median, least, greatest;
};

struct perf_figures perf_figures(const double *values, uint64_t count);

/** Write `object`, plus facts of this host and build, to --json if set. Takes ownership of the
 * object. Return: 0; -EIO. */
int perf_json_write(json_t *object);

/** The floor: bounce a cache line between this lcore and lcore `away`, on 16 pairs of lines at
 * random places of the arena, one line per direction. The cache slice of a line makes a third of
 * its cost, so the result is the median pair, each in the faster way of spinning. hist: all trips
 * are added. p50_ns_out: of the median pair. Return: 0; -errno. */
int bare_run(uint32_t away, uint64_t duration_ns, struct plx_hist *hist, double *p50_ns_out);

/** The second lcore. It is refused if it shares the main lcore's CPU, because spinning on both
 * would measure the kernel's scheduler. Return: 0; -EINVAL. */
int perf_second_lcore(uint32_t *id_out);

/** An idle TCP link between the loops of the main lcore and lcore `away`. Thread: the main lcore,
 * outside its loop, while the loop of lcore `away` runs. Return: 0; -errno. */
int idle_tcp_open(uint32_t away);
int idle_tcp_close(void);

enum hop_row_id { HOP_BARE, HOP_HOT, HOP_QUIET, HOP_IDLE_TCP, HOP_ROWS };

struct hop_results {
	struct hop_row {
		const char *name;
		struct plx_hist all; /**< of all rounds; count 0: not measured */
		double p50[PERF_ROUNDS_MAX], p99[PERF_ROUNDS_MAX]; /**< by round */
	} rows[HOP_ROWS];
	double turn_ns[PERF_ROUNDS_MAX], turn_idle_tcp_ns[PERF_ROUNDS_MAX];
	uint32_t away;
};

/** Print the results and write the requested files. Return: 0; -EIO; -errno of a path. */
int hop_report(const struct hop_results *results);

/** Run one mode, after plx_app_start. Return: 0; -EINVAL a late usage error; else -errno. */
int perf_ring_run(void);
int perf_pool_run(void);
int perf_hop_run(void);

#endif
