/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffered send socket: messages are copied into pages, each of which is a message of the link.
 */
#include "connection.h"
#include "pages.h"

#include <stdlib.h>

#define PAGE_COUNT_DEFAULT 256

struct buffered {
	struct netio_connection connection; /* first */
	struct pages pages;
};

static struct pages *pages_of(const struct netio_buffered_send_socket *socket)
{
	struct buffered *buffered = (struct buffered *)socket->connection;

	return plx_likely(buffered) ? &buffered->pages : NULL;
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
	return pages_putv(pages, tag, length, &source);
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

	if (!pages || !pages->is_open)
		return netio_fail_closed();
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

static struct buffered *buffered_of(struct netio_connection *connection)
{
	return (struct buffered *)connection;
}

DEFINE_NOTIFY_CONNECTING(notify, netio_buffered_send_socket)
DEFINE_ANSWERED(on_received, netio_buffered_send_socket)

static void on_established(struct netio_connection *connection, const struct notice *notice)
{
	pages_open(&buffered_of(connection)->pages, connection->link, connection->message_max);
	connection_notify(connection, notice);
}

static void on_writable(struct netio_connection *connection)
{
	struct pages *pages = &buffered_of(connection)->pages;

	if (!connection->link)
		return;
	pages_send_waiting(pages);
	pages_tell_room(pages);
}

static bool on_settle(struct netio_connection *connection)
{
	return pages_close(&buffered_of(connection)->pages);
}

static void on_ended(struct netio_connection *connection)
{
	pages_lose(&buffered_of(connection)->pages);
}

static void on_free(struct netio_connection *connection)
{
	pages_fini(&buffered_of(connection)->pages);
	free(connection);
}

static const struct connection_owner owner = {
	.notify = notify,
	.on[NOTICE_ESTABLISHED] = on_established,
	.received = on_received,
	.writable = on_writable,
	.settle = on_settle,
	.ended = on_ended,
	.free = on_free,
};

/* Pages --------------------------------------------------------------------------------------- */

static void on_room(struct pages *pages)
{
	struct buffered *buffered = plx_container_of(pages, struct buffered, pages);
	struct netio_buffered_send_socket *socket = buffered->connection.socket;

	if (socket && socket->cb_buffers_available)
		socket->cb_buffers_available(socket);
}

static void on_sent(struct pages *pages)
{
	struct buffered *buffered = plx_container_of(pages, struct buffered, pages);

	connection_settles(&buffered->connection);
	if (plx_unlikely(pages_are_back(pages)))
		connection_settled(&buffered->connection);
}

static const struct pages_owner pages_owner = {.room = on_room, .sent = on_sent};

/* The socket ---------------------------------------------------------------------------------- */

static int create(const struct netio_buffered_attr *attr, struct buffered **buffered_out)
{
	struct pages_attr pages = {
		.page_bytes = attr->page_bytes,
		.page_count = attr->page_count ? attr->page_count : PAGE_COUNT_DEFAULT,
		.watermark_bytes = attr->watermark_bytes,
		.timeout_ns = attr->timeout_ns,
	};
	struct buffered *buffered;
	int rc = pages_check_attr(&pages);

	if (rc)
		return rc;
	buffered = aligned_alloc(PLX_CACHE_LINE, sizeof(*buffered));
	if (!buffered)
		return plx_fail(ENOMEM, "out of memory for a socket");
	rc = pages_init(&buffered->pages, &pages, &pages_owner);
	if (rc)
		free(buffered);
	else
		*buffered_out = buffered;
	return rc;
}

int netio_buffered_send_socket_init(struct netio_eventloop *evloop,
				    struct netio_buffered_send_socket *socket,
				    const struct netio_buffered_attr *attr)
{
	const struct netio_buffered_attr defaults = {0};
	struct netio_connect_attr checked;
	struct buffered *buffered = NULL;
	int rc;

	*socket = (struct netio_buffered_send_socket){0};
	rc = netio_check(evloop, "netio_buffered_send_socket_init");
	if (rc)
		return rc;
	if (!attr)
		attr = &defaults;
	rc = connection_check_attr(&attr->connect, &checked);
	if (rc == 0)
		rc = create(attr, &buffered);
	if (rc)
		return netio_fail(rc);
	connection_init(&buffered->connection, evloop, socket, &socket->connection, &owner,
			&checked);
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
