/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-params: a store of parameters and alarms as a service, and its command line client.
 *
 * Try it:  plx-params --serve /tmp/params.db --listen 127.0.0.1:7100
 *          plx-params --connect 127.0.0.1:7100 --define hv/rack1/voltage --type real --value 1500
 *                     --unit V --max 2000 --alarm-high 1800 --latch
 *          plx-params --connect 127.0.0.1:7100 --set hv/rack1/voltage --value 1850
 *          plx-params --connect 127.0.0.1:7100 --alarms */
#include "params.h"

#include "bytes.h"
#include "wire.h"

#include <inttypes.h>
#include <string.h>

#define DRAIN_NS (500 * PLX_NS_PER_MS)

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

/* Commands: each calls a service and shows the reply ------------------------------------------ */

static int get(void)
{
	const struct plx_rpc_result *reply;
	struct param param;
	const char *wrong;
	int rc = client_call(conf.get, PARAMS_GET, false, conf.get, strlen(conf.get), &reply);

	if (rc)
		return rc;
	wrong = record_read(reply->data, reply->length, &param);
	return wrong ? plx_fail(EPROTO, "%s: the reply: %s", conf.get, wrong)
		     : show_param(&param, false);
}

/* Send the parameter's new state to set or define; of one to remove or acknowledge, the name. */
static int change(uint32_t method, const char *name)
{
	uint8_t bytes[WIRE_ORDER_MAX];
	struct order order = {
		.flags = (conf.fast ? 0 : WIRE_DURABLE) | (conf.expect_given ? WIRE_EXPECT : 0),
		.expected = conf.expect,
		.param = {.name = name,
			  .name_length = (uint32_t)strlen(name),
			  .kind = conf.new_kind,
			  .value = conf.new_value},
	};
	const struct plx_rpc_result *reply;
	int rc = client_call(name, method, true, bytes, order_write(&order, bytes), &reply);

	if (rc)
		return rc;
	if (reply->length != sizeof(uint64_t))
		return plx_fail(EPROTO, "%s: the reply is no revision", name);
	plx_app_say("revision %" PRIu64, get64(reply->data));
	return 0;
}

static int list(void)
{
	struct snapshot snapshot;
	int rc = snapshot_init(&snapshot, NULL);

	rc = rc ? rc : client_list(&snapshot, conf.alarms ? WIRE_ALARMS : 0, false);
	rc = rc ? rc : show_list(snapshot.now);
	snapshot_fini(&snapshot);
	return rc;
}

static int run_command(void)
{
	if (conf.get)
		return get();
	if (conf.set)
		return change(PARAMS_SET, conf.set);
	if (conf.define)
		return change(PARAMS_DEFINE, conf.define);
	if (conf.remove)
		return change(PARAMS_REMOVE, conf.remove);
	if (conf.ack)
		return change(PARAMS_ACK, conf.ack);
	return conf.watch ? watch() : list();
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &params_app);
	int rc;

	if (status != PLX_APP_RUN)
		return status;
	if (conf.serve) {
		rc = serve(&conf);
	} else {
		rc = client_begin(&conf);
		rc = rc ? rc : run_command();
		client_end();
	}
	status = rc ? plx_app_fail(&params_app) : 0;
	plx_fabric_drain(DRAIN_NS);
	return plx_app_finish(&params_app, status);
}
