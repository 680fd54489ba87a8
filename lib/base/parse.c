/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse numbers, sizes and durations, and check their ranges in the option's unit; settings. */
#include "base_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* How a kind of value is written. Units are ordered from the largest to the one of factor 1. */
struct notation {
	const char *what;   /* for "not ..." in errors */
	const char *advice; /* for "give ..." in errors */
	const struct unit *units;
	uint64_t bare_factor; /* for a number without a unit */
	bool fractions;
};

static const struct unit no_units[] = {{"", 1}};
static const struct unit size_units[] = {
	{"T", UINT64_C(1) << 40},
	{"G", UINT64_C(1) << 30},
	{"M", UINT64_C(1) << 20},
	{"K", UINT64_C(1) << 10},
	{"", 1},
};
static const struct unit time_units[] = {
	{"d", 86400 * PLX_NS_PER_S},
	{"h", 3600 * PLX_NS_PER_S},
	{"min", 60 * PLX_NS_PER_S},
	{"s", PLX_NS_PER_S},
	{"ms", PLX_NS_PER_MS},
	{"us", PLX_NS_PER_US},
	{"ns", 1},
};

static const struct notation uint_notation = {"a whole number", "digits only", no_units, 1, false};
static const struct notation size_notation = {
	"a size", "bytes, or a unit after the number: 64, 4K, 1M, 2G", size_units, 1, false};
static const struct notation mib_notation = {"an amount of memory",
					     "MiB, or a unit after the number: 64, 512K, 1G",
					     size_units, UINT64_C(1) << 20, false};
static const struct notation time_notation = {
	"a duration",
	"seconds, or a unit after the number: 10, 1.5s, 500ms, 20us, 100ns, 5min, 1h, 1d",
	time_units, PLX_NS_PER_S, true};

/* Use the largest unit that needs no fraction. */
static const char *format(const struct notation *notation, uint64_t value, char *out, size_t size)
{
	const struct unit *unit = notation->units;

	while (unit->factor > 1 && (value == 0 || value % unit->factor))
		unit++;
	snprintf(out, size, "%" PRIu64 "%s", value / unit->factor, unit->name);
	return out;
}

static int fail_range(const struct notation *notation, const char *option, const char *text,
		      uint64_t min, uint64_t max)
{
	char low[32], high[32];

	format(notation, min, low, sizeof(low));
	format(notation, max ? max : UINT64_MAX, high, sizeof(high));
	if (max == 0 && min)
		return plx_fail(EINVAL, "%s %s: out of range; give %s or more", option, text, low);
	return plx_fail(EINVAL, "%s %s: out of range; give %s to %s", option, text, low, high);
}

/* The factor of the unit that follows the number; 0 if unknown. */
static uint64_t factor_of(const struct notation *notation, const char *name)
{
	if (*name == '\0')
		return notation->bare_factor;
	for (const struct unit *unit = notation->units;; unit++) {
		if (strcasecmp(name, unit->name) == 0)
			return unit->factor;
		if (unit->factor == 1)
			return 0;
	}
}

/* Convert a fraction such as ".5" of a unit; truncates below 1. */
static uint64_t fraction_of(const char *digits, size_t count, uint64_t factor)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count && factor >= 10; i++) {
		factor /= 10;
		value += (uint64_t)(digits[i] - '0') * factor;
	}
	return value;
}

static size_t digits_at(const char *text)
{
	return strspn(text, "0123456789");
}

static int parse(const struct notation *notation, const char *option, const char *text,
		 uint64_t min, uint64_t max, uint64_t *value_out)
{
	size_t whole = digits_at(text), part = 0;
	const char *rest = text + whole, *fraction = rest;
	uint64_t value = 0, factor;
	bool fits = true;

	if (text[0] == '-' && digits_at(text + (text[1] == '.' ? 2 : 1)))
		return fail_range(notation, option, text, min, max);
	if (notation->fractions && *rest == '.') {
		fraction = rest + 1;
		part = digits_at(fraction);
		rest = fraction + part;
	}
	factor = factor_of(notation, rest);
	if ((!whole && !part) || (fraction != text + whole && !part) || !factor)
		return plx_fail(EINVAL, "%s %s: not %s; give %s", option, text, notation->what,
				notation->advice);
	for (size_t i = 0; i < whole && fits; i++)
		fits = !__builtin_mul_overflow(value, UINT64_C(10), &value) &&
		       !__builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value);
	fits = fits && !__builtin_mul_overflow(value, factor, &value) &&
	       !__builtin_add_overflow(value, fraction_of(fraction, part, factor), &value);
	if (!fits || value < min || (max && value > max))
		return fail_range(notation, option, text, min, max);
	*value_out = value;
	return 0;
}

int plx_parse_uint(const char *option, const char *text, uint64_t min, uint64_t max,
		   uint64_t *value_out)
{
	return parse(&uint_notation, option, text, min, max, value_out);
}

int plx_parse_size(const char *option, const char *text, uint64_t min, uint64_t max,
		   uint64_t *value_out)
{
	return parse(&size_notation, option, text, min, max, value_out);
}

int plx_parse_mib(const char *option, const char *text, uint64_t max, uint64_t *bytes_out)
{
	return parse(&mib_notation, option, text, 0, max, bytes_out);
}

int plx_parse_duration(const char *option, const char *text, uint64_t min_ns, uint64_t max_ns,
		       uint64_t *value_out)
{
	return parse(&time_notation, option, text, min_ns, max_ns, value_out);
}

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
