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

static void after_a_refusal_on_the_same_host_the_range_stays_short(void **state)
{
	struct plx_backoff backoff;
	uint64_t most = 0;

	plx_backoff_init(&backoff, PLX_RECONNECT_MIN_NS, PLX_RECONNECT_MAX_NS, 7);
	assert_true(plx_backoff_next_same_host_ns(&backoff) <= PLX_RECONNECT_MIN_NS);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t next = plx_backoff_next_same_host_ns(&backoff);

		most = next > most ? next : most;
	}
	assert_in_range(most, PLX_RECONNECT_SAME_HOST_NS * 9 / 10, PLX_RECONNECT_SAME_HOST_NS);
	/* Nor did they make what follows any longer. */
	assert_true(plx_backoff_next_ns(&backoff) <= 2 * PLX_RECONNECT_SAME_HOST_NS);
}

static void a_range_of_the_program_counts_on_the_same_host_too(void **state)
{
	struct plx_backoff backoff;
	uint64_t most = 0;

	plx_backoff_init(&backoff, PLX_NS_PER_S, 10 * PLX_NS_PER_S, 7);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t next = plx_backoff_next_same_host_ns(&backoff);

		most = next > most ? next : most;
	}
	assert_in_range(most, PLX_NS_PER_S * 9 / 10, PLX_NS_PER_S);
	plx_backoff_init(&backoff, 1, 5, 7);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(plx_backoff_next_same_host_ns(&backoff) <= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_attempt_doubles_the_range),
		cmocka_unit_test(the_longest_times_do_not_overflow),
		cmocka_unit_test(success_begins_anew),
		cmocka_unit_test(after_a_refusal_on_the_same_host_the_range_stays_short),
		cmocka_unit_test(a_range_of_the_program_counts_on_the_same_host_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
