/* SPDX-License-Identifier: BSD-3-Clause */
/* The push socket, and connections to its receivers. */
#include "push.h"

#include <stdlib.h>

/* A receiver has joined, left or changed. */
static void recount(struct netio_push_core *core)
{
	struct netio_connection *it;

	core->open = core->suspect = core->ending = 0;
	core->message_max = 0;
	LIST_FOREACH (it, &core->hub.connections, peers) {
		const struct push_receiver *receiver = (struct push_receiver *)it;

		if (!receiver->is_open)
			continue;
		core->open++;
		core->suspect += receiver->is_suspect;
		core->ending += it->session.base.closing;
		if (core->message_max < it->message_max)
			core->message_max = message_copy_max(it->message_max);
	}
	LIST_FOREACH (it, &core->hub.connections, peers)
		push_place((struct push_receiver *)it);
}

void push_leave(struct push_receiver *receiver)
{
	if (!receiver->is_open)
		return;
	receiver->is_open = false;
	recount(receiver->core);
}

/* The last receiver stays while messages wait that only it can get. */
static bool may_close(const struct netio_push_core *core)
{
	return core->waiting.count == 0 || core->open > core->ending;
}

static void close_ending(struct netio_push_core *core)
{
	struct netio_connection *it;

	if (core->ending == 0 || !may_close(core))
		return;
	LIST_FOREACH (it, &core->hub.connections, peers) {
		struct push_receiver *receiver = (struct push_receiver *)it;

		if (!it->session.base.closing || !receiver->is_open)
			continue;
		push_leave(receiver);
		session_link_settled(&receiver->connection.session.base);
	}
}

static bool on_settle(struct session_link *session)
{
	struct push_receiver *receiver = (struct push_receiver *)session;

	recount(receiver->core);
	if (receiver->core->hub.socket && receiver->is_open && !may_close(receiver->core))
		return false;
	push_leave(receiver);
	return true;
}

/* Room ---------------------------------------------------------------------------------------- */

static void resume(struct netio_push_core *core)
{
	struct netio_push_socket *socket = core->hub.socket;

	if (plx_unlikely(core->waiting.count))
		push_send_waiting(core);
	if (plx_unlikely(core->ending))
		close_ending(core);
	if (plx_likely(!core->again_pending) || core->waiting.count || core->open == core->ending ||
	    !push_choose(core, 0))
		return;
	core->again_pending = false;
	CALL_USER(socket, cb_buffers_available, socket);
}

static void finish(struct push_receiver *receiver, uint32_t unfinished)
{
	while (receiver->in_flight.count > unfinished) {
		plx_buf_unref(push_take_first(&receiver->in_flight)->buf);
		receiver->stats.finished++;
		receiver->core->stats.finished++;
	}
}

static void on_credit(struct netio_connection *connection)
{
	struct push_receiver *receiver = (struct push_receiver *)connection;
	struct netio_push_core *core = receiver->core;

	if (!core->hub.socket)
		return;
	finish(receiver, plx_link_unfinished(connection->session.link));
	push_place(receiver);
	resume(core);
}

static void on_writable(struct netio_connection *connection)
{
	struct push_receiver *receiver = (struct push_receiver *)connection;
	struct netio_push_core *core = receiver->core;

	receiver->is_full = false;
	if (!core->hub.socket || !receiver->is_open)
		return;
	push_place(receiver);
	resume(core);
}

DEFINE_NOTIFY(netio_push_socket)
DEFINE_ANSWERED(netio_push_socket)

static void on_suspect(struct netio_connection *connection, bool suspect)
{
	struct push_receiver *receiver = (struct push_receiver *)connection;
	struct netio_push_core *core = receiver->core;

	receiver->is_suspect = suspect;
	recount(core);
	notify_suspect(connection, suspect);
	resume(core);
}

/* The connection ------------------------------------------------------------------------------- */

static void on_opened(struct plx_connector *session)
{
	struct push_receiver *receiver = (struct push_receiver *)session;
	struct netio_push_core *core = receiver->core;

	SHOW_PEER(&receiver->pub, session->link);
	receiver->is_open = true;
	receiver->is_full = false;
	receiver->is_suspect = plx_link_is_suspect(session->link);
	recount(core);
	/* It may accept messages that the others do not. */
	push_append_all(&core->oversized, &core->waiting);
	push_append_all(&core->waiting, &core->oversized);
	push_send_waiting(core);
	notify_opened(session);
	resume(core);
}

static void requeue(struct push_receiver *receiver)
{
	struct netio_push_core *core = receiver->core;
	uint32_t count = receiver->in_flight.count;

	receiver->stats.taken_away += count;
	if (core->promise == NETIO_PUSH_AT_LEAST_ONCE) {
		push_append_all(&core->waiting, &receiver->in_flight);
		return;
	}
	core->stats.lost += count;
	push_drop_all(&receiver->in_flight);
}

static void on_ended(struct plx_connector *session, const struct plx_link *link)
{
	struct push_receiver *receiver = (struct push_receiver *)session;

	push_leave(receiver);
	if (link) /* process what the peer's last frames reported */
		finish(receiver, plx_link_unfinished(link));
}

static void release(struct push_receiver *receiver)
{
	push_leave(receiver);
	push_drop_all(&receiver->in_flight);
	session_link_settled(&receiver->connection.session.base); /* if it is settling */
	connection_release(&receiver->connection);
}

static void hide_peer(struct netio_push_receiver **shown)
{
	HIDE_PEER(*shown);
}

static void on_closed(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	struct push_receiver *receiver = (struct push_receiver *)session;
	struct netio_push_core *core = receiver->core;
	struct netio_push_receiver *shown PLX_CLEANUP(hide_peer) = &receiver->pub;

	requeue(receiver);
	push_send_waiting(core);
	notify_closed(session, reason, why);
	if (receiver->connection.socket && session->state == PLX_CONNECTOR_IDLE && session->quit)
		release(receiver);
	resume(core);
}

