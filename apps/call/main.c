/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-call: call a method of a service from the command line, or many times, to measure it.
 *
 * Try it:  build/apps/examples/service --listen 127.0.0.1:7000
 *          plx-call --connect 127.0.0.1:7000 --list
 *          plx-call --connect 127.0.0.1:7000 --method pollux.echo --data hello
 *          plx-call --connect 127.0.0.1:7000 --method echo --size 64 --count 100000 */
#include "call.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_NS (500 * PLX_NS_PER_MS)

static struct call_conf conf = {
	.deadline_ns = PLX_RPC_DEADLINE_NS_DEFAULT,
	.in_flight = 1,
	.format = CALL_TEXT,
	.run = {.seed = 1, .name = "plx-call"},
};

/* In the order of enum call_format. */
static const char *const formats[] = {"raw", "text", "hex", "json", NULL};

static const struct plx_option options[] = {
	PLX_LIST("connect", "ADDR", &conf.services,
		 "host:port of the service; if repeated, calls go to the one with the fewest open "
		 "calls"),
	PLX_FLAG("list", &conf.list, "show the service's methods"),
	PLX_TEXT("method", "NAME", &conf.method_text, "the method: a name or a number"),
	PLX_UINT("method-version", "N", &conf.version, 0, UINT16_MAX,
		 "version of the method (default: the newest with that name; for a number 0)",
		 .given = &conf.version_given),
	PLX_TEXT("data", "TEXT", &conf.data, "the request: these bytes (default: none)",
		 .may_be_empty = true),
	PLX_TEXT("hex", "HEX", &conf.hex, "the request: \"00 ff 17\""),
	PLX_TEXT("data-json", "JSON", &conf.json,
		 "the request: JSON, checked, and sent as written"),
	PLX_TEXT("file", "PATH", &conf.file, "the request: that file; \"-\": standard input"),
	PLX_SIZE("size", "SIZE", &conf.size_bytes, 0, PLX_RPC_PAYLOAD_MAX,
		 "the request: SIZE zeros"),
	PLX_TIME("deadline", "TIME", &conf.deadline_ns, 1, 0,
		 "how long to wait for a reply (default 1s)"),
	PLX_CHOICE("format", "HOW", &conf.format, formats,
		   "show the reply as text, hex, json or raw (default text)"),
	PLX_UINT("in-flight", "N", &conf.in_flight, 1, CALL_IN_FLIGHT_MAX,
		 "measure with N calls in flight (default 1)", .given = &conf.in_flight_given),
	PLX_MEASURE_OPTIONS(conf.run, "", "plx-call"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	int requests = !!conf.data + !!conf.hex + !!conf.json + !!conf.file + !!conf.size_bytes;

	if (conf.services.count == 0)
		return plx_fail(EINVAL, "--connect ADDR is missing: host:port of a service");
	for (unsigned i = 0; i < conf.services.count; i++) {
		int rc = plx_address_check("--connect", conf.services.at[i]);

		if (rc)
			return rc;
	}
	if (!conf.method_text && !conf.list)
		return plx_fail(EINVAL, "--method NAME is missing; --list shows what there is");
	if (conf.list && (conf.method_text || requests))
		return plx_fail(EINVAL, "--list shows the methods, --method calls one; give one of "
					"them");
	if (requests > 1)
		return plx_fail(
			EINVAL,
			"--data, --hex, --data-json, --file and --size each are the request; "
			"give one of them");
	if ((conf.hex || conf.json) && call_read_request() != 0)
		return -EINVAL;
	if (conf.method_text && isdigit((unsigned char)conf.method_text[0])) {
		if (plx_parse_uint("--method", conf.method_text, 0, UINT32_MAX, &conf.number) != 0)
			return -EINVAL;
	} else {
		conf.method = conf.method_text;
	}
	return plx_measure_check(&conf.run);
}

/* Measured calls keep their lcore busy. */
static bool is_short(void)
{
	return !conf.run.count && !conf.run.duration_ns;
}

const struct plx_app call_app = {
	.name = "plx-call",
	.summary = "Call a method of a service, or measure it.",
	.usage = "  plx-call [EAL options] -- --connect ADDR [--process] --list\n"
		 "  plx-call [EAL options] -- --connect ADDR --method NAME [--method-version N]\n"
		 "           [--data TEXT | --hex HEX | --data-json JSON | --file PATH | --size "
		 "SIZE]\n"
		 "           [--deadline TIME] [--format HOW]\n"
		 "  plx-call [EAL options] -- --connect ADDR --method NAME [--size SIZE]\n"
		 "           --count N | --duration TIME [--in-flight N]\n"
		 "           [--rate R [--arrival fixed|poisson|burst] [--seed N]]\n"
		 "           [--out DIR [--name NAME]]",
	.examples = "  plx-call --connect 127.0.0.1:7000 --list\n"
		    "  plx-call --connect 127.0.0.1:7000 --method thermometer.read --format hex",
	.more = "man plx-call, or doc/apps/plx-call.md",
	.options = options,
	.check = check,
	.is_short = is_short,
	.eal = &(const struct plx_eal_conf){.idle = "poll"},
};

struct call_conf *const call_asked = &conf;

/* One call ------------------------------------------------------------------------------------ */

/* The reply of the last call, with its message. The loop runs until `is_done`. Not on the stack: a
 * signal may end the wait before the call ends. */
static struct plx_rpc_result reply;
static bool is_done;

static void let_go(void)
{
	plx_buf_unref(reply.message);
	reply.message = NULL;
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	reply = *result;
	if (reply.message)
		plx_buf_ref(reply.message);
	/* A handler that refused with BUSY has done nothing. */
	reply.may_have_run &= reply.status != PLX_RPC_BUSY;
	is_done = true;
	plx_loop_quit();
}

/* Return: 0 a reply, OK or ERROR; -EINTR a signal; -EIO any other status. */
static int call_once(struct plx_rpc_client *client, uint32_t method, uint16_t version,
		     const void *data, size_t length)
{
	struct plx_rpc_call call = {
		.method = method,
		.version = version,
		.deadline_ns = call_asked->deadline_ns,
		.done = on_done,
		.key = plx_random_id(), /* it runs at most once, also if it is sent again */
		.retry = true,
	};
	int rc;

	let_go();
	is_done = false;
	rc = plx_rpc_call_start(client, &call, data, length, NULL);
	if (rc == -EAGAIN)
		return plx_fail(EAGAIN, "a request of %zu bytes: too many of them wait", length);
	if (rc)
		return rc;
	plx_loop_run();
	if (!is_done)
		return plx_fail(EINTR, "interrupted; the call may have run");
	if (reply.status > PLX_RPC_ERROR && plx_stop_signal())
		return plx_fail(EINTR, "interrupted; the call %s",
				reply.may_have_run ? "may have run" : "has not run");
	if (reply.status == PLX_RPC_PEER_DOWN && !reply.may_have_run)
		return plx_fail(EIO, "no service within %.6g s: %s",
				(double)call_asked->deadline_ns / 1e9, call_trouble(client));
	if (reply.status > PLX_RPC_ERROR)
		return plx_fail(EIO, "the call ended with: %s; %s%s%s",
				plx_rpc_status_name(reply.status),
				reply.may_have_run ? "it may have run" : "it has not run",
				reply.retry_after_ns ? ", and may be tried again" : "",
				call_hint(reply.status, reply.may_have_run));
	return 0;
}

/* Self-test methods have fixed numbers and need no look-up, which costs the service more than most
 * calls. */
static bool is_self_test(void)
{
	static const struct {
		const char *name;
		uint32_t id;
	} methods[] = {
		{"pollux.echo", PLX_RPC_ECHO},
		{"pollux.discard", PLX_RPC_DISCARD},
		{"pollux.generate", PLX_RPC_GENERATE},
		{"pollux.describe", PLX_RPC_DESCRIBE},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(methods); i++) {
		if (strcmp(call_asked->method, methods[i].name) == 0) {
			call_asked->number = methods[i].id;
			return true;
		}
	}
	return false;
}

/* Ask the service for the method's number. Return: 0; -errno. */
static int find(struct plx_rpc_client *client)
{
	int rc;

	if (!call_asked->method || (call_asked->version == 0 && is_self_test()))
		return 0;
	rc = call_once(client, PLX_RPC_DESCRIBE, 0, NULL, 0);
	if (rc == -EIO && reply.status == PLX_RPC_UNKNOWN)
		return plx_fail(ENOENT,
				"--method %s: the service does not tell its methods' "
				"names; give a number",
				call_asked->method);
	if (rc == -EIO && reply.status == PLX_RPC_DENIED)
		return plx_fail(EACCES,
				"--method %s: the service tells its methods' names to its own host "
				"alone, unless it is started with --self-test RATE; give a number",
				call_asked->method);
	return rc ? rc : call_find_method(reply.data, reply.length);
}

static int list(struct plx_rpc_client *client)
{
	int rc = call_once(client, PLX_RPC_DESCRIBE, 0, NULL, 0);

	return rc ? rc : call_show_methods(reply.data, reply.length);
}

static int call_and_show(struct plx_rpc_client *client)
{
	int rc = call_once(client, (uint32_t)call_asked->number, (uint16_t)call_asked->version,
			   call_asked->request, call_asked->request_length);

	if (rc == 0)
		rc = call_show(reply.data, reply.length, (enum call_format)call_asked->format);
	if (rc == 0 && reply.status == PLX_RPC_ERROR)
		rc = plx_fail(EIO, "the service calls that an error, with code %" PRIu32,
			      reply.code);
	return rc;
}

/* Prints its errors. Ownership: destroys client. Return: the exit status. */
static int run(struct plx_rpc_client *client)
{
	int rc = call_asked->list || call_asked->request ? 0 : call_read_request();

	if (rc == 0 && !call_asked->list)
		rc = find(client);
	let_go();
	if (rc == 0 && !call_asked->list && !is_short())
		return call_measure(client);
	if (rc == 0)
		rc = call_asked->list ? list(client) : call_and_show(client);
	plx_rpc_client_destroy(client);
	let_go(); /* destroying the client may have ended a call with a reply */
	return rc ? plx_app_fail(&call_app) : 0;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &call_app);
	const char *addresses[PLX_APP_LIST_MAX + 1] = {0};
	struct plx_rpc_client_attr attr = {.calls_max = CALL_IN_FLIGHT_MAX,
					   .waiting_max = UINT64_MAX};
	struct plx_rpc_client *client;
	int rc = 0;

	if (status != PLX_APP_RUN)
		return status;
	attr.link.self_test = call_asked->run.process;
	memcpy(addresses, call_asked->services.at, sizeof(call_asked->services.at));
	addresses[call_asked->services.count] = NULL;
	if (call_asked->run.out_dir)
		rc = plx_result_prepare(call_asked->run.name, call_asked->run.out_dir);
	rc = rc ? rc : plx_rpc_client_create(addresses, &attr, &client);
	status = rc ? plx_app_fail(&call_app) : run(client);
	free(call_asked->request);
	plx_fabric_drain(DRAIN_NS);
	return plx_app_finish(&call_app, status);
}
