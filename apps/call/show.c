/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies and descriptions, for people and for pipes. */
#include "call.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEX_COLUMNS 16

static void show_hex(const uint8_t *data, size_t length)
{
	for (size_t row = 0; row < length; row += HEX_COLUMNS) {
		printf("%08zx ", row);
		for (size_t i = row; i < row + HEX_COLUMNS; i++) {
			if (i < length)
				printf(" %02x", data[i]);
			else
				fputs("   ", stdout);
		}
		fputs("  ", stdout);
		for (size_t i = row; i < row + HEX_COLUMNS && i < length; i++)
			putchar(isprint(data[i]) ? data[i] : '.');
		putchar('\n');
	}
}

/* Control characters are shown as C escapes. */
static void show_text(const void *data, size_t length)
{
	plx_app_put_text(stdout, data, length, "\n\t\\");
	if (length && ((const char *)data)[length - 1] != '\n')
		putchar('\n');
}

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
static void indent(const char *text, size_t length, FILE *out)
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

static int show_json(const void *data, size_t length)
{
	char *text = NULL;
	size_t size;
	FILE *out;

	if (call_json_check(data, length, false) != 0)
		return plx_fail(EPROTO, "the reply is no JSON: %s; --format text or hex shows it",
				plx_error());
	out = open_memstream(&text, &size);
	if (!out)
		return plx_fail(ENOMEM, "out of memory");
	indent(data, length, out);
	if (fclose(out) == 0)
		show_text(text, size);
	free(text);
	return 0;
}

int call_show(const void *data, size_t length, enum call_format format)
{
	int rc = format == CALL_JSON ? show_json(data, length) : 0;

	if (rc)
		return rc;
	if (format == CALL_HEX)
		show_hex(data, length);
	else if (format == CALL_TEXT)
		show_text(data, length);
	else if (format == CALL_RAW)
		fwrite(data, 1, length, stdout);
	return plx_app_flush();
}

/* Descriptions -------------------------------------------------------------------------------- */

static long long number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static json_t *read_description(const void *text, size_t length, json_t **methods_out)
{
	json_t *all = json_loadb(text, length, 0, NULL);

	*methods_out = json_object_get(all, "methods");
	if (json_is_array(*methods_out))
		return all;
	json_decref(all);
	plx_fail(EPROTO, "what the service says of itself cannot be read");
	return NULL;
}

int call_show_methods(const void *text, size_t length)
{
	json_t *methods, *all = read_description(text, length, &methods), *method;
	size_t i;

	if (!all)
		return -EPROTO;
	printf("%10s %7s  %-24s %12s %8s %6s %10s\n", "id", "version", "name", "requests",
	       "refused", "slow", "mean ns");
	json_array_foreach(methods, i, method)
	{
		const char *name = json_string_value(json_object_get(method, "name"));
		long long requests = number_of(method, "requests");
		double ns = (double)number_of(method, "handler_ns");
		char printable[25]; /* it must not control the terminal */

		plx_printable(name ? name : "", printable, sizeof(printable));
		printf("%10lld %7lld  %-24s %12lld %8lld %6lld %10.0f\n", number_of(method, "id"),
		       number_of(method, "version"), printable, requests,
		       number_of(method, "refused"), number_of(method, "slow"),
		       requests > 0 ? ns / (double)requests : 0.0);
	}
	json_decref(all);
	return 0;
}

int call_find_method(const void *text, size_t length)
{
	json_t *methods, *all = read_description(text, length, &methods), *method;
	bool exact = call_asked->version_given;
	int found = -1;
	size_t i;

	if (!all)
		return -EPROTO;
	json_array_foreach(methods, i, method)
	{
		const char *name = json_string_value(json_object_get(method, "name"));
		int version = (int)number_of(method, "version");

		if (!name || strcmp(name, call_asked->method) != 0 || version <= found ||
		    (exact && version != (int)call_asked->version))
			continue;
		found = version;
		call_asked->number = (uint32_t)number_of(method, "id");
	}
	json_decref(all);
	if (found < 0)
		return plx_fail(ENOENT,
				"--method %s: the service has no such method%s; --list "
				"shows what it has",
				call_asked->method, exact ? " and version" : "");
	call_asked->version = (uint64_t)found;
	return 0;
}
