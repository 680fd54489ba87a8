/* SPDX-License-Identifier: BSD-3-Clause */
/* Checking options together: impossible requests and options without effect are refused before a
 * service is called. */
#include "params.h"

#include <stdio.h>
#include <string.h>

static int command_count(const struct params_conf *conf)
{
	return !!conf->get + !!conf->set + !!conf->define + !!conf->remove + !!conf->ack +
	       conf->list + conf->alarms + conf->watch;
}

static bool shows_many(const struct params_conf *conf)
{
	return conf->list || conf->alarms || conf->watch;
}

static bool has_kind(const struct params_conf *conf)
{
	bool has = conf->type_given || conf->unit || conf->latch;

	for (int i = 0; i < LIMIT_COUNT; i++)
		has |= conf->limits[i] != NULL;
	return has;
}

/* Report the first broken rule. Return: 0; -EINVAL. */
static int check_rules(const struct params_conf *conf)
{
	const struct {
		bool is_broken;
		const char *text;
	} rules[] = {
		{conf->serve && (command_count(conf) || conf->service || conf->deadline_given),
		 "--serve is the service, the others ask one; leave them out"},
		{!conf->serve && !conf->service,
		 "--connect ADDR is missing (or --serve FILE, to be one)"},
		{!conf->serve && command_count(conf) != 1,
		 "give one of --get, --set, --define, --remove, --ack, --list, --alarms and "
		 "--watch"},
		{conf->listen && !conf->serve, "--listen is for --serve"},
		{conf->publish_port && !conf->serve, "--publish-port is for --serve"},
		{has_kind(conf) && !conf->define,
		 "--type, --unit, limits and --latch are for --define"},
		{conf->value && !conf->set && !conf->define, "--value is for --set and --define"},
		{conf->expect_given && !conf->set, "--expect is for --set"},
		{conf->below && !shows_many(conf), "--below is for --list, --alarms and --watch"},
		{conf->format_given && !conf->get && !shows_many(conf),
		 "--format is for --get, --list, --alarms and --watch"},
		{conf->fast && !conf->set && !conf->define && !conf->remove && !conf->ack,
		 "--fast is for --set, --define, --remove and --ack"},
		{conf->serve && !conf->listen, "--listen ADDR is missing: host:port to serve at"},
		{(conf->set || conf->define) && !conf->value, "--value VALUE is missing"},
		{conf->define && !conf->type_given, "--type is missing: bool, int, real or text"},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rules); i++) {
		if (rules[i].is_broken)
			return plx_fail(EINVAL, "%s", rules[i].text);
	}
	return 0;
}

static int check_names(const struct params_conf *conf)
{
	const char *const names[][2] = {
		{"--get", conf->get},       {"--set", conf->set}, {"--define", conf->define},
		{"--remove", conf->remove}, {"--ack", conf->ack}, {"--below", conf->below},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(names); i++) {
		const char *name = names[i][1];
		const char *wrong = name ? param_name_check(name, strlen(name)) : NULL;

		if (wrong)
			return plx_fail(EINVAL, "%s %s: %s", names[i][0], name, wrong);
	}
	return 0;
}

/* Values to define and set -------------------------------------------------------------------- */

static int read_kind(const struct params_conf *conf, struct param_kind *kind)
{
	static const char *const names[LIMIT_COUNT] = {
		"--min",      "--max",       "--alarm-low",  "--alarm-high",
		"--warn-low", "--warn-high", "--hysteresis",
	};
	const char *wrong;

	*kind = (struct param_kind){.type = conf->type + 1, .latch = conf->latch};
	if (conf->unit && strlen(conf->unit) > PARAM_UNIT_MAX)
		return plx_fail(EINVAL, "--unit %s: give up to %d bytes", conf->unit,
				PARAM_UNIT_MAX);
	if (conf->unit)
		snprintf(kind->unit, sizeof(kind->unit), "%s", conf->unit);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		kind->has[i] = conf->limits[i] != NULL;
		if (kind->has[i] &&
		    param_value_parse(names[i], kind->type, conf->limits[i], &kind->limit[i]) != 0)
			return -EINVAL;
	}
	wrong = param_kind_check(kind);
	return wrong ? plx_fail(EINVAL, "--define %s: %s", conf->define, wrong) : 0;
}

static int read_definition(struct params_conf *conf)
{
	int rc = read_kind(conf, &conf->new_kind);

	rc = rc ? rc
		: param_value_parse("--value", conf->new_kind.type, conf->value, &conf->new_value);
	if (rc)
		return rc;
	rc = param_value_beyond(&conf->new_kind, &conf->new_value);
	return rc ? plx_fail(EINVAL, "--value: %s", plx_error()) : 0;
}

int params_check(struct params_conf *conf)
{
	int rc = check_rules(conf);

	conf->new_kind.type = conf->new_value.type = PARAM_TEXT;
	rc = rc ? rc : check_names(conf);
	if (rc == 0 && conf->define)
		rc = read_definition(conf);
	else if (rc == 0 && conf->set) /* the service knows the type */
		rc = param_value_parse("--value", PARAM_TEXT, conf->value, &conf->new_value);
	return rc;
}
