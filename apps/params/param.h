/* SPDX-License-Identifier: BSD-3-Clause */
/* A parameter: a name, a value of one type, limits, and an alarm. */
#ifndef PARAM_H
#define PARAM_H

#include "plx_base.h"

#define PARAM_NAME_MAX 200
#define PARAM_TEXT_MAX 1000
#define PARAM_UNIT_MAX 31
#define NUMBER_TEXT    32 /**< room for any number as text */

/** The component "params". */
extern struct plx_log_component *const params_log;

enum param_type { PARAM_BOOL = 1, PARAM_INT, PARAM_REAL, PARAM_TEXT };

/** Names of the types, indexed by type minus 1; NULL-terminated. */
extern const char *const param_types[];

struct param_value {
	enum param_type type;
	union {
		int64_t integer; /**< BOOL: 0 or 1 */
		double real;     /**< in the same 8 bytes, as records have them */
		struct {
			const char *bytes; /**< UTF-8 is not checked; not NUL-terminated */
			uint32_t length;
		} text;
	};
};

/** What a definition may set, all of the parameter's type: the range, the values that raise alarms
 * and warnings, and the hysteresis. The hysteresis is how far inside its limit a value must return
 * before the alarm ends. */
enum param_limit {
	LIMIT_MIN,
	LIMIT_MAX,
	LIMIT_ALARM_LOW,
	LIMIT_ALARM_HIGH,
	LIMIT_WARN_LOW,
	LIMIT_WARN_HIGH,
	LIMIT_HYSTERESIS,
	LIMIT_COUNT
};

enum alarm_state {
	ALARM_NONE,         /**< within its limits, or without limits */
	ALARM_ACTIVE,       /**< outside them, not acknowledged */
	ALARM_ACKNOWLEDGED, /**< outside them, acknowledged */
	ALARM_LATCHED,      /**< inside again, but never acknowledged */
	ALARM_COUNT,
};

/** "none", "active", ...; NULL-terminated. */
extern const char *const param_alarms[];

/** The two severities. */
enum { LEVEL_WARNING = 1, LEVEL_ALARM };

/** level: a severity, negative if the value is too low; for ALARM_LATCHED, the last one; 0 only for
 * ALARM_NONE. */
struct param_alarm {
	enum alarm_state state;
	int level;
	uint64_t since_ns; /**< when this state began, by param_now_ns; 0: unknown */
};

/** A parameter's definition. */
struct param_kind {
	enum param_type type;
	char unit[PARAM_UNIT_MAX + 1];
	bool has[LIMIT_COUNT];
	struct param_value limit[LIMIT_COUNT]; /**< for numbers only */
	bool latch;
};

struct param {
	const char *name;
	uint32_t name_length;
	uint64_t id;       /**< never reused; also the tag */
	uint64_t revision; /**< the store's revision at the last change */
	bool removed;      /**< it no longer exists, since that revision */
	struct param_kind kind;
	struct param_value value;
	struct param_alarm alarm;
};

/** Names are segments of letters, digits, "_", "-" and ".", separated by "/". Return: NULL, or what
 * is wrong. */
const char *param_name_check(const char *name, size_t length);

/** The order of names in lists: bytewise. Return: < 0, 0 or > 0, as memcmp. */
int param_name_order(const char *a, size_t a_length, const char *b, size_t b_length);

/** Whether the name equals the prefix or is below it: "a/b" is below "a", "ab" is not. All names
 * are below "". */
bool param_name_is_below(const char *name, size_t length, const char *prefix, size_t prefix_length);

/** Parse a value of a type. A text value points into `text`. Return: 0; -EINVAL, with a text that
 * starts with `what`. */
int param_value_parse(const char *what, enum param_type type, const char *text,
		      struct param_value *out);

/** Digits needed to read back the same number: 15 if they suffice, 17 at most. */
int param_real_digits(double value);

/** Format as text that param_value_parse reads. Return: its length; truncated if it does not
 * fit. */
int param_value_format(const struct param_value *value, char *out, size_t size);

/** Compare numbers of one type: less than 0, 0, or greater. */
int param_value_compare(const struct param_value *a, const struct param_value *b);

/** Check a value for its type: reals are finite, and a BOOL is 0 or 1. Return: NULL, or what is
 * wrong. */
const char *param_value_check(const struct param_value *value);

/** Set the unit. Return: NULL, or what is wrong: too long, or contains a NUL. */
const char *param_kind_set_unit(struct param_kind *kind, const void *unit, size_t length);

/** Check that the unit is printable and the limits are consistent: upper and lower do not cross,
 * and each alarm can be raised. Return: NULL, or what is wrong. */
const char *param_kind_check(const struct param_kind *kind);

/** Return: 0; -ERANGE the value is out of range, with a text that has both. */
int param_value_beyond(const struct param_kind *kind, const struct param_value *value);

/** Wall-clock time: nanoseconds since 1970-01-01 UTC. */
uint64_t param_now_ns(void);

/** "warning" or "alarm". level: not 0. */
const char *param_severity(int level);

/** Return: NULL, or what is wrong. */
const char *param_alarm_check(const struct param_alarm *alarm);

/** Check all parts. Return: NULL, or what is wrong. */
const char *param_check(const struct param *param);

/** The alarm after a new value, and after an acknowledgement. A value counts as too low or too high
 * until it is inside the limit by the hysteresis. An acknowledgement holds until the value exceeds
 * another limit: a more severe one, or one on the other side. now_ns: from param_now_ns. */
struct param_alarm param_alarm_next(const struct param_kind *kind, struct param_alarm alarm,
				    const struct param_value *value, uint64_t now_ns);
struct param_alarm param_alarm_acknowledged(struct param_alarm alarm, uint64_t now_ns);

#endif
