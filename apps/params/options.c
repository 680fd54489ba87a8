/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of plx-params. */
#include "params.h"

static struct params_conf conf = {
	.deadline_ns = 5 * PLX_NS_PER_S,
};

#define TEXT(name_, placeholder_, field_, help_) \
	{.name = (name_),                        \
	 .placeholder = (placeholder_),          \
	 .help = (help_),                        \
	 .kind = PLX_APP_STRING,                 \
	 .value = &conf.field_}
#define FLAG(name_, field_, help_) \
	{.name = (name_), .help = (help_), .kind = PLX_APP_FLAG, .value = &conf.field_}

static const struct plx_app_option options[] = {
	TEXT("serve", "FILE", serve, "be the service, with its parameters in that SQLite file"),
	TEXT("listen", "ADDR", listen, "host:port of the service; port 0: a free one"),
	{.name = "publish-port",
	 .placeholder = "PORT",
	 .help = "with --serve: where changes are published (default: a free one)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.publish_port,
	 .max = 65535},
	TEXT("service", "ADDR", service, "host:port of the service to be asked"),
	TEXT("get", "NAME", get, "show a parameter"),
	TEXT("set", "NAME", set, "set its --value"),
	TEXT("define", "NAME", define, "make one of that --type and --value, or make it anew"),
	TEXT("remove", "NAME", remove, "take it away"),
	TEXT("ack", "NAME", ack, "acknowledge its alarm"),
	FLAG("list", list, "show all, or those --below a name"),
	FLAG("alarms", alarms, "show those that have an alarm"),
	FLAG("watch", watch, "show all, or those --below a name, and each change, until Ctrl-C"),
	TEXT("below", "NAME", below, "with --list, --alarms, --watch: that one and all below it"),
	{.name = "value",
	 .placeholder = "VALUE",
	 .help = "with --set and --define",
	 .kind = PLX_APP_STRING,
	 .value = &conf.value,
	 .may_be_empty = true},
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
	TEXT("warn-low", "N", limits[LIMIT_WARN_LOW], "with --define: what is below is a warning"),
	TEXT("warn-high", "N", limits[LIMIT_WARN_HIGH],
	     "with --define: what is above is a warning"),
	TEXT("hysteresis", "N", limits[LIMIT_HYSTERESIS],
	     "with --define: an alarm ends when the value is N within its limit"),
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
	 .min = 1,
	 .given = &conf.deadline_given},
	{.name = NULL},
};

static int check(void)
{
	return params_check(&conf);
}

const struct plx_app params_app = {
	.name = "plx-params",
	.summary = "A store of parameters and alarms: be it, or ask it.",
	.usage =
		"  plx-params [EAL options] -- --serve FILE --listen ADDR [--publish-port PORT]\n"
		"  plx-params [EAL options] -- --service ADDR --get NAME [--json]\n"
		"  plx-params [EAL options] -- --service ADDR --set NAME --value VALUE\n"
		"           [--expect REVISION] [--fast]\n"
		"  plx-params [EAL options] -- --service ADDR --define NAME --type TYPE --value "
		"VALUE\n"
		"           [--unit UNIT] [--min N] [--max N] [--alarm-low N] [--alarm-high N]\n"
		"           [--warn-low N] [--warn-high N] [--hysteresis N] [--latch] [--fast]\n"
		"  plx-params [EAL options] -- --service ADDR --remove NAME | --ack NAME [--fast]\n"
		"  plx-params [EAL options] -- --service ADDR --list | --alarms | --watch\n"
		"           [--below NAME] [--json] [--deadline TIME]",
	.options = options,
	.check = check,
};

const struct params_conf *const params_asked = &conf;
