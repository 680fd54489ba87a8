/* SPDX-License-Identifier: BSD-3-Clause */
/* A parameter's limits, and the alarms that they raise. */
#include "param.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *param_kind_set_unit(struct param_kind *kind, const void *unit, size_t length)
{
	if (length > PARAM_UNIT_MAX)
		return "a unit is longer than 31 bytes";
	if (length && memchr(unit, '\0', length))
		return "a unit has a NUL in it";
	memset(kind->unit, 0, sizeof(kind->unit));
	if (length)
		memcpy(kind->unit, unit, length);
	return NULL;
}

/* Limits that raise an alarm, the severe ones first. side: 1 if a value above raises it, -1 if a
 * value below does. end: values beyond it are refused. Limits come in pairs, of which the lower one
 * is even. */
static const struct alarm_limit {
	enum param_limit limit, end;
	int side, level;
	const char *out_of_reach;
} alarm_limits[] = {
	{LIMIT_ALARM_LOW, LIMIT_MIN, -1, LEVEL_ALARM,
	 "the low alarm is not above the minimum: no value that is taken raises it"},
	{LIMIT_ALARM_HIGH, LIMIT_MAX, 1, LEVEL_ALARM,
	 "the high alarm is not below the maximum: no value that is taken raises it"},
	{LIMIT_WARN_LOW, LIMIT_MIN, -1, LEVEL_WARNING,
	 "the low warning is not above the minimum: no value that is taken raises it"},
	{LIMIT_WARN_HIGH, LIMIT_MAX, 1, LEVEL_WARNING,
	 "the high warning is not below the maximum: no value that is taken raises it"},
};

static bool is_beyond(const struct param_kind *kind, enum param_limit limit, int side,
		      const struct param_value *value)
{
	return kind->has[limit] && side * param_value_compare(value, &kind->limit[limit]) > 0;
}

/* Whether no value can exceed that limit without exceeding the other one. */
static bool is_covered(const struct param_kind *kind, enum param_limit limit, enum param_limit by,
		       int side)
{
	return kind->has[limit] && kind->has[by] && !is_beyond(kind, limit, side, &kind->limit[by]);
}

/* Whether a value is inside a limit by less than the hysteresis. */
static bool is_near(const struct param_kind *kind, const struct alarm_limit *alarm,
		    const struct param_value *value)
{
	const struct param_value *limit = &kind->limit[alarm->limit];
	const struct param_value *hysteresis = &kind->limit[LIMIT_HYSTERESIS];

	if (!kind->has[LIMIT_HYSTERESIS])
		return false;
	if (kind->type == PARAM_REAL)
		return alarm->side * (limit->real - value->real) < hysteresis->real;
	/* The value is inside, so the distance fits. */
	return (alarm->side > 0 ? (uint64_t)limit->integer - (uint64_t)value->integer
				: (uint64_t)value->integer - (uint64_t)limit->integer) <
	       (uint64_t)hysteresis->integer;
}

/* Whether the alarm could not end at a limit on the other side. */
static bool is_held(const struct param_kind *kind, const struct alarm_limit *alarm,
		    enum param_limit other)
{
	return kind->has[other] && is_near(kind, alarm, &kind->limit[other]);
}

static const char *check_alarms(const struct param_kind *kind)
{
	bool any = false;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(alarm_limits); i++) {
		const struct alarm_limit *alarm = &alarm_limits[i];

		if (!kind->has[alarm->limit])
			continue;
		any = true;
		if (is_covered(kind, alarm->limit, alarm->end, alarm->side))
			return alarm->out_of_reach;
		if (is_held(kind, alarm, alarm->end ^ 1) || is_held(kind, alarm, alarm->limit ^ 1))
			return "the hysteresis is too large: an alarm could not end";
	}
	if (is_covered(kind, LIMIT_WARN_LOW, LIMIT_ALARM_LOW, -1) ||
	    is_covered(kind, LIMIT_WARN_HIGH, LIMIT_ALARM_HIGH, 1))
		return "a warning is beyond the alarm: no value raises it alone";
	if (kind->latch && !any)
		return "there is no alarm that could be latched";
	if (kind->has[LIMIT_HYSTERESIS] && !any)
		return "there is no alarm that the hysteresis could be for";
	return NULL;
}

