/* SPDX-License-Identifier: BSD-3-Clause */
/* How other users' bytes are printed on a terminal. */
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

#define TEXT(text) text, sizeof(text) - 1

PLX_TEST(what_is_no_printable_text_is_escaped)
{
	static const struct {
		const char *text;
		size_t length;
		const char *shown; /* NULL: the text */
	} rows[] = {
		{TEXT(""), NULL},
		{TEXT("a b~ gr\xc3\xbc\xc3\x9f \xe2\x82\xac\xf0\x9f\x94\xa5"), NULL},
		{TEXT("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"), NULL},
		/* Control characters; U+009B starts a sequence too. */
		{TEXT("\x1b[31m"), "\\x1b[31m"},
		{TEXT("a\0b\n\x7f"), "a\\x00b\\x0a\\x7f"},
		{TEXT("\x9b"), "\\x9b"},
		{TEXT("\xc2\x9b"), "\\xc2\\x9b"},
		/* No UTF-8. */
		{TEXT("\xc3("), "\\xc3("},
		{TEXT("\xe2\x82"), "\\xe2\\x82"},
		{TEXT("\xc1\xbf"), "\\xc1\\xbf"},
		{TEXT("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf"},
		{TEXT("\xed\xa0\x80"), "\\xed\\xa0\\x80"},
		{TEXT("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf"},
		{TEXT("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80"},
		{TEXT("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80"},
		/* Text that looks like an escape. */
		{TEXT("\\x0a"), "\\\\x0a"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		is_shown_as(rows[i].text, rows[i].length, "", rows[i].shown ?: rows[i].text);
}

PLX_TEST(additional_characters_may_stay_unescaped)
{
	is_shown_as(TEXT("a\n\tb\\\r"), "\n\t\\", "a\n\tb\\\\x0d");
	is_shown_as(TEXT("\0"), "\n", "\\x00");
}

PLX_TEST_MAIN()
