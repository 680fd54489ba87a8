/* SPDX-License-Identifier: BSD-3-Clause */
/* Times between attempts. */
#include "plx_test.h"

/* The greatest of many delays after that many attempts. */
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

PLX_TEST(each_attempt_doubles_the_range)
{
	assert_int_equal(greatest(0), 10);
	assert_true(greatest(1) <= 20 && greatest(1) > 15);
	assert_true(greatest(3) <= 80 && greatest(3) > 70);
	assert_true(greatest(60) <= 1000 && greatest(60) > 990);
}

PLX_TEST(the_longest_ranges_do_not_overflow)
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

PLX_TEST(a_success_resets_the_range)
{
	struct plx_backoff backoff;

	plx_backoff_init(&backoff, 10, 1000, 0); /* a valid seed */
	for (unsigned i = 0; i < 50; i++)
		plx_backoff_next_ns(&backoff);
	for (unsigned i = 0; i < 50; i++) {
		plx_backoff_reset(&backoff);
		assert_true(plx_backoff_next_ns(&backoff) <= 10);
	}
}

PLX_TEST(the_range_stays_short_after_a_refusal_on_the_same_host)
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
	/* Nor did they lengthen the following ones. */
	assert_true(plx_backoff_next_ns(&backoff) <= 2 * PLX_RECONNECT_SAME_HOST_NS);
}

PLX_TEST(a_range_set_by_the_program_applies_on_the_same_host_too)
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

PLX_TEST_MAIN()
