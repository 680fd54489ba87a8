/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Shared by the programs of this tree: output, schedules, measurement results. Linked statically
 * into each program: not part of libpollux and not installed. Options, start and end: plx_app.h. */
#ifndef APP_H
#define APP_H

#include "option_words.h"
#include "plx_address.h"
#include "plx_app.h"
#include "plx_base.h"
#include "plx_lcore.h"
#include "plx_stats.h"

/** Print untrusted text without control sequences, as plx_printable_next does. plain: further ASCII
 * characters to print unchanged, such as a line feed, or a backslash if no reader decodes
 * escapes. */
void plx_app_put_text(FILE *out, const void *text, size_t length, const char *plain);

/** Print how often the lcore slept and what woke it; nothing if it never slept. Thread: any, before
 * plx_app_finish. */
void plx_app_say_idle(uint32_t id);

/** Run all lcores' loops until SIGINT or SIGTERM, then close their links in order, in at most 0.5
 * s. Thread: main, outside its loop. */
void plx_app_serve(void);

/* Schedules of open loops ------------------------------------------------------------------ */

enum plx_arrival {
	PLX_ARRIVAL_FIXED,   /**< equally spaced */
	PLX_ARRIVAL_POISSON, /**< random and independent */
	PLX_ARRIVAL_BURST,   /**< a hundred, 10 us apart, then a pause that keeps the rate */
};

/** The names of the arrivals, in order; ends with NULL. */
extern const char *const plx_arrivals[];

#define PLX_ARRIVAL_BURST_RATE_MAX 100000

/** When an open loop sends, regardless of replies. Thread: its user. */
struct plx_schedule {
	double next_tsc; /**< when the next send is due; set it to start or restart */
	double gap_tsc, burst_gap_tsc;
	uint64_t random, count;
	enum plx_arrival arrival;
};

/** rate: per second, more than 0. seed: equal seeds give equal schedules. tsc_hz:
 * plx_clock_info_read()->hz. */
void plx_schedule_init(struct plx_schedule *schedule, enum plx_arrival arrival, double rate,
		       uint64_t seed, double tsc_hz);

/** The due send is done: set next_tsc for the next one. */
void plx_schedule_advance(struct plx_schedule *schedule);

/** For an arm callback: wake when the next send is due. If a due send found no room: nap. */
void plx_schedule_sleep(const struct plx_schedule *schedule, struct plx_sleep *sleep);

#define PLX_SCHEDULE_DRAIN_NS (2 * PLX_NS_PER_S) /**< time for the last replies */

/** Return whether the host cannot keep up in a run that should have ended at stop_tsc (0:
 * open-ended): the remaining sends would take longer than PLX_SCHEDULE_DRAIN_NS. */
bool plx_schedule_is_hopeless(uint64_t stop_tsc, uint64_t now_tsc);

/** Options of a measuring program, from PLX_MEASURE_OPTIONS. */
struct plx_measure {
	uint64_t count, duration_ns; /**< if count is 0, duration_ns applies */
	uint64_t rate;               /**< per second, open loop; 0: closed loop */
	uint64_t interval_ns;        /**< between rare messages, instead of the rate; or 0 */
	unsigned arrival;            /**< enum plx_arrival */
	uint64_t seed;               /**< of the arrivals */
	const char *out_dir;         /**< NULL: the result is not written to files */
	const char *name;            /**< of the result */
	bool process;                /**< measure that process' self-test service */
	bool count_given, duration_given, arrival_given, seed_given;
};

/** Exit status of a complete run whose figures failed their check. */
#define PLX_MEASURE_DOUBTED      3

#define PLX_MEASURE_IDLE_BYTES   64
#define PLX_MEASURE_COUNT_MAX    UINT64_C(1000000000000)
#define PLX_MEASURE_DURATION_MAX (7 * 86400 * PLX_NS_PER_S)
#define PLX_MEASURE_RATE_MAX     100000000

/** Rows for an option table. m: a struct plx_measure. default_, name_: the defaults that the help
 * shows for --duration, such as " (default 5s)", and for --name. */
/* clang-format off */
#define PLX_MEASURE_OPTIONS(m, default_, name_) \
	PLX_FLAG("process", &(m).process, \
		 "call the self-test service, which every Pollux process has"), \
	PLX_UINT("count", "N", &(m).count, 1, PLX_MEASURE_COUNT_MAX, "measure N round trips, messages or calls", \
		 .given = &(m).count_given), \
	PLX_TIME("duration", "TIME", &(m).duration_ns, PLX_NS_PER_MS, PLX_MEASURE_DURATION_MAX, \
		 "measure for that long" default_, .given = &(m).duration_given), \
	PLX_UINT("rate", "R", &(m).rate, 1, PLX_MEASURE_RATE_MAX, \
		 "open loop: send R per second, whether or not answers arrive (default: closed loop)"), \
	PLX_CHOICE("arrival", "HOW", &(m).arrival, plx_arrivals, \
		   "open loop: fixed, poisson, or burst of 100 at 10 us (default fixed)", \
		   .given = &(m).arrival_given), \
	PLX_UINT("seed", "N", &(m).seed, 0, 0, "seed of random arrivals (default 1)", \
		 .given = &(m).seed_given), \
	PLX_TEXT("out", "DIR", &(m).out_dir, "write NAME.json, NAME.hgrm and NAME.csv there"), \
	PLX_TEXT("name", "NAME", &(m).name, "name of the result (default " name_ ")")
