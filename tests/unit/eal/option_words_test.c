/* SPDX-License-Identifier: BSD-3-Clause */
#include "option_words.h"
#include "plx_test.h"

static const struct plx_option options[] = {
	{.name = "rate-limit", .placeholder = "N"},
	{.name = "rate", .placeholder = "N", .letter = 'r'},
	{.name = "rated"},
	{.name = "coremask", .placeholder = "MASK"},
	{.name = "config", .placeholder = "FILE", .may_be_empty = true},
	{.name = "quiet", .letter = 'q'},
	{.name = NULL},
};

PLX_TEST(an_exact_name_is_preferred_to_longer_ones)
{
	assert_int_equal(plx_option_find(options, "--rate"), 1);
	assert_int_equal(plx_option_find(options, "--rate=7"), 1);
	assert_int_equal(plx_option_find(options, "--rate-"), 0);
}

PLX_TEST(an_unambiguous_abbreviation_is_found)
{
	assert_int_equal(plx_option_find(options, "--cor"), 3);
	assert_int_equal(plx_option_find(options, "--conf=debug"), 4);
}

PLX_TEST(an_ambiguous_abbreviation_is_refused_with_the_candidates)
{
	assert_fails(plx_option_find(options, "--co=1"), -EINVAL,
		     "--co: ambiguous; give --coremask or --config");
}

PLX_TEST(letters_are_found)
{
	assert_int_equal(plx_option_find(options, "-r"), 1);
	assert_int_equal(plx_option_find(options, "-r7"), 1);
	assert_int_equal(plx_option_find(options, "-q"), 5);
	assert_int_equal(plx_option_find(options, "-q7"), -ENOENT);
	assert_int_equal(plx_option_find(options, "-quiet"), -ENOENT); /* lacks a dash */
}

PLX_TEST(words_that_are_no_options_are_not_found)
{
	static const char *const words[] = {"", "-", "--", "--=3", "word", "-x", "--frobnicate"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(words); i++)
		assert_int_equal(plx_option_find(options, words[i]), -ENOENT);
}

PLX_TEST(an_unknown_option_is_refused_with_the_nearest_name)
{
	assert_int_equal(plx_option_unknown(NULL, options, "--confg=1"), -EINVAL);
	assert_string_equal(plx_error(), "--confg: unknown option; did you mean --config? "
					 "(--help lists all)");
	assert_int_equal(plx_option_unknown(options, NULL, "--frobnicate"), -EINVAL);
	assert_string_equal(plx_error(), "--frobnicate: unknown option (--help lists all)");
	assert_fails(plx_option_unknown(NULL, options, "-quiet"), -EINVAL,
		     "-quiet: a long option has two dashes; give --quiet");
	assert_fails(plx_option_unknown(options, NULL, "quiet"), -EINVAL, "quiet: not an option; ");
}

PLX_TEST(a_value_belongs_to_its_option)
{
	static const struct {
		const char *word, *next, *text;
		int count;
	} cases[] = {
		{"--rate", "a:1", "a:1", 2},
		{"--rate=a:1", "x", "a:1", 1},
		{"--rate", "-1", "-1", 2},
		{"--rate", "-.5", "-.5", 2},
		{"--rate", "-", "-", 2},
		{"--rated", "x", NULL, 1},
		{"-r", "7", "7", 2},
		{"-r7", "8", "7", 1},
		{"-q", "7", NULL, 1},
		{"--config", "", "", 2},
		{"--config=", "x", "", 1},
		{"--rate", "--rated", NULL, -EINVAL},
		{"--rate", NULL, NULL, -EINVAL},
		{"--rate", "", NULL, -EINVAL},
		{"--rate=", "x", NULL, -EINVAL},
		{"--nonsense", "x", NULL, -ENOENT},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		char *argv[] = {(char *)cases[i].word, (char *)cases[i].next};
		struct plx_option_use use;

		assert_int_equal(plx_option_take(options, cases[i].next ? 2 : 1, argv, &use),
				 cases[i].count);
		if (cases[i].text)
			assert_string_equal(use.text, cases[i].text);
		else if (cases[i].count > 0)
			assert_null(use.text);
	}
}

PLX_TEST_MAIN()
