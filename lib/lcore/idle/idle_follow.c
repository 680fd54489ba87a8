/* SPDX-License-Identifier: BSD-3-Clause */
/* Updates the costs of wake-ups at run time: W from wake-ups by messages, and how long to wake
 * before a time from those by timers. They differ: before messages most sleeps are short, while a
 * sleep before a timer is often long and the CPU is cold after it. */
#include "lcore_priv.h"

#define FOLLOW_EVERY 16 /* wake-ups by messages between updates of the policy */

#define EARLY_MIN_NS PLX_NS_PER_US
#define EARLY_MAX_NS PLX_NS_PER_MS

/* Relative step per wake-up: 30 of them change it from 6 to 140 us. */
#define EARLY_STEP (1.0 / 8)

void idle_follow_wake(struct idle *idle, uint64_t took_ns)
{
	uint64_t step = idle->wake_first_ns / 64 + 1;

	if (idle->conf.wake_ns)
		return;
	if (took_ns > idle->wake_ns && idle->wake_ns < idle->wake_first_ns * 8)
		idle->wake_ns += step;
	else if (took_ns < idle->wake_ns && idle->wake_ns > idle->wake_first_ns / 4 + step)
		idle->wake_ns -= step;
	if (++idle->followed % FOLLOW_EVERY == 0)
		idle_costs_changed(idle);
}

uint64_t idle_early_ns(const struct idle *idle, uint64_t wait_ns)
{
	double share = idle->conf.budget * (double)wait_ns;

	if (idle->conf.budget < 1 && share < (double)idle->early_ns)
		return (uint64_t)share;
	return idle->early_ns;
}

static void set_early(struct idle *idle, double early_ns)
{
	if (idle->conf.wake_ns)
		return;
	if (early_ns < EARLY_MIN_NS)
		early_ns = EARLY_MIN_NS;
	if (early_ns > EARLY_MAX_NS)
		early_ns = EARLY_MAX_NS;
	idle->early_ns = (uint64_t)early_ns;
	counter_set(&idle->counts.early_ns, idle->early_ns);
}

/* 1 ns late costs 1; 1 ns early, which is polled, costs alpha. The best time to wake is
 * early enough for all wake-ups except a share of alpha / (1 + alpha) (the newsvendor problem; K.
 * Arrow et al., "Optimal Inventory Policy", Econometrica 19, 1951). Steps up and down in that ratio
 * keep the estimate there. */
void idle_follow_timer(struct idle *idle, uint64_t took_ns)
{
	double alpha = idle->policy.costs.alpha, early_ns = (double)idle->early_ns;

	if (took_ns > idle->early_ns)
		set_early(idle, early_ns + early_ns * EARLY_STEP / (1 + alpha));
	else
		idle_polled_to_timer(idle);
}

void idle_polled_to_timer(struct idle *idle)
{
	double alpha = idle->policy.costs.alpha, early_ns = (double)idle->early_ns;

	set_early(idle, early_ns - early_ns * EARLY_STEP * alpha / (1 + alpha));
}
