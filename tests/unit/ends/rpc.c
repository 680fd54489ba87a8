/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

enum { METHOD_ECHO, METHOD_HOLD };

#define HELD_MAX 64

static struct plx_rpc_service *service;
static struct plx_rpc_client *client;
static struct plx_rpc_request *held[HELD_MAX];
static unsigned held_count;
static plx_rpc_call_id open_id;

static void on_echo(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	ends_in("handler", &service);
	plx_rpc_reply(request, data, length);
}

static void on_hold(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	if (held_count < HELD_MAX)
		held[held_count++] = request;
	else
		plx_rpc_reply(request, NULL, 0);
}

static void on_gone(struct plx_rpc_request *request, void *arg)
{
	ends_in("gone", &service);
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	ends_in("call done", &client);
}

static bool is_up(void)
{
	return plx_rpc_client_is_up(client);
}

static void call(uint32_t method, plx_rpc_call_id *id_out)
{
	const struct plx_rpc_call one = {.method = method, .done = on_done};

	assert_works(plx_rpc_call_start(client, &one, "x", 1, id_out));
}

static bool is_held(void)
{
	return held_count > 0;
}

static void up(const char *provider)
{
	const struct plx_rpc_service_attr attr = {.self_test_rate = PLX_NONE};
	const struct plx_rpc_method methods[] = {
		{.id = METHOD_ECHO, .name = "echo", .handler = on_echo},
		{.id = METHOD_HOLD, .name = "hold", .handler = on_hold, .gone = on_gone},
	};
	const struct plx_listen_attr listen = {.link.provider = provider};
	const struct plx_rpc_client_attr client_attr = {.link.provider = provider};
	const char *addresses[2] = {NULL, NULL};

	held_count = 0;
	assert_works(plx_rpc_service_create(&attr, &service));
	assert_works(plx_rpc_service_add(service, &methods[0]));
	assert_works(plx_rpc_service_add(service, &methods[1]));
	assert_works(plx_rpc_service_listen(service, "127.0.0.1:0", &listen));
	addresses[0] = plx_rpc_service_address(service, 0);
	assert_works(plx_rpc_client_create(addresses, &client_attr, &client));
	ends_turn_until(is_up);
	call(METHOD_HOLD, &open_id);
	ends_turn_until(is_held);
}

static void kick(void)
{
	plx_rpc_call_id id = open_id;

	for (unsigned i = 0; i < 4; i++)
		call(METHOD_ECHO, NULL);
	call(METHOD_HOLD, &open_id);
	assert_works(plx_rpc_cancel(client, id));
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
	return 0;
}

static int finish(void)
{
	return service ? plx_rpc_service_finish(service, PLX_NEVER) : 1;
}

ENDS_TAKE(plx_rpc_client_destroy, client)
ENDS_TAKE(plx_rpc_service_destroy, service)

static void down(bool are_up)
{
	take_client();
	take_service();
	while (held_count)
		plx_rpc_reply(held[--held_count], NULL, 0);
}

static const struct ends_call calls[] = {
	{"plx_rpc_cancel", ENDS_DEFERS, cancel},
	{"plx_rpc_client_destroy", ENDS_CALLS, take_client},
	{"plx_rpc_service_drain", ENDS_DEFERS, drain},
	{"plx_rpc_service_destroy", ENDS_WORKS, take_service},
	{"plx_rpc_service_finish", ENDS_REFUSES, finish},
};

static const struct ends_callback callbacks[] = {
	{"handler", ENDS_RUNS},
	{"gone", ENDS_RUNS},
	{"call done", ENDS_RUNS},
};

const struct ends_part ends_rpc = {
	"service", up, kick, down, calls, PLX_ARRAY_LEN(calls), callbacks, PLX_ARRAY_LEN(callbacks),
};
