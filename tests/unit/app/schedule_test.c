/* SPDX-License-Identifier: BSD-3-Clause */
/* When an open loop sends. */
#include "plx_test.h"

#include "plx_app.h"

#include <math.h>

#define HZ 1e9 /* a cycle is a ns */

PLX_TEST(fixed_ones_have_equal_gaps)
{
	struct plx_schedule schedule;

	plx_schedule_init(&schedule, PLX_ARRIVAL_FIXED, 1000, 1, HZ);
	schedule.next_tsc = 5;
	for (int i = 0; i < 10; i++) {
		assert_true(fabs(schedule.next_tsc - (5 + i * 1e6)) < 1);
		plx_schedule_advance(&schedule);
	}
}

/* Of an exponential distribution: its deviation is its mean, and 1 - 1/e of it lie below that. */
PLX_TEST(poisson_ones_come_by_chance)
{
	struct plx_schedule schedule;
	double sum = 0, squares = 0, before = 0;
	unsigned below = 0;

	plx_schedule_init(&schedule, PLX_ARRIVAL_POISSON, 1e6, 7, HZ);
	for (int i = 0; i < 100000; i++) {
		double gap;

		plx_schedule_advance(&schedule);
		gap = schedule.next_tsc - before;
		before = schedule.next_tsc;
		assert_true(gap > 0);
		sum += gap;
		squares += gap * gap;
		below += gap < 1000;
	}
	assert_true(fabs(sum / 1e5 - 1000) < 20);
	assert_true(fabs(sqrt(squares / 1e5 - sum * sum / 1e10) - 1000) < 30);
	assert_in_range(below, 62500, 64000);
}

PLX_TEST(a_seed_is_a_schedule)
{
	struct plx_schedule one, same, other;
	unsigned equal = 0;

	plx_schedule_init(&one, PLX_ARRIVAL_POISSON, 1000, 0, HZ);
	plx_schedule_init(&same, PLX_ARRIVAL_POISSON, 1000, 0, HZ);
	plx_schedule_init(&other, PLX_ARRIVAL_POISSON, 1000, 1, HZ);
	for (int i = 0; i < 1000; i++) {
		plx_schedule_advance(&one);
		plx_schedule_advance(&same);
		plx_schedule_advance(&other);
		assert_true(one.next_tsc - same.next_tsc == 0);
		equal += one.next_tsc - other.next_tsc == 0;
	}
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

PLX_TEST(options_that_do_not_go_together_are_refused)
{
	static const struct {
		struct plx_measure measure;
		const char *error; /* NULL: they do */
	} rows[] = {
		{{.arrival = PLX_ARRIVAL_BURST, .rate = 100000}, NULL},
		{{.arrival = PLX_ARRIVAL_BURST, .rate = 100001}, "give --rate up to that"},
		{{.arrival = PLX_ARRIVAL_POISSON, .rate = 1000000000}, NULL},
		{{.arrival_given = true}, "give --rate R too"},
		{{.seed_given = true}, "give --rate R too"},
		{{.arrival_given = true, .seed_given = true, .rate = 1}, NULL},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		int rc = plx_measure_check(&rows[i].measure);

		assert_int_equal(rc, rows[i].error ? -EINVAL : 0);
		if (rc)
			assert_error_has(rows[i].error);
	}
}

PLX_TEST_MAIN()
