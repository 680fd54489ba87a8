/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of plx-params. */
#include "params.h"

#include <string.h>

static struct params_conf conf = {
	.deadline_ns = 5 * PLX_NS_PER_S,
};

#define TEXT(name_, placeholder_, field_, help_)                                 \
	{                                                                        \
		.name = (name_), .placeholder = (placeholder_), .help = (help_), \
		.kind = PLX_APP_STRING, .value = &conf.field_                    \
	}
#define FLAG(name_, field_, help_)                                                            \
	{                                                                                     \
		.name = (name_), .help = (help_), .kind = PLX_APP_FLAG, .value = &conf.field_ \
	}

static const struct plx_app_option options[] = {
	TEXT("serve", "FILE", serve, "be the service, with its parameters in that SQLite file"),
	TEXT("listen", "ADDR", listen, "host:port of the service; port 0: a free one"),
	{.name = "service",
	 .placeholder = "ADDR",
	 .help = "host:port of the service to be asked",
	 .kind = PLX_APP_LIST,
	 .value = &conf.services},
	TEXT("get", "NAME", get, "show a parameter"),
	TEXT("set", "NAME", set, "set its --value"),
	TEXT("define", "NAME", define, "make one of that --type and --value, or make it anew"),
	TEXT("remove", "NAME", remove, "take it away"),
	TEXT("ack", "NAME", ack, "acknowledge its alarm"),
	FLAG("list", list, "show all, or those --below a name"),
	FLAG("alarms", alarms, "show those that have an alarm"),
	FLAG("watch", watch, "show all, or those --below a name, and each change, until Ctrl-C"),
	TEXT("below", "NAME", below, "with --list, --alarms, --watch: that one and all below it"),
	TEXT("value", "VALUE", value, "with --set and --define"),
	{.name = "type",
	 .placeholder = "TYPE",
	 .help = "with --define: bool, int, real or text",
	 .kind = PLX_APP_CHOICE,
	 .value = &conf.type,
	 .choices = param_types,
	 .given = &conf.type_given},
	TEXT("unit", "UNIT", unit, "with --define: for people, up to 31 bytes"),
	TEXT("min", "N", limits[LIMIT_MIN], "with --define: what is below is refused"),
	TEXT("max", "N", limits[LIMIT_MAX], "with --define: what is above is refused"),
	TEXT("alarm-low", "N", limits[LIMIT_ALARM_LOW], "with --define: what is below is an alarm"),
	TEXT("alarm-high", "N", limits[LIMIT_ALARM_HIGH],
	     "with --define: what is above is an alarm"),
	FLAG("latch", latch, "with --define: an alarm stays until it is acknowledged"),
	{.name = "expect",
	 .placeholder = "REVISION",
	 .help = "with --set: only if that is its revision still",
	 .kind = PLX_APP_UINT,
	 .value = &conf.expect,
	 .given = &conf.expect_given},
	FLAG("fast", fast, "do not wait until a change is on the disk"),
	FLAG("json", json, "show JSON"),
	{.name = "deadline",
	 .placeholder = "TIME",
	 .help = "how long to wait for the service (default 5s)",
	 .kind = PLX_APP_DURATION,
	 .value = &conf.deadline_ns,
	 .min = 1},
	{.name = NULL},
};

static int commands(void)
{
	return !!conf.get + !!conf.set + !!conf.define + !!conf.remove + !!conf.ack + conf.list +
	       conf.alarms + conf.watch;
}

static int check_serve(void)
{
	if (!conf.listen)
		return plx_fail(EINVAL, "--listen ADDR is missing: host:port to serve at");
	if (commands() || conf.services.count)
		return plx_fail(EINVAL, "--serve is the service, the others ask one; leave them "
					"out");
	return plx_address_check("--listen", conf.listen);
}

static int check_name(const char *option, const char *name)
{
	const char *wrong = name ? param_name_check(name, strlen(name)) : NULL;

	return wrong ? plx_fail(EINVAL, "%s %s: %s", option, name, wrong) : 0;
}

static int check_names(void)
{
	int rc = check_name("--get", conf.get);

	rc = rc ? rc : check_name("--set", conf.set);
	rc = rc ? rc : check_name("--define", conf.define);
	rc = rc ? rc : check_name("--remove", conf.remove);
	rc = rc ? rc : check_name("--ack", conf.ack);
	return rc ? rc : check_name("--below", conf.below);
}

/* Return: 0; -EINVAL what is for another command was given. */
static int check_company(void)
{
	bool kind = conf.unit || conf.latch || conf.type_given;

	for (int i = 0; i < LIMIT_COUNT; i++)
		kind |= conf.limits[i] != NULL;
	if (kind && !conf.define)
		return plx_fail(EINVAL, "--type, --unit, limits and --latch are for --define");
	if (conf.define && !conf.type_given)
		return plx_fail(EINVAL, "--type is missing: bool, int, real or text");
	if (!!conf.value != (conf.set || conf.define))
		return plx_fail(EINVAL, "%s",
				conf.value ? "--value is for --set and --define"
					   : "--value VALUE is missing");
	if (conf.expect_given && !conf.set)
		return plx_fail(EINVAL, "--expect is for --set");
	if (conf.below && !conf.list && !conf.alarms && !conf.watch)
		return plx_fail(EINVAL, "--below is for --list, --alarms and --watch");
	return 0;
}

static int check(void)
{
	int rc;

	if (conf.serve)
		return check_serve();
	if (conf.services.count == 0)
		return plx_fail(EINVAL, "--service ADDR is missing (or --serve FILE, to be one)");
	for (unsigned i = 0; i < conf.services.count; i++) {
		rc = plx_address_check("--service", conf.services.at[i]);
		if (rc)
			return rc;
	}
	if (commands() != 1)
		return plx_fail(EINVAL,
				"give one of --get, --set, --define, --remove, --ack, --list, "
				"--alarms and --watch");
	rc = check_names();
	return rc ? rc : check_company();
}

const struct plx_app params_app = {
	.name = "plx-params",
	.summary = "A store of parameters and alarms: be it, or ask it.",
	.usage =
		"  plx-params [EAL options] -- --serve FILE --listen ADDR\n"
		"  plx-params [EAL options] -- --service ADDR --get NAME [--json]\n"
		"  plx-params [EAL options] -- --service ADDR --set NAME --value VALUE\n"
		"           [--expect REVISION] [--fast]\n"
		"  plx-params [EAL options] -- --service ADDR --define NAME --type TYPE --value "
		"VALUE\n"
		"           [--unit UNIT] [--min N] [--max N] [--alarm-low N] [--alarm-high N]\n"
		"           [--latch] [--fast]\n"
		"  plx-params [EAL options] -- --service ADDR --remove NAME | --ack NAME [--fast]\n"
		"  plx-params [EAL options] -- --service ADDR --list | --alarms | --watch\n"
		"           [--below NAME] [--json] [--deadline TIME]",
	.options = options,
	.check = check,
};

const struct params_conf *const params_asked = &conf;
