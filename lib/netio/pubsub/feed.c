/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to one publisher, which is there for as long as something is wanted of it. */
#include "pubsub_priv.h"

#include <stdio.h>
#include <stdlib.h>

static struct feed *feed_of(struct netio_connection *connection)
{
	return (struct feed *)connection;
}

/* The end of it ------------------------------------------------------------------------------- */

/* Nothing is wanted of it any more: its connection ends, and it with it. */
static void close_if_unwanted(struct feed *feed)
{
	if (feed->want_count || !feed->feeds)
		return;
	if (feed->connection.session.state == PLX_CONNECTOR_IDLE)
		feed_release(feed);
	else if (!feed->connection.session.quit)
		connection_close(&feed->connection);
}

static void tell(struct plx_task *task, void *arg)
{
	struct feed *feed = arg;

	connection_hold(&feed->connection);
	feed_tell_ended(feed);
	close_if_unwanted(feed);
	connection_unhold(&feed->connection);
}

/* The connection ------------------------------------------------------------------------------ */

static bool give(struct intake *intake, const struct netio_msg *msg)
{
	struct feed *feed = plx_container_of(intake, struct feed, intake);
	struct netio_subscribe_socket *socket = feed_socket(feed);

	feed->number++;
	if (plx_unlikely(!socket))
		return true;
	feed->feeds->stats.messages++;
	if (socket->cb_msg_received)
		socket->cb_msg_received(socket, msg);
	return true;
}

static void miss(struct intake *intake, uint64_t count, uint32_t reasons)
{
	struct feed *feed = plx_container_of(intake, struct feed, intake);
	struct netio_gap gap = {
		.first = feed->number + 1,
		.last = feed->number + count,
		.reasons = reasons,
	};

	feed->number = gap.last;
	if (!feed->feeds)
		return;
	feed->feeds->stats.gaps++;
	feed->feeds->stats.missed[__builtin_ctz(reasons)] += count;
	TELL(feed, cb_gap, (&feed->pub, &gap));
}

static const char *on_received(struct netio_connection *connection, struct plx_buf *message)
{
	struct feed *feed = feed_of(connection);
	const char *wrong = NULL;

	if (message->len > 0 && message->data[0] == WIRE_ANSWER) {
		wrong = feed_take_answers(feed, message);
		if (!wrong)
			close_if_unwanted(feed);
	} else if (intake_take(&feed->intake, message, &wrong) != -EPROTO) {
		wrong = NULL;
	}
	return wrong;
}

DEFINE_NOTIFY_CONNECTING(notify, netio_subscribe_socket)

static void on_established(struct netio_connection *connection, const struct notice *notice)
{
	struct feed *feed = feed_of(connection);

	feed->pub.provider = plx_link_provider(connection->session.link);
	connection_notify(connection, notice);
	if (feed->feeds) {
		feed_ask(feed);
		close_if_unwanted(feed);
	}
}

static void on_closed(struct netio_connection *connection, const struct notice *notice)
{
	struct feed *feed = feed_of(connection);

	feed_lose(feed);
	feed_tell_ended(feed);
	feed_tell_lost(feed, notice->why);
	connection_notify(connection, notice);
	if (feed->feeds && feed->want_count == 0)
		feed_release(feed);
	else if (feed->feeds && feed->connection.session.state == PLX_CONNECTOR_IDLE &&
		 connection->session.quit && !feed->feeds->evloop->draining)
		/* It was closed as nothing was wanted, which has changed. */
		plx_connector_open_again(&feed->connection.session);
}

static void on_ended(struct plx_connector *session)
{
	struct feed *feed = (struct feed *)session;

	feed->pub.provider = "";
	feed->is_full = false;
	feed->number = 0;
}

static void on_writable(struct netio_connection *connection)
{
	struct feed *feed = feed_of(connection);

	feed->is_full = false;
	if (feed->feeds)
		feed_ask(feed);
}

static void on_free(struct netio_connection *connection)
{
	struct feed *feed = feed_of(connection);

	feed_drop_wants(feed);
	free(feed);
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

/* The feed ------------------------------------------------------------------------------------ */

struct feed *feed_find(const struct netio_feeds *feeds, const char *address)
{
	struct feed *feed = LIST_FIRST(&feeds->all);

	while (feed && strcmp(feed->address, address) != 0)
		feed = LIST_NEXT(feed, link);
	return feed;
}

struct feed *feed_create(struct netio_feeds *feeds, const char *host, unsigned port,
			 const char *address)
{
	struct feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return NULL;
	feed->feeds = feeds;
	feed->port = port;
	snprintf(feed->host, sizeof(feed->host), "%s", host);
	snprintf(feed->address, sizeof(feed->address), "%s", address);
	feed->pub = (struct netio_publisher){
		.subscribe_socket = feeds->socket,
		.id = ++feeds->next_id,
		.address = feed->address,
		.provider = "",
	};
	feed->intake.give = give;
	feed->intake.miss = miss;
	feed->intake.source = feed->pub.id;
	feed->intake.message_max = feeds->connect.message_max_bytes;
	TAILQ_INIT(&feed->to_ask);
	TAILQ_INIT(&feed->to_end);
	plx_task_init(&feed->tell, tell, feed);
	connection_init(&feed->connection, feeds->evloop, feeds->socket, NULL, &owner,
			&feeds->connect);
	feed->connection.one = &feed->pub;
	feed->connection.role = WIRE_SUBSCRIBER;
	feed->connection.link_attr = feeds->link_attr;
	LIST_INSERT_HEAD(&feeds->all, feed, link);
	return feed;
}

int feed_open(struct feed *feed)
{
	if (feed->connection.session.state != PLX_CONNECTOR_IDLE)
		return 0;
	return connection_open(&feed->connection, feed->host, feed->port);
}

void feed_release(struct feed *feed)
{
	LIST_REMOVE(feed, link);
	feed->feeds = NULL;
	plx_task_cancel(&feed->tell);
	connection_release(&feed->connection);
}
