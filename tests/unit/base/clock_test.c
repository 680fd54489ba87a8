/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_test.h"

#include <math.h>

#define INTERVAL_NS   (50 * PLX_NS_PER_MS)
#define ALLOWED_PPM   200.0
#define ATTEMPTS      5 /* the host may preempt one of them */
#define BRACKET_TRIES 100

struct pair {
	uint64_t clock_ns, raw_ns;
};

static uint64_t raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * PLX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Both clocks at one moment: the tightest of many readings. */
static struct pair look(void)
{
	struct pair best = {0};
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < BRACKET_TRIES; i++) {
		uint64_t before = plx_now_ns();
		uint64_t raw = raw_ns();
		uint64_t after = plx_now_ns();

		if (after - before < width) {
			width = after - before;
			best = (struct pair){before + width / 2, raw};
		}
	}
	return best;
}

static void nap(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static double ppm_over_interval(void)
{
	struct pair from = look(), to;

	nap(INTERVAL_NS);
	to = look();
	double elapsed = (double)(to.raw_ns - from.raw_ns);

	return ((double)(to.clock_ns - from.clock_ns) - elapsed) / elapsed * 1e6;
}

PLX_TEST(the_clock_agrees_with_clock_monotonic_raw)
{
	double best = INFINITY;

	for (int i = 0; i < ATTEMPTS && best > ALLOWED_PPM; i++)
		best = fmin(best, fabs(ppm_over_interval()));
	if (best > ALLOWED_PPM)
		fail_msg("%.1f ppm off", best);
}

PLX_TEST(the_conversion_is_monotone_and_exact)
{
	uint64_t second = (uint64_t)plx_clock_info_read()->hz, last = 0;

	assert_int_equal(plx_tsc_to_ns(0), 0);
	assert_in_range(plx_tsc_to_ns(second), PLX_NS_PER_S - 1000, PLX_NS_PER_S + 1000);
	/* A year: overflows 64 bits of counts times 32 bits of fraction. */
	assert_in_range(plx_tsc_to_ns(second * 86400 * 365) / PLX_NS_PER_S, 86400 * 365 - 40,
			86400 * 365 + 40);
	for (uint64_t step = 1; step < UINT64_C(1) << 40; step *= 3) {
		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t ns = plx_tsc_to_ns(step + i);

			assert_true(ns >= last || i == 0);
			last = ns;
		}
	}
}

/* A clock made to run fast by a known amount. */
PLX_TEST(drift_detects_a_wrong_rate)
{
	uint64_t mult = plx_clock_scale.mult;

	nap(INTERVAL_NS);
	plx_clock_scale.mult = mult + mult / 100;
	double fast = plx_clock_drift_ppm();
	plx_clock_scale.mult = mult - mult / 100;
	double slow = plx_clock_drift_ppm();
	plx_clock_scale.mult = mult;
	assert_true(fast > 9000 && fast < 11000);
	assert_true(slow < -9000 && slow > -11000);
}

/* A counter step: equivalent to a step of its offset. */
static void step(int64_t ns)
{
	plx_clock_scale.base_ns += (uint64_t)ns;
}

/* Both clocks at one time, within a millisecond. */
static uint64_t read_both(uint64_t *raw_out)
{
	uint64_t before, now;

	do {
		before = raw_ns();
		now = plx_now_ns();
		*raw_out = raw_ns();
	} while (*raw_out - before > PLX_NS_PER_MS);
	return now;
}

PLX_TEST(steps_are_corrected_and_counted)
{
	static const int64_t steps_ns[] = {-3600 * (int64_t)PLX_NS_PER_S,
					   3600 * (int64_t)PLX_NS_PER_S,
					   -20 * (int64_t)PLX_NS_PER_MS};

	for (size_t i = 0; i < PLX_ARRAY_LEN(steps_ns); i++) {
		uint64_t count = plx_clock_steps(), raw, raw_after, now;

		plx_clock_look(true);
		now = read_both(&raw);
		step(steps_ns[i]);
		plx_clock_look(true);
		int64_t apart = (int64_t)(read_both(&raw_after) - now - (raw_after - raw));
		assert_int_equal(plx_clock_steps(), count + 1);
		assert_true(apart < 15 * (int64_t)PLX_NS_PER_MS);
		assert_true(apart > -15 * (int64_t)PLX_NS_PER_MS);
	}
}

PLX_TEST(small_steps_are_not_corrected)
{
	uint64_t count = plx_clock_steps(), base = plx_clock_scale.base_ns;

	plx_clock_look(true);
	step(-2 * (int64_t)PLX_NS_PER_MS);
	plx_clock_look(true);
	assert_int_equal(plx_clock_steps(), count);
	plx_clock_scale.base_ns = base;
	plx_clock_look(true);
}

static int init_clock(void **state)
{
	assert_true(plx_clock_scale.mult == UINT64_C(1) << 32); /* one count is one ns until then */
	plx_clock_init();
	return 0;
}

PLX_TEST_MAIN_WITH(init_clock, NULL)
