/* SPDX-License-Identifier: BSD-3-Clause */
#include "param.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PLX_LOG_COMPONENT(log_component, "params");
struct plx_log_component *const params_log = &log_component;

const char *const param_types[] = {"bool", "int", "real", "text", NULL};
const char *const param_alarms[] = {"none", "active", "acknowledged", "latched", NULL};

/* Names --------------------------------------------------------------------------------------- */

const char *param_name_check(const char *name, size_t length)
{
	if (length == 0)
		return "a name is empty";
	if (length > PARAM_NAME_MAX)
		return "a name is longer than 200 bytes";
	for (size_t i = 0; i < length; i++) {
		bool ends = i + 1 == length || name[i + 1] == '/';

		if (name[i] == '/' && (i == 0 || ends))
			return "a name has an empty segment";
		if (!isalnum((unsigned char)name[i]) && !memchr("_-./", name[i], 4))
			return "a name has other characters than letters, digits, \"_\", \"-\", "
			       "\".\" and \"/\"";
	}
	return NULL;
}

int param_name_order(const char *a, size_t a_length, const char *b, size_t b_length)
{
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

	return order ? order : (a_length > b_length) - (a_length < b_length);
}

bool param_name_is_below(const char *name, size_t length, const char *prefix, size_t prefix_length)
{
	if (prefix_length == 0)
		return true;
	if (length < prefix_length || memcmp(name, prefix, prefix_length) != 0)
		return false;
	return length == prefix_length || name[prefix_length] == '/' ||
	       prefix[prefix_length - 1] == '/';
}

/* Values -------------------------------------------------------------------------------------- */

static int parse_bool(const char *what, const char *text, struct param_value *out)
{
	bool is_true = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;

	if (!is_true && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
		return plx_fail(EINVAL, "%s '%s': not a bool; give true, false, 1 or 0", what,
				text);
	out->integer = is_true;
	return 0;
}

static int parse_int(const char *what, const char *text, struct param_value *out)
{
	char *end;

	errno = 0;
	out->integer = strtoll(text, &end, 10);
	if (end == text || *end || errno || isspace((unsigned char)text[0]))
		return plx_fail(EINVAL,
				"%s '%s': not an int; give a whole number from %" PRId64
				" to %" PRId64,
				what, text, INT64_MIN, INT64_MAX);
	return 0;
}

static int parse_real(const char *what, const char *text, struct param_value *out)
{
	char *end;

	errno = 0;
	out->real = strtod(text, &end);
	if (errno == ERANGE && out->real == 0)
		return plx_fail(
			EINVAL,
			"%s '%s': too small for a real, and not 0; give one from %g on, or 0", what,
			text, DBL_TRUE_MIN);
	if (end != text && !*end && isinf(out->real) && strpbrk(text, "0123456789"))
		return plx_fail(EINVAL, "%s '%s': too large for a real; give one from %g to %g",
				what, text, -DBL_MAX, DBL_MAX);
	if (end == text || *end || isspace((unsigned char)text[0]) || !isfinite(out->real))
		return plx_fail(EINVAL, "%s '%s': not a real; give a number, such as 21.5 or 1e-3",
				what, text);
	return 0;
}

int param_value_parse(const char *what, enum param_type type, const char *text,
		      struct param_value *out)
{
	*out = (struct param_value){.type = type};
	switch (type) {
	case PARAM_BOOL:
		return parse_bool(what, text, out);
	case PARAM_INT:
		return parse_int(what, text, out);
	case PARAM_REAL:
		return parse_real(what, text, out);
	default:
		if (strlen(text) > PARAM_TEXT_MAX)
			return plx_fail(EINVAL, "%s: %zu bytes; give %d at most", what,
					strlen(text), PARAM_TEXT_MAX);
		out->text.bytes = text;
		out->text.length = (uint32_t)strlen(text);
		return 0;
	}
}

int param_real_digits(double value)
{
	char text[NUMBER_TEXT];

	/* Normal numbers: %g drops trailing zeros of 15 digits. Subnormal ones have fewer digits.
	 */
	for (int digits = fabs(value) < DBL_MIN ? 1 : 15; digits < 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			return digits;
	}
	return 17;
}

int param_value_format(const struct param_value *value, char *out, size_t size)
{
	switch (value->type) {
	case PARAM_BOOL:
		return snprintf(out, size, "%s", value->integer ? "true" : "false");
	case PARAM_INT:
		return snprintf(out, size, "%" PRId64, value->integer);
	case PARAM_REAL:
		return snprintf(out, size, "%.*g", param_real_digits(value->real), value->real);
	default:
		return snprintf(out, size, "%.*s", (int)value->text.length, value->text.bytes);
	}
}

int param_value_compare(const struct param_value *a, const struct param_value *b)
{
	if (a->type == PARAM_REAL)
		return (a->real > b->real) - (a->real < b->real);
	return (a->integer > b->integer) - (a->integer < b->integer);
}

const char *param_value_check(const struct param_value *value)
{
	switch (value->type) {
	case PARAM_BOOL:
		return value->integer == 0 || value->integer == 1 ? NULL : "a bool is neither";
	case PARAM_INT:
		return NULL;
	case PARAM_REAL:
		return isfinite(value->real) ? NULL : "a real is not finite";
	case PARAM_TEXT:
		if (value->text.length > PARAM_TEXT_MAX)
			return "a text is longer than 1000 bytes";
		return memchr(value->text.bytes, '\0', value->text.length)
			     ? "a text has a NUL in it"
			     : NULL;
	default:
		return "a value has no type that there is";
	}
}
