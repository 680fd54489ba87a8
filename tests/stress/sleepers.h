/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores that sleep at every opportunity, without a cap, and pass one message around. Nothing else
 * could wake an lcore, so a single lost wake-up stops everything. The files of lib/lcore involved
 * are built with a random delay at each step. */
#ifndef SLEEPERS_H
#define SLEEPERS_H

#include "delays.h"
#include "lcore_priv.h"
#include "lcores.h"

#define LCORES      3
#define SPIN_MAX_NS 3000

static uint64_t last; /* of the progress of this test */

static inline bool is_last(void)
{
	return stress_count() >= last;
}

/* All kinds of policies that hardly ever poll. */
static void set_policies(void)
{
	PLX_LCORE_FOREACH (id) {
		const struct plx_idle_conf confs[] = {
			{.mode = PLX_IDLE_EVENT, .sleep_max_ns = PLX_NEVER},
			{.algorithm = PLX_IDLE_LEARNED,
			 .spin_max_ns = SPIN_MAX_NS,
			 .sleep_max_ns = PLX_NEVER},
			{.algorithm = PLX_IDLE_FIXED,
			 .spin_max_ns = SPIN_MAX_NS,
			 .sleep_max_ns = PLX_NEVER},
		};

		assert_int_equal(plx_idle_set(id, &confs[id / 10 % PLX_ARRAY_LEN(confs)]), 0);
	}
}

static uint64_t sleeps(void)
{
	uint64_t sum = 0;

	PLX_LCORE_FOREACH (id) {
		struct plx_idle_stats stats;

		assert_int_equal(plx_idle_stats_read(id, &stats), 0);
		sum += stats.sleeps;
		assert_int_equal(stats.wakes[PLX_WAKE_CAP], 0);
		assert_int_equal(stats.wakes[PLX_WAKE_NAP], 0);
		assert_int_equal(stats.rescues, 0);
	}
	return sum;
}

/* Run all lcores until stopped. fn: in a thread that is not an lcore; or NULL. */
static void run_all(void *(*fn)(void *))
{
	pthread_t thread;
	int result = -1;

	if (fn)
		threads_start(&thread, 1, fn, NULL, 0);
	assert_int_equal(plx_lcore_launch_all(run_loop, NULL, &result), 0);
	assert_int_equal(result, 0);
	assert_int_equal(plx_lcore_join_all(10 * PLX_NS_PER_S, &result), 0);
	assert_int_equal(result, 0);
	if (fn)
		threads_join(&thread, 1);
	print_message("%llu rounds, %llu sleeps\n", (unsigned long long)stress_amount,
		      (unsigned long long)sleeps());
	/* Most rounds must have slept, if not all. */
	assert_true(sleeps() > stress_amount / 8);
}

static int set_up(void **state)
{
	last = stress_count() + stress_amount;
	lcores_up(LCORES);
	set_policies();
	return 0;
}

#define SLEEPERS_TEST(name) PLX_TEST_WITH(name, set_up, no_lcores)

#endif