const char *param_kind_check(const struct param_kind *kind)
{
	const struct param_value zero = {.type = kind->type};

	if (kind->type < PARAM_BOOL || kind->type > PARAM_TEXT)
		return "a parameter has no type that there is";
	for (const char *at = kind->unit; *at; at++) { /* it is printed */
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return "a unit has control characters";
	}
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (!kind->has[i])
			continue;
		if (kind->type != PARAM_INT && kind->type != PARAM_REAL)
			return "limits are for int and real";
		if (kind->limit[i].type != kind->type || param_value_check(&kind->limit[i]))
			return "a limit is no value of the parameter's type";
	}
	for (int low = 0; low < LIMIT_HYSTERESIS; low += 2) {
		if (kind->has[low] && kind->has[low + 1] &&
		    param_value_compare(&kind->limit[low], &kind->limit[low + 1]) > 0)
			return "a lower limit is above the upper one";
	}
	if (is_beyond(kind, LIMIT_HYSTERESIS, 1, &zero))
		return "the hysteresis is negative";
	return check_alarms(kind);
}

int param_value_beyond(const struct param_kind *kind, const struct param_value *value)
{
	char text[NUMBER_TEXT], min[NUMBER_TEXT], max[NUMBER_TEXT]; /* empty: no limit */
	const char *space = kind->unit[0] ? " " : "";
	bool below = is_beyond(kind, LIMIT_MIN, -1, value);

	if (!below && !is_beyond(kind, LIMIT_MAX, 1, value))
		return 0;
	param_value_format(value, text, sizeof(text));
	param_value_format(&kind->limit[LIMIT_MIN], min, sizeof(min));
	param_value_format(&kind->limit[LIMIT_MAX], max, sizeof(max));
	if (kind->has[LIMIT_MIN] && kind->has[LIMIT_MAX])
		return plx_fail(ERANGE, "%s is beyond %s to %s%s%s", text, min, max, space,
				kind->unit);
	return plx_fail(ERANGE, "%s is %s %s%s%s, the %s that is taken", text,
			below ? "below" : "above", below ? min : max, space, kind->unit,
			below ? "least" : "most");
}

uint64_t param_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * PLX_NS_PER_S + (uint64_t)now.tv_nsec;
}

const char *param_severity(int level)
{
	return abs(level) == LEVEL_WARNING ? "warning" : "alarm";
}

const char *param_alarm_check(const struct param_alarm *alarm)
{
	if (alarm->state >= ALARM_COUNT || alarm->level < -LEVEL_ALARM ||
	    alarm->level > LEVEL_ALARM || (alarm->state == ALARM_NONE) != (alarm->level == 0))
		return "its alarm is none that there is";
	return NULL;
}

const char *param_check(const struct param *param)
{
	const char *wrong = param_name_check(param->name, param->name_length);

	wrong = wrong ? wrong : param_kind_check(&param->kind);
	wrong = wrong ? wrong : param_alarm_check(&param->alarm);
	return wrong ? wrong : param_value_check(&param->value);
}

/* held: the previous level, which the hysteresis keeps. */
static int level_of(const struct param_kind *kind, const struct param_value *value, int held)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(alarm_limits); i++) {
		const struct alarm_limit *alarm = &alarm_limits[i];

		if (!kind->has[alarm->limit])
			continue;
		if (is_beyond(kind, alarm->limit, alarm->side, value) ||
		    (held * alarm->side >= alarm->level && is_near(kind, alarm, value)))
			return alarm->side * alarm->level;
	}
	return 0;
}

static struct param_alarm become(struct param_alarm alarm, enum alarm_state state, int level,
				 uint64_t now_ns)
{
	if (state == alarm.state && level == alarm.level)
		return alarm;
	return (struct param_alarm){state, level, now_ns};
}

struct param_alarm param_alarm_next(const struct param_kind *kind, struct param_alarm alarm,
				    const struct param_value *value, uint64_t now_ns)
{
	bool is_raised = alarm.state == ALARM_ACTIVE || alarm.state == ALARM_ACKNOWLEDGED;
	int level = level_of(kind, value, is_raised ? alarm.level : 0);
	bool is_less = level > 0 ? level <= alarm.level : level >= alarm.level;

	if (level)
		return become(alarm,
			      alarm.state == ALARM_ACKNOWLEDGED && is_less ? ALARM_ACKNOWLEDGED
									   : ALARM_ACTIVE,
			      level, now_ns);
	if (kind->latch && (alarm.state == ALARM_ACTIVE || alarm.state == ALARM_LATCHED))
		return become(alarm, ALARM_LATCHED, alarm.level, now_ns);
	return become(alarm, ALARM_NONE, 0, now_ns);
}

struct param_alarm param_alarm_acknowledged(struct param_alarm alarm, uint64_t now_ns)
{
	if (alarm.state == ALARM_ACTIVE)
		return become(alarm, ALARM_ACKNOWLEDGED, alarm.level, now_ns);
	return alarm.state == ALARM_LATCHED ? become(alarm, ALARM_NONE, 0, now_ns) : alarm;
}
