/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of plx-params. */
#include "params.h"

static struct params_conf conf = {
	.deadline_ns = 5 * PLX_NS_PER_S,
};

static const char *const formats[] = {"text", "json", NULL};

static const struct plx_option options[] = {
	PLX_TEXT("serve", "FILE", &conf.serve, "run the service with this SQLite file"),
	PLX_ADDRESS("listen", &conf.listen, "host:port of the service; port 0: a free one"),
	PLX_UINT("publish-port", "PORT", &conf.publish_port, 0, 65535,
		 "with --serve: port that publishes changes (default: a free one)"),
	PLX_ADDRESS("connect", &conf.service, "host:port of the service"),
	PLX_TEXT("get", "NAME", &conf.get, "show a parameter"),
	PLX_TEXT("set", "NAME", &conf.set, "set its --value"),
	PLX_TEXT("define", "NAME", &conf.define,
		 "create or redefine a parameter with --type and --value"),
	PLX_TEXT("remove", "NAME", &conf.remove, "remove a parameter"),
	PLX_TEXT("ack", "NAME", &conf.ack, "acknowledge its alarm"),
	PLX_FLAG("list", &conf.list, "show all, or those --below a name"),
	PLX_FLAG("alarms", &conf.alarms, "show parameters with an alarm"),
	PLX_FLAG("watch", &conf.watch,
		 "show all, or those --below a name, and each change, until Ctrl-C"),
	PLX_TEXT("below", "NAME", &conf.below,
		 "with --list, --alarms, --watch: only that parameter and those below it"),
	PLX_TEXT("value", "VALUE", &conf.value, "with --set and --define", .may_be_empty = true),
	PLX_CHOICE("type", "TYPE", &conf.type, param_types,
		   "with --define: bool, int, real or text", .given = &conf.type_given),
	PLX_TEXT("unit", "UNIT", &conf.unit, "with --define: text for display, up to 31 bytes"),
	PLX_TEXT("min", "N", &conf.limits[LIMIT_MIN], "with --define: lower values are refused"),
	PLX_TEXT("max", "N", &conf.limits[LIMIT_MAX], "with --define: higher values are refused"),
	PLX_TEXT("alarm-low", "N", &conf.limits[LIMIT_ALARM_LOW],
		 "with --define: lower values raise an alarm"),
	PLX_TEXT("alarm-high", "N", &conf.limits[LIMIT_ALARM_HIGH],
		 "with --define: higher values raise an alarm"),
	PLX_TEXT("warn-low", "N", &conf.limits[LIMIT_WARN_LOW],
		 "with --define: lower values raise a warning"),
	PLX_TEXT("warn-high", "N", &conf.limits[LIMIT_WARN_HIGH],
		 "with --define: higher values raise a warning"),
	PLX_TEXT("hysteresis", "N", &conf.limits[LIMIT_HYSTERESIS],
		 "with --define: an alarm ends when the value is N within its limit"),
	PLX_FLAG("latch", &conf.latch, "with --define: an alarm stays until it is acknowledged"),
	PLX_UINT("expect", "REVISION", &conf.expect, 0, 0,
		 "with --set: only if the parameter has this revision",
		 .given = &conf.expect_given),
	PLX_FLAG("fast", &conf.fast, "do not wait for the disk"),
	PLX_CHOICE("format", "HOW", &conf.format, formats, "show as text or json (default text)",
		   .given = &conf.format_given),
	PLX_TIME("deadline", "TIME", &conf.deadline_ns, 1, 0,
		 "how long to wait for the service (default 5s)", .given = &conf.deadline_given),
	PLX_OPTIONS_END,
};

static int check(void)
{
	return params_check(&conf);
}

static bool is_short(void)
{
	return !conf.serve;
}

const struct plx_app params_app = {
	.name = "plx-params",
	.summary = "Run a store of parameters and alarms, or use one.",
	.usage =
		"  plx-params [EAL options] -- --serve FILE --listen ADDR [--publish-port PORT]\n"
		"  plx-params [EAL options] -- --connect ADDR --get NAME [--format HOW]\n"
		"  plx-params [EAL options] -- --connect ADDR --set NAME --value VALUE\n"
		"           [--expect REVISION] [--fast]\n"
		"  plx-params [EAL options] -- --connect ADDR --define NAME --type TYPE --value "
		"VALUE\n"
		"           [--unit UNIT] [--min N] [--max N] [--alarm-low N] [--alarm-high N]\n"
		"           [--warn-low N] [--warn-high N] [--hysteresis N] [--latch] [--fast]\n"
		"  plx-params [EAL options] -- --connect ADDR --remove NAME | --ack NAME [--fast]\n"
		"  plx-params [EAL options] -- --connect ADDR --list | --alarms | --watch\n"
		"           [--below NAME] [--format HOW] [--deadline TIME]",
	.examples = "  plx-params --serve params.db --listen 127.0.0.1:7000\n"
		    "  plx-params --connect 127.0.0.1:7000 --get detector/hv/setpoint",
	.more = "man plx-params, or doc/apps/plx-params.md",
	.options = options,
	.check = check,
	.is_short = is_short,
};

const struct params_conf *const params_asked = &conf;
