/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts: errors, foreign text that is escaped, and lists. app/print_test.c tests which characters
 * stay. */
#include "base_internal.h"
#include "plx_test.h"

#define TEXT_MAX 1023 /* the capacity, without the NUL */

static void *look_and_fail(void *arg)
{
	char *before = arg;

	strcpy(before, plx_error());
	plx_fail(EIO, "of the other thread");
	return strstr(plx_error(), "other") ? arg : NULL;
}

PLX_TEST(each_thread_has_a_separate_error_text)
{
	char before[64] = "untouched";

	plx_fail(EINVAL, "of this thread");
	assert_ptr_equal(run_in_thread(look_and_fail, before), before);
	assert_string_equal(before, "");
	assert_string_equal(plx_error(), "of this thread");
}

PLX_TEST(the_previous_error_text_may_be_an_argument)
{
	plx_fail(EINVAL, "inner");
	plx_fail(EINVAL, "outer (%s), again (%s)", plx_error(), plx_error());
	assert_string_equal(plx_error(), "outer (inner), again (inner)");
	plx_fail_in(-EINVAL, "[%s] ", plx_error());
	assert_string_equal(plx_error(),
			    "[outer (inner), again (inner)] outer (inner), again (inner)");
}

PLX_TEST(plx_fail_in_prepends_text_and_keeps_the_error)
{
	int rc = plx_fail(ENOENT, "no such %s", "file");

	assert_int_equal(rc, -ENOENT);
	assert_int_equal(plx_fail_in(rc, "%s:%d: ", "a.conf", 3), -ENOENT);
	assert_string_equal(plx_error(), "a.conf:3: no such file");
	assert_int_equal(plx_fail_in(rc, "--config: "), -ENOENT);
	assert_string_equal(plx_error(), "--config: a.conf:3: no such file");
}

/* The text says what failed; the prefix only where. */
PLX_TEST(long_error_texts_are_truncated_and_prefixes_without_room_dropped)
{
	char text[5000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(plx_fail(EINVAL, "%s", text), -EINVAL);
	assert_int_equal(strlen(plx_error()), TEXT_MAX);
	plx_fail_in(-EINVAL, "prefix ");
	assert_int_equal(strlen(plx_error()), TEXT_MAX);
	assert_int_equal(strncmp(plx_error(), "prefix xxx", 10), 0);
	plx_fail(EINVAL, "the reason");
	assert_int_equal(plx_fail_in(-EINVAL, "%s", text), -EINVAL);
	assert_string_equal(plx_error(), "the reason");
}

PLX_TEST(text_is_escaped)
{
	char out[64];

	assert_string_equal(plx_printable("a\x1b[31m\xff\\", out, sizeof(out)),
			    "a\\x1b[31m\\xff\\\\");
}

/* No character or escape is split. */
PLX_TEST(text_that_does_not_fit_is_cut_after_a_whole_character)
{
	char out[6];

	assert_string_equal(plx_printable("abcdefgh", out, sizeof(out)), "abcde");
	assert_string_equal(plx_printable("ab\n", out, sizeof(out)), "ab");
	assert_string_equal(plx_printable("abcd\xc3\xbc", out, sizeof(out)), "abcd");
	assert_string_equal(plx_printable("abc\xc3\xbc", out, sizeof(out)), "abc\xc3\xbc");
	assert_string_equal(plx_printable("a", out, 1), "");
}

PLX_TEST(a_list_in_a_text_grows_until_it_is_full)
{
	char list[10] = "";

	plx_list_add(list, sizeof(list), "tcp");
	assert_string_equal(list, "tcp");
	plx_list_add(list, sizeof(list), "shm");
	assert_string_equal(list, "tcp, shm");
	plx_list_add(list, sizeof(list), "verbs");
	plx_list_add(list, sizeof(list), "foreign");
	assert_string_equal(list, "tcp, shm,");
}

PLX_TEST_MAIN()
