/* SPDX-License-Identifier: BSD-3-Clause */
/* When a message in several frames is too slow, in virtual time. */
#include "fabric_link.h"
#include "fixture.h"

#define LOOK_NS (100 * PLX_NS_PER_MS)
#define LOOKS   100 /* in 10 s */

/* Let bytes come at a constant rate. Return: the number of the look that found it too slow; 0:
 * none of LOOKS * 10 did. */
static unsigned slow_at(double bytes_per_look)
{
	struct pace pace = {0};

	for (unsigned look = 1; look <= 10 * LOOKS; look++) {
		if (pace_is_slow(&pace, LOOK_NS, LOOK_NS, (uint32_t)(look * bytes_per_look)))
			return look;
	}
	return 0;
}

PLX_TEST(less_than_four_kib_a_second_are_too_slow_after_ten_seconds)
{
	assert_int_equal(slow_at(410), 0);
	assert_int_equal(slow_at(409), LOOKS);
	assert_int_equal(slow_at(.25), LOOKS); /* a byte each 0.4 s */
}

/* The average is that of the last 10 s, not of all. */
PLX_TEST(a_fast_beginning_does_not_excuse_a_slow_end)
{
	struct pace pace = {0};
	uint32_t bytes = 16 << 20;

	for (unsigned look = 1; look <= 2 * LOOKS; look++)
		assert_int_equal(pace_is_slow(&pace, LOOK_NS, LOOK_NS, bytes), look == 2 * LOOKS);
}

/* This process stood still, or did not turn the loop. */
PLX_TEST(a_long_time_between_two_looks_does_not_count)
{
	struct pace pace = {0};

	for (unsigned look = 1; look < LOOKS / 2; look++)
		assert_false(pace_is_slow(&pace, LOOK_NS, 3600 * PLX_NS_PER_S, 0));
	assert_true(pace_is_slow(&pace, LOOK_NS, 3600 * PLX_NS_PER_S, 0));
}

/* Bytes of a long frame that was not of this message: the link was busy with it. */
PLX_TEST(far_fewer_bytes_than_before_begin_anew)
{
	struct pace pace = {.from_bytes = 60 << 20};

	for (unsigned look = 1; look <= 2 * LOOKS; look++)
		assert_int_equal(pace_is_slow(&pace, LOOK_NS, LOOK_NS, 0), look == 2 * LOOKS);
}

PLX_TEST_MAIN()
