/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffered send socket: messages are copied into pages, each of which is a message of the link.
 * A page is free, or being filled, or waits for the link, or is with it. */
#include "connection.h"

#include "wire.h"

#include <stdlib.h>

#define PAGE_BYTES_DEFAULT 65536
#define PAGE_COUNT_DEFAULT 256
#define TIMEOUT_NS_DEFAULT (2 * PLX_NS_PER_S)

struct pages {
	struct netio_connection connection; /* first */

	/* Of the page that is being filled; all NULL where there is none, or no connection. */
	PLX_ALIGNED_LINE uint8_t *at; /* of its next entry */
	uint8_t *end;                 /* no entry goes beyond */
	uint8_t *leave_at;            /* from here on it leaves */
	uint64_t message_max;         /* that the peer accepts */
	uint32_t messages;            /* that end in it */
	struct plx_buf *page;

	uint32_t limit;     /* of a page's length */
	uint32_t leaves_at; /* with that length it leaves */
	struct plx_buf **free;
	uint32_t free_count, count;
	uint32_t wanted;          /* pages that must be free for who saw AGAIN; 0: nobody did */
	struct plx_buf **waiting; /* for the link, first in first out, round the end of count */
	uint32_t waiting_first, waiting_count;
	uint64_t began_ns; /* the page */
	struct plx_timer timer;
	struct plx_pool *pool;
	uint32_t page_bytes, watermark_bytes;
	uint64_t timeout_ns;
	struct netio_buffered_stats stats;
};

static struct pages *pages_of(const struct netio_buffered_send_socket *socket)
{
	return (struct pages *)socket->connection;
}

/* A page ------------------------------------------------------------------------------------- */

/* How many messages end in a page that is full is written in its headroom. */
static uint32_t messages_in(const struct plx_buf *page)
{
	uint32_t count;

	memcpy(&count, page->base, sizeof(count));
	return count;
}

static void begin_page(struct pages *pages)
{
	struct plx_buf *page = pages->free[--pages->free_count];

	plx_buf_reset(page);
	wire_page_write(page->data);
	pages->page = page;
	pages->messages = 0;
	pages->at = page->data + WIRE_PAGE_BYTES;
	pages->end = page->data + pages->limit;
	pages->leave_at = page->data + pages->leaves_at;
	pages->began_ns = plx_loop_now_ns();
	if (!plx_timer_running(&pages->timer) && pages->timeout_ns != UINT64_MAX)
		plx_timer_start(&pages->timer, pages->timeout_ns);
}

/* Nothing more goes into it. */
static struct plx_buf *close_page(struct pages *pages)
{
	struct plx_buf *page = pages->page;

	page->len = (uint32_t)(pages->at - page->data);
	memcpy(page->base, &pages->messages, sizeof(pages->messages));
	pages->stats.messages += pages->messages;
	pages->page = NULL;
	pages->at = pages->end = pages->leave_at = NULL;
	return page;
}

/* One that is sent, or never will be, and has no other references but those that are dropped now.
 */
static void end_page(struct pages *pages, struct plx_buf *page, bool sent)
{
	if (!sent)
		pages->stats.messages_lost += messages_in(page);
	pages->free[pages->free_count++] = page;
}

/* The link has taken it; the reference that it drops behind this is ours again. */
static void on_sent(struct plx_link *link, struct plx_buf *page, int status, void *arg)
{
	struct pages *pages = arg;
	struct netio_buffered_send_socket *socket = pages->connection.socket;

	end_page(pages, plx_buf_ref(page), status == 0);
	if (plx_likely(pages->wanted == 0) || pages->free_count < pages->wanted)
		return;
	pages->wanted = 0;
	if (socket && pages->connection.state == CONNECTION_ESTABLISHED &&
	    socket->cb_buffers_available)
		socket->cb_buffers_available(socket);
}

static bool send_page(struct pages *pages, struct plx_buf *page)
{
	if (plx_link_send_buf(pages->connection.link, page, on_sent, pages) != 0)
		return false;
	pages->stats.pages++;
	return true;
}

/* As many as the link takes. */
static void send_waiting(struct pages *pages)
{
	while (pages->waiting_count && send_page(pages, pages->waiting[pages->waiting_first])) {
		pages->waiting_first = (pages->waiting_first + 1) % pages->count;
		pages->waiting_count--;
	}
}

