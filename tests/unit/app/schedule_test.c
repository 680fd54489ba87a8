/* SPDX-License-Identifier: BSD-3-Clause */
/* The send times of an open loop. */
#include "plx_test.h"

#include "app.h"

#include <math.h>

#define HZ 1e9 /* a cycle is a ns */

/* Exponential distribution: its deviation equals its mean, and 1 - 1/e of it is below the mean. */
PLX_TEST(a_poisson_schedule_has_random_gaps_that_its_seed_determines)
{
	struct plx_schedule schedule, same, other;
	double sum = 0, squares = 0, before = 0;
	unsigned below = 0, equal = 0;

	plx_schedule_init(&schedule, PLX_ARRIVAL_POISSON, 1e6, 7, HZ);
	plx_schedule_init(&same, PLX_ARRIVAL_POISSON, 1e6, 7, HZ);
	plx_schedule_init(&other, PLX_ARRIVAL_POISSON, 1e6, 8, HZ);
	for (int i = 0; i < 100000; i++) {
		plx_schedule_advance(&schedule);
		plx_schedule_advance(&same);
		plx_schedule_advance(&other);
		assert_true(schedule.next_tsc - same.next_tsc == 0);
		equal += schedule.next_tsc - other.next_tsc == 0;
		double gap = schedule.next_tsc - before;
		before = schedule.next_tsc;
		assert_true(gap > 0);
		sum += gap;
		squares += gap * gap;
		below += gap < 1000;
	}
	assert_true(fabs(sum / 1e5 - 1000) < 20);
	assert_true(fabs(sqrt(squares / 1e5 - sum * sum / 1e10) - 1000) < 30);
	assert_in_range(below, 62500, 64000);
	assert_int_equal(equal, 0);
}

PLX_TEST(bursts_keep_the_rate)
{
	struct plx_schedule schedule;
	unsigned pauses = 0;

	plx_schedule_init(&schedule, PLX_ARRIVAL_BURST, 10000, 1, HZ);
	for (int i = 0; i < 1000; i++) {
		double before = schedule.next_tsc, gap;

		plx_schedule_advance(&schedule);
		gap = schedule.next_tsc - before;
		pauses += gap > 1e6;
		assert_true(gap > 1e6 || fabs(gap - 10000) < 1);
	}
	assert_int_equal(pauses, 10);
	assert_true(fabs(schedule.next_tsc - 1000 * 1e5) < 1000);
}

PLX_TEST_MAIN()
