/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_test.h"

#include "plx_topo.h"

static struct plx_cpuset set_of(const unsigned *cpus, size_t count)
{
	struct plx_cpuset set = {{0}};

	for (size_t i = 0; i < count; i++)
		plx_cpuset_add(&set, cpus[i]);
	return set;
}

#define SET(...)                                \
	set_of((const unsigned[]){__VA_ARGS__}, \
	       sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

PLX_TEST(add_and_remove_change_only_one_cpu)
{
	struct plx_cpuset set = SET(0, 63, 64, PLX_CPU_MAX - 1);

	assert_int_equal(plx_cpuset_count(&set), 4);
	assert_true(plx_cpuset_has(&set, 63));
	assert_false(plx_cpuset_has(&set, 62));
	assert_false(plx_cpuset_has(&set, PLX_CPU_MAX));
	plx_cpuset_remove(&set, 63);
	assert_false(plx_cpuset_has(&set, 63));
	assert_true(plx_cpuset_has(&set, 64));
	assert_int_equal(plx_cpuset_count(&set), 3);
}

PLX_TEST(next_returns_each_cpu_in_order_and_then_the_end)
{
	static const unsigned cpus[] = {0, 5, 63, 64, 127, 1000, PLX_CPU_MAX - 1};
	struct plx_cpuset set = set_of(cpus, PLX_ARRAY_LEN(cpus));
	size_t i = 0;

	PLX_CPUSET_FOREACH (cpu, &set)
		assert_int_equal(cpu, cpus[i++]);
	assert_int_equal(i, PLX_ARRAY_LEN(cpus));
	assert_int_equal(plx_cpuset_next(&set, 6), 63);
	assert_int_equal(plx_cpuset_next(&set, PLX_CPU_MAX), PLX_CPU_MAX);
}

PLX_TEST(sets_are_combined)
{
	struct plx_cpuset a = SET(1, 64, 4000), b = SET(2, 64), both = plx_cpuset_and(&a, &b);
	char out[64];

	assert_string_equal(plx_cpuset_format(&both, out, sizeof(out)), "64");
	plx_cpuset_add_all(&a, &b);
	assert_string_equal(plx_cpuset_format(&a, out, sizeof(out)), "1-2,64,4000");
	plx_cpuset_remove_all(&a, &b);
	assert_string_equal(plx_cpuset_format(&a, out, sizeof(out)), "1,4000");
}

PLX_TEST(format_writes_ranges)
{
	struct plx_cpuset some = SET(0, 1, 2, 3, 8, 10, 11, PLX_CPU_MAX - 1), none = {{0}}, all;
	char out[64];

	assert_string_equal(plx_cpuset_format(&some, out, sizeof(out)), "0-3,8,10-11,4095");
	assert_string_equal(plx_cpuset_format(&none, out, sizeof(out)), "none");
	memset(&all, 0xff, sizeof(all));
	assert_string_equal(plx_cpuset_format(&all, out, sizeof(out)), "0-4095");
}

PLX_TEST(format_truncates_after_a_whole_item_and_reports_it)
{
	struct plx_cpuset set = SET(10, 20, 30, 40);
	static const char *const expected[] = {
		[12] = "10,20,30,40", [10] = "10,20,...", [7] = "10,...", [6] = "...", [2] = ".",
	};

	for (size_t size = 1; size < PLX_ARRAY_LEN(expected); size++) {
		char out[16];

		memset(out, '#', sizeof(out));
		plx_cpuset_format(&set, out, size);
		assert_true(strlen(out) < size);
		assert_int_equal(out[size], '#');
		if (expected[size])
			assert_string_equal(out, expected[size]);
	}
}

PLX_TEST_MAIN()
