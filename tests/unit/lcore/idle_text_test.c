/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_lcore.h"
#include "plx_test.h"

PLX_TEST(policies_are_read_and_written)
{
	static const struct {
		const char *text, *full;
	} rows[] = {
		{"poll", "poll"},
		{"event", "event"},
		{"adaptive", "adaptive:balanced:learned"},
		{"adaptive:latency", "adaptive:latency:learned"},
		{"adaptive:fixed:eco", "adaptive:eco:fixed"},
		{"adaptive:20%", "adaptive:balanced:learned:20%"},
		{"adaptive:1%:learned:balanced", "adaptive:balanced:learned:1%"},
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

PLX_TEST(wrong_ones_are_refused)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"", "--idle : '' is no way to be idle; give poll, event or adaptive"},
		{"sleep", "--idle sleep: 'sleep' is no way to be idle"},
		{"Poll", "'Poll' is no way to be idle"},
		{"poll:eco", "--idle poll:eco: poll takes nothing after it"},
		{"event:", "event takes nothing after it"},
		{"adaptive:", "'' is unknown, or the second of its kind"},
		{"adaptive:fast",
		 "'fast' is unknown, or the second of its kind; give poll, event or adaptive, "
		 "optionally followed by :latency, :balanced or :eco, :learned or "
		 ":fixed, and what polling for nothing may take of the CPU, :1% to :100%"},
		{"adaptive:eco:latency", "'latency' is unknown, or the second of its kind"},
		{"adaptive:fixed:learned", "'learned' is unknown, or the second of its kind"},
		{"adaptive:10%:20%", "'20%' is unknown, or the second of its kind"},
		{"adaptive:0%", "'0%' is"},
		{"adaptive:101%", "'101%' is"},
		{"adaptive:4294967297%", "'4294967297%' is"},
		{"adaptive:%", "'%' is"},
		{"adaptive:2x%", "'2x%' is"},
	};
	struct plx_idle_conf conf = {.alpha = 7};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_fails(plx_idle_parse("--idle", rows[i].text, &conf), -EINVAL, rows[i].error);
		assert_true(conf.alpha > 6); /* untouched */
	}
}

PLX_TEST_MAIN()
