/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring many calls; and what went wrong with one or many, and what to do next. */
#include "base_internal.h"
#include "call.h"
#include "rpc_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *call_trouble(const struct plx_rpc_client *client)
{
	static char text[1024];
	const char *trouble = plx_rpc_client_trouble(client);

	if (!trouble[0])
		snprintf(text, sizeof(text),
			 "%s has not answered yet: is it a Pollux process, and not stopped? "
			 "--deadline gives it longer",
			 call_asked->services.at[0]);
	else
		snprintf(text, sizeof(text), "%s%s", trouble,
			 !call_asked->run.process && (strstr(trouble, "it is no service") ||
						      strstr(trouble, ", not " PLX_NAME_RPC))
				 ? "; --process calls the self-test of any Pollux process"
				 : "");
	return text;
}

const char *call_hint(enum plx_rpc_status status, bool may_have_run)
{
	if (status == PLX_RPC_UNKNOWN && call_asked->method_text)
		return "; --list shows what there is";
	if (status == PLX_RPC_DENIED)
		return "; a service answers self-test calls from its own host only, unless it was "
		       "started with --self-test RATE";
	if (status == PLX_RPC_TOO_BIG && !may_have_run)
		return call_asked->run.process
			     ? "; the service takes no more: a self-test takes up to 64 KiB"
			     : "; the service takes no more: by default services take up to 16 "
			       "MiB";
	return "";
}

/* A method that the service does not know ends the run. */
static const char *check(struct plx_rpc_load *rpc, const struct plx_rpc_result *result)
{
	static char text[512];
	char version[32] = "";

	if (result->status != PLX_RPC_UNKNOWN)
		return NULL;
	if (call_asked->version_given)
		snprintf(version, sizeof(version), ", version %" PRIu64, call_asked->version);
	snprintf(text, sizeof(text), "--method %s%s: the service does not know it%s",
		 call_asked->method_text, version, call_hint(PLX_RPC_UNKNOWN, false));
	return text;
}

static void say_more(const struct plx_load *load)
{
	const struct plx_rpc_load *rpc = (const struct plx_rpc_load *)load;
	double replies = (double)(rpc->statuses[PLX_RPC_OK] + rpc->statuses[PLX_RPC_ERROR]);
	char open[64] = "as they were due";
	struct plx_result result;

	plx_load_result(load, &result);
	if (load->kind == PLX_LOAD_CLOSED)
		snprintf(open, sizeof(open), "%" PRIu64 " open at a time", load->in_flight_max);
	if (replies > 0 && result.elapsed_ns)
		plx_app_say("%.0f calls/s, %s; handler %.0f ns on average",
			    replies * 1e9 / (double)result.elapsed_ns, open,
			    (double)rpc->handler_ns / replies);
	if (rpc->refused)
		plx_app_say("%" PRIu64 " calls were refused and repeated: the service "
			    "takes no more for a time",
			    rpc->refused);
	for (int i = PLX_RPC_OK + 1; i < PLX_RPC_STATUS_COUNT; i++)
		if (rpc->statuses[i])
			plx_app_say("%s: %" PRIu64 " calls", plx_rpc_status_name(i),
				    rpc->statuses[i]);
}

/* Earlier files stay. */
static int fail_without_reply(const struct plx_rpc_load *rpc)
{
	say_more(&rpc->load);
	return plx_fail(EIO, "no call brought a reply%s",
			rpc->statuses[PLX_RPC_TOO_BIG] ? call_hint(PLX_RPC_TOO_BIG, false)
			: rpc->refused ? "; all were refused: the service takes no more"
				       : "");
}

int call_measure(struct plx_rpc_client *client)
{
	static struct plx_rpc_load rpc;
	uint64_t in_flight_max = call_asked->in_flight;
	int rc, status;

	if (call_asked->run.rate && !call_asked->in_flight_given)
		in_flight_max = PLX_LOAD_OPEN_MAX;
	rc = plx_load_init(&rpc.load, &call_asked->run, call_asked->request_length, in_flight_max);
	rpc.load.unit = "calls";
	rpc.client = client;
	rpc.call = (struct plx_rpc_call){.method = (uint32_t)call_asked->number,
					 .version = (uint16_t)call_asked->version,
					 .deadline_ns = call_asked->deadline_ns};
	rpc.data = call_asked->request;
	rpc.length = call_asked->request_length;
	rpc.check = check;
	rpc.trouble = call_trouble;
	plx_load_look_for_pollers(&rpc.load);
	rc = rc ? rc : plx_rpc_load_run(&rpc, call_asked->deadline_ns);
	if (rc == 0 && !rpc.load.failed && !rpc.load.signalled && !rpc.load.rtt_ns.count)
		rc = fail_without_reply(&rpc);
	status = rc ? plx_app_fail(&call_app) : plx_load_report(&rpc.load, &call_app, say_more);
	plx_rpc_load_fini(&rpc);
	return status;
}