/* The page leaves: now, or when the link takes it. */
static void leave(struct pages *pages)
{
	struct plx_buf *page = close_page(pages);

	if (plx_likely(pages->waiting_count == 0) && plx_likely(send_page(pages, page)))
		return;
	pages->waiting[(pages->waiting_first + pages->waiting_count) % pages->count] = page;
	pages->waiting_count++;
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct pages *pages = arg;
	uint64_t age_ns = plx_loop_now_ns() - pages->began_ns;

	if (!pages->page)
		return;
	if (age_ns >= pages->timeout_ns)
		leave(pages);
	else
		plx_timer_start(timer, pages->timeout_ns - age_ns);
}

/* Messages ------------------------------------------------------------------------------------ */

/* Where the next byte of a message in pieces is. */
struct source {
	const struct iovec *iov;
	size_t offset;
};

static void copy_from(struct source *source, uint8_t *to, size_t length)
{
	while (length > 0) {
		size_t part = source->iov->iov_len - source->offset;

		if (part > length)
			part = length;
		if (part > 0)
			memcpy(to, (const uint8_t *)source->iov->iov_base + source->offset, part);
		to += part;
		length -= part;
		source->offset += part;
		if (source->offset == source->iov->iov_len) {
			source->iov++;
			source->offset = 0;
		}
	}
}

/* Bytes of an entry's payload, where it may go. The page has room for it. */
static inline uint8_t *put(struct pages *pages, uint32_t length, uint8_t flags, netio_tag_t tag,
			   uint64_t total)
{
	uint8_t *at = pages->at;

	pages->at = at + wire_entry_bytes(length, flags);
	return wire_entry_write(at, length, flags, tag, total);
}

static inline void message_ended(struct pages *pages)
{
	pages->messages++;
	if (plx_unlikely(pages->at >= pages->leave_at))
		leave(pages);
}

static int again(struct pages *pages, uint32_t wanted)
{
	pages->stats.again++;
	pages->wanted = wanted;
	return NETIO_STATUS_AGAIN;
}

/* Bytes of a message that a page takes beside the header of the entry, of which all but the last
 * ones are a multiple of 8. */
static uint32_t piece_max(const struct pages *pages, uint8_t flags)
{
	return (pages->limit - WIRE_PAGE_BYTES - wire_entry_header_bytes(flags)) & ~7u;
}

/* A message that is longer than a page. */
static int split(struct pages *pages, netio_tag_t tag, uint64_t length, struct source *source)
{
	uint8_t flags = (uint8_t)(WIRE_FIRST | (tag ? WIRE_TAG : 0));
	uint32_t first = piece_max(pages, flags), next = piece_max(pages, WIRE_NEXT);
	uint64_t needed = 1 + (length - first + next - 1) / next;
	uint64_t left = length;

	if (needed > pages->count)
		return plx_fail(EMSGSIZE,
				"%llu bytes: %u pages of %u bytes do not hold it; give larger "
				"ones, or more",
				(unsigned long long)length, pages->count, pages->page_bytes);
	if (pages->page)
		leave(pages);
	if (pages->free_count < needed)
		return again(pages, (uint32_t)needed);
	while (left > 0) {
		uint32_t room = piece_max(pages, flags);
		uint32_t piece = left < room ? (uint32_t)left : room;

		if (pages->page)
			leave(pages);
		begin_page(pages);
		copy_from(source, put(pages, piece, flags, tag, length), piece);
		flags = WIRE_NEXT;
		left -= piece;
	}
	message_ended(pages);
	return NETIO_STATUS_OK;
}

/* A message that the page has no room for, if there is one. */
static int put_slowly(struct pages *pages, netio_tag_t tag, uint64_t length, struct source *source)
{
	uint8_t flags = tag ? WIRE_TAG : 0;

	if (pages->connection.state != CONNECTION_ESTABLISHED)
		return plx_fail(ENOTCONN, "the socket is not connected");
	if (length > pages->connection.message_max)
		return plx_fail(EMSGSIZE, "%llu bytes: the peer accepts messages of at most %llu",
				(unsigned long long)length,
				(unsigned long long)pages->connection.message_max);
	if (WIRE_PAGE_BYTES + wire_entry_bytes(length, flags) > pages->limit)
		return split(pages, tag, length, source);
	if (pages->page)
		leave(pages);
	if (pages->free_count == 0)
		return again(pages, 1);
	begin_page(pages);
	copy_from(source, put(pages, (uint32_t)length, flags, tag, 0), length);
	message_ended(pages);
	return NETIO_STATUS_OK;
}

