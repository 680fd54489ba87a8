/* SPDX-License-Identifier: BSD-3-Clause */
/* Idle periods: runs of turns without work. An lcore polls through a period for as long as the
 * policy says, and then sleeps (sleep.c).
 *
 *     sleep_at_ns   0          a period begins with the next turn without work
 *                   PLX_NEVER  PLX_IDLE_POLL: never sleep
 *                   else       poll this period until then */
#include "lcore_priv.h"

#include <string.h>

static_assert(offsetof(struct idle_counts, awake_by) == offsetof(struct plx_idle_stats, awake_by),
	      "the same numbers");

#define COST_MAX_NS   PLX_NS_PER_S
#define SPIN_LIMIT_NS (3600 * PLX_NS_PER_S)

#define NAP_MIN_NS    (50 * PLX_NS_PER_US)

/* The policy -------------------------------------------------------------------------------- */

static struct idle_costs costs_of(const struct idle *idle)
{
	double alpha = idle->conf.alpha;

	if (idle->crowded && alpha < PLX_IDLE_ECO)
		alpha = PLX_IDLE_ECO;
	return (struct idle_costs){
		.wake_ns = idle->wake_ns,
		.sleep_ns = idle->sleep_ns,
		.alpha = alpha,
	};
}

/* Publish the policy for other threads. Relaxed: see counter_add. */
static void tell(struct idle *idle)
{
	struct idle_counts *counts = &idle->counts;
	bool adapts = idle->conf.mode == PLX_IDLE_ADAPTIVE;

	counter_set(&counts->spin_ns, adapts ? idle->policy.spin_ns : 0);
	counter_set(&counts->wake_ns, idle->wake_ns);
	counter_set(&counts->sleep_ns, idle->sleep_ns);
	counter_set(&counts->early_ns, adapts ? idle->early_ns : 0);
	counter_set(&counts->crowded, idle->crowded);
}

void idle_costs_changed(struct idle *idle)
{
	idle_policy_set_costs(&idle->policy, costs_of(idle));
	tell(idle);
}

void idle_apply(struct loop *loop, const struct plx_idle_conf *conf)
{
	struct idle *idle = &loop->idle;
	struct plx_idle_conf full = *conf;

	full.alpha = full.alpha > 0 ? full.alpha : PLX_IDLE_BALANCED;
	full.budget = full.budget > 0 ? full.budget : 1;
	full.spin_max_ns = full.spin_max_ns ?: 2 * PLX_NS_PER_MS;
	full.sleep_max_ns = full.sleep_max_ns ?: PLX_NS_PER_S;
	idle->conf = full;
	idle->crowded = full.crowded;
	idle_set_costs(idle);
	idle->costs_known = full.wake_ns && full.sleep_ns;
	idle->gap_known = false;
	idle->nap_ns = NAP_MIN_NS;
	idle_policy_init(&idle->policy, &idle->conf, costs_of(idle));
	loop->sleep_at_ns = full.mode == PLX_IDLE_POLL ? PLX_NEVER : 0;
	tell(idle);
}

/* Measured once per process. */
static void know_costs(struct idle *idle)
{
	if (idle->conf.mode != PLX_IDLE_ADAPTIVE || idle->costs_known)
		return;
	idle_measure_costs();
	idle_set_costs(idle);
	idle->costs_known = true;
	idle_costs_changed(idle);
}

void idle_start(struct loop *loop)
{
	if (loop->sleep_at_ns != PLX_NEVER)
		loop->sleep_at_ns = 0; /* the last run may have left a period */
	know_costs(&loop->idle);
}

/* Periods ----------------------------------------------------------------------------------- */

/* Catch up on what the end of the last period left for later. */
static void begin(struct loop *loop)
{
	struct idle *idle = &loop->idle;
	uint64_t spin_ns = 0;

	counter_add(&idle->counts.periods, 1);
	if (idle->conf.mode == PLX_IDLE_ADAPTIVE) {
		if (idle->gap_known) {
			idle_policy_learn(&idle->policy, idle->gap_ns);
			counter_set(&idle->counts.spin_ns, idle->policy.spin_ns);
		}
		spin_ns = idle_policy_spin(&idle->policy, loop->now_ns);
	}
	idle->gap_known = false;
	idle->slept = false;
	idle->began_ns = loop->now_ns;
	loop->sleep_at_ns = plx_time_add(loop->now_ns, spin_ns);
}

