/* SPDX-License-Identifier: BSD-3-Clause */
/* What a parameter is: a name, a value of one type, limits, and an alarm. */
#ifndef PARAM_H
#define PARAM_H

#include "plx_base.h"

#define PARAM_NAME_MAX 200
#define PARAM_TEXT_MAX 1000
#define PARAM_UNIT_MAX 31
#define NUMBER_TEXT    32 /**< bytes that any number fits in, as text */

/** The component "params". */
extern struct plx_log_component *const params_log;

enum param_type { PARAM_BOOL = 1, PARAM_INT, PARAM_REAL, PARAM_TEXT };

/** Their names, by their number less 1, ended by NULL. */
extern const char *const param_types[];

struct param_value {
	enum param_type type;
	union {
		int64_t integer; /**< BOOL: 0 or 1 */
		double real;
		struct {
			const char *bytes; /**< UTF-8 is not looked for; no NUL behind them */
			uint32_t length;
		} text;
	};
};

/** What a definition may have, all of the parameter's type: the range of values, the values that
 * raise alarms and warnings, and the hysteresis: how far within its limit a value must return
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
	ALARM_NONE,         /**< within its limits, or there are none */
	ALARM_ACTIVE,       /**< beyond them, and nobody has acknowledged that */
	ALARM_ACKNOWLEDGED, /**< beyond them, and somebody has */
	ALARM_LATCHED,      /**< within them again, and nobody has acknowledged that it was not */
	ALARM_COUNT,
};

/** "none", "active", ..., ended by NULL. */
extern const char *const param_alarms[];

/** The two severities. */
enum { LEVEL_WARNING = 1, LEVEL_ALARM };

/** level: a severity, negated where the value is too low; of ALARM_LATCHED, the last one before; 0
 * with ALARM_NONE alone. */
struct param_alarm {
	enum alarm_state state;
	int level;
	uint64_t since_ns; /**< when it came to be that, by param_now_ns; 0: not known */
};

/** What is said when a parameter is defined. */
struct param_kind {
	enum param_type type;
	char unit[PARAM_UNIT_MAX + 1];
	bool has[LIMIT_COUNT];
	struct param_value limit[LIMIT_COUNT]; /**< of numbers only */
	bool latch;
};

struct param {
	const char *name;
	uint32_t name_length;
	uint64_t id;       /**< never another one's; also its tag */
	uint64_t revision; /**< of the store, when it was changed last */
	struct param_kind kind;
	struct param_value value;
	struct param_alarm alarm;
};

/** Segments of letters, digits, "_", "-" and ".", with "/" between them. Return: NULL, or what is
 * wrong with it. */
const char *param_name_check(const char *name, size_t length);

/** The order of names in lists: by bytes. Return: < 0, 0 or > 0, as memcmp. */
int param_name_order(const char *a, size_t a_length, const char *b, size_t b_length);

/** Whether it is the prefix itself, or below it: "a/b" is below "a", "ab" is not. "" is above all.
 */
bool param_name_is_below(const char *name, size_t length, const char *prefix, size_t prefix_length);

/** Read a value of a type. text value: points into `text`. Return: 0; -EINVAL with a text that
 * begins with `what`. */
int param_value_parse(const char *what, enum param_type type, const char *text,
		      struct param_value *out);

/** How many digits read back as the same number: 15 where they do, 17 at most. */
int param_real_digits(double value);

/** As text that param_value_parse reads. Return: its length; what does not fit is cut off. */
int param_value_format(const struct param_value *value, char *out, size_t size);

/** Of numbers of one type: less than 0, 0, or more. */
int param_value_compare(const struct param_value *a, const struct param_value *b);

/** Whether values of a type may be this one: finite, and a BOOL is one. Return: NULL, or what is
 * wrong with it. */
const char *param_value_check(const struct param_value *value);

/** Take a unit over. Return: NULL, or what is wrong with it: too long, or a NUL in it. */
const char *param_kind_set_unit(struct param_kind *kind, const void *unit, size_t length);

/** Whether the unit can be printed, and limits make sense together: none crosses its other one, and
 * each alarm can be raised. Return: NULL, or what is wrong
 * with them. */
const char *param_kind_check(const struct param_kind *kind);

/** Return: 0; -ERANGE the value is beyond its limits, with a text that has both. */
int param_value_beyond(const struct param_kind *kind, const struct param_value *value);

/** Wall-clock time: nanoseconds since 1970-01-01 UTC. */
uint64_t param_now_ns(void);

/** "warning" or "alarm". level: not 0. */
const char *param_severity(int level);

/** Return: NULL, or what is wrong with it. */
const char *param_alarm_check(const struct param_alarm *alarm);

/** The alarm after a new value, and after an acknowledgement. A value that is too low, or too high,
 * is so until it is within the limit by the hysteresis. An acknowledgement holds until the value is
 * beyond another limit: a higher one, or one of the other side. now_ns: of param_now_ns. */
struct param_alarm param_alarm_next(const struct param_kind *kind, struct param_alarm alarm,
				    const struct param_value *value, uint64_t now_ns);
struct param_alarm param_alarm_acknowledged(struct param_alarm alarm, uint64_t now_ns);

#endif
