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

PLX_TEST_MAIN()
