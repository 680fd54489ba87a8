/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_test.h"

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

PLX_TEST(each_key_sets_its_value)
{
	assert_int_equal(set("size=4096"), 0);
	assert_int_equal(size, 4096);
	assert_int_equal(count, 7);
	assert_int_equal(set("count=0,size=8192"), 0);
	assert_int_equal(size, 8192);
	assert_int_equal(count, 0);
}

PLX_TEST(a_check_changes_no_value)
{
	size = count = 7;
	assert_int_equal(plx_parse_settings("--x", "size=4096,count=1", settings, true), 0);
	assert_int_equal(size, 7);
	assert_int_equal(count, 7);
	assert_int_equal(plx_parse_settings("--x", "size=1", settings, true), -EINVAL);
}

PLX_TEST(an_unknown_setting_is_refused_with_a_list_of_the_keys)
{
	static const char *const rows[][2] = {
		{"", "''"},
		{"size", "'size'"},
		{"=4096", "'=4096'"},
		{"sizes=4096", "'sizes=4096'"},
		{"siz=4096", "'siz=4096'"},
		{"count=1,", "''"},
		{"count=1,,size=4096", "''"},
		{"Size=4096", "'Size=4096'"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_fails(set(rows[i][0]), -EINVAL, rows[i][1]);
		assert_error_has("is no setting; give KEY=VALUE,... with keys from size, count");
	}
}

PLX_TEST(values_out_of_range_are_refused_with_the_range)
{
	static const char *const rows[] = {"size=4095", "size=8193", "size=-1",
					   "count=1,size=99999999999999999999999999999"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_fails(set(rows[i]), -EINVAL, "--x size ");
		assert_error_has("out of range; give 4096 to 8192");
	}
	assert_fails(set("size=4K"), -EINVAL, "--x size 4K: not a whole number");
	assert_fails(set("size="), -EINVAL, "--x size");
}

PLX_TEST_MAIN()
