/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"

#include <jansson.h>
#include <string.h>

#define DEPTH_MAX 1000

struct walk {
	const char *begin, *at, *end;
	const char *wrong; /* the error at `at`; NULL: none so far */
	FILE *out;         /* may be NULL */
	unsigned depth;
};

static bool fail(struct walk *walk, const char *wrong)
{
	walk->wrong = wrong;
	return false;
}

/* The next byte, or 0 at the end; JSON contains no 0 either. */
static char next(const struct walk *walk)
{
	return walk->at < walk->end ? *walk->at : '\0';
}

static void skip_blanks(struct walk *walk)
{
	while (next(walk) && strchr(" \t\r\n", next(walk)))
		walk->at++;
}

static void put(const struct walk *walk, const char *text, size_t length)
{
	if (walk->out)
		fwrite(text, 1, length, walk->out);
}

static void put_line_end(const struct walk *walk)
{
	if (walk->out)
		fprintf(walk->out, "\n%*s", (int)(2 * walk->depth), "");
}

/* Return: the number of digits. */
static unsigned skip_digits(struct walk *walk, const char *digits)
{
	unsigned count = 0;

	for (; next(walk) && strchr(digits, next(walk)); count++)
		walk->at++;
	return count;
}

static bool take_escape(struct walk *walk)
{
	char kind = next(walk);

	if (!kind || !strchr("\"\\/bfnrtu", kind))
		return fail(walk, "expected one of \"\\/bfnrtu after the backslash");
	walk->at++;
	for (unsigned i = 0; kind == 'u' && i < 4; i++, walk->at++)
		if (!next(walk) || !strchr("0123456789abcdefABCDEF", next(walk)))
			return fail(walk, "expected four hexadecimal digits after \\u");
	return true;
}

static bool take_string(struct walk *walk)
{
	if (next(walk) != '"')
		return fail(walk, "expected a string");
	walk->at++;
	while (next(walk) != '"') {
		if ((unsigned char)next(walk) < ' ')
			return fail(
				walk,
				"expected the end of a string (control characters are escaped)");
		if (*walk->at++ == '\\' && !take_escape(walk))
			return false;
	}
	walk->at++;
	return true;
}

static bool take_number(struct walk *walk)
{
	static const char digits[] = "0123456789";

	if (next(walk) == '-')
		walk->at++;
	if (next(walk) == '0')
		walk->at++;
	else if (!skip_digits(walk, digits))
		return fail(walk, "expected a value");
	if (next(walk) == '.') {
		walk->at++;
		if (!skip_digits(walk, digits))
			return fail(walk, "expected digits after the point");
	}
	if (next(walk) == 'e' || next(walk) == 'E') {
		walk->at++;
		if (next(walk) == '+' || next(walk) == '-')
			walk->at++;
		if (!skip_digits(walk, digits))
			return fail(walk, "expected digits of the exponent");
	}
	return true;
}

static bool take_word(struct walk *walk)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(words); i++) {
		size_t length = strlen(words[i]);

		if ((size_t)(walk->end - walk->at) >= length &&
		    memcmp(walk->at, words[i], length) == 0) {
			walk->at += length;
			return true;
		}
	}
	return take_number(walk);
}

static bool take_value(struct walk *walk);

/* The `"name": ` of an object member. */
static bool take_name(struct walk *walk)
{
	const char *name = walk->at;

	if (!take_string(walk))
		return false;
	put(walk, name, (size_t)(walk->at - name));
	skip_blanks(walk);
	if (next(walk) != ':')
		return fail(walk, "expected ':'");
	walk->at++;
	put(walk, ": ", 2);
	return true;
}

static bool take_members(struct walk *walk, bool is_object)
{
	char close = is_object ? '}' : ']';

	for (;;) {
		put_line_end(walk);
		skip_blanks(walk);
		if (is_object && !take_name(walk))
			return false;
		if (!take_value(walk))
			return false;
		if (next(walk) != ',')
			break;
		walk->at++;
		put(walk, ",", 1);
	}
	return next(walk) == close ||
	       fail(walk, is_object ? "expected ',' or '}'" : "expected ',' or ']'");
}

static bool take_group(struct walk *walk)
{
	bool is_object = next(walk) == '{';

	put(walk, walk->at++, 1);
	if (++walk->depth > DEPTH_MAX)
		return fail(walk, "nested deeper than 1000");
	skip_blanks(walk);
	if (next(walk) != (is_object ? '}' : ']')) {
		if (!take_members(walk, is_object))
			return false;
		walk->depth--;
		put_line_end(walk);
	} else {
		walk->depth--;
	}
	put(walk, walk->at++, 1);
	return true;
}

/* A value, and the white space around it. */
static bool take_value(struct walk *walk)
{
	const char *begin;
	bool right;

	skip_blanks(walk);
	begin = walk->at;
	if (next(walk) == '{' || next(walk) == '[') {
		right = take_group(walk);
	} else {
		right = next(walk) == '"' ? take_string(walk) : take_word(walk);
		put(walk, begin, (size_t)(walk->at - begin));
	}
	skip_blanks(walk);
	return right;
}

int call_json_walk(const char *text, size_t length, FILE *out)
{
	struct walk walk = {.begin = text, .at = text, .end = text + length, .out = out};
	json_t *utf8 = json_stringn(text, length);

	if (!utf8)
		return plx_fail(EINVAL, "it is not UTF-8");
	json_decref(utf8);
	if (take_value(&walk) && walk.at < walk.end)
		walk.wrong = "unexpected text after the value";
	return walk.wrong ? plx_fail(EINVAL, "%s at byte %zu", walk.wrong,
				     (size_t)(walk.at - walk.begin) + 1)
			  : 0;
}
