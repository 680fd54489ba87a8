/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the programs of this tree share: option tables, the start of a program, results of a
 * measurement. Linked into each of them: not part of libpollux, and not installed.
 */
#ifndef PLX_APP_H
#define PLX_APP_H

#include "plx_address.h"
#include "plx_base.h"
#include "plx_eal.h"
#include "plx_lcore.h"
#include "plx_stats.h"

/* Options ---------------------------------------------------------------------------------- */

enum plx_app_kind {
	PLX_APP_FLAG,     /**< bool *; takes no value */
	PLX_APP_STRING,   /**< const char ** */
	PLX_APP_ADDRESS,  /**< const char **, host:port, as plx_address_check wants it */
	PLX_APP_UINT,     /**< uint64_t *, decimal, min to max */
	PLX_APP_SIZE,     /**< uint64_t *, bytes: 64, 4K, 1M, 2G; min to max */
	PLX_APP_DURATION, /**< uint64_t *, nanoseconds: 10 (seconds), 1.5s, 500ms, 20us, 1h */
	PLX_APP_CHOICE,   /**< unsigned *, index of one of `choices` */
	PLX_APP_LIST,     /**< struct plx_app_list *: strings; may be given several times */
};

#define PLX_APP_LIST_MAX 64

/** What a PLX_APP_LIST was given, in that order. */
struct plx_app_list {
	const char *at[PLX_APP_LIST_MAX];
	unsigned count;
};

/** One option of an application: a row of a table, which ends with PLX_OPTIONS_END. Write it by the
 * macro of its kind below, whose `to` has the type of that kind. */
struct plx_app_option {
	const char *name;        /**< long name without dashes */
	const char *placeholder; /**< "ADDR", "N": what the help shows for the value */
	const char *help;        /**< one line, with the default */
	enum plx_app_kind kind;
	union { /* where it goes; holds the default before */
		bool *flag;
		const char **string;
		uint64_t *number; /* UINT, SIZE, DURATION */
		unsigned *choice;
		struct plx_app_list *list;
	} to;
	uint64_t min, max;          /**< UINT, SIZE, DURATION (ns); max 0: no limit */
	const char *const *choices; /**< CHOICE: ended by NULL */
	bool *given;                /**< set when the option was there; may be NULL */
	char letter;                /**< "-p" for "--port"; 0: none. Not one of the EAL's */
	bool may_be_empty;          /**< STRING: "" is a value, as any other */
	bool required;              /**< it must be given */
	const char *now; /**< not NULL: an old name, which works for one release. The help omits it,
			    and a warning tells to give this instead: "--connect ADDR" */
};

/* Rows. `...` is the help, and then any further members, such as `.letter = 'p'`. */
#define PLX_OPTION(kind_, member_, name_, placeholder_, to_, ...) \
	{.name = (name_),                                         \
	 .placeholder = (placeholder_),                           \
	 .kind = (kind_),                                         \
	 .to.member_ = (to_),                                     \
	 .help = __VA_ARGS__}
#define PLX_FLAG(name, to, ...) PLX_OPTION(PLX_APP_FLAG, flag, name, NULL, to, __VA_ARGS__)
#define PLX_TEXT(name, placeholder, to, ...) \
	PLX_OPTION(PLX_APP_STRING, string, name, placeholder, to, __VA_ARGS__)
#define PLX_ADDRESS(name, to, ...) \
	PLX_OPTION(PLX_APP_ADDRESS, string, name, "ADDR", to, __VA_ARGS__)
#define PLX_LIST(name, placeholder, to, ...) \
	PLX_OPTION(PLX_APP_LIST, list, name, placeholder, to, __VA_ARGS__)
#define PLX_CHOICE(name, placeholder, to, choices_, ...)                       \
	PLX_OPTION(PLX_APP_CHOICE, choice, name, placeholder, to, __VA_ARGS__, \
		   .choices = (choices_))
#define PLX_NUMBER(kind, name, placeholder, to, min_, max_, ...) \
	PLX_OPTION(kind, number, name, placeholder, to, __VA_ARGS__, .min = (min_), .max = (max_))
#define PLX_UINT(name, placeholder, to, min, max, ...) \
	PLX_NUMBER(PLX_APP_UINT, name, placeholder, to, min, max, __VA_ARGS__)
#define PLX_SIZE(name, placeholder, to, min, max, ...) \
	PLX_NUMBER(PLX_APP_SIZE, name, placeholder, to, min, max, __VA_ARGS__)
