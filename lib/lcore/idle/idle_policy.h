/* SPDX-License-Identifier: BSD-3-Clause */
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
#ifndef PLX_IDLE_POLICY_H
#define PLX_IDLE_POLICY_H

#include <stdint.h>

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

#endif
