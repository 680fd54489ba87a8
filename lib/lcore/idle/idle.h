/* SPDX-License-Identifier: BSD-3-Clause */
/* An lcore without work. It stands below lcore_loop.h, whose struct loop has one struct idle. In
 * reading order:
 *
 *   idle.c          idle periods: poll, then sleep
 *   idle_policy.c   for how long to poll: arithmetic on times, without a clock
 *   idle_text.c     a policy as text
 *   sleep.c         the way to sleep, and back
 *   sleep_set.c     more descriptors than a sleep's array holds
 *   wake.c          the eventfds that end a sleep
 *   wake_cost.c     what it costs to sleep and to wake, measured at start
 *   idle_follow.c   the same, followed at run time
 *   idle_watch.c    what goes wrong: a crowded CPU, a poller that keeps the lcore awake */
#ifndef LCORE_IDLE_H
#define LCORE_IDLE_H

#include "plx_lcore.h"

#include <poll.h>
#include <stdalign.h>
#include <stdatomic.h>

/* Between two steps of a protocol: tests/stress/sleep_test.c delays there. */
#ifndef LCORE_STEP
#define LCORE_STEP() ((void)0)
#endif

struct bell;
struct loop;

/* The policy: idle_policy.c ---------------------------------------------------------------- */

/* How long an lcore that finds nothing to do goes on polling before it sleeps: arithmetic on times,
 * without a clock of its own.
 *
 * An idle period that lasts g costs alpha * g to who polls through it, and alpha * (T + K) + W to
 * who gave up after T: K is the CPU time of falling asleep and waking, W the latency that the
 * wake-up adds, alpha how much latency a user gives for so much CPU time. To poll for K + W /
 * alpha, when both have cost the same, and sleep then costs at most twice what the best choice
 * would have (the ski rental problem; A. Karlin et al., "Empirical Studies of Competitive Spinning
 * for a Shared-Memory Multiprocessor", SOSP 1991). Where the lengths of the periods are known by
 * and large, there is a better T: the one of least expected cost. */

/* Half octaves: bucket i ends at 512 ns * 2^(i / 2), the last one at 1.48 ms. What is longer is in
 * one more. */
#define IDLE_BUCKETS 24

/* What an idle period costs. */
struct idle_costs {
	uint64_t wake_ns;  /* W: from the event to the callback, of an lcore that sleeps */
	uint64_t sleep_ns; /* K: CPU time of going to sleep and waking; more than 0 */
	double alpha;      /* ns of latency that 1 ns of CPU time is worth; more than 0 */
};

enum idle_algorithm {
	IDLE_FIXED,   /* K + W / alpha, whatever happens */
	IDLE_LEARNED, /* by the idle periods before; that, until there are enough of them */
};

struct idle_policy {
	uint64_t spin_ns; /* T: poll for so long */
	enum idle_algorithm algorithm;
	struct idle_costs costs;
	uint64_t spin_max_ns;
	double budget;                 /* share of the time that may be polled; 1: all of it */
	double tokens_ns;              /* of that, what is left over */
	uint64_t spun_from_ns;         /* the last period began; 0: none did */
	uint64_t known;                /* periods that were learned */
	double weight;                 /* of the next one: older ones fade */
	double gaps[IDLE_BUCKETS + 1]; /* weights of those of each length */
};

/* spin_max_ns: T is not longer. Forgets what was learned. */
void idle_policy_init(struct idle_policy *policy, enum idle_algorithm algorithm,
		      const struct idle_costs *costs, uint64_t spin_max_ns);

/* share: 0 to 1, of the time, may be spent on polling, over some 10 ms; no budget by itself. One
 * period may always poll for W + K. */
void idle_policy_set_budget(struct idle_policy *policy, double share);

/* An idle period begins. Returns for how long it may be polled: T, or less by the budget. */
uint64_t idle_policy_spin(struct idle_policy *policy, uint64_t now_ns);

