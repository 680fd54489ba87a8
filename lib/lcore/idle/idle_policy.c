/* SPDX-License-Identifier: BSD-3-Clause */
#include "idle.h"

#include "plx_base.h"

#define FIRST_TOP_NS   UINT64_C(512)
#define FIRST_TOP_LOG2 9
#define KNOWN_LEAST    64          /* idle periods before the distribution is used */
#define CHOOSE_EVERY   16          /* periods */
#define FADE           (64.0 / 63) /* a period counts 63/64 of the next one */
#define WEIGHT_MAX     1e100       /* then all weights are scaled down */
#define SQRT_2         1.41421356237309505

/* Where a bucket ends. */
static double top_ns(unsigned bucket)
{
	double octave = (double)(FIRST_TOP_NS << bucket / 2);

	return bucket % 2 ? octave * SQRT_2 : octave;
}

static unsigned bucket_of(uint64_t gap_ns)
{
	unsigned log2, bucket;

	if (gap_ns <= FIRST_TOP_NS)
		return 0;
	if (gap_ns > (FIRST_TOP_NS << IDLE_BUCKETS / 2))
		return IDLE_BUCKETS;
	log2 = 63 - (unsigned)__builtin_clzll(gap_ns - 1); /* 2^log2 < gap_ns <= 2^(log2 + 1) */
	bucket = 2 * (log2 - FIRST_TOP_LOG2) + 1;
	/* The upper half begins at 2^(log2 + 1/2). */
	return bucket + (gap_ns * gap_ns > UINT64_C(1) << (2 * log2 + 1));
}

/* Choosing ----------------------------------------------------------------------------------- */

double idle_even_ns(const struct idle_costs *costs)
{
	return (double)costs->sleep_ns + (double)costs->wake_ns / costs->alpha;
}

/* The end of a bucket, or 0, with the least cost over the learned periods. */
static double cheapest_ns(const struct idle_policy *policy)
{
	const struct idle_costs *costs = &policy->costs;
	double polled = 0, slept = 0; /* cost of shorter periods, weight of longer ones */
	double best_ns = 0, best;

	for (unsigned i = 0; i <= IDLE_BUCKETS; i++)
		slept += policy->gaps[i];
	best = slept * (costs->alpha * (double)costs->sleep_ns + (double)costs->wake_ns);
	for (unsigned i = 0; i < IDLE_BUCKETS && top_ns(i) <= (double)policy->conf->spin_max_ns;
	     i++) {
		double middle_ns = (top_ns(i) + (i ? top_ns(i - 1) : 0)) / 2, cost;

		polled += policy->gaps[i] * costs->alpha * middle_ns;
		slept -= policy->gaps[i];
		cost = polled + slept * (costs->alpha * (top_ns(i) + (double)costs->sleep_ns) +
					 (double)costs->wake_ns);
		if (cost < best) {
			best = cost;
			best_ns = top_ns(i);
		}
	}
	return best_ns;
}

static void choose(struct idle_policy *policy)
{
	uint64_t most_ns = policy->conf->spin_max_ns;
	double spin_ns = policy->conf->algorithm == PLX_IDLE_LEARNED && policy->known >= KNOWN_LEAST
			       ? cheapest_ns(policy)
			       : idle_even_ns(&policy->costs);

	policy->spin_ns = spin_ns < (double)most_ns ? (uint64_t)spin_ns : most_ns;
}

/* The budget --------------------------------------------------------------------------------- */

/* How much unused time is kept. */
#define BUDGET_OVER_NS 1e7

uint64_t idle_policy_spin(struct idle_policy *policy, uint64_t now_ns)
{
	double least = (double)(policy->costs.wake_ns + policy->costs.sleep_ns);
	double budget = policy->conf->budget, allowed;

	if (budget >= 1)
		return policy->spin_ns;
	policy->tokens_ns += budget * (double)plx_time_since(policy->spun_from_ns, now_ns);
	policy->spun_from_ns = now_ns;
	if (policy->tokens_ns > budget * BUDGET_OVER_NS)
		policy->tokens_ns = budget * BUDGET_OVER_NS;
	allowed = policy->tokens_ns > least ? policy->tokens_ns : least;
	return (double)policy->spin_ns < allowed ? policy->spin_ns : (uint64_t)allowed;
}

void idle_policy_spent(struct idle_policy *policy, uint64_t polled_ns)
{
	double least = -(double)(policy->costs.wake_ns + policy->costs.sleep_ns);

	/* Time without its CPU does not count against the lcore. */
	policy->tokens_ns -= (double)polled_ns;
	if (policy->tokens_ns < least)
		policy->tokens_ns = least;
}

/* Learning ----------------------------------------------------------------------------------- */

void idle_policy_learn(struct idle_policy *policy, uint64_t gap_ns)
{
	if (policy->conf->algorithm != PLX_IDLE_LEARNED)
		return;
	/* Raising the weight of new periods fades all older ones. */
	policy->weight *= FADE;
	if (policy->weight > WEIGHT_MAX) {
		for (unsigned i = 0; i <= IDLE_BUCKETS; i++)
			policy->gaps[i] /= policy->weight;
		policy->weight = 1;
	}
	policy->gaps[bucket_of(gap_ns)] += policy->weight;
	if (++policy->known % CHOOSE_EVERY == 0)
		choose(policy);
}

void idle_policy_init(struct idle_policy *policy, const struct plx_idle_conf *conf,
		      struct idle_costs costs)
{
	*policy = (struct idle_policy){
		.conf = conf,
		.costs = costs,
		.tokens_ns = conf->budget * BUDGET_OVER_NS,
		.weight = 1,
	};
	choose(policy);
}

void idle_policy_set_costs(struct idle_policy *policy, struct idle_costs costs)
{
	policy->costs = costs;
	choose(policy);
}
