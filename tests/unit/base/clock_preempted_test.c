/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that is preempted in each look at both clocks while plx_clock_init runs. */
#include "plx_test.h"

#include <time.h>

#define LOOKS      64                   /* of plx_clock_init, in clock.c */
#define BRACKET_NS (2 * PLX_NS_PER_MS)  /* longer than one that is used */
#define APART_NS   (30 * PLX_NS_PER_MS) /* more than is corrected */
#define HOUR_NS    (3600 * PLX_NS_PER_S)

static bool preempts;
static unsigned looks;

int __real_clock_gettime(clockid_t clock, struct timespec *time_out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time_out);

static uint64_t real_ns(void)
{
	struct timespec time;

	__real_clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * PLX_NS_PER_S + (uint64_t)time.tv_nsec;
}

static void pass(uint64_t ns)
{
	uint64_t end_ns = real_ns() + ns;

	while (real_ns() < end_ns)
		continue;
}

/* Only a look reads CLOCK_BOOTTIME. In the last one both clocks are read far apart. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time_out)
{
	if (preempts && clock == CLOCK_BOOTTIME) {
		looks++;
		pass(BRACKET_NS);
	}
	if (preempts && clock == CLOCK_MONOTONIC_RAW && looks == LOOKS - 1)
		pass(APART_NS);
	return __real_clock_gettime(clock, time_out);
}

PLX_TEST(a_preempted_calibration_is_no_step)
{
	preempts = true;
	plx_clock_init();
	preempts = false;
	assert_int_equal(looks, LOOKS);
	plx_clock_look(true);
	assert_int_equal(plx_clock_steps(), 0);
	assert_int_equal(plx_clock_suspended_ns(), 0);
}

PLX_TEST(the_first_look_after_it_is_what_later_ones_compare_with)
{
	plx_clock_scale.base_ns += HOUR_NS;
	plx_clock_look(true);
	assert_int_equal(plx_clock_steps(), 1);
}

PLX_TEST_MAIN()
