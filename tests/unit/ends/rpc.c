/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

enum { METHOD_ECHO, METHOD_HOLD };

#define HELD_MAX 64

static struct plx_rpc_service *service;
static struct plx_rpc_client *client, *other; /* the other one loses its link */
static struct plx_rpc_request *held[HELD_MAX];
static unsigned held_count, started, done;
static plx_rpc_call_id open_id;
static uint64_t last_key;

static void on_echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	held[held_count++] = request; /* the call may reply to it */
	ends_in("handler", &service);
	if (held_count && held[held_count - 1] == request)
		plx_rpc_reply(held[--held_count], data, length);
}

static void on_hold(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	if (held_count < HELD_MAX - 1)
		held[held_count++] = request;
	else
		plx_rpc_reply(request, NULL, 0);
}

static void on_gone(struct plx_rpc_request *request, void *arg)
{
	ends_in(plx_rpc_request_deadline_ns(request) == PLX_NEVER ? "gone" : "gone at the deadline",
		&service);
}

static void on_done(const struct plx_rpc_result *result, void *of)
{
	static const char *const names[] = {
		[PLX_RPC_OK] = "call done",
		[PLX_RPC_CANCELLED] = "call done when cancelled",
		[PLX_RPC_DEADLINE] = "call done at its deadline",
		[PLX_RPC_PEER_DOWN] = "call done with its link",
	};

	done++;
	if (result->status < PLX_ARRAY_LEN(names) && names[result->status])
		ends_in(names[result->status], of);
}

static uint32_t place(struct plx_listener *listener, const struct sockaddr *peer, void *arg)
{
	ends_in("place of a service", &service);
	return plx_lcore_id();
}

static bool are_up(void)
{
	return plx_rpc_client_is_up(client) && plx_rpc_client_is_up(other);
}

static plx_rpc_call_id call(struct plx_rpc_client **from, struct plx_rpc_call one)
{
	plx_rpc_call_id id;

	one.done = on_done;
	one.arg = from;
	one.deadline_ns = one.deadline_ns ?: PLX_NEVER;
	assert_works(plx_rpc_call_start(*from, &one, "x", 1, &id));
	started++;
	return id;
}

static bool are_held(void)
{
	return held_count == 2;
}

static void up(const char *provider)
{
	const struct plx_rpc_service_attr attr = {.self_test_rate = PLX_NONE};
	const struct plx_rpc_method methods[] = {
		{.id = METHOD_ECHO, .name = "echo", .handler = on_echo},
		{.id = METHOD_HOLD, .name = "hold", .handler = on_hold, .gone = on_gone},
	};
	const struct plx_listen_attr listen = {
		.link.provider = provider, .spread = PLX_SPREAD_CALLBACK, .place = place};
	const struct plx_rpc_client_attr client_attr = {.link.provider = provider,
							.reconnect_min_ns = PLX_NS_PER_MS};
	const char *addresses[2] = {NULL, NULL};

	held_count = started = done = 0;
	assert_works(plx_rpc_service_create(&attr, &service));
	assert_works(plx_rpc_service_add(service, &methods[0]));
	assert_works(plx_rpc_service_add(service, &methods[1]));
	assert_works(plx_rpc_service_listen(service, "127.0.0.1:0", &listen));
	addresses[0] = plx_rpc_service_address(service, 0);
	assert_works(plx_rpc_client_create(addresses, &client_attr, &client));
	assert_works(plx_rpc_client_create(addresses, &client_attr, &other));
	ends_turn_until(are_up);
	open_id = call(&client, (struct plx_rpc_call){.method = METHOD_HOLD});
	call(&other, (struct plx_rpc_call){.method = METHOD_HOLD});
	ends_turn_until(are_held);
}

static void kick(void)
{
	plx_rpc_call_id id = open_id;

	for (unsigned i = 0; i < 4; i++)
		call(&client,
		     (struct plx_rpc_call){.method = METHOD_ECHO, .key = i % 2 ? ++last_key : 0});
	call(&client, (struct plx_rpc_call){.method = METHOD_HOLD, .deadline_ns = PLX_NS_PER_MS});
	open_id = call(&client, (struct plx_rpc_call){.method = METHOD_HOLD});
	assert_works(plx_rpc_cancel(client, id));
	plx_link_abort((struct plx_link *)(uintptr_t)plx_rpc_client_link(other));
}

static int cancel(void)
{
	return client ? plx_rpc_cancel(client, open_id) : 1;
}

static int drain(void)
{
	if (!service)
		return 1;
	plx_rpc_service_drain(service);
	assert_null(plx_rpc_service_address(service, 0));
	return 0;
}

static int finish(void)
{
	return service ? plx_rpc_service_finish(service, PLX_NEVER) : 1;
}

ENDS_TAKE(plx_rpc_client_destroy, client)
ENDS_TAKE(plx_rpc_client_destroy, other)
ENDS_TAKE(plx_rpc_service_destroy, service)

static int reply_to_held(void)
{
	while (held_count)
		plx_rpc_reply(held[--held_count], NULL, 0);
	return 0;
}

static int refuse_held(void)
{
	while (held_count)
		assert_works(plx_rpc_refuse(held[--held_count], PLX_RPC_DENIED, 0));
	return 0;
}

/* The handlers' requests survive their service. */
static int destroy_and_reply(void)
{
	take_service();
	if (held_count)
		assert_true(plx_rpc_request_is_gone(held[0]));
	return reply_to_held();
}

static int reply_and_destroy(void)
{
	reply_to_held();
	return take_service();
}

static int end_all(void)
{
	drain();
	destroy_and_reply();
	take_other();
	return take_client();
}

static void down(bool are_up)
{
	take_client();
	take_other();
	assert_int_equal(done, started);
	take_service();
	reply_to_held();
}

static const struct ends_call calls[] = {
	{"plx_rpc_cancel", ENDS_DEFERS, cancel},
	{"plx_rpc_client_destroy", ENDS_CALLS, take_client},
	{"plx_rpc_client_destroy", ENDS_CALLS, take_other},
	{"plx_rpc_service_drain", ENDS_DEFERS, drain},
	{"plx_rpc_service_destroy", ENDS_WORKS, take_service},
	{"plx_rpc_service_finish", ENDS_REFUSES, finish},
	{"replies to all", ENDS_WORKS, reply_to_held},
	{"refusals of all", ENDS_WORKS, refuse_held},
	{"plx_rpc_service_destroy, and replies", ENDS_WORKS, destroy_and_reply},
	{"replies, and plx_rpc_service_destroy", ENDS_WORKS, reply_and_destroy},
	{"all of these", ENDS_CALLS, end_all},
};

static const struct ends_callback callbacks[] = {
	{"handler", ENDS_RUNS},
	{"gone", ENDS_RUNS},
	{"gone at the deadline", 0},
	{"call done", ENDS_RUNS},
	{"call done when cancelled", ENDS_RUNS},
	{"call done at its deadline", 0},
	{"call done with its link", ENDS_RUNS},
	{"place of a service", ENDS_RUNS},
};

ENDS_PART(ends_rpc, "service");
