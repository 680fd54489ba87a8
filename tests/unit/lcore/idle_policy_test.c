/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of polling time, on traces of arrivals in simulated time: its cost compared with an
 * oracle that knows the next arrival. */
#include "dice.h"
#include "idle.h"
#include "plx_test.h"

#include <math.h>

#define US         UINT64_C(1000)
#define MS         UINT64_C(1000000)
#define SERVICE_NS US /* of one message */
#define SEED       UINT64_C(20261121)

struct source {
	uint64_t random;
	uint64_t number; /* of earlier arrivals */
	double mean_ns;
};

static uint64_t exponential_ns(struct source *source, double mean_ns)
{
	double uniform = (double)(dice_next(&source->random) >> 11) / 9007199254740992.0;

	return (uint64_t)(-log(1 - uniform) * mean_ns);
}

/* The time between two arrivals. */

static uint64_t poisson(struct source *source)
{
	return exponential_ns(source, source->mean_ns);
}

static uint64_t periodic_1k(struct source *source)
{
	return MS;
}

static uint64_t bursts(struct source *source)
{
	return source->number % 100 ? 10 * US : 100 * MS;
}

static uint64_t chains(struct source *source)
{
	return source->number % 4 ? 20 * US : exponential_ns(source, 2e6);
}

/* 50 000 a second for 100 ms, and 20 a second for one second. */
static uint64_t switching(struct source *source)
{
	return exponential_ns(source, source->number % 5020 < 5000 ? 20e3 : 50e6);
}

static const struct trace {
	const char *name;
	uint64_t (*next_ns)(struct source *source);
	uint64_t arrivals;
	double mean_ns; /* of poisson */
} traces[] = {
	{"Poisson, 10 a second", poisson, 3000, 100e6},
	{"Poisson, 1 000 a second", poisson, 30000, 1e6},
	{"Poisson, 10 000 a second", poisson, 100000, 100e3},
	{"Poisson, 100 000 a second", poisson, 200000, 10e3},
	{"every millisecond", periodic_1k, 30000, 0},
	{"100 at 10 us, every 100 ms", bursts, 30000, 0},
	{"4 at 20 us, every 2 ms", chains, 30000, 0},
	{"50 000 a second, and 20", switching, 100400, 0},
};

static const struct host {
	const char *name;
	uint64_t wake_ns, sleep_ns, spin_max_ns;
} hosts[] = {
	{"metal", 2400, 3 * US, 200 * US},
	{"virtual", 20 * US, 10 * US, 2 * MS},
};
static const double alphas[] = {0.02, 0.1, 1};

struct bill {
	double paid, least; /* cost paid, and the oracle's */
	double waited_ns;   /* CPU time without work */
	double end_ns;
};

/* Returns when work starts. */
static uint64_t idle(struct idle_policy *policy, uint64_t now_ns, uint64_t gap_ns,
		     struct bill *bill)
{
	const struct idle_costs *costs = &policy->costs;
	uint64_t spin_ns = idle_policy_spin(policy, now_ns);
	double sleep = costs->alpha * (double)costs->sleep_ns + (double)costs->wake_ns;
	double polled = costs->alpha * (double)gap_ns;
	bool sleeps = gap_ns > spin_ns;

	bill->least += fmin(polled, sleep);
	bill->paid += sleeps ? costs->alpha * (double)spin_ns + sleep : polled;
	bill->waited_ns += (double)(sleeps ? spin_ns + costs->sleep_ns : gap_ns);
	idle_policy_spent(policy, sleeps ? spin_ns : gap_ns);
	idle_policy_learn(policy, gap_ns);
	return gap_ns + (sleeps ? costs->wake_ns : 0);
}

static struct bill run(struct idle_policy *policy, const struct trace *trace)
{
	struct source source = {.random = SEED, .mean_ns = trace->mean_ns};
	struct bill bill = {0};
	uint64_t arrival_ns = 0, now_ns = 0;

	for (; source.number < trace->arrivals; source.number++) {
		arrival_ns += trace->next_ns(&source);
		if (arrival_ns > now_ns)
			now_ns += idle(policy, now_ns, arrival_ns - now_ns, &bill);
		now_ns += SERVICE_NS;
	}
	bill.end_ns = (double)now_ns;
	return bill;
}

