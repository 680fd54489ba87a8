/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies as text, and how early an lcore wakes for its timers, depending on earlier wake-ups. */
#include "lcore_priv.h"
#include "plx_test.h"

#define FIRST_NS 6000

static struct idle idle;

static void begin(double alpha)
{
	const struct idle_costs costs = {.wake_ns = FIRST_NS, .sleep_ns = 1000, .alpha = alpha};

	idle = (struct idle){.conf = {.budget = 1, .spin_max_ns = PLX_NS_PER_MS},
			     .wake_ns = FIRST_NS,
			     .early_ns = FIRST_NS};
	idle_policy_init(&idle.policy, &idle.conf, costs);
}

/* Wake-ups of 100 to 200 us, evenly distributed: the average estimate after the first 100. */
static double follow_some(unsigned count)
{
	double sum = 0;

	for (unsigned i = 0; i < 100 + count; i++) {
		/* All residues of 101, in an order that jumps. */
		idle_follow_timer(&idle, 100000 + i * 37 % 101 * 1000);
		if (i >= 100)
			sum += (double)idle.early_ns;
	}
	return sum / count;
}

/* A share of alpha / (1 + alpha) of the wake-ups may be late. */
PLX_TEST(a_sleep_ends_early_enough_for_most_wake_ups)
{
	static const struct {
		double alpha, at_least, at_most;
	} cases[] = {
		{PLX_IDLE_LATENCY, 185000, 225000},  /* 98 of 100: 198 us, and steps of 12 % */
		{PLX_IDLE_BALANCED, 175000, 210000}, /* 91 */
		{PLX_IDLE_ECO, 135000, 165000},      /* half of them */
		{20, 90000, 120000},                 /* 5 */
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		begin(cases[i].alpha);
		double mean = follow_some(5050);
		print_message("alpha %g: %.0f ns\n", cases[i].alpha, mean);
		assert_true(mean >= cases[i].at_least && mean <= cases[i].at_most);
	}
	/* Within limits. */
	for (unsigned i = 0; i < 1000; i++)
		idle_follow_timer(&idle, PLX_NS_PER_S);
	assert_int_equal(idle.early_ns, PLX_NS_PER_MS);
	for (unsigned i = 0; i < 10000; i++)
		idle_follow_timer(&idle, 0);
	assert_int_equal(idle.early_ns, PLX_NS_PER_US);
}

PLX_TEST(idle_policies_are_parsed_and_formatted)
{
	static const struct {
		const char *text, *full;
	} rows[] = {
		{"poll", "poll"},
		{"event", "event"},
		{"adaptive", "adaptive:balanced:learned"},
		{"adaptive:fixed:eco", "adaptive:eco:fixed"},
		{"adaptive:1%:learned:latency", "adaptive:latency:learned:1%"},
		{"adaptive:100%", "adaptive:balanced:learned"},
	};
	struct plx_idle_conf conf;
	char out[64];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_works(plx_idle_parse("--idle", rows[i].text, &conf));
		assert_string_equal(plx_idle_format(&conf, out, sizeof(out)), rows[i].full);
	}
	conf = (struct plx_idle_conf){.alpha = 0.5, .budget = 0.125};
	assert_string_equal(plx_idle_format(&conf, out, sizeof(out)),
			    "adaptive:alpha=0.5:learned:12.5%");
	assert_string_equal(plx_idle_format(&conf, out, 8), "adaptiv");
}

PLX_TEST(bad_idle_policies_are_refused)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"sleep",
		 "--idle sleep: 'sleep' is no way to be idle; give poll, event or adaptive"},
		{"event:", "event takes nothing after it"},
		{"adaptive:fast",
		 "'fast' is unknown, or the second of its kind; give poll, event or adaptive, "
		 "optionally followed by :latency, :balanced or :eco, :learned or "
		 ":fixed, and what polling for nothing may take of the CPU, :1% to :100%"},
		{"adaptive:eco:latency", "'latency' is unknown, or the second of its kind"},
		{"adaptive:fixed:learned", "'learned' is unknown, or the second of its kind"},
		{"adaptive:10%:20%", "'20%' is unknown, or the second of its kind"},
		{"adaptive:0%", "'0%' is"},
		{"adaptive:4294967297%", "'4294967297%' is"},
		{"adaptive:2x%", "'2x%' is"},
	};
	struct plx_idle_conf conf = {.alpha = 7};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_fails(plx_idle_parse("--idle", rows[i].text, &conf), -EINVAL, rows[i].error);
		assert_true(conf.alpha > 6); /* untouched */
	}
}

PLX_TEST_MAIN()
