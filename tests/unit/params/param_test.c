/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, values, limits and alarms. */
#include "plx_test.h"

#include "param.h"

#include <math.h>
#include <stdio.h>

PLX_TEST(names_consist_of_segments)
{
	static const char *const good[] = {"a", "a/b", "A-1/b_2/c.3", "0"};
	static const char *const bad[] = {"", "/", "/a", "a/", "a//b", "a b", "a\xc3\xa9", "a\n"};
	char text[PARAM_NAME_MAX + 2];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(good); i++)
		assert_null(param_name_check(good[i], strlen(good[i])));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bad); i++)
		assert_non_null(param_name_check(bad[i], strlen(bad[i])));
	memset(text, 'a', sizeof(text));
	assert_null(param_name_check(text, PARAM_NAME_MAX));
	assert_non_null(param_name_check(text, PARAM_NAME_MAX + 1));
	assert_non_null(param_name_check("a\0b", 3));
}

PLX_TEST(values_are_read_and_written)
{
	static const struct {
		enum param_type type;
		const char *text;
		bool is_valid;
		const char *back; /* or the error */
	} values[] = {
		{PARAM_BOOL, "true", true, "true"},
		{PARAM_BOOL, "0", true, "false"},
		{PARAM_BOOL, "TRUE", false, "v 'TRUE': not a bool; give true, false, 1 or 0"},
		{PARAM_INT, "-9223372036854775808", true, "-9223372036854775808"},
		{PARAM_INT, "9223372036854775807", true, "9223372036854775807"},
		{PARAM_INT, "9223372036854775808", false, "not an int; give a whole number"},
		{PARAM_INT, " 1", false, "not an int"},
		{PARAM_REAL, "1e3", true, "1000"},
		{PARAM_REAL, "0.10000000000000001", true, "0.1"},
		{PARAM_REAL, "0.30000000000000004", true, "0.30000000000000004"},
		{PARAM_REAL, "1.7976931348623157e308", true, "1.7976931348623157e+308"},
		{PARAM_REAL, "-4.9e-324", true, "-5e-324"},
		{PARAM_REAL, "0e-999", true, "0"},
		{PARAM_REAL, "1e-400", false, "v '1e-400': too small for a real, and not 0"},
		{PARAM_REAL, "-1e999", false,
		 "v '-1e999': too large for a real; give one from -1.79769e+308"},
		{PARAM_REAL, "inf", false, "not a real"},
		{PARAM_REAL, "nan", false, "not a real"},
		{PARAM_REAL, "1 V", false, "not a real"},
		{PARAM_TEXT, "", true, ""},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(values); i++) {
		struct param_value value;
		char back[64];
		int rc = param_value_parse("v", values[i].type, values[i].text, &value);

		assert_int_equal(rc, values[i].is_valid ? 0 : -EINVAL);
		if (rc) {
			assert_error_has(values[i].back);
			continue;
		}
		assert_null(param_value_check(&value));
		param_value_format(&value, back, sizeof(back));
		assert_string_equal(back, values[i].back);
	}
}

static struct param_value real(double number)
{
	return (struct param_value){.type = PARAM_REAL, .real = number};
}

/* Limits as text: "max=10 alarm_high=9"; "latch". */
static struct param_kind kind_of(enum param_type type, const char *text)
{
	static const char *const names[LIMIT_COUNT] = {
		"min", "max", "alarm_low", "alarm_high", "warn_low", "warn_high", "hysteresis"};
	struct param_kind kind = {.type = type};
	char copy[128];

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
		size_t length = strcspn(word, "=");

		kind.latch |= strcmp(word, "latch") == 0;
		for (int i = 0; i < LIMIT_COUNT; i++) {
			if (strlen(names[i]) != length || strncmp(word, names[i], length) != 0)
				continue;
			kind.has[i] = true;
			assert_works(param_value_parse("limit", type, word + length + 1,
						       &kind.limit[i]));
		}
	}
	return kind;
}

