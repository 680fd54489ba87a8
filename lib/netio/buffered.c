/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffered send socket: messages are copied into pages, each of which is a message of the link.
 */
#include "pages.h"

#define PAGE_BYTES_DEFAULT 65536
#define PAGE_COUNT_DEFAULT 256
#define TIMEOUT_NS_DEFAULT (2 * PLX_NS_PER_S)

static struct pages *pages_of(const struct netio_buffered_send_socket *socket)
{
	return (struct pages *)socket->connection;
}

int netio_buffered_sendv_tagged(struct netio_buffered_send_socket *socket, netio_tag_t tag,
				const struct iovec *iov, size_t count)
{
	struct pages *pages = pages_of(socket);
	struct source source = {.iov = iov};
	uint64_t length;
	int rc;

	if (plx_unlikely(!pages))
		return plx_fail(ENOTCONN, "the socket is not set up");
	rc = message_measure(iov, count, WIRE_MESSAGE_MAX_LIMIT, &length);
	if (plx_unlikely(rc))
		return rc;
	if (plx_unlikely(!pages_fit(pages, length, tag ? WIRE_TAG : 0)))
		return pages_put_slowly(pages, tag, length, &source);
	source_copy(&source, pages_put(pages, (uint32_t)length, tag ? WIRE_TAG : 0, tag, 0),
		    length);
	pages_message_ended(pages);
	return NETIO_STATUS_OK;
}

int netio_buffered_sendv(struct netio_buffered_send_socket *socket, struct iovec *iov, size_t num)
{
	return netio_buffered_sendv_tagged(socket, 0, iov, num);
}

int netio_buffered_send(struct netio_buffered_send_socket *socket, const void *data, size_t len)
{
	struct pages *pages = pages_of(socket);

	if (plx_unlikely(!pages))
		return plx_fail(ENOTCONN, "the socket is not set up");
	if (plx_unlikely(!pages_fit(pages, len, 0)))
		return pages_put_slowly(
			pages, 0, len, &(struct source){.iov = &(struct iovec){(void *)data, len}});

	uint8_t *at = pages_put(pages, (uint32_t)len, 0, 0, 0);

	if (plx_likely(len > 0)) /* else data may be NULL */
		memcpy(at, data, len);
	pages_message_ended(pages);
	return NETIO_STATUS_OK;
}

int netio_buffered_flush(struct netio_buffered_send_socket *socket)
{
	struct pages *pages = pages_of(socket);

	if (!pages || pages->connection.state != CONNECTION_ESTABLISHED)
		return plx_fail(ENOTCONN, "the socket is not connected");
	if (pages->page)
		pages_leave(pages);
	return NETIO_STATUS_OK;
}

void netio_buffered_stats(const struct netio_buffered_send_socket *socket,
			  struct netio_buffered_stats *stats_out)
{
	const struct pages *pages = pages_of(socket);

	*stats_out = (struct netio_buffered_stats){0};
	if (!pages)
		return;
	*stats_out = pages->stats;
	stats_out->pages_free = pages->free_count;
	if (pages->page)
		stats_out->messages += pages->messages;
}

/* The connection ------------------------------------------------------------------------------ */

/* A page must be a message that the peer's link accepts. */
static void on_established(struct netio_connection *connection)
{
	struct netio_buffered_send_socket *socket = connection->socket;
	struct pages *pages = (struct pages *)connection;
	uint64_t accepted = plx_link_message_max(connection->link);

	pages->limit = pages->page_bytes + WIRE_PAGE_OVERHEAD;
	if (pages->limit > accepted)
		pages->limit = (uint32_t)accepted;
	pages->leaves_at = pages->watermark_bytes + WIRE_PAGE_BYTES;
	pages->message_max = connection->message_max;
	if (socket->cb_connection_established)
		socket->cb_connection_established(socket);
}

static void on_refused(struct netio_connection *connection, enum plx_link_reason reason,
		       const char *why)
{
	struct netio_buffered_send_socket *socket = connection->socket;

	if (socket->cb_connection_refused)
		socket->cb_connection_refused(socket, reason, why);
}

