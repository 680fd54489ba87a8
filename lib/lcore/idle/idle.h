/* SPDX-License-Identifier: BSD-3-Clause */
/* An lcore without work. Below lcore_loop.h: each struct loop has one struct idle. In reading
 * order:
 *
 *   idle.c          idle periods: poll, then sleep
 *   idle_policy.c   how long to poll: arithmetic on times, without a clock
 *   idle_text.c     a policy as text
 *   sleep.c         falling asleep and waking
 *   wake.c          the eventfds that end a sleep
 *   idle_cost.c     what a sleep and a wake-up cost: measured at start, updated at run time
 *   idle_watch.c    finds crowded CPUs, and pollers that keep the lcore awake */
#ifndef LCORE_IDLE_H
#define LCORE_IDLE_H

#include "plx_lcore.h"

#include <stdalign.h>
#include <stdatomic.h>

/* Between two steps of a protocol: tests/stress/sleep_test.c delays there. */
#ifndef LCORE_STEP
#define LCORE_STEP() ((void)0)
#endif

struct bell;
struct loop;

/* The policy: idle_policy.c ---------------------------------------------------------------- */

/* How long an idle lcore polls before it sleeps: arithmetic on times, without a clock.
 *
 * An idle period of length g costs alpha * g if it is polled, and alpha * (T + K) + W if the lcore
 * sleeps after T. K is the CPU time of falling asleep and waking, W the latency of the wake-up,
 * alpha the latency that a user accepts per CPU time. Polling for K + W / alpha, when both have
 * cost the same, costs at most twice the best choice (the ski rental problem; A. Karlin et al.,
 * "Empirical Studies of Competitive Spinning for a Shared-Memory Multiprocessor", SOSP 1991). If
 * the distribution of the periods is known, a better T is the one with the least expected cost. */

/* Half octaves: bucket i ends at 512 ns * 2^(i / 2), the last one at 1.48 ms. One more bucket has
 * longer periods. */
#define IDLE_BUCKETS 24

/* The costs of an idle period. */
struct idle_costs {
	uint64_t wake_ns;  /* W: from the event to the callback, while the lcore sleeps */
	uint64_t sleep_ns; /* K: CPU time of falling asleep and waking; more than 0 */
	double alpha;      /* ns of latency that 1 ns of CPU time is worth; more than 0 */
};

struct idle_policy {
	uint64_t spin_ns;                 /* T: how long to poll */
	const struct plx_idle_conf *conf; /* LEARNED: as FIXED until there are enough periods */
	struct idle_costs costs;
	double tokens_ns;              /* unused part of the budget */
	uint64_t spun_from_ns;         /* start of the last period; 0: none yet */
	uint64_t known;                /* periods learned */
	double weight;                 /* of the next period: older ones fade */
	double gaps[IDLE_BUCKETS + 1]; /* weights by length */
};

/* Forgets what was learned. conf: with defaults filled in; stays. Its budget holds over about 10
 * ms, but one period may always poll for W + K. */
void idle_policy_init(struct idle_policy *policy, const struct plx_idle_conf *conf,
		      struct idle_costs costs);
/* An idle period begins. Return: how long to poll: T, or less by the budget. */
uint64_t idle_policy_spin(struct idle_policy *policy, uint64_t now_ns);
/* Polled for polled_ns: subtract it from the budget, which may be overdrawn by W + K. */
void idle_policy_spent(struct idle_policy *policy, uint64_t polled_ns);
/* K + W / alpha: longer polling costs more than a sleep. */
double idle_even_ns(const struct idle_costs *costs);
/* New measured costs: choose T again. Keeps what was learned. */
void idle_policy_set_costs(struct idle_policy *policy, struct idle_costs costs);
/* An idle period, polled or slept, has ended with work after gap_ns. */
void idle_policy_learn(struct idle_policy *policy, uint64_t gap_ns);

/* A sleep ---------------------------------------------------------------------------------- */

/* What ends a sleep, in addition to the lcore's descriptors (fd.c). */
struct plx_sleep {
	uint64_t until_ns;
	enum plx_wake_cause limited_by; /* the reason for until_ns: TIMER, CAP or NAP */
	bool unsure;                    /* something in it cannot be waited for */
	uint64_t exact_ns;              /* must not sleep past this; UINT64_MAX: none */
	uint64_t early_ns;              /* how long until_ns is before it; 0: it is not */
	uint64_t lasted_ns;
};

/* Idle periods ----------------------------------------------------------------------------- */

