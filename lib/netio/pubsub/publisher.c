/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to one publisher. It exists while there is a subscription to it. */
#include "pubsub_priv.h"

#include <stdio.h>
#include <stdlib.h>

static struct publisher *publisher_of(struct netio_connection *connection)
{
	return (struct publisher *)connection;
}

/* Closing ------------------------------------------------------------------------------------- */

/* Without subscriptions, close the connection and free the publisher. */
static void close_if_unused(struct publisher *publisher)
{
	if (publisher->interest_count || !publisher->core)
		return;
	if (publisher->connection.session.state == PLX_CONNECTOR_IDLE)
		publisher_release(publisher);
	else if (!publisher->connection.session.quit)
		connection_close(&publisher->connection);
}

static void report(struct plx_task *task, void *arg)
{
	struct publisher *publisher = arg;

	connection_hold(&publisher->connection);
	publisher_report_ended(publisher);
	close_if_unused(publisher);
	connection_unhold(&publisher->connection);
}

/* The connection ------------------------------------------------------------------------------ */

static bool give(struct intake *intake, const struct netio_msg *msg)
{
	struct publisher *publisher = plx_container_of(intake, struct publisher, intake);
	struct netio_subscribe_socket *socket = publisher_socket(publisher);

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
	if (!publisher->core)
		return;
	publisher->core->stats.gaps++;
	publisher->core->stats.missed[__builtin_ctz(reasons)] += count;
	SUBSCRIBE_CALLBACK(publisher, cb_gap, (&publisher->pub, &gap));
}

static const char *on_received(struct netio_connection *connection, struct plx_buf *message)
{
	struct publisher *publisher = publisher_of(connection);
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

DEFINE_NOTIFY_CONNECTING(notify, netio_subscribe_socket)

static void on_established(struct netio_connection *connection, const struct notice *notice)
{
	struct publisher *publisher = publisher_of(connection);

	publisher->pub.provider = plx_link_provider(connection->session.link);
	connection_notify(connection, notice);
	if (publisher->core) {
		publisher_send_requests(publisher);
		close_if_unused(publisher);
	}
}

static void on_closed(struct netio_connection *connection, const struct notice *notice)
{
	struct publisher *publisher = publisher_of(connection);

	publisher_reset(publisher);
	publisher_report_ended(publisher);
	publisher_report_lost(publisher, notice->why);
	connection_notify(connection, notice);
	if (publisher->core && publisher->interest_count == 0)
		publisher_release(publisher);
	else if (publisher->core && publisher->connection.session.state == PLX_CONNECTOR_IDLE &&
		 connection->session.quit && !publisher->core->evloop->draining)
		/* It was closed without subscriptions, but has one again. */
		plx_connector_open_again(&publisher->connection.session);
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
	struct publisher *publisher = publisher_of(connection);

	publisher->is_full = false;
	if (publisher->core)
		publisher_send_requests(publisher);
}

static void on_free(struct netio_connection *connection)
{
	struct publisher *publisher = publisher_of(connection);

	publisher_free_interests(publisher);
	free(publisher);
}

static const struct connection_owner owner = {
	.session = {CONNECTION_SESSION, .ended = on_ended},
	.notify = notify,
	.on[NOTICE_ESTABLISHED] = on_established,
	.on[NOTICE_CLOSED] = on_closed,
	.received = on_received,
	.writable = on_writable,
	.free = on_free,
};

/* The publisher ------------------------------------------------------------------------------- */

struct publisher *publisher_find(const struct netio_subscribe_core *core, const char *address)
{
	struct publisher *publisher = LIST_FIRST(&core->all);

	while (publisher && strcmp(publisher->address, address) != 0)
		publisher = LIST_NEXT(publisher, link);
	return publisher;
}

struct publisher *publisher_create(struct netio_subscribe_core *core, const char *host,
				   unsigned port, const char *address)
{
	struct publisher *publisher = calloc(1, sizeof(*publisher));

	if (!publisher)
		return NULL;
	publisher->core = core;
	publisher->port = port;
	snprintf(publisher->host, sizeof(publisher->host), "%s", host);
	snprintf(publisher->address, sizeof(publisher->address), "%s", address);
	publisher->pub = (struct netio_publisher){
		.subscribe_socket = core->socket,
		.id = ++core->next_id,
		.address = publisher->address,
		.provider = "",
	};
	publisher->intake.give = give;
	publisher->intake.miss = miss;
	publisher->intake.source = publisher->pub.id;
	publisher->intake.message_max = core->connect.message_max_bytes;
	TAILQ_INIT(&publisher->to_request);
	TAILQ_INIT(&publisher->to_end);
	plx_task_init(&publisher->report_task, report, publisher);
	connection_init(&publisher->connection, core->evloop, core->socket, NULL, &owner,
			&core->connect);
	publisher->connection.cb_object = &publisher->pub;
	publisher->connection.role = WIRE_SUBSCRIBER;
	publisher->connection.link_attr = core->link_attr;
	LIST_INSERT_HEAD(&core->all, publisher, link);
	return publisher;
}

int publisher_open(struct publisher *publisher)
{
	if (publisher->connection.session.state != PLX_CONNECTOR_IDLE)
		return 0;
	return connection_open(&publisher->connection, publisher->host, publisher->port);
}

void publisher_release(struct publisher *publisher)
{
	LIST_REMOVE(publisher, link);
	publisher->core = NULL;
	plx_task_cancel(&publisher->report_task);
	connection_release(&publisher->connection);
}