static struct plx_idle_conf conf; /* of the policy in use */

static void start(struct idle_policy *policy, enum plx_idle_algorithm algorithm,
		  struct idle_costs costs, uint64_t spin_max_ns)
{
	conf = (struct plx_idle_conf){
		.algorithm = algorithm, .budget = 1, .spin_max_ns = spin_max_ns};
	idle_policy_init(policy, &conf, costs);
}

/* Returns the greatest of paid / least. */
static double worst(enum plx_idle_algorithm algorithm)
{
	double most = 0;

	for (size_t h = 0; h < PLX_ARRAY_LEN(hosts); h++) {
		for (size_t a = 0; a < PLX_ARRAY_LEN(alphas); a++) {
			struct idle_costs costs = {hosts[h].wake_ns, hosts[h].sleep_ns, alphas[a]};

			for (size_t t = 0; t < PLX_ARRAY_LEN(traces); t++) {
				struct idle_policy policy;

				start(&policy, algorithm, costs, hosts[h].spin_max_ns);
				struct bill bill = run(&policy, &traces[t]);
				print_message("%s, alpha %.2f, %s: %.2f times the least, CPU waits "
					      "%.1f %%\n",
					      hosts[h].name, alphas[a], traces[t].name,
					      bill.paid / bill.least,
					      100 * bill.waited_ns / bill.end_ns);
				most = fmax(most, bill.paid / bill.least);
			}
		}
	}
	return most;
}

PLX_TEST(the_fixed_policy_costs_at_most_twice_the_optimum)
{
	assert_true(worst(PLX_IDLE_FIXED) <= 2.05);
}

PLX_TEST(the_learned_policy_costs_less_than_the_fixed_one)
{
	assert_true(worst(PLX_IDLE_LEARNED) <= 1.65);
}

static const struct idle_costs even_100_us = {.wake_ns = 9 * US, .sleep_ns = 10 * US, .alpha = 0.1};

static struct idle_policy learned_from(uint64_t gap_ns, unsigned count)
{
	struct idle_policy policy;

	start(&policy, PLX_IDLE_LEARNED, even_100_us, MS);
	while (count-- > 0)
		idle_policy_learn(&policy, gap_ns);
	return policy;
}

/* Idle periods of gap_ns, in sequence for a second, each polled to its end or as long as the policy
 * allows. Returns the share of the time polled. */
static double polled_share(double budget, uint64_t gap_ns)
{
	struct idle_policy policy = learned_from(gap_ns, 64);
	uint64_t polled_ns = 0, now_ns = 1000 * MS;

	conf.budget = budget;
	for (uint64_t end_ns = now_ns + 1000 * MS; now_ns < end_ns; now_ns += gap_ns) {
		uint64_t spin_ns = idle_policy_spin(&policy, now_ns);

		spin_ns = spin_ns < gap_ns ? spin_ns : gap_ns;
		idle_policy_spent(&policy, spin_ns);
		polled_ns += spin_ns;
	}
	return (double)polled_ns / 1e9;
}

PLX_TEST(polling_stays_within_its_budget)
{
	double least = (double)(even_100_us.wake_ns + even_100_us.sleep_ns);

	assert_true(polled_share(1, 50 * US) > 0.99);
	/* W + K of each period may be polled, whatever budget is left. */
	for (int percent = 5; percent < 100; percent += 15) {
		double share = polled_share(percent / 100.0, 50 * US);
		double most = percent / 100.0 > least / 50e3 ? percent / 100.0 : least / 50e3;

		assert_true(share < most + 0.02);
		assert_true(share > percent / 100.0 - 0.02);
	}
}

/* A process that was stopped does not pay for that later. */
PLX_TEST(a_long_stop_does_not_overdraw_the_budget)
{
	struct idle_policy policy = learned_from(50 * US, 64);
	uint64_t now_ns = 1000 * MS;

	conf.budget = 0.2;
	idle_policy_spin(&policy, now_ns);
	idle_policy_spent(&policy, 60000 * MS);
	now_ns += 10 * MS;
	assert_true(idle_policy_spin(&policy, now_ns) >= 50 * US);
}

PLX_TEST_MAIN()