void idle_end(struct loop *loop)
{
	struct idle *idle = &loop->idle;

	if (loop->sleep_at_ns == PLX_NEVER) /* set in this turn */
		return;
	idle->gap_ns = plx_time_since(idle->began_ns, loop->now_ns);
	if (idle->conf.budget < 1)
		idle_policy_spent(&idle->policy, idle->slept ? idle->polled_ns : idle->gap_ns);
	/* Subtract the latency of the wake-up. */
	if (idle->slept)
		idle->gap_ns -= idle->gap_ns < idle->wake_ns ? idle->gap_ns : idle->wake_ns;
	idle->gap_known = true;
	idle->refusals = 0;
	idle->nap_ns = NAP_MIN_NS;
	loop->sleep_at_ns = 0;
}

/* Poll for an expected response if that costs less than a sleep. It may take half as long again. */
static bool await_expected(struct loop *loop)
{
	struct idle *idle = &loop->idle;
	uint64_t wait_ns = plx_time_since(idle->began_ns, idle->expect_ns);

	if (idle->conf.mode != PLX_IDLE_ADAPTIVE ||
	    (double)wait_ns > idle_even_ns(&idle->policy.costs))
		return false;
	loop->sleep_at_ns = idle->expect_ns + wait_ns / 2;
	return true;
}

void idle_turn(struct loop *loop)
{
	struct idle *idle = &loop->idle;

	if (!loop->sleep_at_ns) {
		begin(loop);
		if (loop->now_ns < loop->sleep_at_ns)
			return;
	}
	if (loop->now_ns < idle->expect_ns && await_expected(loop))
		return;
	if (!idle->slept)
		idle->polled_ns = plx_time_since(idle->began_ns, loop->now_ns);
	if (sleep_until_work(loop))
		idle_end(loop);
}

void plx_loop_expect(uint64_t time_ns)
{
	if (loop_self)
		loop_self->idle.expect_ns = time_ns;
}

/* Setting and asking ------------------------------------------------------------------------- */

int idle_check(const struct plx_idle_conf *conf)
{
	if (conf->mode > PLX_IDLE_EVENT || conf->algorithm > PLX_IDLE_FIXED)
		return plx_fail(EINVAL, "plx_idle_set: mode %d, algorithm %d: no such thing",
				(int)conf->mode, (int)conf->algorithm);
	if (conf->alpha != 0 && !(conf->alpha >= 0.001 && conf->alpha <= 1000))
		return plx_fail(EINVAL,
				"plx_idle_set: alpha %g: give 0.001 to 1000 ns of latency for 1 ns "
				"of CPU time, or 0 for the default",
				conf->alpha);
	if (conf->budget != 0 && !(conf->budget >= 0.001 && conf->budget <= 1))
		return plx_fail(EINVAL,
				"plx_idle_set: budget %g: give 0.001 to 1 of the CPU, or 0 for the "
				"default",
				conf->budget);
	if (conf->wake_ns > COST_MAX_NS || conf->sleep_ns > COST_MAX_NS ||
	    conf->spin_max_ns > SPIN_LIMIT_NS)
		return plx_fail(EINVAL,
				"plx_idle_set: wake_ns %llu, sleep_ns %llu, spin_max_ns %llu: give "
				"at most 1 s for each cost, and 1 h to poll",
				(unsigned long long)conf->wake_ns,
				(unsigned long long)conf->sleep_ns,
				(unsigned long long)conf->spin_max_ns);
	return 0;
}

int plx_idle_set(uint32_t id, const struct plx_idle_conf *conf)
{
	struct loop *loop = lcore_loop(id);
	int err;

	if (!loop)
		return lcore_fail_unknown("plx_idle_set", id);
	ASSERT_OWNER(id);
	err = idle_check(conf);
	if (err)
		return err;
	idle_apply(loop, conf);
	/* Otherwise the loop does it when it starts. */
	if (loop == loop_self && loop->entered)
		know_costs(&loop->idle);
	return 0;
}

int plx_idle_get(uint32_t id, struct plx_idle_conf *conf_out)
{
	const struct loop *loop = lcore_loop(id);

	if (!loop)
		return lcore_fail_unknown("plx_idle_get", id);
	ASSERT_OWNER(id);
	*conf_out = loop->idle.conf;
	return 0;
}

int plx_idle_stats_read(uint32_t id, struct plx_idle_stats *stats_out)
{
	const struct loop *loop = lcore_loop(id);
	const struct idle_counts *counts;
	uint64_t numbers[IDLE_NUMBERS];

	if (!loop)
		return lcore_fail_unknown("plx_idle_stats_read", id);
	counts = &loop->idle.counts;
	for (unsigned i = 0; i < IDLE_NUMBERS; i++)
		numbers[i] = counter_get(&counts->numbers[i]);
	memcpy(stats_out, numbers, sizeof(numbers));
	stats_out->awake_by = counter_get(&counts->awake_by); /* valid as long as its poller */
	stats_out->crowded = counter_get(&counts->crowded);
	return 0;
}
