/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse settings: KEY=VALUE,... */
#include "base_internal.h"

#include <stdio.h>
#include <string.h>

#define VALUE_BYTES 24 /* longer than any valid number */

static const struct plx_setting *find(const struct plx_setting *settings, const char *key,
				      size_t length)
{
	for (; settings->key; settings++)
		if (strlen(settings->key) == length && memcmp(settings->key, key, length) == 0)
			return settings;
	return NULL;
}

static int fail_key(const char *option, const char *text, const struct plx_setting *settings,
		    const char *what, size_t length)
{
	char keys[512] = "";

	for (const struct plx_setting *each = settings; each->key; each++)
		plx_list_add(keys, sizeof(keys), each->key);
	return plx_fail(EINVAL, "%s %s: '%.*s' is no setting; give KEY=VALUE,... with keys from %s",
			option, text, (int)length, what, keys);
}

static int take(const char *option, const struct plx_setting *setting, const char *text,
		size_t length, bool check)
{
	char what[128], value[VALUE_BYTES];
	uint64_t number;
	int rc;

	snprintf(what, sizeof(what), "%s %s", option, setting->key);
	snprintf(value, sizeof(value), "%.*s", (int)length, text);
	rc = plx_parse_uint(what, value, setting->least, setting->most, &number);
	if (rc == 0 && !check)
		*setting->value = (uint32_t)number;
	return rc;
}

int plx_parse_settings(const char *option, const char *text, const struct plx_setting *settings,
		       bool check)
{
	const char *at = text;
	int rc = 0;

	while (at && rc == 0) {
		size_t length = strcspn(at, ","), key = strcspn(at, "=,");
		const struct plx_setting *setting = find(settings, at, key);

		if (setting && at[key] == '=')
			rc = take(option, setting, at + key + 1, length - key - 1, check);
		else
			rc = fail_key(option, text, settings, at, length);
		at = at[length] ? at + length + 1 : NULL;
	}
	return rc;
}
