/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing parameters, for people and as JSON. */
#include "params.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TIME_TEXT 32

static const char *const limit_names[LIMIT_COUNT] = {
	"min", "max", "alarm_low", "alarm_high", "warn_low", "warn_high", "hysteresis",
};

static json_t *all;

static json_t *json_of(const struct param_value *value)
{
	switch (value->type) {
	case PARAM_BOOL:
		return json_boolean(value->integer);
	case PARAM_INT:
		return json_integer(value->integer);
	case PARAM_REAL:
		return json_real(value->real);
	default: /* invalid UTF-8 is not valid JSON */
		return json_stringn(value->text.bytes, value->text.length) ?: json_null();
	}
}

/* Text that JSON cannot represent is shown as hex. */
static json_t *hex_of(const struct param_value *text)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * PARAM_TEXT_MAX];

	for (uint32_t i = 0; i < text->text.length; i++) {
		hex[2 * i] = digits[(uint8_t)text->text.bytes[i] >> 4];
		hex[2 * i + 1] = digits[text->text.bytes[i] & 0xf];
	}
	return json_stringn(hex, 2 * text->text.length);
}

/* In UTC, with milliseconds. */
static void format_time(uint64_t ns, char out[TIME_TEXT])
{
	time_t seconds = (time_t)(ns / PLX_NS_PER_S);
	struct tm utc;
	size_t length;

	gmtime_r(&seconds, &utc);
	length = strftime(out, TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(out + length, TIME_TEXT - length, ".%03uZ",
		 (unsigned)(ns % PLX_NS_PER_S / PLX_NS_PER_MS));
}

static void set_alarm(json_t *object, const struct param_alarm *alarm)
{
	char since[TIME_TEXT];

	json_object_set_new(object, "alarm", json_string(param_alarms[alarm->state]));
	if (alarm->state == ALARM_NONE)
		return;
	json_object_set_new(object, "severity", json_string(param_severity(alarm->level)));
	json_object_set_new(object, "side", json_string(alarm->level < 0 ? "low" : "high"));
	if (!alarm->since_ns)
		return;
	format_time(alarm->since_ns, since);
	json_object_set_new(object, "alarm_since", json_string(since));
}

static json_t *object_of(const struct param *param)
{
	json_t *object = json_object();

	json_object_set_new(object, "name", json_stringn(param->name, param->name_length));
	json_object_set_new(object, "type", json_string(param_types[param->kind.type - 1]));
	json_object_set_new(object, "value", json_of(&param->value));
	if (json_is_null(json_object_get(object, "value")))
		json_object_set_new(object, "value_hex", hex_of(&param->value));
	json_object_set_new(object, "revision", json_integer((json_int_t)param->revision));
	if (param->kind.unit[0])
		json_object_set_new(object, "unit", json_string(param->kind.unit) ?: json_null());
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (param->kind.has[i])
			json_object_set_new(object, limit_names[i], json_of(&param->kind.limit[i]));
	}
	if (param->kind.latch)
		json_object_set_new(object, "latch", json_true());
	set_alarm(object, &param->alarm);
	return object;
}

/* Text from a service, which must not control the terminal. */
static void show_text(const char *text, size_t length)
{
	plx_app_put_text(stdout, text, length, "");
}

static void show_alarm(const struct param_alarm *alarm)
{
	char since[TIME_TEXT];

	if (alarm->state == ALARM_NONE)
		return;
	printf(", %s %s %s", alarm->level < 0 ? "low" : "high", param_severity(alarm->level),
	       param_alarms[alarm->state]);
	if (!alarm->since_ns)
		return;
	format_time(alarm->since_ns, since);
	printf(" since %s", since);
}

static void show_line(const struct param *param)
{
	char value[PARAM_TEXT_MAX + 1];
	int length = param_value_format(&param->value, value, sizeof(value));

	printf("%.*s = ", (int)param->name_length, param->name);
	show_text(value, (size_t)length);
	if (param->kind.unit[0])
		putchar(' ');
	show_text(param->kind.unit, strlen(param->kind.unit));
	printf("  (%s, revision %" PRIu64, param_types[param->kind.type - 1], param->revision);
	show_alarm(&param->alarm);
	puts(")");
}

/* Separators between the parts of an object. */
struct layout {
	const char *begin, *colon, *comma, *end;
};

static const struct layout of_line = {"{", ":", ",", "}"};
static const struct layout of_get = {"{\n  ", ": ", ",\n  ", "\n}"};
static const struct layout of_list = {"\n  {\n    ", ": ", ",\n    ", "\n  }"};

/* One member at a time: jansson uses one precision for all numbers of a dump. */
static void print_member(json_t *value)
{
	size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII;

	if (json_is_real(value))
		flags |= JSON_REAL_PRECISION((size_t)param_real_digits(json_real_value(value)));
	json_dumpf(value, stdout, flags);
}

static void print_object(json_t *object, const struct layout *layout)
{
	const char *before = layout->begin, *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		printf("%s\"%s\"%s", before, key, layout->colon);
		print_member(value);
		before = layout->comma;
	}
	fputs(layout->end, stdout);
}

static void print_list(const json_t *list)
{
	json_t *object;
	size_t i;

	putchar('[');
	json_array_foreach(list, i, object)
	{
		if (i)
			putchar(',');
		print_object(object, &of_list);
	}
	puts(json_array_size(list) ? "\n]" : "]");
}

int show_param(const struct param *param)
{
	json_t *object = params_asked->json ? object_of(param) : NULL;

	if (object) {
		print_object(object, &of_get);
		putchar('\n');
		json_decref(object);
	} else {
		show_line(param);
	}
	return plx_app_flush();
}

int show_change(const struct param *param, bool removed)
{
	json_t *object = params_asked->json ? object_of(param) : NULL;

	if (object) {
		json_object_set_new(object, "removed", json_boolean(removed));
		print_object(object, &of_line);
		putchar('\n');
		json_decref(object);
	} else if (removed) {
		printf("%.*s removed  (revision %" PRIu64 ")\n", (int)param->name_length,
		       param->name, param->revision);
	} else {
		show_line(param);
	}
	return plx_app_flush();
}

void show_begin(void)
{
	if (params_asked->json)
		all = json_array();
}

void show_one(const struct param *param)
{
	if (params_asked->json)
		json_array_append_new(all, object_of(param));
	else
		show_line(param);
}

int show_end(void)
{
	if (params_asked->json) {
		print_list(all);
		json_decref(all);
	}
	return plx_app_flush();
}