PLX_TEST(kinds_are_checked)
{
	static const char crossed[] = "a lower limit is above the upper one";
	static const char too_large[] = "the hysteresis is too large: an alarm could not end";
	static const struct {
		const char *limits, *wrong; /* NULL: nothing */
	} rows[] = {
		{"", NULL},
		{"latch", "there is no alarm that could be latched"},
		{"latch alarm_high=5", NULL},
		{"alarm_low=6 alarm_high=5", crossed},
		{"max=10 alarm_high=9", NULL},
		{"max=10 alarm_high=11", "the high alarm is not below the maximum"},
		{"min=10 alarm_low=11", NULL},
		{"min=10 alarm_low=9", "the low alarm is not above the minimum"},
		{"max=8 warn_high=8", "the high warning is not below the maximum"},
		{"min=8 warn_low=8", "the low warning is not above the minimum"},
		{"warn_high=8 alarm_high=8", "a warning is beyond the alarm"},
		{"hysteresis=1", "there is no alarm that the hysteresis could be for"},
		{"hysteresis=-1 warn_high=8", "the hysteresis is negative"},
		{"hysteresis=8 min=0 warn_high=8 alarm_high=9", NULL},
		{"hysteresis=8.5 min=0 warn_high=8 alarm_high=9", too_large},
		{"hysteresis=3 min=0 warn_low=6 warn_high=8", too_large},
	};
	struct param_kind kind;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		kind = kind_of(PARAM_REAL, rows[i].limits);
		const char *wrong = param_kind_check(&kind);
		if (!rows[i].wrong != !wrong || (wrong && !strstr(wrong, rows[i].wrong)))
			fail_msg("%s: %s", rows[i].limits, wrong ? wrong : "it was taken");
	}
	kind = kind_of(PARAM_REAL, "alarm_low=5");
	kind.limit[LIMIT_ALARM_LOW] = real(NAN);
	assert_string_equal(param_kind_check(&kind), "a limit is no value of the parameter's type");
	kind.limit[LIMIT_ALARM_LOW] = (struct param_value){.type = PARAM_INT, .integer = 1};
	assert_non_null(param_kind_check(&kind));
	kind.type = PARAM_TEXT;
	assert_string_equal(param_kind_check(&kind), "limits are for int and real");
	kind = (struct param_kind){0};
	assert_non_null(param_kind_check(&kind));
}

/* From each state, with a value outside the limits and inside, and with an acknowledgement. */
PLX_TEST(alarms_change_state_as_documented)
{
	static const struct {
		bool latch;
		enum alarm_state from, beyond, within, acknowledged;
	} table[] = {
		{false, ALARM_NONE, ALARM_ACTIVE, ALARM_NONE, ALARM_NONE},
		{false, ALARM_ACTIVE, ALARM_ACTIVE, ALARM_NONE, ALARM_ACKNOWLEDGED},
		{false, ALARM_ACKNOWLEDGED, ALARM_ACKNOWLEDGED, ALARM_NONE, ALARM_ACKNOWLEDGED},
		{true, ALARM_NONE, ALARM_ACTIVE, ALARM_NONE, ALARM_NONE},
		{true, ALARM_ACTIVE, ALARM_ACTIVE, ALARM_LATCHED, ALARM_ACKNOWLEDGED},
		{true, ALARM_ACKNOWLEDGED, ALARM_ACKNOWLEDGED, ALARM_NONE, ALARM_ACKNOWLEDGED},
		{true, ALARM_LATCHED, ALARM_ACTIVE, ALARM_LATCHED, ALARM_NONE},
	};
	struct param_kind kind = kind_of(PARAM_REAL, "alarm_high=1");
	struct param_value high = real(2), low = real(0);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(table); i++) {
		struct param_alarm from = {table[i].from,
					   table[i].from == ALARM_NONE ? 0 : LEVEL_ALARM, 5};

		kind.latch = table[i].latch;
		struct param_alarm beyond = param_alarm_next(&kind, from, &high, 7);
		struct param_alarm within = param_alarm_next(&kind, from, &low, 7);
		struct param_alarm acknowledged = param_alarm_acknowledged(from, 7);
		assert_int_equal(beyond.state, table[i].beyond);
		assert_int_equal(within.state, table[i].within);
		assert_int_equal(acknowledged.state, table[i].acknowledged);
		assert_null(param_alarm_check(&beyond));
		assert_null(param_alarm_check(&within));
		assert_null(param_alarm_check(&acknowledged));
		assert_int_equal(beyond.since_ns, beyond.state == from.state ? 5 : 7);
		assert_int_equal(within.since_ns, within.state == from.state ? 5 : 7);
		assert_int_equal(acknowledged.since_ns, acknowledged.state == from.state ? 5 : 7);
	}
}