/* Whether there is room for a whole message in the page. length: any. */
static inline bool fits(const struct pages *pages, uint64_t length, uint8_t flags)
{
	return length <= pages->message_max &&
	       wire_entry_bytes(length, flags) <= (uint64_t)(pages->end - pages->at);
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
	if (plx_unlikely(!fits(pages, length, tag ? WIRE_TAG : 0)))
		return put_slowly(pages, tag, length, &source);
	copy_from(&source, put(pages, (uint32_t)length, tag ? WIRE_TAG : 0, tag, 0), length);
	message_ended(pages);
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
	if (plx_unlikely(!fits(pages, len, 0)))
		return put_slowly(pages, 0, len,
				  &(struct source){.iov = &(struct iovec){(void *)data, len}});

	uint8_t *at = put(pages, (uint32_t)len, 0, 0, 0);

	if (plx_likely(len > 0)) /* else data may be NULL */
		memcpy(at, data, len);
	message_ended(pages);
	return NETIO_STATUS_OK;
}

int netio_buffered_flush(struct netio_buffered_send_socket *socket)
{
	struct pages *pages = pages_of(socket);

	if (!pages || pages->connection.state != CONNECTION_ESTABLISHED)
		return plx_fail(ENOTCONN, "the socket is not connected");
	if (pages->page)
		leave(pages);
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
		send_waiting(pages);
	if (pages->waiting_count == 0)
		connection_settled(connection);
}

static bool on_settle(struct netio_connection *connection)
{
	struct pages *pages = (struct pages *)connection;

	if (pages->page)
		leave(pages);
	return pages->waiting_count == 0;
}

static void on_ended(struct netio_connection *connection)
{
	struct pages *pages = (struct pages *)connection;

	plx_timer_stop(&pages->timer);
	pages->wanted = 0;
	if (pages->page)
		end_page(pages, close_page(pages), false);
	for (; pages->waiting_count; pages->waiting_count--) {
		end_page(pages, pages->waiting[pages->waiting_first], false);
		pages->waiting_first = (pages->waiting_first + 1) % pages->count;
	}
}

static void on_free(struct netio_connection *connection)
{
	struct pages *pages = (struct pages *)connection;

	while (pages->free_count)
		plx_buf_unref(pages->free[--pages->free_count]);
	netio_pool_destroy(pages->pool);
	free(pages->free);
	free(pages);
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

/* Memory of all pages. Return: 0; -ENOMEM. */
static int take_pages(struct pages *pages)
{
	struct plx_pool_attr attr = {
		.name = "netio pages",
		.object_count = pages->count,
		.node = plx_lcore_node(plx_lcore_id()),
		.owner = plx_lcore_id(),
	};
	int rc = plx_buf_pool_create(&attr, pages->page_bytes + WIRE_PAGE_OVERHEAD, &pages->pool);

	if (rc)
		return rc;
	pages->free = calloc(2 * (size_t)pages->count, sizeof(struct plx_buf *));
	if (!pages->free) {
		plx_pool_destroy(pages->pool);
		return plx_fail(ENOMEM, "out of memory for %u pages", pages->count);
	}
	pages->waiting = pages->free + pages->count;
	while (pages->free_count < pages->count)
		pages->free[pages->free_count++] = plx_buf_get(pages->pool);
	return 0;
}

static int create(const struct netio_buffered_attr *attr, struct pages **pages_out)
{
	struct pages *pages = aligned_alloc(PLX_CACHE_LINE, sizeof(*pages));
	int rc;

	if (!pages)
		return plx_fail(ENOMEM, "out of memory for a socket");
	*pages = (struct pages){
		.count = attr->page_count,
		.page_bytes = attr->page_bytes,
		.watermark_bytes = attr->watermark_bytes,
		.timeout_ns = attr->timeout_ns,
	};
	plx_timer_init(&pages->timer, on_timer, pages);
	rc = take_pages(pages);
	if (rc)
		free(pages);
	else
		*pages_out = pages;
	return rc;
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
		rc = create(&checked, &pages);
	if (rc)
		return netio_fail(rc);
	connection_init(&pages->connection, evloop, socket, &owner, &checked.connect);
	socket->connection = &pages->connection;
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
	socket->connection = NULL;
}
