/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to one publisher. It exists while there is a subscription to it. */
#include "pubsub_priv.h"

#include <stdlib.h>

/* Without subscriptions, close the connection and free the publisher. */
static void close_if_unused(struct publisher *publisher)
{
	if (publisher->interest_count || !publisher->connection.socket)
		return;
	if (publisher->connection.session.state == PLX_CONNECTOR_IDLE)
		publisher_release(publisher);
	else if (!publisher->connection.session.quit)
		connection_close(&publisher->connection);
}

static void report(struct plx_task *task, void *arg)
{
	struct publisher *publisher = arg;

	plx_connector_hold(&publisher->connection.session);
	publisher_report_ended(publisher);
	close_if_unused(publisher);
	plx_connector_unhold(&publisher->connection.session);
}

/* The connection ------------------------------------------------------------------------------ */

static bool give(struct intake *intake, const struct netio_msg *msg)
{
	struct publisher *publisher = plx_container_of(intake, struct publisher, intake);
	struct netio_subscribe_socket *socket = publisher->connection.socket;

	publisher->number++;
	if (plx_unlikely(!socket))
		return true;
	publisher->core->stats.messages++;
	if (socket->cb_msg_received)
		socket->cb_msg_received(socket, msg);
	return true;
}

static void miss(struct intake *intake, uint64_t count, uint32_t reasons)
{
	struct publisher *publisher = plx_container_of(intake, struct publisher, intake);
	struct netio_gap gap = {
		.first = publisher->number + 1,
		.last = publisher->number + count,
		.reasons = reasons,
	};

	publisher->number = gap.last;
	if (!publisher->connection.socket)
		return;
	publisher->core->stats.gaps++;
	publisher->core->stats.missed[__builtin_ctz(reasons)] += count;
	CALL_USER(publisher_socket(publisher), cb_gap, &publisher->pub, &gap);
}

static const char *on_received(struct netio_connection *connection, struct plx_buf *message)
{
	struct publisher *publisher = (struct publisher *)connection;
	const char *wrong = NULL;

	if (message->len > 0 && message->data[0] == WIRE_ANSWER) {
		wrong = publisher_handle_answers(publisher, message);
		if (!wrong)
			close_if_unused(publisher);
	} else if (intake_take(&publisher->intake, message, &wrong) != -EPROTO) {
		wrong = NULL;
	}
	return wrong;
}

DEFINE_NOTIFY(netio_subscribe_socket)

static void on_opened(struct plx_connector *session)
{
	struct publisher *publisher = (struct publisher *)session;

	publisher->pub.provider = plx_link_provider(session->link);
	notify_opened(session);
	publisher_send_requests(publisher);
	close_if_unused(publisher);
}

static void on_closed(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	struct publisher *publisher = (struct publisher *)session;
	const struct netio_connection *connection = &publisher->connection;

	publisher_reset(publisher);
	publisher_report_ended(publisher);
	publisher_report_lost(publisher, why);
	notify_closed(session, reason, why);
	if (connection->socket && publisher->interest_count == 0)
		publisher_release(publisher);
	else if (connection->socket && session->state == PLX_CONNECTOR_IDLE && session->quit &&
		 !connection->evloop->draining)
		/* It was closed without subscriptions, but has one again. */
		plx_connector_open_again(session);
}

static void on_ended(struct plx_connector *session)
{
	struct publisher *publisher = (struct publisher *)session;

	publisher->pub.provider = "";
	publisher->is_full = false;
	publisher->number = 0;
}

static void on_writable(struct netio_connection *connection)
{
	struct publisher *publisher = (struct publisher *)connection;

	publisher->is_full = false;
	publisher_send_requests(publisher);
}

static void on_free(struct plx_connector *session)
{
	publisher_free_interests((struct publisher *)session);
	free(session);
}

static const struct connection_owner owner = {
	.session = {.hello = connection_on_hello,
		    .opened = on_opened,
		    .refused = notify_refused,
		    .closed = on_closed,
		    .ended = on_ended,
		    .free = on_free},
	.role = WIRE_SUBSCRIBER,
	.suspect = notify_suspect,
	.received = on_received,
	.writable = on_writable,
};

/* The publisher ------------------------------------------------------------------------------- */

struct publisher *publisher_create(struct netio_subscribe_core *core, const char *address)
{
	struct publisher *publisher = calloc(1, sizeof(*publisher));

	if (!publisher)
		return NULL;
	hub_add(&core->hub, &publisher->connection, &owner, &publisher->pub, address);
	publisher->core = core;
	publisher->pub = (struct netio_publisher){
		.subscribe_socket = core->hub.socket,
		.id = publisher->connection.source,
		.address = publisher->connection.session.address,
		.provider = "",
	};
	publisher->intake = (struct intake){
		.give = give,
		.miss = miss,
		.source = publisher->connection.source,
		.message_max = publisher->connection.accepted_max,
	};
	TAILQ_INIT(&publisher->to_request);
	TAILQ_INIT(&publisher->to_end);
	plx_task_init(&publisher->report_task, report, publisher);
	return publisher;
}

int publisher_open(struct publisher *publisher)
{
	struct netio_connection *connection = &publisher->connection;

	return connection->session.state == PLX_CONNECTOR_IDLE ? hub_open(connection) : 0;
}

void publisher_release(struct publisher *publisher)
{
	LIST_REMOVE(&publisher->connection, peers);
	plx_task_cancel(&publisher->report_task);
	connection_release(&publisher->connection);
}