/* A sequence of values, with the alarm after each. acknowledges: after that. */
struct step {
	double value;
	enum alarm_state state;
	int level;
	bool acknowledges;
};

static void take_steps(enum param_type type, const char *limits, const struct step *steps,
		       unsigned count)
{
	const struct param_kind kind = kind_of(type, limits);
	struct param_alarm alarm = {0};

	assert_null(param_kind_check(&kind));
	for (unsigned i = 0; i < count; i++) {
		struct param_value value = real(steps[i].value);

		if (type == PARAM_INT)
			value = (struct param_value){PARAM_INT, .integer = (int64_t)steps[i].value};
		alarm = param_alarm_next(&kind, alarm, &value, i + 1);
		if (alarm.state != steps[i].state || alarm.level != steps[i].level)
			fail_msg("step %u: state %d, level %d", i, (int)alarm.state, alarm.level);
		if (steps[i].acknowledges)
			alarm = param_alarm_acknowledged(alarm, i + 1);
	}
}

/* Acknowledging that it is too low does not acknowledge that it is too high. */
PLX_TEST(another_limit_is_another_alarm)
{
	static const struct step steps[] = {
		{6, ALARM_NONE, 0, false},
		{3.5, ALARM_ACTIVE, -LEVEL_WARNING, true},
		{3.6, ALARM_ACKNOWLEDGED, -LEVEL_WARNING, false},
		{1, ALARM_ACTIVE, -LEVEL_ALARM, true},
		{0, ALARM_ACKNOWLEDGED, -LEVEL_ALARM, false},
		{3.5, ALARM_ACKNOWLEDGED, -LEVEL_WARNING, false}, /* of the acknowledged limit */
		{1, ALARM_ACTIVE, -LEVEL_ALARM, true},
		{7.5, ALARM_ACTIVE, LEVEL_WARNING, true},
		{99, ALARM_ACTIVE, LEVEL_ALARM, true},
		{7, ALARM_NONE, 0, false},
	};

	take_steps(PARAM_REAL, "alarm_low=3 warn_low=4 warn_high=7 alarm_high=8", steps,
		   PLX_ARRAY_LEN(steps));
}

PLX_TEST(an_alarm_ends_once_the_value_is_inside_by_the_hysteresis)
{
	static const struct step steps[] = {
		{79, ALARM_NONE, 0, false}, /* it keeps the state, and raises nothing */
		{81, ALARM_ACTIVE, LEVEL_WARNING, false},
		{79, ALARM_ACTIVE, LEVEL_WARNING, false},
		{91, ALARM_ACTIVE, LEVEL_ALARM, true},
		{86, ALARM_ACKNOWLEDGED, LEVEL_ALARM, false},
		{85, ALARM_ACKNOWLEDGED, LEVEL_WARNING, false},
		{76, ALARM_ACKNOWLEDGED, LEVEL_WARNING, false},
		{75, ALARM_NONE, 0, false},
		{9, ALARM_ACTIVE, -LEVEL_ALARM, false},
		{14, ALARM_ACTIVE, -LEVEL_ALARM, false},
		{15, ALARM_NONE, 0, false},
		{14, ALARM_NONE, 0, false},
	};
	static const char limits[] = "alarm_low=10 warn_high=80 alarm_high=90 hysteresis=5";

	take_steps(PARAM_REAL, limits, steps, PLX_ARRAY_LEN(steps));
	take_steps(PARAM_INT, limits, steps, PLX_ARRAY_LEN(steps));
}

PLX_TEST_MAIN()
