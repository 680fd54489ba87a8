/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What an lcore does when there is nothing to do: how long it polls before it sleeps, and what came
 * of that. Part of plx_lcore.h, which includes it.
 */
#ifndef PLX_IDLE_H
#define PLX_IDLE_H

#include "plx_base.h"

PLX_BEGIN_DECLS

/** What plx_loop_run does while turns find nothing. */
enum plx_idle_mode {
	PLX_IDLE_ADAPTIVE, /**< polls as long as that is worth its CPU time, then sleeps */
	PLX_IDLE_POLL,     /**< polls, always */
	PLX_IDLE_EVENT,    /**< sleeps as soon as a turn did nothing */
};

/** How long ADAPTIVE polls. The guide's "CPU against latency" has the arithmetic. */
enum plx_idle_algorithm {
	PLX_IDLE_LEARNED, /**< what would have cost least in the idle periods before */
	PLX_IDLE_FIXED,   /**< until polling has cost as much as a sleep: at most twice the best */
};

/** ns of latency that 1 ns of CPU time is worth. */
#define PLX_IDLE_LATENCY  0.02
#define PLX_IDLE_BALANCED 0.1
#define PLX_IDLE_ECO      1.0

/** 0: the default. */
struct plx_idle_conf {
	enum plx_idle_mode mode;
	enum plx_idle_algorithm algorithm;
	double alpha;          /**< 0.001 to 1000; default: PLX_IDLE_BALANCED */
	double budget;         /**< share of the CPU that polling for nothing may take, on average:
				    0.001 to 1; default: 1 */
	uint64_t spin_max_ns;  /**< polls no longer; up to 1 h (LEARNED: 1.48 ms at
				    most, whatever stands here); default: 2 ms */
	uint64_t sleep_max_ns; /**< looks at everything after so long, whatever happened; default: 1
				    s; PLX_NEVER */
	uint64_t wake_ns;      /**< until a sleeping lcore runs, up to 1 s; default: measured when
				    plx_loop_run begins (until then 20 us), and followed: apart
				    for what messages and signals wake, and for timers */
	uint64_t sleep_ns;     /**< CPU time of falling asleep and waking, up to 1 s; default:
				    measured then, too (10 us) */
	bool crowded;          /**< the lcore's CPU is known not to be its own: begin as if that had
				    been noticed */
};

/** Set the policy of lcore id; by default all zeroes. What a sleep costs is measured when the first
 * ADAPTIVE one of the process runs: where that is this lcore, in a callback, the call takes some
 * ms. Thread: that lcore; or the main thread while that one runs nothing. Return: 0; -ENOENT no
 * such lcore; -EINVAL out of range. */
int plx_idle_set(uint32_t id, const struct plx_idle_conf *conf);

/** The policy of lcore id, with the defaults for zeroes, but for wake_ns and sleep_ns: what was
 * measured for those plx_idle_stats tells. Thread: as plx_idle_set. Return: 0; -ENOENT. */
int plx_idle_get(uint32_t id, struct plx_idle_conf *conf_out);

/** "poll", "event", or "adaptive", behind which may stand ":latency", ":balanced" or ":eco",
 * ":learned" or ":fixed", and a budget such as ":20%", in any order. option: for the error text.
 * Return: 0; -EINVAL. */
int plx_idle_parse(const char *option, const char *text, struct plx_idle_conf *conf_out);

/** The same for people: "adaptive:balanced:learned". Returns out. */
const char *plx_idle_format(const struct plx_idle_conf *conf, char *out, size_t size);

/** Work is expected at about time_ns, such as the reply to a request: an lcore that is ADAPTIVE
 * stays awake until then, and half as long again, if polling up to there costs less than to sleep.
 * Only the last call counts. 0: nothing is expected any more. Thread: an lcore. */
void plx_loop_expect(uint64_t time_ns);

/** What ended a sleep. */
enum plx_wake_cause {
	PLX_WAKE_MESSAGE, /**< a message, a signal, or plx_stop */
	PLX_WAKE_POLLER,  /**< a descriptor of a poller: completions and events of links */
	PLX_WAKE_FD,      /**< one of plx_fd_add */
	PLX_WAKE_TIMER,   /**< a timer, or a poller with a period */
	PLX_WAKE_CAP,     /**< sleep_max_ns */
	PLX_WAKE_NAP,     /**< the end of a nap */
	PLX_WAKE_CAUSES,
};

/** Bucket i: up to 512 ns * 2^(i / 2); the last one: longer. */
#define PLX_WAKE_BUCKETS 25

/** Of all time since plx_lcores_init. */
struct plx_idle_stats {
	uint64_t periods; /**< runs of turns without work */
	uint64_t sleeps;  /**< naps are among them */
	uint64_t naps;    /**< timed: some poller cannot be waited for */
	uint64_t wakes[PLX_WAKE_CAUSES];
	uint64_t late;     /**< sleeps given up, as a message came just then */
	uint64_t refused;  /**< sleeps given up, as a poller had work, or did not know */
	uint64_t spurious; /**< woken by a message or a descriptor, with nothing to do behind it */
	uint64_t rescues; /**< not woken, and there was work: what should have woken it is broken */
	uint64_t asleep_ns;
	uint64_t wake_hist[PLX_WAKE_BUCKETS]; /**< wake-ups by messages and timers: from the event
						   to the loop */
	uint64_t spin_ns;                     /**< polls so long now */
	uint64_t wake_ns;                     /**< what the policy reckons with */
	uint64_t sleep_ns;
	uint64_t early_ns; /**< wakes so much before a timer, and polls the rest; 0: not at all */
	const char *awake_by; /**< the poller that kept the lcore from sleeping for the last
				   second (naps are no sleeps), by work or by what it said in arm;
				   NULL: none */
	bool crowded;         /**< somebody else runs on its CPU: it sleeps early */
};

/** A snapshot, as plx_lcore_stats. Return: 0; -ENOENT. Thread: any. */
int plx_idle_stats(uint32_t id, struct plx_idle_stats *stats_out);

/** The upper end of a bucket of wake_hist; UINT64_MAX: of the last. */
uint64_t plx_wake_bucket_ns(unsigned bucket);

PLX_END_DECLS

#endif
