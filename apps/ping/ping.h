/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PING_H
#define PING_H

#include "app.h"
#include "plx_fabric.h"
#include "plx_stats.h"

#define PING_WARNINGS_MAX 4
#define PING_WARMUP_NS    PLX_NS_PER_S /* at most, unless --warmup is given */
#define PING_COPY_MAX     1024         /* longer messages are sent by reference */
#define PING_WINDOW       6            /* receive buffers of a round-trip link, at most */

/* For the peer to agree to a close. With --self the run ends within a second, also if the server is
 * stopped and heartbeats are off. */
#define PING_CLOSE_NS (500 * PLX_NS_PER_MS)

/* One-way messages per turn, at most: enough to make the rest of a turn cheap, and few enough that
 * new credit is read before the old runs out. */
#define PING_BURST_MAX 64

/** The parsed command line. */
struct ping_conf {
	const char *listen, *connect;
	bool self; /**< start a server for this run, and connect to it */
	uint64_t size_bytes;
	struct plx_measure run;
	uint64_t warmup; /**< messages before the measured ones */
	bool warmup_given;
	uint64_t interval_ns;  /**< open loop with rare messages: the gap; 0: run.rate */
	uint64_t rx_buf_bytes; /**< 0: chosen so that a message of size_bytes is one frame */
	bool verify;
	bool one_way;     /**< send without waiting for answers */
	uint64_t burst;   /**< with one_way: messages per turn, at most */
	bool sink;        /**< with listen: drop messages */
	unsigned spread;  /**< enum plx_spread, with listen */
	uint64_t rx_bufs; /**< with sink: receive buffers of a link; 0: by size */
	bool explain;     /**< explain the result */
};

/** The command line. ping_asked is valid once plx_app_start has run. */
extern const struct plx_app ping_app;
extern const struct ping_conf *const ping_asked;

/** Results. Zero it, then call ping_run. */
struct ping_outcome {
	struct plx_hist
		rtt_ns; /**< closed loop: from the send; open loop: from the intended time */
	struct plx_hist service_ns; /**< open loop: from the actual send */
	uint64_t elapsed_ns;
	uint64_t scheduled_ns, sending_ns; /**< as in struct plx_result */
	uint64_t lost;                     /**< requests without an answer in time */
	uint64_t again;                    /**< sends that found no room and were repeated */
	uint64_t one_way_count;            /**< measured messages of a one-way run */
	char idle[PLX_MEASURE_IDLE_BYTES]; /**< policy of the lcore */
	char provider[32];
	char provider_choice[128]; /**< why this provider was chosen */
	/** What ended the run early after measuring something: "SIGINT" or "SIGTERM", or the error.
	 * "": it ran to its end, or had not measured anything. */
	char interrupted[512];
	bool failed;                           /**< interrupted is an error */
	char warnings[PING_WARNINGS_MAX][256]; /**< reasons to doubt the figures */
	unsigned warning_count;
};

/** Measure until count, duration or a signal. Thread: the main lcore.
 * Return: 0; -EINTR a signal came before anything was measured; other -errno with a text. Free the
 * outcome's histograms in either case; they hold what was measured if outcome->failed is set. */
int ping_run(const struct ping_conf *conf, struct ping_outcome *outcome);

/** The same with calls of the self-test service: a closed loop. outcome->again counts refused
 * calls, whose waits are in none of the times. */
int ping_run_calls(const struct ping_conf *conf, struct ping_outcome *outcome);

/** The same for one-way messages to a server that drops them. Sets one_way_count, elapsed_ns and
 * again; the histograms stay empty. */
int ping_run_one_way(const struct ping_conf *conf, struct ping_outcome *outcome);

/** A link has opened: record its provider, and check that the peer takes messages of that size.
 * Return: 0; -EMSGSIZE. */
int ping_meet(const struct ping_conf *conf, struct ping_outcome *outcome,
	      const struct plx_link *link);

/** Record how a run ended, with `measured` messages that count. failure: the error, or NULL.
 * signalled: a signal ended it. Return: 0; -EIO and -EINTR as ping_run. */
int ping_end(struct ping_outcome *outcome, uint64_t measured, const char *failure, bool signalled);

/** Abort a link that did not close (or NULL), and turn the loop until no callback of the run can
 * follow. Thread: the main lcore, outside its loop. */
void ping_abort(struct plx_link *link);

/** Fill a payload: every byte depends on the message number and its position. */
void ping_fill(uint8_t *out, uint64_t size, uint64_t seq);

/** Add a warning for each CPU of the calling lcore that another process has claimed. */
void ping_look_for_pollers(struct ping_outcome *outcome);

/** Remove the files that an earlier run with the same --out left, so that they are never taken for
 * this run's. Return: 0, also without --out; -errno with the path. */
int ping_forget(const struct ping_conf *conf);

/** Print the results and write the requested files. Prints its errors. Returns the exit status: 0;
 * 1 a file could not be written; 3 the figures are not what they claim to be. */
int ping_report(const struct plx_app *app, const struct ping_conf *conf,
		const struct ping_outcome *outcome);

/** Explain the result, if --explain was given. */
void ping_explain(const struct ping_conf *conf, const struct ping_outcome *outcome);

/** As ping_report, for a one-way run. */
int ping_report_one_way(const struct plx_app *app, const struct ping_conf *conf,
			const struct ping_outcome *outcome);

/** Listen, and answer or drop messages until a signal. Prints its errors. Thread: main. Return: the
 * exit status. */
int ping_serve(const struct ping_conf *conf);

/** Start plx-ping --listen as a second process, on another CPU if possible. It ends with this
 * process. Thread: the main lcore. Return: 0, its address in `address`; -errno with a text. */
int ping_self_start(const struct ping_conf *conf, char *address, size_t address_bytes);

/** End the second process, if any: in at most 0.3 s, also if it is stopped. */
void ping_self_stop(void);

/** The messages per second of an open loop. */
double ping_rate(const struct ping_conf *conf);

/** The size of receive buffers that hold a message in one frame. */
uint32_t ping_rx_buf_bytes(const struct ping_conf *conf);

/** The number of receive buffers. */
uint32_t ping_rx_buf_count(const struct ping_conf *conf);

#endif
