/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters, for people and as JSON. */
#include "params.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const limit_names[] = {"min", "max", "alarm_low", "alarm_high"};
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
	default: /* what is no UTF-8 is no JSON */
		return json_stringn(value->text.bytes, value->text.length) ?: json_null();
	}
}

static json_t *object_of(const struct param *param)
{
	json_t *object = json_object();

	json_object_set_new(object, "name", json_stringn(param->name, param->name_length));
	json_object_set_new(object, "type", json_string(param_types[param->kind.type - 1]));
	json_object_set_new(object, "value", json_of(&param->value));
	json_object_set_new(object, "revision", json_integer((json_int_t)param->revision));
	if (param->kind.unit[0])
		json_object_set_new(object, "unit", json_string(param->kind.unit) ?: json_null());
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (param->kind.has[i])
			json_object_set_new(object, limit_names[i], json_of(&param->kind.limit[i]));
	}
	if (param->kind.latch)
		json_object_set_new(object, "latch", json_true());
	json_object_set_new(object, "alarm", json_string(param_alarms[param->alarm]));
	return object;
}

/* Of a service, which is not to steer the terminal. */
static void show_text(const char *text, size_t length)
{
	plx_app_put_text(stdout, text, length, "");
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
	if (param->alarm != ALARM_NONE)
		printf(", alarm %s", param_alarms[param->alarm]);
	puts(")");
}

static void print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(value);
}

int show_param(const struct param *param)
{
	if (params_asked->json)
		print_json(object_of(param));
	else
		show_line(param);
	return plx_app_flush();
}

int show_change(const struct param *param, bool removed)
{
	json_t *object = params_asked->json ? object_of(param) : NULL;

	if (object) {
		json_object_set_new(object, "removed", json_boolean(removed));
		json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
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
	if (params_asked->json)
		print_json(all);
	return plx_app_flush();
}