/* clang-format on */

/** Return: 0; -EINVAL conflicting options, or the name is not a file name. */
int plx_measure_check(const struct plx_measure *measure);

/** The messages per second of an open loop; 0: closed loop. */
double plx_measure_rate(const struct plx_measure *measure);

/** Convert ns to ticks of plx_tsc. Thread: any. */
uint64_t plx_measure_tsc(uint64_t ns);

/** The --idle policy of the calling lcore. Return: out. */
const char *plx_measure_idle(char out[PLX_MEASURE_IDLE_BYTES]);

/** The signal that stopped the loops, "SIGINT" or "SIGTERM". Thread: any. */
const char *plx_measure_signal(void);

/** Print, above the figures, why the run stopped early and how far it got: count, in `unit`
 * ("calls"), or elapsed_ns. */
void plx_measure_say_interrupted(const struct plx_measure *measure, const char *why, uint64_t count,
				 const char *unit, uint64_t elapsed_ns);

/** One measurement, of round-trip times or one-way messages. */
struct plx_result {
	const char *name;     /**< of the run: "tcp-poll" */
	const char *provider; /**< "plx_tcp" */
	const char *idle;     /**< policy of the measuring lcore: "poll" */
	uint64_t size_bytes;
	uint64_t elapsed_ns;     /**< of the measured part */
	uint64_t in_flight;      /**< closed loop: requests in flight at a time; 0: one */
	uint64_t lost;           /**< requests without a reply */
	bool one_way;            /**< messages without replies: instead of times: */
	uint64_t count, again;   /**< ... messages, and how often one found no room */
	double rate;             /**< open loop: target per second; 0: closed loop */
	uint64_t scheduled_ns;   /**< open loop: first to last intended send */
	uint64_t sending_ns;     /**< open loop: first intended to last actual send */
	bool has_gaps;           /**< closed loop: time passed between round trips */
	const char *interrupted; /**< why the run stopped early; NULL: it did not */
	bool failed;             /**< ... and not by a signal: the result is invalid */
	uint64_t planned_count, planned_ns; /**< with interrupted: the requested amount, or 0 */
	const char *arrival;                /**< "fixed", "poisson"; NULL: closed loop */
	uint64_t seed;                      /**< of the arrivals */
	double clock_drift_ppm;
	const struct plx_hist *rtt_ns;     /**< open loop: from the intended send */
	const struct plx_hist *service_ns; /**< open loop: from the actual send; otherwise NULL */
	struct json_t *more;               /**< jansson object with further keys to write; NULL:
					    * none */
};

/** Print percentiles and bars. columns: of the terminal; 0: ask it. */
void plx_result_print(const struct plx_result *result, FILE *out, unsigned columns);

/** The messages per second of a one-way result; 0: unknown. */
double plx_result_per_s(const struct plx_result *result);

/** Check that the figures are consistent. One way: there are messages. Closed loop: mean times
 * count is within 3 % of elapsed, unless time passed between round trips. Open loop: it
 * sent what was scheduled in the scheduled time, within 0.1 %, and lost nothing. Return: 0;
 * -ERANGE, with a text. */
int plx_result_check(const struct plx_result *result);

/** Before a long run, check that its results can be written: create directory `dir` if missing, and
 * check that files named `name` can be created there. Return: 0; -errno, the text names the
 * path. */
int plx_result_prepare(const char *name, const char *dir);

/** Write NAME.json, NAME.hgrm and NAME.csv into directory `dir`, created if missing. JSON keys:
 * name provider idle size_bytes count min_ns p50_ns p90_ns p99_ns p99_9_ns p99_99_ns max_ns mean_ns
 * elapsed_ns valid interrupted and, if they apply, planned_count or planned_ns, lost rate arrival
 * achieved_rate seed service_p50_ns service_p99_ns clock_drift_ppm note. A percentile without
 * enough samples is null. One way: only NAME.json, without times and lost, and with one_way again
 * messages_per_s bytes_per_s. Return: 0; -errno, the text names the path. */
int plx_result_write(const struct plx_result *result, const char *dir);

/** Before a run, remove the files that an earlier run with that name left in `dir`, so that they
 * are never taken for this run's. Links, pipes and devices stay, because a user set them up. A
 * one-way run, which writes only NAME.json, keeps the others unless that one exists. Return: 0;
 * -errno, the text names the path. */
int plx_result_forget(const char *name, const char *dir, bool one_way);

/** Set a number, or a percentile: null if there are too few samples. */
void plx_result_set_count(struct json_t *object, const char *key, uint64_t value);
void plx_result_set_quantile(struct json_t *object, const char *key, const struct plx_hist *hist,
			     double fraction);

/** Write a JSON file, or a histogram of ns as HdrHistogram does, in microseconds. Return: 0;
 * -errno, the text names the path. */
int plx_app_write_json(const char *path, const struct json_t *object);
int plx_app_write_hgrm(const char *path, const struct plx_hist *hist);

/** Before a long run, check that a file can be written, without opening one that exists: it may be
 * a pipe. path: NULL: no file. Return: 0; -EINVAL, the text names the option. */
int plx_app_check_file(const char *option, const char *path);

#endif
