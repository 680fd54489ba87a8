/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-call: call a method of a service from the command line, or many times, to measure it.
 *
 * Try it:  build/apps/examples/service --listen 127.0.0.1:7000
 *          plx-call --connect 127.0.0.1:7000 --list
 *          plx-call --connect 127.0.0.1:7000 --method pollux.echo --data hello
 *          plx-call --connect 127.0.0.1:7000 --method echo --size 64 --count 100000 */
#include "call.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_NS (500 * PLX_NS_PER_MS)

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
	let_go(); /* also the reply to a call that this has ended */
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
