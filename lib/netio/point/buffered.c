/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffered send socket: copies messages into pages. Each page is one message of the link, and
 * so is a long message. */
#include "sender.h"

#include <stdlib.h>

#define PAGE_COUNT_DEFAULT 256

static struct outbox *outbox_of(const struct netio_buffered_send_socket *socket)
{
	struct sender *sender = (struct sender *)socket->connection;

	return plx_likely(sender) ? &sender->outbox : NULL;
}

int netio_buffered_sendv_tagged(struct netio_buffered_send_socket *socket, netio_tag_t tag,
				const struct iovec *iov, size_t count)
{
	struct outbox *outbox = outbox_of(socket);
	struct message message = {.tag = tag, .iov = iov, .count = count};
	uint8_t flags = tag ? WIRE_TAG : 0;

	ASSERT_LOOP(socket->connection, socket->connection->evloop);
	if (plx_unlikely(!outbox))
		return plx_fail(ENOTCONN, "the socket is not set up");
	if (plx_unlikely(!message_measure(iov, count, PLX_SEND_COPY_MAX, &message.length)))
		return message_refuse(iov, count, 0, "netio_sendv_ref of an unbuffered socket");
	if (plx_unlikely(!outbox_fits(outbox, message.length, flags)))
		return message.length >= outbox->attr.page_bytes / 2
			     ? outbox_send_long(outbox, &message)
			     : outbox_put_slow(outbox, &message);
	outbox_copy(outbox, &message, flags);
	return NETIO_STATUS_OK;
}

int netio_buffered_sendv(struct netio_buffered_send_socket *socket, struct iovec *iov, size_t num)
{
	return netio_buffered_sendv_tagged(socket, 0, iov, num);
}

int netio_buffered_send(struct netio_buffered_send_socket *socket, const void *data, size_t len)
{
	struct outbox *outbox = outbox_of(socket);
	uint8_t *at;

	ASSERT_LOOP(socket->connection, socket->connection->evloop);
	if (plx_unlikely(!outbox || !outbox_fits(outbox, len, 0)))
		return netio_buffered_sendv_tagged(socket, 0, &(struct iovec){(void *)data, len},
						   1);
	at = outbox_entry(outbox, (uint32_t)len, 0, 0);
	if (plx_likely(len > 0)) /* data may be NULL if len is 0 */
		memcpy(at, data, len);
	outbox_message_ended(outbox);
	return NETIO_STATUS_OK;
}

int netio_buffered_flush(struct netio_buffered_send_socket *socket)
{
	struct outbox *outbox = outbox_of(socket);

	ASSERT_LOOP(socket->connection, socket->connection->evloop);
	if (!outbox || !outbox->is_open)
		return netio_fail_closed();
	outbox_flush_soon(outbox);
	return NETIO_STATUS_OK;
}

void netio_buffered_stats_read(const struct netio_buffered_send_socket *socket,
			       struct netio_buffered_stats *stats_out)
{
	const struct outbox *outbox = outbox_of(socket);

	ASSERT_LOOP(socket->connection, socket->connection->evloop);
	*stats_out = (struct netio_buffered_stats){0};
	if (!outbox)
		return;
	*stats_out = outbox->stats;
	stats_out->messages += outbox->alone;
	stats_out->pages_free = outbox->free_count;
	if (outbox->page)
		stats_out->messages += outbox->messages;
}

DEFINE_NOTIFY(netio_buffered_send_socket)
DEFINE_ANSWERED(netio_buffered_send_socket)

static void on_opened(struct plx_connector *session)
{
	struct sender *sender = (struct sender *)session;

	sender_open(sender);
	notify_opened(session);
}

static void on_writable(struct netio_connection *connection)
{
	struct outbox *outbox = &((struct sender *)connection)->outbox;

	if (!connection->session.link)
		return;
	outbox_writable(outbox);
	outbox_report_room(outbox);
}

static void on_free(struct plx_connector *session)
{
	outbox_fini(&((struct sender *)session)->outbox);
	free(session);
}

static const struct connection_owner owner = {
	.session = {CONNECTION_SESSION, .opened = on_opened, .closed = notify_closed,
		    .base.settle = sender_settle, .ended = sender_ended, .free = on_free},
	.role = WIRE_SENDER,
	.suspect = notify_suspect,
	.received = on_received,
	.writable = on_writable,
};

static void on_room(struct outbox *outbox)
{
	struct sender *sender = plx_container_of(outbox, struct sender, outbox);

	NOTIFY(netio_buffered_send_socket, sender, cb_buffers_available);
}

static const struct outbox_owner outbox_owner = {.room = on_room, .sent = sender_sent};

int netio_buffered_send_socket_init(struct netio_eventloop *evloop,
				    struct netio_buffered_send_socket *socket,
				    const struct netio_buffered_attr *attr)
{
	struct connection_attr checked;
	struct netio_buffered_attr pages = {0};
	struct sender *sender;
	int rc;

	*socket = (struct netio_buffered_send_socket){0};
	sender = netio_allocate(evloop, "netio_buffered_send_socket_init", sizeof(*sender), &rc);
	if (!sender)
		return rc;
	if (attr)
		pages = *attr;
	pages.page_count = pages.page_count ?: PAGE_COUNT_DEFAULT;
	rc = connection_check_attr(&pages.connect, &checked) ?: outbox_check_attr(&pages);
	outbox_init(&sender->outbox, &pages, &outbox_owner);
	rc = netio_logged(rc ?: outbox_make_pages(&sender->outbox, pages.page_count));
	if (rc)
		on_free(&sender->connection.session);
	else
		connection_init(&sender->connection, evloop, socket, &socket->connection, &owner,
				&checked);
	return rc;
}

DEFINE_CONNECTING(netio_buffered_send_socket, netio_buffered_connect, netio_buffered_disconnect)
