/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

/* Integers may be longer than any type. */
int call_json_check(const char *text, size_t length, bool once)
{
	size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL |
		       (once ? JSON_REJECT_DUPLICATES : 0);
	json_error_t error;
	json_t *value = json_loadb(text, length, flags, &error);

	if (!value)
		return plx_fail(EINVAL, "%s, at byte %d", error.text, error.position);
	json_decref(value);
	return 0;
}

/* Strings and numbers stay as they are. A line starts after a comma, and inside of a pair of
 * brackets unless that is empty. */
void call_json_indent(const char *text, size_t length, FILE *out)
{
	bool in_string = false;
	int depth = 0;
	char last = '\0';

	for (size_t i = 0; i < length; i++) {
		bool closes = text[i] == '}' || text[i] == ']';
		bool is_open = last == '{' || last == '[';

		if (!in_string && isspace((unsigned char)text[i]))
			continue;
		if (!in_string) {
			depth += is_open - closes;
			if (last == ',' || is_open != closes)
				fprintf(out, "\n%*s", 2 * depth, "");
			last = text[i];
		}
		putc(text[i], out);
		if (text[i] == '"')
			in_string = !in_string;
		else if (in_string && text[i] == '\\')
			putc(text[++i], out);
		else if (!in_string && text[i] == ':')
			putc(' ', out);
	}
}
