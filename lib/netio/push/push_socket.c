/* SPDX-License-Identifier: BSD-3-Clause */
/* The push socket. */
#include "push.h"

#include <stdlib.h>

static void free_if_done(struct netio_push_core *core)
{
	if (core->hub.socket || !LIST_EMPTY(&core->hub.connections))
		return;
	plx_pool_destroy(core->pool);
	free(core);
}

void push_receiver_free(struct plx_connector *session)
{
	struct push_receiver *receiver = (struct push_receiver *)session;
	struct netio_push_core *core = receiver->core;

	LIST_REMOVE(&receiver->connection, peers);
	free(receiver);
	free_if_done(core);
}

/* The socket ---------------------------------------------------------------------------------- */

/* Return: 0; -EINVAL. */
static int check_attr(const struct netio_push_attr *attr, struct netio_push_core *core)
{
	core->promise = attr->promise;
	if ((unsigned)attr->promise > NETIO_PUSH_AT_MOST_ONCE)
		return plx_fail(EINVAL,
				"netio_push_socket_init: promise %d; give one of enum "
				"netio_push_promise",
				(int)attr->promise);
	return hub_check_attr(&core->hub, &attr->connect);
}

static void on_fini(struct hub *hub)
{
	netio_push_socket_fini(hub->socket);
}

int netio_push_socket_init(struct netio_eventloop *evloop, struct netio_push_socket *socket,
			   const struct netio_push_attr *attr)
{
	static const struct netio_push_attr defaults;
	struct netio_push_core *core;
	int rc;

	*socket = (struct netio_push_socket){0};
	rc = netio_check(evloop, "netio_push_socket_init");
	if (rc)
		return rc;
	core = calloc(1, sizeof(*core));
	if (!core)
		return netio_fail(ENOMEM, "netio_push_socket_init: out of memory");
	rc = check_attr(attr ?: &defaults, core);
	rc = netio_logged(rc ?: push_pool_create(core));
	if (rc) {
		free(core);
		return rc;
	}
	push_queue_init(&core->waiting);
	push_queue_init(&core->oversized);
	push_index_init(&core->responsive);
	push_index_init(&core->suspected);
	hub_init(&core->hub, evloop, socket, on_fini);
	socket->core = core;
	return 0;
}

static void lose_waiting(struct netio_push_core *core)
{
	push_append_all(&core->waiting, &core->oversized);
	if (core->waiting.count)
		plx_log(netio_log, PLX_LOG_WARNING,
			"a push socket ends: %u messages of receivers that went away, and that no "
			"other one had room for, are lost",
			core->waiting.count);
	push_drop_all(&core->waiting);
}

void netio_push_socket_fini(struct netio_push_socket *socket)
{
	struct netio_push_core *core = socket->core;
	struct netio_connection *connection, *next;

	ASSERT_LOOP(core, core->hub.evloop);
	socket->core = NULL;
	if (!core)
		return;
	LIST_REMOVE(&core->hub, link);
	lose_waiting(core);
	LIST_FOREACH_SAFE (connection, &core->hub.connections, peers, next)
		if (connection->socket)
			push_receiver_release((struct push_receiver *)connection);
	core->hub.socket = NULL;
	free_if_done(core);
}

/* Receivers ----------------------------------------------------------------------------------- */

int netio_push_connect(struct netio_push_socket *socket, const char *host, unsigned port)
{
	struct netio_push_core *core = socket->core;
	struct netio_connection *connection;
	char address[PLX_ADDRESS_MAX];
	int rc;

	ASSERT_LOOP(core, core->hub.evloop);
	rc = hub_find((struct hub *)core, "netio_push_connect", host, port, address, &connection);
	if (rc)
		return netio_logged(rc);
	if (!connection)
		return push_receiver_create(core, address);
	if (connection->session.state == PLX_CONNECTOR_IDLE) /* reconnecting was switched off */
		return netio_logged(hub_open(connection));
	if (connection->session.quit)
		return netio_fail(EALREADY,
				  "netio_push_connect: %s is being disconnected; wait for its "
				  "cb_connection_closed",
				  address);
	return netio_fail(EEXIST, "netio_push_connect: %s is one of them already", address);
}

int netio_push_disconnect(struct netio_push_socket *socket, const char *host, unsigned port)
{
	struct netio_push_core *core = socket->core;
	struct netio_connection *connection = NULL;
	char address[PLX_ADDRESS_MAX];
	int rc;

	ASSERT_LOOP(core, core->hub.evloop);
	rc = hub_find((struct hub *)core, "netio_push_disconnect", host, port, address,
		      &connection);
	if (rc)
		return netio_logged(rc);
	if (!connection)
		return netio_fail(ENOENT, "netio_push_disconnect: %s is none of them", address);
	if (connection->session.state != PLX_CONNECTOR_IDLE)
		return connection_close(connection);
	push_receiver_release((struct push_receiver *)connection);
	return 0;
}

/* Statistics ---------------------------------------------------------------------------------- */

void netio_push_stats(const struct netio_push_socket *socket, struct netio_push_stats *stats_out)
{
	const struct netio_push_core *core = socket->core;
	const struct netio_connection *it;

	ASSERT_LOOP(core, core->hub.evloop);
	*stats_out = (struct netio_push_stats){0};
	if (!core)
		return;
	*stats_out = (struct netio_push_stats){
		.messages = core->messages,
		.again = core->again,
		.finished = core->finished,
		.handed_again = core->handed_again,
		.lost = core->lost,
		.waiting = core->waiting.count + core->oversized.count,
		.connected = core->open - core->ending,
	};
	LIST_FOREACH (it, &core->hub.connections, peers) {
		stats_out->receivers += it->socket != NULL;
		stats_out->under_way += ((const struct push_receiver *)it)->in_flight.count;
	}
}

void netio_push_receiver_stats(const struct netio_push_receiver *receiver,
			       struct netio_push_receiver_stats *stats_out)
{
	const struct push_receiver *its = plx_container_of(receiver, struct push_receiver, pub);

	ASSERT_OWNER(its->connection.evloop->lcore_id);
	*stats_out = (struct netio_push_receiver_stats){
		.handed = its->handed,
		.finished = its->finished,
		.taken_away = its->taken_away,
		.under_way = its->in_flight.count,
		.credit = its->is_open ? plx_link_credit(its->connection.session.link) : 0,
	};
}
