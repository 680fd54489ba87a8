/* SPDX-License-Identifier: BSD-3-Clause */
/* The receivers of a push socket: connections, and messages of those that close. */
#include "push.h"

#include <stdlib.h>

/* Open receivers ------------------------------------------------------------------------------ */

static void update_message_max(struct netio_push_core *core)
{
	const struct netio_connection *it;

	core->message_max = 0;
	LIST_FOREACH (it, &core->hub.connections, peers)
		if (((const struct push_receiver *)it)->is_open &&
		    core->message_max < it->message_max)
			core->message_max = it->message_max;
}

static void join(struct push_receiver *receiver)
{
	struct netio_push_core *core = receiver->core;

	receiver->is_open = true;
	receiver->is_full = receiver->is_ending = false;
	receiver->is_suspect = plx_link_is_suspect(receiver->connection.session.link);
	core->open++;
	core->suspect += receiver->is_suspect;
	update_message_max(core);
	push_place(receiver);
	/* It may accept messages that the others do not. */
	push_append_all(&core->oversized, &core->waiting);
	push_append_all(&core->waiting, &core->oversized);
}

void push_leave(struct push_receiver *receiver)
{
	struct netio_push_core *core = receiver->core;

	if (!receiver->is_open)
		return;
	receiver->is_open = false;
	core->open--;
	core->suspect -= receiver->is_suspect;
	core->ending -= receiver->is_ending;
	update_message_max(core);
	push_place(receiver);
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

		if (!receiver->is_ending || !receiver->is_open)
			continue;
		push_leave(receiver);
		plx_connector_settled(&receiver->connection.session);
	}
}

static bool on_settle(struct plx_connector *session)
{
	struct push_receiver *receiver = (struct push_receiver *)session;

	if (receiver->is_open && !receiver->is_ending) {
		receiver->is_ending = true;
		receiver->core->ending++;
	}
	if (receiver->core->hub.socket && receiver->is_open && !may_close(receiver->core))
		return false;
	push_leave(receiver);
	return true;
}

/* Room ---------------------------------------------------------------------------------------- */

static void report_room(struct netio_push_core *core)
{
	struct netio_push_socket *socket = core->hub.socket;

	if (!core->again_pending || core->waiting.count || core->open == core->ending ||
	    !push_choose(core, 0))
		return;
	core->again_pending = false;
	CALL_USER(socket, cb_buffers_available, socket);
}

static void resume(struct netio_push_core *core)
{
	if (plx_unlikely(core->waiting.count))
		push_send_waiting(core);
	if (plx_unlikely(core->ending))
		close_ending(core);
	if (plx_unlikely(core->again_pending))
		report_room(core);
}

static void finish(struct push_receiver *receiver, uint32_t unfinished)
{
	while (receiver->in_flight.count > unfinished) {
		plx_buf_unref(push_take_first(&receiver->in_flight)->buf);
		receiver->finished++;
		receiver->core->finished++;
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

	if (receiver->is_open)
		core->suspect += suspect - receiver->is_suspect;
	receiver->is_suspect = suspect;
	push_place(receiver);
	notify_suspect(connection, suspect);
	resume(core);
}

/* The connection ------------------------------------------------------------------------------- */

static void on_opened(struct plx_connector *session)
{
	struct push_receiver *receiver = (struct push_receiver *)session;
	struct netio_push_core *core = receiver->core;

	receiver->pub.provider = plx_link_provider(session->link);
	join(receiver);
	push_send_waiting(core);
	notify_opened(session);
	resume(core);
}

/* Process what the peer's last frames reported. */
static void on_look_back(struct plx_connector *session, const struct plx_link *link)
{
	struct push_receiver *receiver = (struct push_receiver *)session;

	push_leave(receiver);
	finish(receiver, plx_link_unfinished(link));
}

static void requeue(struct push_receiver *receiver)
{
	struct netio_push_core *core = receiver->core;
	uint32_t count = receiver->in_flight.count;

	receiver->taken_away += count;
	if (core->promise == NETIO_PUSH_AT_LEAST_ONCE) {
		push_append_all(&core->waiting, &receiver->in_flight);
		return;
	}
	core->lost += count;
	push_drop_all(&receiver->in_flight);
}

static void on_ended(struct plx_connector *session)
{
	((struct push_receiver *)session)->pub.provider = "";
}

static void on_closed(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	struct push_receiver *receiver = (struct push_receiver *)session;
	struct netio_push_core *core = receiver->core;

	requeue(receiver);
	push_send_waiting(core);
	notify_closed(session, reason, why);
	if (receiver->connection.socket && session->state == PLX_CONNECTOR_IDLE && session->quit)
		push_receiver_release(receiver);
	resume(core);
}

static const struct connection_owner owner = {
	.session = {.hello = connection_on_hello,
		    .opened = on_opened,
		    .refused = notify_refused,
		    .closed = on_closed,
		    .look_back = on_look_back,
		    .settle = on_settle,
		    .ended = on_ended,
		    .free = push_receiver_free},
	.role = WIRE_SENDER,
	.suspect = on_suspect,
	.received = on_received,
	.writable = on_writable,
	.credit = on_credit,
};

/* The receiver --------------------------------------------------------------------------------- */

int push_receiver_create(struct netio_push_core *core, const char *address)
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
		.provider = "",
	};
	push_queue_init(&receiver->in_flight);
	rc = netio_logged(hub_open(&receiver->connection));
	if (rc)
		push_receiver_release(receiver);
	return rc;
}

void push_receiver_release(struct push_receiver *receiver)
{
	push_leave(receiver);
	push_drop_all(&receiver->in_flight);
	plx_connector_settled(&receiver->connection.session); /* if it is settling */
	connection_release(&receiver->connection);
}