/* So much of the period was polled: taken from the budget, which may be overdrawn by W + K. */
void idle_policy_spent(struct idle_policy *policy, uint64_t polled_ns);

/* K + W / alpha: polling for longer than that costs more than a sleep. */
double idle_policy_even_ns(const struct idle_policy *policy);

/* The half octaves. */
unsigned idle_bucket_of(uint64_t gap_ns);
uint64_t idle_bucket_top_ns(unsigned bucket);

/* The costs have changed, as measured: choose T anew. Keeps what was learned. */
void idle_policy_set_costs(struct idle_policy *policy, const struct idle_costs *costs);

/* An idle period, polled or slept through, has ended with work after gap_ns. */
void idle_policy_learn(struct idle_policy *policy, uint64_t gap_ns);

/* A sleep ---------------------------------------------------------------------------------- */

#define SLEEP_FDS_MAX 32
#define SLEEP_SET     (SLEEP_FDS_MAX - 1) /* of an array that is full: those that found no place */

/* sleep_set.c: more descriptors than a sleep's array holds. */
struct sleep_set;

/* Return: NULL: no memory or descriptor. */
struct sleep_set *sleep_set_create(void);
void sleep_set_destroy(struct sleep_set *set);

/* Readable when one of those that are watched is. */
int sleep_set_fd(const struct sleep_set *set);

/* Begin a sleep with no descriptors. */
void sleep_set_begin(struct sleep_set *set);

/* Wake on fd. Return: false if it cannot be watched. */
bool sleep_set_add(struct sleep_set *set, int fd, struct plx_poller *whose);

/* Drop what that poller added. */
void sleep_set_take_back(struct sleep_set *set, const struct plx_poller *whose);

/* Remove all other descriptors from the epoll set. */
void sleep_set_settle(struct sleep_set *set);

/* After it: find those that are ready. Return: whose the first one is; NULL: none. */
struct plx_poller *sleep_set_look(struct sleep_set *set);
bool sleep_set_ready(const struct sleep_set *set, int fd);

/* The descriptor will be closed. */
void sleep_set_forget(struct sleep_set *set, int fd);

/* What a sleep waits for. The first descriptor is the eventfd. */
struct plx_sleep {
	uint64_t until_ns;
	enum plx_wake_cause limited_by; /* what until_ns is: TIMER, CAP or NAP */
	bool unsure;                    /* something in it cannot be waited for */
	int ready;                      /* descriptors; what ppoll returned */
	uint64_t exact_ns;              /* a time that may not be slept through; UINT64_MAX: none */
	uint64_t early_ns;              /* until_ns is so much before it; 0: it is not */
	uint64_t lasted_ns;
	uint32_t count;
	struct pollfd fds[SLEEP_FDS_MAX];
	struct plx_poller *whose[SLEEP_FDS_MAX];
	struct plx_poller *arming; /* that adds to it now */
	struct sleep_set *set;     /* in use if the array is full; NULL: none yet */
};

/* Idle periods ----------------------------------------------------------------------------- */

/* Written by the lcore, read by any thread. */
struct idle_counts {
	_Atomic uint64_t periods; /* turns without work in a row */
	_Atomic uint64_t sleeps;
	_Atomic uint64_t naps; /* of those */
	_Atomic uint64_t wakes[PLX_WAKE_CAUSES];
	_Atomic uint64_t late;     /* sleeps given up: a message came meanwhile */
	_Atomic uint64_t refused;  /* ... a poller had work, or could not be waited for */
	_Atomic uint64_t spurious; /* woken, and there was nothing */
	_Atomic uint64_t rescues;  /* not woken, and there was work */
	_Atomic uint64_t asleep_ns;
	_Atomic uint64_t wake_ns[PLX_WAKE_BUCKETS];            /* so many wake-ups took so long */
	_Atomic uint64_t spin_ns, cost_wake_ns, cost_sleep_ns; /* of the policy now */
	_Atomic uint64_t early_ns;
	_Atomic(const char *) awake_by; /* a poller that lets the lcore never sleep; or NULL */
	_Atomic bool crowded;
};

