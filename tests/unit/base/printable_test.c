/* SPDX-License-Identifier: BSD-3-Clause */
/* Escaping foreign text in a buffer. app/print_test.c tests which characters stay. */
#include "base_internal.h"
#include "plx_test.h"

PLX_TEST(text_is_escaped)
{
	char out[64];

	assert_string_equal(plx_printable("", out, sizeof(out)), "");
	assert_string_equal(plx_printable("plx-echo", out, sizeof(out)), "plx-echo");
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
