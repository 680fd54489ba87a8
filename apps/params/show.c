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

static json_t *json_of(const struct param_value *value)
{
	switch (value->type) {
	case PARAM_BOOL:
		return json_boolean(value->integer);
	case PARAM_INT:
		return json_integer(value->integer);
	case PARAM_REAL:
		return json_real(value->real);
	default: /* NULL: it is no UTF-8 */
		return json_stringn(value->text.bytes, value->text.length);
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

	/* Text from a service must not control the terminal. */
	printf("%.*s = ", (int)param->name_length, param->name);
	plx_app_put_text(stdout, value, (size_t)length, "");
	if (param->kind.unit[0])
		putchar(' ');
	plx_app_put_text(stdout, param->kind.unit, strlen(param->kind.unit), "");
	printf("  (%s, revision %" PRIu64, param_types[param->kind.type - 1], param->revision);
	show_alarm(&param->alarm);
	puts(")");
}

/* JSON ---------------------------------------------------------------------------------------- */

/* A member after the name. Takes the value; NULL, of text that is no UTF-8: null. One member at a
 * time: jansson uses one precision for all numbers of a dump. */
static void show_member(const char *key, json_t *value)
{
	size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII;

	if (json_is_real(value))
		flags |= JSON_REAL_PRECISION((size_t)param_real_digits(json_real_value(value)));
	printf(", \"%s\": ", key);
	if (value)
		json_dumpf(value, stdout, flags);
	else
		fputs("null", stdout);
	json_decref(value);
}

static void show_alarm_members(const struct param_alarm *alarm)
{
	char since[TIME_TEXT];

	show_member("alarm", json_string(param_alarms[alarm->state]));
	if (alarm->state == ALARM_NONE)
		return;
	show_member("severity", json_string(param_severity(alarm->level)));
	show_member("side", json_string(alarm->level < 0 ? "low" : "high"));
	if (!alarm->since_ns)
		return;
	format_time(alarm->since_ns, since);
	show_member("alarm_since", json_string(since));
}

/* In one line. is_change: with whether it was removed. */
static void show_json(const struct param *param, bool is_change)
{
	const struct param_kind *kind = &param->kind;
	json_t *value = json_of(&param->value);

	printf("{\"name\": \"%.*s\"", (int)param->name_length, param->name);
	show_member("type", json_string(param_types[kind->type - 1]));
	show_member("value", value);
	if (!value)
		show_member("value_hex", hex_of(&param->value));
	show_member("revision", json_integer((json_int_t)param->revision));
	if (kind->unit[0])
		show_member("unit", json_string(kind->unit));
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (kind->has[i])
			show_member(limit_names[i], json_of(&kind->limit[i]));
	}
	if (kind->latch)
		show_member("latch", json_true());
	show_alarm_members(&param->alarm);
	if (is_change)
		show_member("removed", json_boolean(param->removed));
	putchar('}');
}

/* Either -------------------------------------------------------------------------------------- */

int show_param(const struct param *param, bool is_change)
{
	if (params_asked->format) {
		show_json(param, is_change);
		putchar('\n');
	} else if (param->removed) {
		printf("%.*s removed  (revision %" PRIu64 ")\n", (int)param->name_length,
		       param->name, param->revision);
	} else {
		show_line(param);
	}
	return plx_app_flush();
}

int show_list(const struct store *store)
{
	bool is_json = params_asked->format;
	const char *before = "[\n";

	for (const struct param *param = store_first(store, "", 0, false); param;
	     param = store_next(param)) {
		if (is_json) {
			fputs(before, stdout);
			show_json(param, false);
		} else {
			show_line(param);
		}
		before = ",\n";
	}
	if (is_json)
		puts(store_count(store) ? "\n]" : "[]");
	return plx_app_flush();
}