#define IDLE_NUMBERS (offsetof(struct plx_idle_stats, awake_by) / sizeof(uint64_t))

/* The numbers of struct plx_idle_stats, which explains them, in its order. Written by the lcore,
 * read by any thread. */
struct idle_counts {
	union {
		struct {
			_Atomic uint64_t periods, sleeps, naps, wakes[PLX_WAKE_CAUSES], late,
				refused, spurious, rescues, asleep_ns;
			_Atomic uint64_t spin_ns, wake_ns, sleep_ns, early_ns; /* now */
		};
		_Atomic uint64_t numbers[IDLE_NUMBERS];
	};
	_Atomic(const char *) awake_by;
	_Atomic bool crowded;
};

/* idle_watch.c: values of its last check. */
struct idle_watch {
	uint64_t cpu_ns, awake_cycles;
	uint64_t named_at_ns, sleeps;
	uint64_t crowded_until_ns;
	unsigned crowded_looks; /* in a row */
	bool told;              /* logged */
};

/* What the lcore had by a time. */
struct cpu_note {
	uint64_t cpu_ns; /* of its thread; 0: not noted */
	uint64_t awake_cycles;
};

struct idle {
	alignas(PLX_CACHE_LINE) struct idle_counts counts;
	/* Private to the lcore. */
	struct plx_idle_conf conf; /* defaults filled in, except the costs */
	struct idle_policy policy;
	uint64_t wake_ns, sleep_ns; /* used by the policy */
	uint64_t wake_first_ns;     /* as configured, or measured at start */
	uint32_t followed;          /* wake-ups since then that updated it */
	uint64_t early_ns;          /* how long to wake before a time */
	uint64_t awake_for_ns;      /* a time that it has woken for, or stayed awake for */
	uint64_t began_ns;          /* of the current idle period */
	uint64_t expect_ns;         /* work is expected at about this time */
	uint64_t polled_ns;         /* of this period, before the sleep */
	uint64_t gap_ns;            /* of the last idle period: learned later */
	uint64_t nap_ns;            /* of the next nap */
	uint32_t refusals;          /* in a row */
	bool slept;                 /* in this idle period */
	bool gap_known;
	bool costs_known; /* false: the costs are defaults */
	bool crowded;
	uint64_t look_at_ns; /* the next check */
	struct idle_watch watch;
	struct cpu_note note;
};

/* Set a checked policy. */
/* Return: 0; -EINVAL out of range. */
int idle_check(const struct plx_idle_conf *conf);
void idle_apply(struct loop *loop, const struct plx_idle_conf *conf);
/* Call after the costs have changed. */
void idle_costs_changed(struct idle *idle);
/* A wake-up by a message took took_ns: moves W towards the median by 1/64. idle_cost.c */
void idle_follow_wake(struct idle *idle, uint64_t took_ns);
/* How long to wake before a time that is wait_ns away. */
uint64_t idle_early_ns(const struct idle *idle, uint64_t wait_ns);
/* A wake-up before a time took took_ns. */
void idle_follow_timer(struct idle *idle, uint64_t took_ns);
/* The lcore was awake early enough, and polled until the time. */
void idle_polled_to_timer(struct idle *idle);

/* Call every few thousand turns. Ten times a second it checks whether another thread uses the
 * lcore's CPU, and what keeps the lcore awake. idle_watch.c */
void idle_look(struct loop *loop);
/* Log that this poller makes the lcore nap. idle_watch.c */
void idle_tell_unarmed(const struct plx_poller *poller);
/* The loop starts. */
void idle_start(struct loop *loop);
/* A turn without work, if it is the first of an idle period, or late enough to sleep. */
void idle_turn(struct loop *loop);
/* The idle period has ended with work. */
void idle_end(struct loop *loop);
/* Measure the costs of a sleep and a wake-up: once per process, for some ms on this lcore. */
void idle_measure_costs(void);
/* Set the costs: as configured, or the best values so far. */
void idle_set_costs(struct idle *idle);

/* sleep.c: sleep until there is work, until_ns, or the cap. Return: the work of the turn after it;
 * 0 also if it did not sleep. */
uint64_t sleep_until_work(struct loop *loop);

/* Waking: wake.c --------------------------------------------------------------------------- */

/* wake.c: an eventfd belongs to the process and is kept. Return: that of lcore id; -errno. */
int wake_open(uint32_t id);
void wake_all(void);       /* Thread: any + signal handlers */
void wake_close_all(void); /* only when nothing can call wake_all */
void wake_write(struct bell *bell);

#endif
