/* SPDX-License-Identifier: BSD-3-Clause */
/* Each structure of attributes in use: a function per structure. */
#ifndef ATTRIBUTES_FIXTURE_H
#define ATTRIBUTES_FIXTURE_H

#include "plx_rpc.h"
#include "socket_fixture.h"

/* Each uses its structure, with defaults in other fields. Return: 0, or the refusal. */
typedef int (*try_fn)(const void *attr);

/* One that is an expression. */
#define TRY(type, result)                       \
	static int try_##type(const void *attr) \
	{                                       \
		return result;                  \
	}

/* Links ---------------------------------------------------------------------------------------- */

static unsigned opened, closed;

PLX_COUNTS(on_open, opened, struct plx_link *link, void *user)

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	assert_int_equal(reason, PLX_LINK_CLOSED);
	closed++;
}

static const struct plx_link_events events = {.on_open = on_open, .on_close = on_close};

static int try_listen(const struct plx_listen_attr *listen)
{
	struct plx_listener *listener;
	struct plx_link *link;

	opened = closed = 0;
	int rc = plx_link_listen("127.0.0.1:0", listen, &listener);
	if (rc)
		return rc;
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &listen->link, &link), 0);
	TURN_UNTIL(opened == 2);
	assert_int_equal(plx_link_close(link), 0);
	TURN_UNTIL(closed == 2);
	plx_listener_close(listener);
	return 0;
}

static int try_plx_link_attr(const void *attr)
{
	struct plx_listen_attr listen = {.link = *(const struct plx_link_attr *)attr};

	listen.link.events = &events;
	return try_listen(&listen);
}

static int try_plx_admission(const void *attr)
{
	struct plx_listen_attr listen = {.link.events = &events,
					 .admission = *(const struct plx_admission *)attr};

	return try_listen(&listen);
}

/* Services ------------------------------------------------------------------------------------- */

struct try_rpc {
	const struct plx_rpc_service_attr *service;
	const struct plx_rpc_client_attr *client;
	struct plx_rpc_method method;
	struct plx_rpc_call call;
};

static void answer(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	assert_int_equal(plx_rpc_reply(request, data, length), 0);
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	assert_int_equal(result->status, PLX_RPC_OK);
	(*(unsigned *)arg)++;
}

static int call_it(struct plx_rpc_service *service, struct try_rpc *it)
{
	const char *addresses[] = {plx_rpc_service_address(service, 0), NULL};
	struct plx_rpc_client *client;
	unsigned done = 0;
	int rc = plx_rpc_client_create(addresses, it->client, &client);

	if (rc)
		return rc;
	it->call.done = on_done;
	it->call.arg = &done;
	rc = plx_rpc_call_start(client, &it->call, "hello", 5, NULL);
	if (rc == 0)
		TURN_UNTIL(done == 1);
	plx_rpc_client_destroy(client);
	return rc;
}

static int try_rpc(struct try_rpc it)
{
	struct plx_rpc_service *service;
	int rc = plx_rpc_service_create(it.service, &service);

	if (rc)
		return rc;
	it.method.name = "answer";
	it.method.handler = answer;
	rc = plx_rpc_service_add(service, &it.method);
	rc = rc ? rc : plx_rpc_service_listen(service, "127.0.0.1:0", NULL);
	rc = rc ? rc : call_it(service, &it);
	plx_rpc_service_destroy(service);
	return rc;
}

TRY(plx_rpc_service_attr, try_rpc((struct try_rpc){.service = attr}))
TRY(plx_rpc_client_attr, try_rpc((struct try_rpc){.client = attr}))
TRY(plx_rpc_method, try_rpc((struct try_rpc){.method = *(const struct plx_rpc_method *)attr}))
TRY(plx_rpc_call, try_rpc((struct try_rpc){.call = *(const struct plx_rpc_call *)attr}))

/* NetIO ---------------------------------------------------------------------------------------- */

static unsigned received;

PLX_COUNTS(on_received, received, struct netio_recv_socket *socket, const struct netio_msg *msg)

static int listen_up(const struct netio_listen_attr *attr)
{
	int rc = netio_listen_socket_init(&ctx.evloop, &heard.socket, attr);

	if (rc)
		return rc;
	received = 0;
	heard.socket.cb_msg_received = on_received;
	return netio_listen(&heard.socket, "127.0.0.1", 0);
}

static int try_send(const struct netio_listen_attr *listen,
		    const struct netio_connect_attr *connect)
{
	struct netio_send_socket sending;
	struct netio_msg msg;
	int rc = listen_up(listen);

	if (rc)
		return rc;
	rc = netio_send_socket_init(&ctx.evloop, &sending, connect);
	if (rc == 0) {
		connect_to_listening(&sending);
		TURN_UNTIL(netio_send(&sending, "hello", 5) == NETIO_STATUS_OK);
		TURN_UNTIL(received == 1 || netio_recv(&heard.socket, &msg) == 0);
		netio_send_socket_fini(&sending);
	}
	netio_listen_socket_fini(&heard.socket);
	return rc;
}

TRY(netio_listen_attr, try_send(attr, NULL))
TRY(netio_connect_attr, try_send(NULL, attr))

static int try_netio_buffered_attr(const void *attr)
{
	struct netio_buffered_send_socket sending;
	int rc = netio_buffered_send_socket_init(&ctx.evloop, &sending, attr);

	if (rc)
		return rc;
	assert_int_equal(listen_up(NULL), 0);
	connect_buffered_to_listening(&sending);
	TURN_UNTIL(netio_buffered_send(&sending, "hello", 5) == NETIO_STATUS_OK);
	assert_int_equal(netio_buffered_flush(&sending), NETIO_STATUS_OK);
	TURN_UNTIL(received == 1);
	netio_buffered_send_socket_fini(&sending);
	netio_listen_socket_fini(&heard.socket);
	return 0;
}

PLX_COUNTS(on_published, received, struct netio_subscribe_socket *socket,
	   const struct netio_msg *msg)

static int try_publish(const struct netio_publish_attr *publish,
		       const struct netio_subscribe_attr *subscribe)
{
	struct netio_subscribe_socket subscribing = {0};
	struct netio_publish_socket publishing;
	int rc = netio_publish_socket_init(&ctx.evloop, &publishing, publish);

	if (rc)
		return rc;
	received = 0;
	assert_int_equal(netio_publish_listen(&publishing, "127.0.0.1", 0), 0);
	rc = netio_subscribe_socket_init(&ctx.evloop, &subscribing, subscribe);
	if (rc == 0) {
		subscribing.cb_msg_received = on_published;
		assert_works(netio_subscribe(&subscribing, "127.0.0.1",
					     netio_publish_socket_port(&publishing), 7));
		TURN_UNTIL(netio_buffered_publish(&publishing, 7, "hello", 5, 0, NULL) ==
			   NETIO_STATUS_OK);
		netio_buffered_publish_flush(&publishing);
		TURN_UNTIL(received == 1);
	}
	netio_subscribe_socket_fini(&subscribing);
	netio_publish_socket_fini(&publishing);
	return rc;
}

TRY(netio_publish_attr, try_publish(attr, NULL))
TRY(netio_subscribe_attr, try_publish(NULL, attr))

#endif