#define PLX_TIME(name, placeholder, to, min, max, ...) \
	PLX_NUMBER(PLX_APP_DURATION, name, placeholder, to, min, max, __VA_ARGS__)
#define PLX_OPTIONS_END {.name = NULL}

struct plx_app {
	const char *name;     /**< "plx-ping" */
	const char *summary;  /**< one line */
	const char *usage;    /**< lines for "Usage:", each "  plx-ping [EAL options] -- ..."; NULL:
				 one that names no options */
	const char *examples; /**< two lines: "  plx-ping --self --explain" */
	const char *page;     /**< its page: "apps/plx-ping.md" of doc */
	const struct plx_app_option *options;
	const char *idle; /**< --idle where the user does not give it; NULL: the EAL's default */
	/** Check what the options say together; may be NULL. Return 0 or plx_fail(EINVAL, ...). */
	int (*check)(void);
};

/** Not an exit status: continue. */
#define PLX_APP_RUN (-1)

/** Parse the EAL's options and the application's own, in any order. Where both have one of the same
 * name, the application's is meant, and the EAL's if it stands before a "--". Serve --help,
 * --version and --dry-run, and bring the EAL up, with plx_app_prepare first and plx_stop_on_signals
 * last. Prints every error, once. Return: PLX_APP_RUN; or the status to exit with: 0 after help,
 * version or dry run, 2 after a usage error, 1 after any other. */
int plx_app_start(int argc, char **argv, const struct plx_app *app);

/** What plx_app_start does first, for a program that does not call it: plx_hold_stdio, and ignore
 * SIGPIPE and SIGXFSZ, so that writing fails instead. Thread: setup. */
void plx_app_prepare(void);

/** Parse the application's own words alone (argv[0] is the first of them). Return: 0; -EINVAL. */
int plx_app_parse(int argc, char **argv, const struct plx_app *app);

/** The parts of an address that PLX_ADDRESS or plx_address_check has accepted. Return: the port. */
unsigned plx_app_split_address(const char *address, char host_out[PLX_ADDRESS_MAX]);

/** Print the options, each with its placeholder and help, for a program that serves --help. */
void plx_app_print_options(const struct plx_app *app, FILE *out);

/** Print what --help ends with: the examples, and where to read more. */
void plx_app_print_more(const struct plx_app *app);

/** Print one line on standard output, at once, so that a script that reads it sees it now. It is
 * lost if a pipe is full or has no reader: an lcore does not wait for readers. Any other failure is
 * reported by plx_app_flush. Thread: any. */
void plx_app_say(const char *format, ...) PLX_PRINTF(1, 2);

/** Print text of somebody else's, so that it does not steer a terminal: as plx_printable_next.
 * plain: more characters of ASCII that are printed as they are, such as a line feed, or a backslash
 * where nobody reads escapes back. */
void plx_app_put_text(FILE *out, const void *text, size_t length, const char *plain);

/** Flush standard output. Return: 0: all that was printed so far has been taken; -EIO, with a text,
 * once for each failure: what was not taken is discarded. */
int plx_app_flush(void);

/** What an errno value of reading standard input or writing standard output means to the user. */
const char *plx_app_stream_error(int err);

/** plx_app_flush for the end of a program: print its failure. Return: status; 1 if it was 0 and
 * something could not be written. plx_app_finish does it. */
int plx_app_end_output(const struct plx_app *app, int status);

/** Print how often the lcore slept, and what woke it, on standard output; nothing where it never
 * slept. Thread: any, before plx_app_finish. */
void plx_app_say_idle(uint32_t id);

/** Print "NAME: text" of the last error on standard error and return 1, for `return`. */
int plx_app_fail(const struct plx_app *app);

/** Run the loop of every lcore until SIGINT or SIGTERM, then close their links in order, in 0.5 s
 * at most. Thread: main, outside its loop. */
void plx_app_serve(void);

/** End it: plx_eal_fini and plx_app_end_output. Returns `status`, or 1 if an lcore hangs or, with
 * status 0, if what was printed could not be written. */
int plx_app_finish(const struct plx_app *app, int status);

/* Schedules of open loops ------------------------------------------------------------------ */

enum plx_arrival {
	PLX_ARRIVAL_FIXED,   /**< at equal distances */
	PLX_ARRIVAL_POISSON, /**< at random, none knowing of the others */
	PLX_ARRIVAL_BURST,   /**< a hundred 10 us apart, and a pause that keeps the rate */
};

