/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares JSON with the part of it that a test expects. */
#ifndef JSON_HAS_H
#define JSON_HAS_H

#include "plx_test.h"

#include <jansson.h>
#include <stdio.h>

/* Objects may have further keys; all else must be equal. */
static inline bool json_covers(const json_t *json, json_t *part)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_object(part)) {
		json_object_foreach(part, key, value) if (!json_covers(json_object_get(json, key),
								       value)) return false;
		return json_is_object(json);
	}
	if (json_is_array(part)) {
		json_array_foreach(part, i, value) if (!json_covers(json_array_get(json, i),
								    value)) return false;
		return json_is_array(json) && json_array_size(json) == json_array_size(part);
	}
	return json_equal(json, part);
}

/** Fail unless all of `format` is in the JSON: JSON text, in which ' stands for ". */
PLX_PRINTF(2, 3)
static inline void assert_json_has(const json_t *json, const char *format, ...)
{
	char text[2048];
	json_error_t error;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *at = text; (at = strchr(at, '\''));)
		*at = '"';
	json_t *part = json_loads(text, 0, &error);
	if (!part)
		fail_msg("%s: %s", error.text, text);
	if (!json_covers(json, part))
		fail_msg("not all of %s is in %s", text, json_dumps(json, JSON_COMPACT));
	json_decref(part);
}

#endif
