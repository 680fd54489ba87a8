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

/* JSON -------------------------------------------------------------------------------------------
 */

/* Separators between the parts of an object. */
struct layout {
	const char *begin, *colon, *comma, *end;
};

static const struct layout of_line = {"{", ":", ",", "}\n"};
static const struct layout of_get = {"{\n  ", ": ", ",\n  ", "\n}\n"};
static const struct layout of_list = {"\n  {\n    ", ": ", ",\n    ", "\n  }"};

/* before: what comes before the member; then before the next one. Takes the value; NULL, of text
 * that is no UTF-8: null. One member at a time: jansson uses one precision for all numbers of a
 * dump. */
static void show_member(const struct layout *layout, const char **before, const char *key,
			json_t *value)
{
	size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII;

	if (json_is_real(value))
		flags |= JSON_REAL_PRECISION((size_t)param_real_digits(json_real_value(value)));
	printf("%s\"%s\"%s", *before, key, layout->colon);
	if (value)
		json_dumpf(value, stdout, flags);
	else
		fputs("null", stdout);
	json_decref(value);
	*before = layout->comma;
}

static void show_alarm_members(const struct param_alarm *alarm, const struct layout *layout,
			       const char **before)
{
	char since[TIME_TEXT];

	show_member(layout, before, "alarm", json_string(param_alarms[alarm->state]));
	if (alarm->state == ALARM_NONE)
		return;
	show_member(layout, before, "severity", json_string(param_severity(alarm->level)));
	show_member(layout, before, "side", json_string(alarm->level < 0 ? "low" : "high"));
	if (!alarm->since_ns)
		return;
	format_time(alarm->since_ns, since);
	show_member(layout, before, "alarm_since", json_string(since));
}

/* is_change: with whether it was removed. */
static void show_json(const struct param *param, const struct layout *layout, bool is_change)
{
	const struct param_kind *kind = &param->kind;
	const char *before = layout->begin;
	json_t *value = json_of(&param->value);

	show_member(layout, &before, "name", json_stringn(param->name, param->name_length));
	show_member(layout, &before, "type", json_string(param_types[kind->type - 1]));
	show_member(layout, &before, "value", value);
	if (!value)
		show_member(layout, &before, "value_hex", hex_of(&param->value));
	show_member(layout, &before, "revision", json_integer((json_int_t)param->revision));
	if (kind->unit[0])
		show_member(layout, &before, "unit", json_string(kind->unit));
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (kind->has[i])
			show_member(layout, &before, limit_names[i], json_of(&kind->limit[i]));
	}
	if (kind->latch)
		show_member(layout, &before, "latch", json_true());
	show_alarm_members(&param->alarm, layout, &before);
	if (is_change)
		show_member(layout, &before, "removed", json_boolean(param->removed));
	fputs(layout->end, stdout);
}

/* Either -----------------------------------------------------------------------------------------
 */

int show_param(const struct param *param)
{
	if (params_asked->format)
		show_json(param, &of_get, false);
	else
		show_line(param);
	return plx_app_flush();
}

int show_change(const struct param *param)
{
	if (params_asked->format)
		show_json(param, &of_line, true);
	else if (param->removed)
		printf("%.*s removed  (revision %" PRIu64 ")\n", (int)param->name_length,
		       param->name, param->revision);
	else
		show_line(param);
	return plx_app_flush();
}

static void show_json_list(const struct store *store)
{
	const char *before = "[";

	for (const struct param *param = store_first(store, "", 0, false); param;
	     param = store_next(param)) {
		fputs(before, stdout);
		show_json(param, &of_list, false);
		before = ",";
	}
	puts(store_count(store) ? "\n]" : "[]");
}

int show_list(const struct store *store)
{
	if (params_asked->format) {
		show_json_list(store);
		return plx_app_flush();
	}
	for (const struct param *param = store_first(store, "", 0, false); param;
	     param = store_next(param))
		show_line(param);
	return plx_app_flush();
}
