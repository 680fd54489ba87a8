/* SPDX-License-Identifier: BSD-3-Clause */
/* The push socket and its list of receivers. */
#include "push.h"

#include <stdio.h>
#include <stdlib.h>

/* of this lcore */
static __thread LIST_HEAD(push_cores, netio_push_core) all;

/* Memory ------------------------------------------------------------------------------------- */

static void free_if_done(struct netio_push_core *core)
{
	if (core->socket || !LIST_EMPTY(&core->receivers))
		return;
	plx_pool_destroy(core->pool);
	free(core);
}

void push_receiver_freed(struct push_receiver *receiver)
{
	struct netio_push_core *core = receiver->core;

	LIST_REMOVE(receiver, link);
	free(receiver);
	free_if_done(core);
}

/* The socket ---------------------------------------------------------------------------------- */

/* Return: 0; -EINVAL. */
static int check_attr(const struct netio_push_attr *attr, struct netio_push_core *core)
{
	int rc = connection_check_attr(&attr->connect, &core->connect);

	if (rc)
		return rc;
	if ((unsigned)attr->promise > NETIO_PUSH_AT_MOST_ONCE)
		return plx_fail(EINVAL,
				"netio_push_socket_init: promise %d; give one of enum "
				"netio_push_promise",
				(int)attr->promise);
	core->promise = attr->promise;
	if (attr->connect.provider)
		snprintf(core->provider, sizeof(core->provider), "%s", attr->connect.provider);
	core->connect.provider = attr->connect.provider ? core->provider : NULL;
	return 0;
}

int netio_push_socket_init(struct netio_eventloop *evloop, struct netio_push_socket *socket,
			   const struct netio_push_attr *attr)
{
	const struct netio_push_attr defaults = {0};
	struct netio_push_core *core;
	int rc;

	*socket = (struct netio_push_socket){0};
	rc = netio_check(evloop, "netio_push_socket_init");
	if (rc)
		return rc;
	core = calloc(1, sizeof(*core));
	if (!core)
		return netio_fail(plx_fail(ENOMEM, "netio_push_socket_init: out of memory"));
	rc = check_attr(attr ? attr : &defaults, core);
	if (rc == 0)
		rc = push_pool_create(core);
	if (rc) {
		free(core);
		return netio_fail(rc);
	}
	push_queue_init(&core->waiting);
	push_queue_init(&core->oversized);
	push_index_init(&core->responsive);
	push_index_init(&core->suspected);
	core->socket = socket;
	core->evloop = evloop;
	LIST_INSERT_HEAD(&all, core, link);
	socket->core = core;
	return 0;
}

static void lose_what_waits(struct netio_push_core *core)
{
	uint32_t count = core->waiting.count + core->oversized.count;

	if (count)
		plx_log(&netio_log, PLX_LOG_WARNING,
			"a push socket ends: %u messages of receivers that went away, and that no "
			"other one had room for, are lost",
			count);
	push_drop_all(&core->waiting);
	push_drop_all(&core->oversized);
}

void netio_push_socket_fini(struct netio_push_socket *socket)
{
	struct netio_push_core *core = socket->core;
	struct push_receiver *receiver, *next;

	ASSERT_LOOP(core, core->evloop);
	socket->core = NULL;
	if (!core)
		return;
	LIST_REMOVE(core, link);
	lose_what_waits(core);
	for (receiver = LIST_FIRST(&core->receivers); receiver; receiver = next) {
		next = LIST_NEXT(receiver, link);
		if (receiver->connection.socket)
			push_receiver_release(receiver);
	}
	core->socket = NULL;
	free_if_done(core);
}

void push_release_all(struct netio_eventloop *evloop)
{
	struct netio_push_core *core, *next;

	for (core = LIST_FIRST(&all); core; core = next) {
		next = LIST_NEXT(core, link);
		if (core->evloop == evloop)
			netio_push_socket_fini(core->socket);
	}
}

/* Receivers ----------------------------------------------------------------------------------- */

/* Find the receiver with this address, except released ones. Return: 0; *receiver_out may be NULL;
 * -EINVAL, logged. */
static int find(const char *what, const struct netio_push_socket *socket, const char *host,
		unsigned port, char address[PLX_ADDRESS_MAX], struct push_receiver **receiver_out)
{
	struct push_receiver *receiver;
	int rc = socket->core ? netio_address(what, host, port, address)
			      : plx_fail(EINVAL, "%s: the socket is not set up", what);

	if (rc)
		return netio_fail(rc);
	LIST_FOREACH (receiver, &socket->core->receivers, link)
		if (receiver->connection.socket && strcmp(receiver->address, address) == 0)
			break;
	*receiver_out = receiver;
	return 0;
}

int netio_push_connect(struct netio_push_socket *socket, const char *host, unsigned port)
{
	char address[PLX_ADDRESS_MAX];
	struct push_receiver *receiver;
	int rc;

	ASSERT_LOOP(socket->core, socket->core->evloop);
	rc = find("netio_push_connect", socket, host, port, address, &receiver);
	if (rc)
		return rc;
	if (!receiver)
		return push_receiver_create(socket->core, host, port, address);
	if (receiver->connection.session.state ==
	    PLX_CONNECTOR_IDLE) /* reconnecting was switched off */
		return connection_open(&receiver->connection, host, port);
	if (receiver->connection.session.quit)
		return netio_fail(plx_fail(EALREADY,
					   "netio_push_connect: %s is being disconnected; wait for "
					   "its cb_connection_closed",
					   address));
	return netio_fail(
		plx_fail(EEXIST, "netio_push_connect: %s is one of them already", address));
}

int netio_push_disconnect(struct netio_push_socket *socket, const char *host, unsigned port)
{
	char address[PLX_ADDRESS_MAX];
	struct push_receiver *receiver = NULL;
	int rc;

	ASSERT_LOOP(socket->core, socket->core->evloop);
	rc = find("netio_push_disconnect", socket, host, port, address, &receiver);
	if (rc)
		return rc;
	if (!receiver)
		return netio_fail(
			plx_fail(ENOENT, "netio_push_disconnect: %s is none of them", address));
	if (receiver->connection.session.state != PLX_CONNECTOR_IDLE)
		return connection_close(&receiver->connection);
	push_receiver_release(receiver);
	return 0;
}

/* Statistics ---------------------------------------------------------------------------------- */

void netio_push_stats(const struct netio_push_socket *socket, struct netio_push_stats *stats_out)
{
	const struct netio_push_core *core = socket->core;
	const struct push_receiver *receiver;

	ASSERT_LOOP(core, core->evloop);
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
	LIST_FOREACH (receiver, &core->receivers, link) {
		stats_out->receivers += receiver->connection.socket != NULL;
		stats_out->under_way += receiver->in_flight.count;
	}
}

void netio_push_receiver_stats(const struct netio_push_receiver *receiver,
			       struct netio_push_receiver_stats *stats_out)
{
	const struct push_receiver *its = plx_container_of(receiver, struct push_receiver, pub);

	ASSERT_OWNER(its->core->evloop->lcore_id);
	*stats_out = (struct netio_push_receiver_stats){
		.handed = its->handed,
		.finished = its->finished,
		.taken_away = its->taken_away,
		.under_way = its->in_flight.count,
		.credit = its->is_open ? plx_link_credit(its->connection.session.link) : 0,
	};
}