static void free_if_done(struct netio_push_core *core)
{
	if (core->hub.socket || !LIST_EMPTY(&core->hub.connections))
		return;
	plx_pool_destroy(core->pool);
	free(core);
}

static void on_free(struct plx_connector *session)
{
	struct push_receiver *receiver = (struct push_receiver *)session;
	struct netio_push_core *core = receiver->core;

	LIST_REMOVE(&receiver->connection, peers);
	free(receiver);
	free_if_done(core);
}

static const struct connection_owner owner = {
	.session = {CONNECTION_SESSION, .opened = on_opened, .closed = on_closed,
		    .base.settle = on_settle, .ended = on_ended, .free = on_free},
	.role = WIRE_SENDER,
	.suspect = on_suspect,
	.received = on_received,
	.writable = on_writable,
	.credit = on_credit,
};

/* The socket ---------------------------------------------------------------------------------- */

static void on_end(struct hub *hub)
{
	struct netio_push_core *core = (struct netio_push_core *)hub;
	struct netio_connection *connection, *next;

	((struct netio_push_socket *)hub->socket)->core = NULL;
	LIST_REMOVE(hub, link);
	push_append_all(&core->waiting, &core->oversized);
	if (core->waiting.count)
		plx_log(netio_log, PLX_LOG_WARNING,
			"a push socket ends: %u messages of receivers that went away, and that no "
			"other one had room for, are lost",
			core->waiting.count);
	push_drop_all(&core->waiting);
	LIST_FOREACH_SAFE (connection, &hub->connections, peers, next)
		if (connection->socket)
			release((struct push_receiver *)connection);
	hub->socket = NULL;
	free_if_done(core);
}

int netio_push_socket_init(struct netio_eventloop *evloop, struct netio_push_socket *socket,
			   const struct netio_push_attr *attr)
{
	struct netio_push_core *core;
	int rc;

	*socket = (struct netio_push_socket){0};
	core = netio_allocate(evloop, "netio_push_socket_init", sizeof(*core), &rc);
	if (!core)
		return rc;
	attr = attr ?: &(struct netio_push_attr){0};
	core->promise = attr->promise;
	rc = netio_check_enum("promise", attr->promise, NETIO_PUSH_AT_MOST_ONCE + 1,
			      "netio_push_promise")
		   ?: connection_check_attr(&attr->connect, &core->hub.attr);
	rc = rc ?: message_make_pool("netio push", PUSH_SHORT_COUNT, PUSH_SHORT_BYTES, &core->pool);
	if (rc) {
		free(core);
		return netio_logged(rc);
	}
	STAILQ_INIT(&core->waiting.list);
	STAILQ_INIT(&core->oversized.list);
	for (unsigned i = 0; i <= PUSH_CREDIT_MAX; i++)
		TAILQ_INIT(&core->at[i]);
	hub_init(&core->hub, evloop, socket, on_end);
	socket->core = core;
	return 0;
}

void netio_push_socket_fini(struct netio_push_socket *socket)
{
	ASSERT_LOOP(socket->core, socket->core->hub.evloop);
	if (socket->core)
		on_end(&socket->core->hub);
}

/* Receivers ----------------------------------------------------------------------------------- */

static int create(struct netio_push_core *core, const char *address)
{
	struct push_receiver *receiver = calloc(1, sizeof(*receiver));
	int rc;

	if (!receiver)
		return netio_fail(ENOMEM, "netio_push_connect: out of memory");
	hub_add(&core->hub, &receiver->connection, &owner, &receiver->pub, address);
	receiver->core = core;
	receiver->pub = (struct netio_push_receiver){
		.push_socket = core->hub.socket,
		.id = receiver->connection.source,
		.address = receiver->connection.session.address,
	};
	HIDE_PEER(&receiver->pub);
	STAILQ_INIT(&receiver->in_flight.list);
	rc = netio_logged(plx_connector_open(&receiver->connection.session, address));
	if (rc)
		release(receiver);
	return rc;
}

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
	rc = netio_check_open(core->hub.evloop, "netio_push_connect");
	if (rc)
		return rc;
	if (!connection)
		return create(core, address);
	if (connection->session.state == PLX_CONNECTOR_IDLE) /* reconnecting was switched off */
		return netio_logged(
			plx_connector_open(&connection->session, connection->session.address));
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
	release((struct push_receiver *)connection);
	return 0;
}

void netio_push_stats_read(const struct netio_push_socket *socket,
			   struct netio_push_stats *stats_out)
{
	const struct netio_push_core *core = socket->core;
	const struct netio_connection *it;

	ASSERT_LOOP(core, core->hub.evloop);
	*stats_out = (struct netio_push_stats){0};
	if (!core)
		return;
	*stats_out = core->stats;
	stats_out->waiting = core->waiting.count + core->oversized.count;
	stats_out->connected = core->open - core->ending;
	LIST_FOREACH (it, &core->hub.connections, peers) {
		stats_out->receivers += it->socket != NULL;
		stats_out->under_way += ((const struct push_receiver *)it)->in_flight.count;
	}
}

void netio_push_receiver_stats_read(const struct netio_push_receiver *receiver,
				    struct netio_push_receiver_stats *stats_out)
{
	const struct push_receiver *its = plx_container_of(receiver, struct push_receiver, pub);

	ASSERT_OWNER(its->connection.evloop->lcore_id);
	*stats_out = its->stats;
	stats_out->under_way = its->in_flight.count;
	if (its->is_open)
		stats_out->credit = plx_link_credit(its->connection.session.link);
}