/* idle_watch.c: what it saw when it looked last. */
struct idle_watch {
	uint64_t cpu_ns, awake_cycles;
	uint64_t named_at_ns, sleeps;
	uint64_t crowded_until_ns;
	unsigned crowded_looks; /* in a row */
	bool told;              /* in the log */
};

struct idle {
	alignas(PLX_CACHE_LINE) struct idle_counts counts;
	/* The lcore's own. */
	struct plx_idle_conf conf; /* without zeroes, but for the costs */
	struct idle_policy policy;
	uint64_t wake_ns, sleep_ns; /* what the policy reckons with */
	uint64_t wake_first_ns;     /* as given, or measured at start */
	uint32_t followed;          /* wake-ups since, that it was corrected by */
	uint64_t early_ns;          /* wake so much before a time */
	uint64_t awake_for_ns;      /* a time that it has woken for, or stayed awake for */
	uint64_t began_ns;          /* of the present idle period */
	uint64_t expect_ns;         /* work is expected at about this time */
	uint64_t polled_ns;         /* of it, before it was slept */
	uint64_t gap_ns;            /* of the last idle period: to be learned when there is time */
	uint64_t nap_ns;            /* of the next one */
	uint32_t refusals;          /* in a row */
	bool slept;                 /* in this idle period */
	bool gap_known;
	bool costs_known; /* else the costs are a guess still */
	bool crowded;
	uint64_t look_at_ns; /* next */
	struct idle_watch watch;
};

/* The default policy. */
void idle_init(struct loop *loop);

/* Set a policy that was checked. */
void idle_apply(struct loop *loop, const struct plx_idle_conf *conf);

/* What the policy reckons with has changed. */
void idle_costs_changed(struct idle *idle);

/* A wake-up by a message has taken so long: W walks towards the median, a 64th at a time.
 * idle_follow.c */
void idle_follow_wake(struct idle *idle, uint64_t took_ns);

/* Wake so much before a time that is wait_ns away. */
uint64_t idle_early_ns(const struct idle *idle, uint64_t wait_ns);

/* A wake-up before a time has taken so long. */
void idle_follow_timer(struct idle *idle, uint64_t took_ns);

/* The lcore was awake early enough, and polled up to the time. */
void idle_polled_to_timer(struct idle *idle);

/* Call it every so many turns. Now and then it looks: is somebody else on the lcore's CPU, and what
 * keeps it awake? idle_watch.c */
void idle_look(struct loop *loop);

/* Say in the log that this poller makes the lcore nap. idle_watch.c */
void idle_tell_unarmed(const struct plx_poller *poller);

/* The loop begins to run. */
void idle_start(struct loop *loop);

/* A turn without work, and the first one of an idle period, or one that is late enough to sleep. */
void idle_turn(struct loop *loop);

/* The idle period has ended with work. */
void idle_end(struct loop *loop);

/* CPU time of the calling thread. */
uint64_t idle_cpu_ns(void);

/* Measure what it costs to sleep and to wake. on: CPUs for a thread that helps. */
void wake_cost_measure(const struct plx_topo *topo, const struct plx_cpuset *on);
void wake_cost_get(uint64_t *wake_ns_out, uint64_t *sleep_ns_out);

/* sleep.c: sleep until there is work, until_ns, or the cap. Returns the work of the turn behind it;
 * 0 also where it did not come to that. */
uint64_t sleep_until_work(struct loop *loop);

/* Waking: wake.c --------------------------------------------------------------------------- */

/* wake.c: eventfds are of the process, and stay. Return: the one of lcore id; -errno with text. */
int wake_open(uint32_t id);
void wake_clear(int eventfd);
void wake_all(void);       /* Thread: any + signal handlers */
void wake_close_all(void); /* when nobody can call wake_all any more */
void wake_write(struct bell *bell);

#endif
