/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal_priv.h"
#include "plx_test.h"

static struct plx_eal_conf conf;

PLX_FIXTURE(forget, 0, plx_eal_conf_fini(&conf))

#define TEST(name) PLX_TEST_WITH(name, NULL, forget)

TEST(the_origin_of_a_value_is_what_the_user_typed)
{
	conf = (struct plx_eal_conf){.huge = PLX_HUGE_NONE};
	assert_string_equal(eal_conf_origin(&conf, OPT_HUGE), "huge");
	assert_int_equal(eal_conf_set(&conf, OPT_LCORES, "0-3", "-l"), 0);
	assert_string_equal(eal_conf_origin(&conf, OPT_LCORES), "-l");
	assert_string_equal(conf.lcores, "0-3");
}

TEST(the_origin_of_a_value_is_copied)
{
	char given[32] = "lcores in x:1";

	assert_int_equal(eal_conf_set(&conf, OPT_LCORES, "0", given), 0);
	assert_int_equal(eal_conf_set(&conf, OPT_LOG_LEVEL, "debug", given), 0);
	memset(given, 'x', sizeof(given));
	assert_string_equal(conf.origin[OPT_LCORES], "lcores in x:1");
	assert_string_equal(conf.level_origins[0], "lcores in x:1");
}

TEST(the_error_for_a_second_value_names_the_first)
{
	assert_int_equal(eal_conf_set(&conf, OPT_NUMA, "any", "--numa"), 0);
	assert_int_equal(eal_conf_set(&conf, OPT_NUMA, "strict", "numa in x:2"), -EINVAL);
	assert_string_equal(plx_error(),
			    "numa in x:2 strict: given before as --numa; give one of them");
	assert_int_equal(conf.numa, PLX_NUMA_ANY);
}

TEST(conflicting_values_set_by_the_program_are_refused)
{
	conf = (struct plx_eal_conf){.lcores = "0", .coremask = "1"};
	assert_int_equal(eal_conf_check_pair(&conf), -EINVAL);
	assert_string_equal(plx_error(), "lcores 0 and coremask 1: give one of them, a list or a "
					 "mask, not both");
	conf.coremask = NULL;
	assert_int_equal(eal_conf_check_pair(&conf), 0);
}

TEST(the_number_of_owned_strings_is_bounded)
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(conf.owned); i++)
		assert_non_null(eal_conf_own(&conf, "text"));
	assert_null(eal_conf_own(&conf, "one more"));
	assert_error_has("out of memory");
}

TEST(a_conf_can_be_reused_after_fini)
{
	const struct plx_eal_conf zero = {0};

	assert_int_equal(eal_conf_set(&conf, OPT_DRY_RUN, NULL, "--dry-run"), 0);
	assert_true(conf.dry_run);
	plx_eal_conf_fini(&conf);
	assert_memory_equal(&conf, &zero, sizeof(conf));
	plx_eal_conf_fini(&conf);
	assert_int_equal(eal_conf_set(&conf, OPT_DRY_RUN, NULL, "--dry-run"), 0);
}

PLX_TEST_MAIN()
