/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers, sizes, durations and settings in options. */
#include "plx_test.h"

#define UNTOUCHED 4711

typedef int (*parse_fn)(const char *option, const char *text, uint64_t min, uint64_t max,
			uint64_t *value_out);

struct row {
	const char *text;
	uint64_t min, max; /* a number that is read: its value, and 0 */
	const char *error;
};

#define GOOD(text, value) {text, value, 0, NULL}

static void parse_all(parse_fn parse, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool is_good = !rows[i].error;
		uint64_t value = UNTOUCHED, min = is_good ? 0 : rows[i].min;
		int rc = parse("--x", rows[i].text, min, rows[i].max, &value);

		assert_int_equal(rc, is_good ? 0 : -EINVAL);
		if (rc)
			assert_string_equal(plx_error(), rows[i].error);
		assert_true(value == (is_good ? rows[i].min : UNTOUCHED));
	}
}

PLX_TEST(whole_numbers_are_read_and_others_refused)
{
#define NOT_WHOLE ": not a whole number; give digits only"
	static const struct row rows[] = {
		GOOD("0", 0),
		GOOD("1", 1),
		GOOD("007", 7),
		GOOD("18446744073709551615", UINT64_MAX),
		{"", 0, 0, "--x " NOT_WHOLE},
		{"-1", 0, 10, "--x -1: out of range; give 0 to 10"},
		{"+1", 0, 0, "--x +1" NOT_WHOLE},
		{" 1", 0, 0, "--x  1" NOT_WHOLE},
		{"0x10", 0, 0, "--x 0x10" NOT_WHOLE},
		{"0", 1, 10, "--x 0: out of range; give 1 to 10"},
		{"11", 1, 10, "--x 11: out of range; give 1 to 10"},
		{"1", 2, 0, "--x 1: out of range; give 2 or more"},
		{"18446744073709551616", 0, 10,
		 "--x 18446744073709551616: out of range; give 0 to 10"},
		{"99999999999999999999999", 0, 0,
		 "--x 99999999999999999999999: out of range; give 0 to 18446744073709551615"},
	};

	parse_all(plx_parse_uint, rows, PLX_ARRAY_LEN(rows));
}

PLX_TEST(sizes_are_read_and_others_refused)
{
#define NOT_SIZE ": not a size; give bytes, or a unit after the number: 64, 4K, 1M, 2G"
	static const struct row rows[] = {
		GOOD("64", 64),
		GOOD("4k", 4096),
		GOOD("1M", 1 << 20),
		GOOD("2G", UINT64_C(2) << 30),
		GOOD("1T", UINT64_C(1) << 40),
		{"K", 0, 0, "--x K" NOT_SIZE},
		{"4X", 0, 0, "--x 4X" NOT_SIZE},
		{"4KK", 0, 0, "--x 4KK" NOT_SIZE},
		{"-4K", 0, 2 << 20, "--x -4K: out of range; give 0 to 2M"},
		{"3M", 0, 2 << 20, "--x 3M: out of range; give 0 to 2M"},
		{"1K", 1500, 4096, "--x 1K: out of range; give 1500 to 4K"},
		{"16777216T", 64, 1 << 30, "--x 16777216T: out of range; give 64 to 1G"},
	};

	parse_all(plx_parse_size, rows, PLX_ARRAY_LEN(rows));
}

PLX_TEST(durations_are_read_and_others_refused)
{
#define NOT_TIME                                                                              \
	": not a duration; give seconds, or a unit after the number: 10, 1.5s, 500ms, 20us, " \
	"100ns, 5min, 1h, 1d"
	static const struct row rows[] = {
		GOOD("10", 10 * PLX_NS_PER_S),
		GOOD(".5s", 500 * PLX_NS_PER_MS),
		GOOD("0.25ms", 250 * PLX_NS_PER_US),
		GOOD("20us", 20 * PLX_NS_PER_US),
		GOOD("100ns", 100),
		GOOD("0", 0),
		GOOD("1.1234567899s", 1123456789), /* finer than 1 ns: cut off */
		GOOD("1.9ns", 1),
		GOOD("5min", 300 * PLX_NS_PER_S),
		GOOD("1.5h", 5400 * PLX_NS_PER_S),
		GOOD("2d", 172800 * PLX_NS_PER_S),
		{"", 0, 0, "--x " NOT_TIME},
		{".s", 0, 0, "--x .s" NOT_TIME},
		{"-.5s", 1, 0, "--x -.5s: out of range; give 1ns or more"},
		{"1.s", 0, 0, "--x 1.s" NOT_TIME},
		{"5m", 0, 0, "--x 5m" NOT_TIME},
		{"1 s", 0, 0, "--x 1 s" NOT_TIME},
		{"-1s", PLX_NS_PER_MS, 10 * PLX_NS_PER_S, "--x -1s: out of range; give 1ms to 10s"},
		{"0.5ms", PLX_NS_PER_MS, 10 * PLX_NS_PER_S,
		 "--x 0.5ms: out of range; give 1ms to 10s"},
		{"1", 2 * 3600 * PLX_NS_PER_S, 172800 * PLX_NS_PER_S,
		 "--x 1: out of range; give 2h to 2d"},
		{"1ns", 1500, 2500, "--x 1ns: out of range; give 1500ns to 2500ns"},
		{"18446744074s", 0, PLX_NS_PER_S, "--x 18446744074s: out of range; give 0ns to 1s"},
	};

	parse_all(plx_parse_duration, rows, PLX_ARRAY_LEN(rows));
}

/* KEY=VALUE,... ------------------------------------------------------------------------------ */

static uint32_t size, count;
static const struct plx_setting settings[] = {
	{"size", &size, 4096, 8192, "bytes"},
	{"count", &count, 0, 63, "pieces"},
	{NULL, NULL, 0, 0, NULL},
};

static int set(const char *text)
{
	size = count = 7;
	return plx_parse_settings("--x", text, settings, false);
}

PLX_TEST(each_key_sets_its_value_except_in_a_check)
{
	assert_int_equal(set("size=4096"), 0);
	assert_int_equal(size, 4096);
	assert_int_equal(count, 7);
	assert_int_equal(set("count=0,size=8192"), 0);
	assert_int_equal(size, 8192);
	assert_int_equal(count, 0);
	assert_int_equal(plx_parse_settings("--x", "size=4096,count=1", settings, true), 0);
	assert_int_equal(size, 8192);
	assert_int_equal(count, 0);
}

PLX_TEST(an_unknown_setting_is_refused_with_a_list_of_the_keys)
{
	static const char *const rows[][2] = {
		{"size", "'size'"},
		{"=4096", "'=4096'"},
		{"siz=4096", "'siz=4096'"},
		{"count=1,", "''"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_fails(set(rows[i][0]), -EINVAL, rows[i][1]);
		assert_error_has("is no setting; give KEY=VALUE,... with keys from size, count");
	}
}

PLX_TEST(values_out_of_range_are_refused_with_the_range)
{
	static const char *const rows[] = {"size=4095", "count=1,size=8193"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_fails(set(rows[i]), -EINVAL, "--x size ");
		assert_error_has("out of range; give 4096 to 8192");
	}
	assert_fails(set("size=4K"), -EINVAL, "--x size 4K: not a whole number");
}

PLX_TEST_MAIN()
