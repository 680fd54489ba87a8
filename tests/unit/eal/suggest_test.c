/* SPDX-License-Identifier: BSD-3-Clause */
#include "option_words.h"
#include "plx_test.h"

static const char *const names[] = {"lcores",     "coremask", "config",
				    "socket-mem", "huge",     "log-level"};
#define COUNT PLX_ARRAY_LEN(names)

PLX_TEST(the_nearest_name_is_found)
{
	static const struct {
		const char *word, *name;
	} rows[] = {
		{"lcore", "lcores"},
		{"--lcore-list", "lcores"},
		{"--locres=0-3", "lcores"},
		{"cores", "lcores"},
		{"core-mask", "coremask"},
		{"mask", "coremask"},
		{"--log_level", "log-level"},
		{"LCORES", "lcores"},
		{"hgue", "huge"},
		{"soket-mem", "socket-mem"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		const char *found = plx_suggest(rows[i].word, names, COUNT);

		assert_non_null(found);
		assert_string_equal(found, rows[i].name);
	}
}

PLX_TEST(unrelated_words_have_no_nearest_name)
{
	static const char longer[] =
		"a-word-that-is-much-longer-than-any-option-of-any-program-has-ever-had";
	static const char *const words[] = {"",  "--",         "-",       "=",
					    "x", "frobnicate", "verbose", longer};

	for (size_t i = 0; i < PLX_ARRAY_LEN(words); i++)
		assert_null(plx_suggest(words[i], names, COUNT));
	assert_null(plx_suggest("lcores", names, 0));
}

PLX_TEST(swapped_letters_are_one_edit)
{
	static const char *const two[] = {"abdd", "bacd"};

	/* One swap from the second; a replacement and a swap from the first. */
	assert_string_equal(plx_suggest("abcd", two + 1, 1), "bacd");
	assert_string_equal(plx_suggest("badd", two, 2), "abdd");
}

PLX_TEST(an_exact_name_is_preferred_to_longer_ones)
{
	static const char *const both[] = {"rate-limit", "rate", "rated"};

	assert_int_equal(plx_option_find("--rate", both, 3), 1);
	assert_int_equal(plx_option_find("--rate=7", both, 3), 1);
	assert_int_equal(plx_option_find("--rate-", both, 3), 0);
}

PLX_TEST(an_unambiguous_abbreviation_is_found)
{
	assert_int_equal(plx_option_find("--lc", names, COUNT), 0);
	assert_int_equal(plx_option_find("--log=debug", names, COUNT), 5);
}

PLX_TEST(an_ambiguous_abbreviation_is_refused_with_the_candidates)
{
	assert_int_equal(plx_option_find("--co=1", names, COUNT), -EINVAL);
	assert_string_equal(plx_error(), "--co: ambiguous; give --coremask or --config");
}

PLX_TEST(an_unknown_option_is_refused_with_the_nearest_name)
{
	assert_int_equal(plx_option_find("--lcore-list=1", names, COUNT), -ENOENT);
	assert_string_equal(plx_error(), "--lcore-list: unknown option; did you mean --lcores? "
					 "(--help lists all)");
	assert_int_equal(plx_option_find("--frobnicate", names, COUNT), -ENOENT);
	assert_string_equal(plx_error(), "--frobnicate: unknown option (--help lists all)");
	assert_int_equal(plx_option_find("--=3", names, COUNT), -ENOENT);
}

PLX_TEST_MAIN()
