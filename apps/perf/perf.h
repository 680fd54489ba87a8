/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of plx-perf share. */
#ifndef PERF_H
#define PERF_H

#include "plx_app.h"

#include <jansson.h>
#include <stdio.h>

enum perf_mode { PERF_NONE, PERF_RING, PERF_POOL, PERF_HOP };

#define PERF_MODES 3

extern const char *const perf_mode_names[]; /**< by enum perf_mode; ended by NULL */

#define PERF_BURSTS     4 /* the loops are compiled for these alone: see perf_bursts */
#define PERF_KINDS      3
#define PERF_ROUNDS_MAX 101
#define PERF_FAR_FACTOR \
	1.8 /* two round trips of a cache line that differ by it are of two states */

extern const uint32_t perf_bursts[PERF_BURSTS]; /* 1, 8, 32, 256 */

/** What the command line asked for. */
struct perf_conf {
	enum perf_mode mode;
	const char *mode_word; /**< that stands where the mode belongs; NULL: none */
	unsigned kinds;        /**< bit n: enum plx_ring_kind n */
	unsigned bursts;       /**< bit n: perf_bursts[n] */
	unsigned on;           /**< enum perf_on */
	uint64_t capacity;
	uint64_t rounds;
	uint64_t duration_ns; /**< of one measurement; of hop: of one round of one row */
	uint64_t gap_us;
	bool compare; /**< with DPDK's own */
	bool with_idle_tcp;
	const char *json_path, *histogram_path;
};

enum perf_on { PERF_ON_BOTH, PERF_ON_ONE, PERF_ON_TWO };

extern struct perf_conf perf_conf;
extern const struct plx_app_option perf_options[];

/** Check what the options say together. Return: 0; -EINVAL. */
int perf_check(void);

/** What is measured together: ours and, where there is one, its peer, each round of both. */
struct perf_row {
	const char *name;    /**< "ring", "pool" */
	const char *variant; /**< "spsc" */
	const char *peer;    /**< "rte_ring SP/SC"; NULL: not compared */
	uint32_t burst, lcores;
	uint32_t rounds;
	double cycles[PERF_ROUNDS_MAX], peer_cycles[PERF_ROUNDS_MAX]; /**< per element, by round */
	double line_ns[2][PERF_ROUNDS_MAX]; /**< of two lcores: a cache line there and back, before
					       and after the round */
};

/** Median, least and greatest of a row's rounds. */
struct perf_figures {
	double median, least, greatest;
};

struct perf_figures perf_figures(const double *values, uint32_t count);

/** Measure one row once: ours, or its peer. Return: 0, with cycles per element; -errno. */
typedef int (*perf_measure_fn)(void *bench, uint32_t row, bool peer, uint32_t round,
			       double *cycles_out);

/** Measure all rows, ours next to its peer and the first of them in turn, conf->rounds times. The
 * CPUs of a virtual machine may come nearer or move apart meanwhile: rows of two lcores have the
 * round trip of a cache line measured before and after each round, and a round in which that
 * changed is measured again, twice at most. away: the other lcore of such rows. Return: 0; -EINTR a
 * signal; what a measurement failed with. */
int perf_rows_run(const struct perf_conf *conf, struct perf_row *rows, uint32_t count,
		  uint32_t away, perf_measure_fn measure, void *bench);

/** Print all rows as a table, with a headline: a line for each state of the CPUs that a row was
 * measured in. unit: "element", "object". */
void perf_rows_print(const struct perf_row *rows, uint32_t count, const char *unit, FILE *out);

/** The rows as a JSON array: an object for each state of the CPUs that a row was measured in. */
json_t *perf_rows_json(const struct perf_row *rows, uint32_t count);

/** Write `object`, with what must be known of this host and build added, to conf->json_path, where
 * that is set. Takes the object over. Return: 0; -EIO. */
int perf_json_write(const struct perf_conf *conf, json_t *object);

/** The floor: bounce a cache line between this lcore and lcore `away`, on 16 pairs of lines
 * at random places of arena, one line for each direction. Which slice of the cache a line belongs
 * to makes a third of its cost, so what counts is the median pair, each in the quicker one of two
 * ways to spin.
 * hist: of all trips, is added to. p50_ns_out: of the median pair. Return: 0; -errno. */
int bare_run(uint32_t away, uint64_t duration_ns, struct plx_hist *hist, double *p50_ns_out);

/** The lcore beside the main one. Where that is on the same CPU, spinning on both would measure the
 * kernel's scheduler: it is refused. Return: 0; -EINVAL. */
int perf_second_lcore(const struct perf_conf *conf, uint32_t *id_out);

/** Whether these words say which lcores there are, or may say so (--config). */
bool perf_lcores_chosen(int count, char **words);

/** A core list of two lcores, on the first two CPUs that this process may use. Return: out; NULL:
 * there are not as many. */
const char *perf_two_lcores(char *out, size_t size);

/** Run one mode, after plx_app_start. Return: 0; -EINVAL for what is a usage error after all; else
 * -errno. */
int perf_ring_run(const struct perf_conf *conf);
int perf_pool_run(const struct perf_conf *conf);
int perf_hop_run(const struct perf_conf *conf);

#endif