/** Their names, in that order, ended by NULL. */
extern const char *const plx_arrivals[];

#define PLX_ARRIVAL_BURST_RATE_MAX 100000

/** When an open loop sends, whatever became of what it sent. Thread: its user. */
struct plx_schedule {
	double next_tsc; /**< when the next one is due: set it to begin, and to begin anew */
	double gap_tsc, burst_gap_tsc;
	uint64_t random, count;
	enum plx_arrival arrival;
};

/** rate: a second, more than 0. seed: of equal ones the schedules are equal. tsc_hz:
 * plx_clock_info()->hz. */
void plx_schedule_init(struct plx_schedule *schedule, enum plx_arrival arrival, double rate,
		       uint64_t seed, double tsc_hz);

/** The one that was due is sent: next_tsc is for the next one. */
void plx_schedule_advance(struct plx_schedule *schedule);

/** For an arm callback: wake when the next one is due. One that is due found no room: nap. */
void plx_schedule_sleep(const struct plx_schedule *schedule, struct plx_sleep *sleep);

#define PLX_SCHEDULE_DRAIN_NS (2 * PLX_NS_PER_S) /**< for the last answers */

/** Whether the host cannot keep the rate of a run that should have ended at stop_tsc (0: no end):
 * what is still to be sent would take longer than PLX_SCHEDULE_DRAIN_NS. */
bool plx_schedule_is_hopeless(uint64_t stop_tsc, uint64_t now_tsc);

/** What a program that measures is asked for, by PLX_MEASURE_OPTIONS. */
struct plx_measure {
	uint64_t count, duration_ns; /**< count 0: duration_ns decides */
	uint64_t rate;               /**< a second, of an open loop; 0: closed loop */
	unsigned arrival;            /**< enum plx_arrival */
	uint64_t seed;               /**< of the arrivals */
	const char *out_dir;         /**< NULL: the result is not written to files */
	const char *name;            /**< of the result */
	bool process;                /**< the self-test service of whatever process listens there */
	bool count_given, duration_given, arrival_given, seed_given;
};

/** To exit with where a run came to its end, and its figures are not what they claim to be. */
#define PLX_MEASURE_DOUBTED      3

#define PLX_MEASURE_IDLE_BYTES   64
#define PLX_MEASURE_COUNT_MAX    UINT64_C(1000000000000)
#define PLX_MEASURE_DURATION_MAX (7 * 86400 * PLX_NS_PER_S)
#define PLX_MEASURE_RATE_MAX     100000000

/** Rows for a table of options. m: a struct plx_measure. default_, name_: what the help gives as
 * the default of --duration, such as " (default 5s)", and of --name. */
/* clang-format off */
#define PLX_MEASURE_OPTIONS(m, default_, name_) \
	PLX_FLAG("process", &(m).process, \
		 "call the self-test service of any Pollux process, whatever it listens for"), \
	PLX_UINT("count", "N", &(m).count, 1, PLX_MEASURE_COUNT_MAX, "measure that many", \
		 .given = &(m).count_given), \
	PLX_TIME("duration", "TIME", &(m).duration_ns, PLX_NS_PER_MS, PLX_MEASURE_DURATION_MAX, \
		 "measure that long" default_, .given = &(m).duration_given), \
	PLX_UINT("rate", "R", &(m).rate, 1, PLX_MEASURE_RATE_MAX, \
		 "open loop: send R a second, whatever comes back (default: closed loop)"), \
	PLX_CHOICE("arrival", "HOW", &(m).arrival, plx_arrivals, \
		   "open loop: fixed, poisson, or burst of 100 at 10 us (default fixed)", \
		   .given = &(m).arrival_given), \
	PLX_UINT("seed", "N", &(m).seed, 0, 0, "of the arrivals (default 1)", \
		 .given = &(m).seed_given), \
	PLX_TEXT("out", "DIR", &(m).out_dir, "write NAME.json, NAME.hgrm and NAME.csv there"), \
	PLX_TEXT("name", "NAME", &(m).name, "name of the result (default " name_ ")")
/* clang-format on */

/** Return: 0; -EINVAL these options do not go together, or the name is none of a file. */
int plx_measure_check(const struct plx_measure *measure);

