/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The measuring engine: a load of requests or messages, when to send them, and their times.
 *
 *   load.c          what is sent when, and what is recorded: no clock, no loop
 *   load_run.c      the same in the loop of an lcore, with progress, silence and signals
 *   load_report.c   the end of a run as text, files and an exit status
 *   rpc_load.c      requests that are calls of a service
 *
 * A run has a warm-up, which is not recorded, and a measured part of `count` messages or
 * `duration_ns`. Times are of plx_tsc. Thread: the lcore that runs the load. */
#ifndef PLX_LOAD_H
#define PLX_LOAD_H

#include "app.h"

#include <sys/queue.h>

enum plx_load_kind {
	PLX_LOAD_CLOSED,  /**< in_flight_max requests in flight: each reply starts the next */
	PLX_LOAD_OPEN,    /**< requests by the schedule, whether or not replies arrive */
	PLX_LOAD_ONE_WAY, /**< no replies: up to burst_max messages a turn */
};

enum plx_load_state {
	PLX_LOAD_IDLE,
	PLX_LOAD_WARMUP,
	PLX_LOAD_WARM, /**< on_warm has not called plx_load_begin yet: nothing is sent */
	PLX_LOAD_MEASURING,
	PLX_LOAD_DRAINING, /**< all requests are sent; waits for replies */
	PLX_LOAD_ENDED,
};

struct plx_load;

/** A request in flight. */
struct plx_flight {
	struct plx_load *load;
	STAILQ_ENTRY(plx_flight) next; /* while it is free */
	uint64_t intended_tsc;         /**< open loop: when it was due; otherwise sent_tsc */
	uint64_t sent_tsc;             /**< set by load->send */
	bool is_measured;
};

/** How a request ended; any but a good reply means that it is lost. */
enum plx_reply {
	PLX_REPLY_GOOD,
	PLX_REPLY_BAD,  /**< the peer answered, but not what was asked for */
	PLX_REPLY_NONE, /**< the peer did not answer */
};

#define PLX_LOAD_OPEN_MAX        65536 /**< default of in_flight_max of an open loop */
#define PLX_LOAD_WARNINGS        4
#define PLX_LOAD_SILENCE_S       10
#define PLX_LOAD_WARMUP_MESSAGES 1000
#define PLX_LOAD_WARMUP_MAX      (UINT64_C(64) << 20) /**< bytes */

struct plx_load {
	/* Set by the program, after plx_load_init. */
	const struct plx_measure *run;
	enum plx_load_kind kind;
	const char *unit; /**< "round trips", for people */
	uint64_t size_bytes;
	uint64_t in_flight_max;
	uint64_t warmup, warmup_ns; /**< messages and time: the first one ends it; 0 ns: no limit */
	unsigned burst_max;
	/** Set flight->sent_tsc and send a request. Return: 0; -EAGAIN no room: a closed loop waits
	 * for plx_load_writable, an open one tries again each turn; other -errno with a text end
	 * the run. */
	int (*send)(struct plx_load *load, struct plx_flight *flight);
	/** One way: send up to `most` messages, set last_tsc after them, and `blocked` if there is
	 * no room. Return: how many were sent. */
	unsigned (*send_burst)(struct plx_load *load, unsigned most);
	/** One way: the warm-up is over: call plx_load_begin, now or later. NULL: at once. */
	void (*on_warm)(struct plx_load *load, uint64_t now_tsc);
	/** The run has ended, or failed. NULL: plx_loop_quit. */
	void (*on_end)(struct plx_load *load);
	/** Nothing moved for PLX_LOAD_SILENCE_S: plx_load_fail. NULL: that is not watched. */
	void (*on_silence)(struct plx_load *load);
	void *user;

	enum plx_load_state state;
	uint64_t sent, answered;      /**< with the warm-up; in flight: their difference */
	uint64_t done, lost;          /**< measured: answered, and those without a proper reply */
	uint64_t dropped;             /**< closed loop: fewer in flight, because of refusals */
	uint64_t limit;               /**< of sent, in the measured part */
	uint64_t again;               /**< requests that found no room and waited */
	uint64_t first_tsc, last_tsc; /**< measured: the first intended, the last reply */
	uint64_t first_message;       /**< measured: its number */
	uint64_t last_intended_tsc, last_sent_tsc;
	uint64_t warm_until_tsc, stop_tsc, drain_tsc; /**< 0: no limit */
	struct plx_flight *flights;
	STAILQ_HEAD(, plx_flight) free;
	uint64_t flight_mask;
	bool blocked;   /**< the next message has found no room */
	bool has_gaps;  /**< time between requests is not theirs: skip that check */
	bool any_order; /**< of replies: plx_load_oldest is not used */
	struct plx_schedule schedule;
	struct plx_hist rtt_ns, service_ns; /**< from the intended time; open loop: from the send */

