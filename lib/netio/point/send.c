/* SPDX-License-Identifier: BSD-3-Clause */
/* The unbuffered send socket: each message is one message of the link. */
#include "connection.h"

#include <stdlib.h>

struct sender {
	struct netio_connection connection; /* first */
	struct references references;
};

int netio_sendv_tagged(struct netio_send_socket *socket, netio_tag_t tag, const struct iovec *iov,
		       size_t count)
{
	const struct netio_connection *connection = socket->connection;

	ASSERT_LOOP(connection, connection->evloop);
	if (plx_unlikely(!connection))
		return netio_fail_closed();
	return message_sendv(connection->session.link, connection->message_max, tag, iov, count,
			     "netio_sendv_ref");
}

int netio_sendv(struct netio_send_socket *socket, const struct iovec *iov, size_t count)
{
	return netio_sendv_tagged(socket, 0, iov, count);
}

int netio_send(struct netio_send_socket *socket, const void *data, size_t len)
{
	return netio_sendv_tagged(socket, 0, &(struct iovec){(void *)data, len}, 1);
}

static void on_sent(struct plx_link *link, struct plx_buf *message, int status, void *arg)
{
	NOTIFY(netio_send_socket, arg, cb_send_completed, reference_key(message), status);
}

int netio_sendv_ref(struct netio_send_socket *socket, netio_tag_t tag, const struct iovec *iov,
		    size_t count, uint64_t key)
{
	struct sender *sender = (struct sender *)socket->connection;

	ASSERT_LOOP(sender, sender->connection.evloop);
	if (plx_unlikely(!sender))
		return netio_fail_closed();
	return references_send(&sender->references, sender->connection.session.link,
			       sender->connection.message_max,
			       &(struct message){.tag = tag, .iov = iov, .count = count}, key,
			       on_sent, sender);
}

DEFINE_NOTIFY(netio_send_socket)
DEFINE_ANSWERED(netio_send_socket)

static void on_writable(struct netio_connection *connection)
{
	NOTIFY(netio_send_socket, connection, cb_buffers_available);
}

static void on_free(struct plx_connector *session)
{
	struct sender *sender = (struct sender *)session;

	references_fini(&sender->references);
	free(sender);
}

static const struct connection_owner owner = {
	.session = {CONNECTION_SESSION, .opened = notify_opened, .closed = notify_closed,
		    .free = on_free},
	.role = WIRE_SENDER,
	.suspect = notify_suspect,
	.received = on_received,
	.writable = on_writable,
};

int netio_send_socket_init(struct netio_eventloop *evloop, struct netio_send_socket *socket,
			   const struct netio_connect_attr *attr)
{
	struct connection_attr checked;
	struct sender *sender;
	int rc;

	*socket = (struct netio_send_socket){0};
	sender = netio_allocate(evloop, "netio_send_socket_init", sizeof(*sender), &rc);
	if (!sender)
		return rc;
	rc = netio_logged(connection_check_attr(attr, &checked));
	if (rc)
		free(sender);
	else
		connection_init(&sender->connection, evloop, socket, &socket->connection, &owner,
				&checked);
	return rc;
}

DEFINE_CONNECTING(netio_send_socket, netio_connect, netio_disconnect)