static void on_closed(struct netio_connection *connection, enum plx_link_reason reason,
		      const char *why)
{
	struct netio_buffered_send_socket *socket = connection->socket;

	if (socket->cb_connection_closed)
		socket->cb_connection_closed(socket, reason, why);
}

static void on_received(struct netio_connection *connection, const struct netio_msg *msg)
{
	struct netio_buffered_send_socket *socket = connection->socket;

	if (socket->cb_msg_received)
		socket->cb_msg_received(socket, msg);
}

static void on_writable(struct netio_connection *connection)
{
	struct pages *pages = (struct pages *)connection;

	if (connection->link)
		pages_send_waiting(pages);
}

static bool on_settle(struct netio_connection *connection)
{
	struct pages *pages = (struct pages *)connection;

	if (pages->page)
		pages_leave(pages);
	return pages_are_back(pages);
}

static void on_ended(struct netio_connection *connection)
{
	pages_lose((struct pages *)connection);
}

static void on_free(struct netio_connection *connection)
{
	pages_destroy((struct pages *)connection);
}

static const struct connection_owner owner = {
	.established = on_established,
	.refused = on_refused,
	.closed = on_closed,
	.received = on_received,
	.writable = on_writable,
	.settle = on_settle,
	.ended = on_ended,
	.free = on_free,
};

/* The socket ---------------------------------------------------------------------------------- */

static int check_attr(const struct netio_buffered_attr *attr, struct netio_buffered_attr *out)
{
	*out = attr ? *attr : (struct netio_buffered_attr){0};
	if (out->page_bytes == 0)
		out->page_bytes = PAGE_BYTES_DEFAULT;
	if (out->page_count == 0)
		out->page_count = PAGE_COUNT_DEFAULT;
	if (out->page_bytes < NETIO_PAGE_BYTES_MIN || out->page_bytes > NETIO_PAGE_BYTES_MAX)
		return plx_fail(EINVAL, "page_bytes %u: give %d to %u", out->page_bytes,
				NETIO_PAGE_BYTES_MIN, NETIO_PAGE_BYTES_MAX);
	if (out->page_count < 2 || out->page_count > NETIO_PAGE_COUNT_MAX)
		return plx_fail(EINVAL, "page_count %u: give 2 to %d", out->page_count,
				NETIO_PAGE_COUNT_MAX);
	if (out->watermark_bytes == 0)
		out->watermark_bytes = out->page_bytes;
	if (out->watermark_bytes > out->page_bytes)
		return plx_fail(EINVAL, "watermark_bytes %u: give at most page_bytes, %u",
				out->watermark_bytes, out->page_bytes);
	out->page_bytes = (uint32_t)wire_round_up(out->page_bytes);
	if (out->timeout_ns == 0)
		out->timeout_ns = TIMEOUT_NS_DEFAULT;
	return connection_check_attr(attr ? &attr->connect : NULL, &out->connect);
}

int netio_buffered_send_socket_init(struct netio_eventloop *evloop,
				    struct netio_buffered_send_socket *socket,
				    const struct netio_buffered_attr *attr)
{
	struct netio_buffered_attr checked;
	struct pages *pages = NULL;
	int rc;

	*socket = (struct netio_buffered_send_socket){0};
	rc = netio_check(evloop, "netio_buffered_send_socket_init");
	if (rc)
		return rc;
	rc = check_attr(attr, &checked);
	if (rc == 0)
		rc = pages_create(&checked, &pages);
	if (rc)
		return netio_fail(rc);
	connection_init(&pages->connection, evloop, socket, &socket->connection, &owner,
			&checked.connect);
	return 0;
}

int netio_buffered_connect(struct netio_buffered_send_socket *socket, const char *host,
			   unsigned port)
{
	return connection_open(socket->connection, host, port);
}

int netio_buffered_disconnect(struct netio_buffered_send_socket *socket)
{
	return connection_close(socket->connection);
}

void netio_buffered_send_socket_fini(struct netio_buffered_send_socket *socket)
{
	connection_release(socket->connection);
}