	/* load_run.c and load_report.c. */
	struct plx_poller *poller;
	struct plx_timer progress, watch;
	uint64_t moved_before;
	unsigned silent_s;
	bool failed, signalled;
	bool shows_progress; /**< a line of progress is on the terminal */
	char error[512];
	char provider[32], provider_choice[128], idle[PLX_MEASURE_IDLE_BYTES];
	char warnings[PLX_LOAD_WARNINGS][256]; /**< reasons to doubt the figures */
	unsigned warning_count;
};

/** Choose the kind by run->rate, and default limits of the warm-up: 1000 messages or a second,
 * 64 MiB; of an open loop instead of time the messages of a second. Free it with plx_load_fini,
 * also after a failure. in_flight_max: of one way 0. Return: 0; -ENOMEM. */
int plx_load_init(struct plx_load *load, const struct plx_measure *run, uint64_t size_bytes,
		  uint64_t in_flight_max);
void plx_load_fini(struct plx_load *load);

/* The engine: time is passed in -------------------------------------------------------------- */

/** Begin the warm-up; a closed loop sends. */
void plx_load_start(struct plx_load *load, uint64_t now_tsc);

/** on_warm is done: begin the measured part with the next message. */
void plx_load_begin(struct plx_load *load, uint64_t now_tsc);

/** Open loop and one way, each turn: send what is due. Return: how many were sent. */
int plx_load_turn(struct plx_load *load, uint64_t now_tsc);

/** A request has ended. */
void plx_load_reply(struct plx_load *load, struct plx_flight *flight, uint64_t now_tsc,
		    enum plx_reply reply);

/** Closed loop: a request is refused until again_tsc. Return: whether to repeat it then, with
 * plx_load_repeat. Otherwise the measured part ends earlier: the request is taken back, and the
 * others continue with one fewer in flight. */
bool plx_load_refused(struct plx_load *load, struct plx_flight *flight, uint64_t now_tsc,
		      uint64_t again_tsc);

/** Send a refused request again. */
void plx_load_repeat(struct plx_load *load, struct plx_flight *flight);

/** The oldest request in flight, if replies come in order. */
static inline struct plx_flight *plx_load_oldest(const struct plx_load *load)
{
	return &load->flights[load->answered & load->flight_mask];
}

/** There is room again. */
void plx_load_writable(struct plx_load *load, uint64_t now_tsc);

/** End the run early. The first text counts. */
void plx_load_fail(struct plx_load *load, const char *text);

/** Call this every second. Return: whether nothing has moved for PLX_LOAD_SILENCE_S. */
bool plx_load_is_silent(struct plx_load *load);

/** For an arm callback: what wakes the loop next. Return: 0; -EAGAIN do not sleep. */
int plx_load_sleep(const struct plx_load *load, struct plx_sleep *sleep);

static inline bool plx_load_is_on(const struct plx_load *load)
{
	return load->state != PLX_LOAD_IDLE && load->state != PLX_LOAD_ENDED;
}

/** The figures; with the name, kind and end of the run. interrupted: load->error, or a signal. */
void plx_load_result(const struct plx_load *load, struct plx_result *result);

/* In the loop -------------------------------------------------------------------------------- */

/** Turn the loop until the run has ended or a signal: with plx_load_turn, a line of progress on a
 * terminal, and a watch over silence. Something else calls plx_load_start. Return: 0; as
 * plx_poller_add. */
int plx_load_run(struct plx_load *load);

/** The same for programs that turn the loop themselves: before and after. */
int plx_load_enter(struct plx_load *load);
void plx_load_leave(struct plx_load *load);

/** Add a warning for each CPU of the calling lcore that another process has claimed. */
void plx_load_look_for_pollers(struct plx_load *load);

/** Record which provider carries the load, and why. */
void plx_load_note_provider(struct plx_load *load, const char *provider, const char *choice);

/* The report --------------------------------------------------------------------------------- */

/** Return whether there is something to report: a run that has measured nothing has only a cause,
 * in plx_error. Return: 0; -EINTR a signal; -EIO a failure. */
int plx_load_end(const struct plx_load *load);

/** Print the figures and write run->out_dir's files. say: further lines for people, or NULL.
 * Prints its errors. Return: the exit status: 0; 1 the run failed, or a file cannot be written;
 * PLX_MEASURE_DOUBTED the figures are not what they claim to be, or there are none. */
int plx_load_report(const struct plx_load *load, const struct plx_app *app,
		    void (*say)(const struct plx_load *load));

#endif
