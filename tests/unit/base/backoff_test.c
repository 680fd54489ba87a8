/* SPDX-License-Identifier: BSD-3-Clause */
/* Times between attempts. */
#include "plx_test.h"

/* The greatest of many, after so many attempts. */
static uint64_t greatest(unsigned attempts)
{
	struct plx_backoff backoff;
	uint64_t most = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		uint64_t last = 0;

		plx_backoff_init(&backoff, 10, 1000, seed * UINT64_C(0x9e3779b97f4a7c15));
		for (unsigned i = 0; i <= attempts; i++)
			last = plx_backoff_next_ns(&backoff);
		if (last > most)
			most = last;
	}
	return most;
}

static void each_attempt_doubles_the_range(void **state)
{
	assert_int_equal(greatest(0), 10);
	assert_true(greatest(1) <= 20 && greatest(1) > 15);
	assert_true(greatest(3) <= 80 && greatest(3) > 70);
	assert_true(greatest(60) <= 1000 && greatest(60) > 990);
}

static void the_longest_times_do_not_overflow(void **state)
{
	struct plx_backoff backoff;

	plx_backoff_init(&backoff, UINT64_MAX, UINT64_MAX, 7);
	for (unsigned i = 0; i < 100; i++)
		assert_true(plx_backoff_next_ns(&backoff) > 0);
	plx_backoff_init(&backoff, 1, UINT64_MAX, 7);
	for (unsigned i = 0; i < 100; i++)
		plx_backoff_next_ns(&backoff);
	assert_true(plx_backoff_next_ns(&backoff) > UINT64_MAX >> 20);
}

static void success_begins_anew(void **state)
{
	struct plx_backoff backoff;

	plx_backoff_init(&backoff, 10, 1000, 0); /* a seed like any other */
	for (unsigned i = 0; i < 50; i++)
		plx_backoff_next_ns(&backoff);
	for (unsigned i = 0; i < 50; i++) {
		plx_backoff_reset(&backoff);
		assert_true(plx_backoff_next_ns(&backoff) <= 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_attempt_doubles_the_range),
		cmocka_unit_test(the_longest_times_do_not_overflow),
		cmocka_unit_test(success_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