/** So long a time in ticks of plx_tsc. Thread: any. */
uint64_t plx_measure_tsc(uint64_t ns);

/** The --idle policy of the calling lcore. Return: out. */
const char *plx_measure_idle(char out[PLX_MEASURE_IDLE_BYTES]);

/** The signal that stopped the loops, "SIGINT" or "SIGTERM". Thread: any. */
const char *plx_measure_signal(void);

/** Print, above the figures, what cut a run short, and how far it came: count, in `unit`
 * ("calls"), or elapsed_ns. */
void plx_measure_say_interrupted(const struct plx_measure *measure, const char *why, uint64_t count,
				 const char *unit, uint64_t elapsed_ns);

/* Results ---------------------------------------------------------------------------------- */

/** One measurement of round-trip times. */
struct plx_result {
	const char *name;     /**< of the run: "tcp-poll" */
	const char *provider; /**< "plx_tcp" */
	const char *idle;     /**< policy of the lcore that measured: "poll" */
	uint64_t size_bytes;
	uint64_t elapsed_ns;     /**< of the measured part */
	uint64_t in_flight;      /**< closed loop: requests under way at a time; 0: one */
	uint64_t lost;           /**< requests without an answer */
	double rate;             /**< target of an open loop, per second; 0: closed loop */
	uint64_t scheduled_ns;   /**< open loop: from the first to the last intended send */
	uint64_t sending_ns;     /**< open loop: from the first intended to the last true send */
	bool verified;           /**< closed loop: contents were compared between round trips */
	bool has_gaps;           /**< closed loop: do not check the time between round trips */
	const char *interrupted; /**< what cut it short; NULL: nothing */
	bool failed;             /**< ... and that is no signal: it is not valid */
	uint64_t planned_count, planned_ns; /**< with interrupted: what was asked for, or 0 */
	const char *arrival;                /**< "fixed", "poisson"; NULL in a closed loop */
	uint64_t seed;                      /**< of the arrivals */
	double clock_drift_ppm;
	const struct plx_hist *rtt_ns;     /**< open loop: from the intended time */
	const struct plx_hist *service_ns; /**< open loop: from the true send; else NULL */
	struct json_t *more;               /**< jansson's: keys to write too; NULL: none */
};

/** Print the line of percentiles (n/a if there are too few samples) and a histogram at most
 * `columns` wide (0: the terminal's, or 80). */
void plx_result_print(const struct plx_result *result, FILE *out, unsigned columns);

/** A percentile in microseconds, for people; "n/a" if there are too few samples. Returns out. */
const char *plx_result_quantile(const struct plx_hist *hist, double fraction, char *out,
				size_t size);

/** Check the run against itself: a closed loop's mean times count is within 3 % of elapsed, unless
 * contents were verified between round trips; an open loop sent what was scheduled in the time that
 * was scheduled, to 0.1 %, and lost nothing. Return: 0; -ERANGE, the text saying what. */
int plx_result_check(const struct plx_result *result);

/** Check, before a long run, that its results can be written: make directory `dir` if missing, and
 * see that files named `name` may be made there. Return: 0; -errno with the path. */
int plx_result_prepare(const char *name, const char *dir);

/** Write NAME.json, NAME.hgrm and NAME.csv into directory `dir`, made if missing. JSON keys: name
 * provider idle size_bytes count min_ns p50_ns p90_ns p99_ns p99_9_ns p99_99_ns max_ns mean_ns
 * elapsed_ns valid interrupted and, as far as they apply, planned_count or planned_ns, lost rate
 * arrival achieved_rate seed service_p50_ns service_p99_ns clock_drift_ppm note. A percentile
 * without enough samples is null. Return: 0; -errno with the path. */
int plx_result_write(const struct plx_result *result, const char *dir);

/** Set the keys that say what cut the run short: interrupted, planned_count or planned_ns. */
void plx_result_set_interrupted(struct json_t *object, const struct plx_result *result);

/** Set a number, or a percentile: null if there are too few samples. */
void plx_result_set_count(struct json_t *object, const char *key, uint64_t value);
void plx_result_set_quantile(struct json_t *object, const char *key, const struct plx_hist *hist,
			     double fraction);

/** Write a file of JSON. Return: 0; -errno with the path. */
int plx_app_write_json(const char *path, const struct json_t *object);

/** The same for DIR/NAME.json. */
int plx_result_write_json(const char *dir, const char *name, const struct json_t *object);

#endif
