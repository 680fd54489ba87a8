/* SPDX-License-Identifier: BSD-3-Clause */
/* How other users' bytes are printed on a terminal, and how addresses are split. */
#include "app.h"
#include "plx_test.h"

#include <stdio.h>

static void is_shown_as(const char *text, size_t length, const char *plain, const char *shown)
{
	char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	assert_non_null(out);
	plx_app_put_text(out, text, length, plain);
	fclose(out);
	assert_string_equal(got, shown);
	free(got);
}

#define SHOWN(text, plain, shown) is_shown_as(text, sizeof(text) - 1, plain, shown)

PLX_TEST(printable_characters_stay)
{
	SHOWN("", "", "");
	SHOWN("a b~", "", "a b~");
	SHOWN("gr\xc3\xbc\xc3\x9f", "", "gr\xc3\xbc\xc3\x9f");
	SHOWN("\xc2\xa0\xe2\x82\xac\xf0\x9f\x94\xa5", "", "\xc2\xa0\xe2\x82\xac\xf0\x9f\x94\xa5");
	SHOWN("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "",
	      "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf");
}

/* Both sets; the second also in UTF-8: U+009B starts a sequence. */
PLX_TEST(control_characters_are_escaped)
{
	SHOWN("\x1b[31m", "", "\\x1b[31m");
	SHOWN("a\0b\n\x7f", "", "a\\x00b\\x0a\\x7f");
	SHOWN("x\x9b"
	      "31m",
	      "", "x\\x9b31m");
	SHOWN("x\xc2\x9b"
	      "31m",
	      "", "x\\xc2\\x9b31m");
}

PLX_TEST(invalid_utf8_is_escaped)
{
	SHOWN("\xc3", "", "\\xc3");
	SHOWN("\xc3(", "", "\\xc3(");
	SHOWN("\xc1\xbf", "", "\\xc1\\xbf");
	SHOWN("\xe0\x9f\xbf", "", "\\xe0\\x9f\\xbf");
	SHOWN("\xed\xa0\x80", "", "\\xed\\xa0\\x80");
	SHOWN("\xf0\x8f\xbf\xbf", "", "\\xf0\\x8f\\xbf\\xbf");
	SHOWN("\xf4\x90\x80\x80", "", "\\xf4\\x90\\x80\\x80");
	SHOWN("\xf5\x80\x80\x80", "", "\\xf5\\x80\\x80\\x80");
	SHOWN("\xe2\x82", "", "\\xe2\\x82");
}

PLX_TEST(an_escape_is_not_mistaken_for_text)
{
	SHOWN("\\x0a", "", "\\\\x0a");
	SHOWN("\n", "", "\\x0a");
}

PLX_TEST(additional_characters_may_stay_unescaped)
{
	SHOWN("a\n\tb\\\r", "\n\t\\", "a\n\tb\\\\x0d");
	SHOWN("\0", "\n", "\\x00");
}

PLX_TEST_MAIN()
