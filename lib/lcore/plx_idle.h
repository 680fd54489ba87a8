/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Idle policy of an lcore: how long it polls before it sleeps, with statistics. Included by
 * plx_lcore.h.
 */
#ifndef PLX_IDLE_H
#define PLX_IDLE_H

#include "plx_base.h"

PLX_BEGIN_DECLS

/** What plx_loop_run does while turns find no work. */
enum plx_idle_mode {
	PLX_IDLE_ADAPTIVE, /**< polls while that is worth its CPU time, then sleeps */
	PLX_IDLE_POLL,     /**< always polls */
	PLX_IDLE_EVENT,    /**< sleeps after the first turn without work */
};

/** How long ADAPTIVE polls. The guide's "CPU against latency" has the arithmetic. */
enum plx_idle_algorithm {
	PLX_IDLE_LEARNED, /**< the time that would have cost least in recent idle periods */
	PLX_IDLE_FIXED,   /**< until it has cost as much as a sleep: at most twice the optimum */
};

/** Latency in ns that 1 ns of CPU time is worth. */
#define PLX_IDLE_LATENCY  0.02
#define PLX_IDLE_BALANCED 0.1
#define PLX_IDLE_ECO      1.0

/** 0: the default. */
struct plx_idle_conf {
	enum plx_idle_mode mode;
	enum plx_idle_algorithm algorithm;
	double alpha;          /**< 0.001 to 1000; default PLX_IDLE_BALANCED */
	double budget;         /**< maximum average share of the CPU for idle polling: 0.001 to 1;
				    default 1 */
	uint64_t spin_max_ns;  /**< longest polling: up to 1 h (LEARNED: at most 1.48 ms); default 2
				    ms */
	uint64_t sleep_max_ns; /**< longest sleep, after which the lcore checks everything; default
				    1 s; PLX_NEVER */
	uint64_t wake_ns;      /**< wake-up time: up to 1 s; default measured when plx_loop_run
				    begins (20 us until then) and updated, separately for messages
				    and signals, and for timers */
	uint64_t sleep_ns;     /**< CPU time of a sleep and wake-up: up to 1 s; default measured,
				    too (10 us until then) */
	bool crowded;          /**< assume initially that other threads use the lcore's CPU */
};

/** Set the policy of lcore id; the default is all zeroes. The first ADAPTIVE lcore of the process
 * measures the cost of sleeping: called in a callback of that lcore, this takes some ms.
 * Thread: that lcore; or the main thread while that lcore runs nothing.
 * Return: 0; -ENOENT no such lcore; -EINVAL out of range. */
int plx_idle_set(uint32_t id, const struct plx_idle_conf *conf);

/** The policy of lcore id, with defaults in place of zeroes, except wake_ns and sleep_ns:
 * struct plx_idle_stats has their measured values.
 * Thread: as plx_idle_set.
 * Return: 0; -ENOENT. */
int plx_idle_get(uint32_t id, struct plx_idle_conf *conf_out);

/** Parse "poll", "event" or "adaptive". "adaptive" takes suffixes in any order: ":latency",
 * ":balanced" or ":eco", ":learned" or ":fixed", and a budget such as ":20%". option: for the error
 * text.
 * Return: 0; -EINVAL. */
int plx_idle_parse(const char *option, const char *text, struct plx_idle_conf *conf_out);

/** Format a policy for people: "adaptive:balanced:learned". Return: out. */
const char *plx_idle_format(const struct plx_idle_conf *conf, char *out, size_t size);

/** Announce work at about time_ns, such as the reply to a request. An ADAPTIVE lcore stays awake
 * until then and half as long again, if polling until then costs less than a sleep. Only the last
 * call counts; 0 cancels it.
 * Thread: an lcore. */
void plx_loop_expect(uint64_t time_ns);

/** What ended a sleep. */
enum plx_wake_cause {
	PLX_WAKE_MESSAGE, /**< a message, a signal, or plx_stop */
	PLX_WAKE_POLLER,  /**< a poller's descriptor: completions and events of links */
	PLX_WAKE_FD,      /**< a descriptor of plx_fd_add */
	PLX_WAKE_TIMER,   /**< a timer, or a time that a poller set */
	PLX_WAKE_CAP,     /**< sleep_max_ns */
	PLX_WAKE_NAP,     /**< the end of a nap */
	PLX_WAKE_CAUSES,
};

/** Since plx_lcores_init. */
struct plx_idle_stats {
	uint64_t periods; /**< runs of turns without work */
	uint64_t sleeps;  /**< including naps */
	uint64_t naps;    /**< short timed sleeps, because a poller cannot be waited for */
	uint64_t wakes[PLX_WAKE_CAUSES];
	uint64_t late;     /**< sleeps abandoned because a message arrived */
	uint64_t refused;  /**< sleeps abandoned because a poller had work or could not tell */
	uint64_t spurious; /**< wake-ups by a message or descriptor that found no work */
	uint64_t rescues;  /**< timed-out sleeps although there was work: a broken wake-up */
	uint64_t asleep_ns;
	uint64_t spin_ns; /**< current polling time */
	uint64_t wake_ns; /**< current estimate of the policy; also the next */
	uint64_t sleep_ns;
	uint64_t early_ns;    /**< how long before a timer the lcore wakes to poll; 0: does not */
	const char *awake_by; /**< the poller that kept the lcore from sleeping for the last second
				   (naps do not count), by work or in arm; NULL: none */
	bool crowded;         /**< another thread runs on its CPU, so it sleeps early */
};

/** A snapshot, as plx_lcore_stats_read.
 * Thread: any.
 * Return: 0; -ENOENT. */
int plx_idle_stats_read(uint32_t id, struct plx_idle_stats *stats_out);

PLX_END_DECLS

#endif
