/* SPDX-License-Identifier: BSD-3-Clause */
/* The unbuffered send socket: each message is one message of the link. While the link has no room,
 * short ones are collected in pages, so that a burst needs less of the receiver's few buffers. */
#include "sender.h"

#include <stdlib.h>

#define PAGE_BYTES 8192

/* A message by reference up to this length is copied: its buffers, operation and completion would
 * cost ten times as much at 64 bytes. Its key is reported at the end of the turn. */
#define REFERENCE_COPY_MAX 2048
#define KEYS_MAX           512 /* of one turn; a power of two */

struct unbuffered {
	struct sender sender; /* first */
	struct references references;
	bool wants_room; /* a caller got AGAIN for a message that no page may take */
	struct plx_task report;
	uint32_t keys_begin, keys_end; /* free-running */
	uint64_t keys[KEYS_MAX];       /* of messages that were copied, to report */
};

static struct unbuffered *unbuffered_of(const struct netio_send_socket *socket)
{
	return (struct unbuffered *)socket->connection;
}

/* Return whether a message in its own frame would overtake none in pages. */
static inline bool is_clear(const struct outbox *outbox)
{
	return !outbox->page && !outbox->waiting_count;
}

static int again(struct unbuffered *unbuffered)
{
	if (!unbuffered->sender.outbox.is_open) /* it closes once the pages have left */
		return netio_fail_closed();
	unbuffered->wants_room = true;
	return NETIO_STATUS_AGAIN;
}

/* The link has no room, or is about to get some and messages in pages come first. */
static PLX_NOINLINE int collect(struct unbuffered *unbuffered, const struct message *message)
{
	struct outbox *outbox = &unbuffered->sender.outbox;
	int rc;

	if (message->length > OUTBOX_COLLECT_MAX || message->length > outbox->message_max ||
	    outbox_make_pages(outbox, OUTBOX_COLLECT_PAGES) != 0)
		return again(unbuffered);
	rc = outbox_put(outbox, message);
	outbox_flush_when_writable(outbox);
	return rc;
}

int netio_sendv_tagged(struct netio_send_socket *socket, netio_tag_t tag, const struct iovec *iov,
		       size_t count)
{
	struct unbuffered *unbuffered = unbuffered_of(socket);
	struct message message = {.tag = tag, .iov = iov, .count = count};
	const struct netio_connection *connection = socket->connection;
	int rc;

	ASSERT_LOOP(connection, connection->evloop);
	if (plx_unlikely(!connection || !connection->session.link))
		return netio_fail_closed();
	if (plx_unlikely(!message_measure(iov, count, message_copy_max(connection->message_max),
					  &message.length)))
		return message_refuse(iov, count, connection->message_max, "netio_sendv_ref");
	if (plx_likely(is_clear(&unbuffered->sender.outbox))) {
		rc = message_send_copy(connection->session.link, &message);
		if (plx_likely(rc != NETIO_STATUS_AGAIN))
			return rc;
	}
	return collect(unbuffered, &message);
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

static void report_later(struct unbuffered **unbuffered)
{
	if ((*unbuffered)->keys_begin != (*unbuffered)->keys_end)
		plx_task_schedule(&(*unbuffered)->report);
}

/* Report the keys so far: a callback may send more, end the connection, or throw in C++. */
static void report_keys(struct unbuffered *unbuffered)
{
	/* A callback may free the socket, if the link has ended. */
	struct plx_connector *ref PLX_CLEANUP(plx_connector_unhold) = plx_connector_hold(
		&unbuffered->sender.connection.session);
	struct unbuffered *rest PLX_CLEANUP(report_later) = unbuffered;
	uint32_t end = unbuffered->keys_end;

	while (rest->keys_begin != end) {
		uint64_t key = rest->keys[rest->keys_begin++ % KEYS_MAX];

		NOTIFY(netio_send_socket, rest, cb_send_completed, key, 0);
	}
}

static void report(struct plx_task *task, void *arg)
{
	report_keys(arg);
}

/* Return: as netio_sendv_ref; or 1: it is too long, or too many are to report. */
static int send_short(struct unbuffered *unbuffered, netio_tag_t tag, const struct iovec *iov,
		      size_t count, uint64_t key)
{
	struct message message = {.tag = tag, .iov = iov, .count = count};
	const struct netio_connection *connection = &unbuffered->sender.connection;
	int rc;

	if (!message_measure(iov, count, REFERENCE_COPY_MAX, &message.length) ||
	    message.length > connection->message_max || !connection->session.link ||
	    unbuffered->keys_end - unbuffered->keys_begin == KEYS_MAX)
		return 1;
	rc = message_send_copy(connection->session.link, &message);
	if (plx_likely(rc == 0)) {
		unbuffered->keys[unbuffered->keys_end++ % KEYS_MAX] = key;
		plx_task_schedule(&unbuffered->report);
	}
	return rc;
}

int netio_sendv_ref(struct netio_send_socket *socket, netio_tag_t tag, const struct iovec *iov,
		    size_t count, uint64_t key)
{
	struct unbuffered *unbuffered = unbuffered_of(socket);
	const struct netio_connection *connection = socket->connection;
	int rc;

	ASSERT_LOOP(connection, connection->evloop);
	if (plx_unlikely(!connection))
		return netio_fail_closed();
	if (plx_unlikely(!is_clear(&unbuffered->sender.outbox)))
		return again(unbuffered);
	rc = send_short(unbuffered, tag, iov, count, key);
	if (plx_unlikely(rc == 1))
		rc = references_send(&unbuffered->references, connection->session.link,
				     connection->message_max,
				     &(struct message){.tag = tag, .iov = iov, .count = count}, key,
				     on_sent, unbuffered);
	return plx_unlikely(rc == NETIO_STATUS_AGAIN) ? again(unbuffered) : rc;
}

DEFINE_NOTIFY(netio_send_socket)
DEFINE_ANSWERED(netio_send_socket)

static void on_opened(struct plx_connector *session)
{
	struct unbuffered *unbuffered = (struct unbuffered *)session;

	sender_open(&unbuffered->sender);
	unbuffered->wants_room = false;
	notify_opened(session);
}

static void on_room(struct outbox *outbox)
{
	struct sender *sender = plx_container_of(outbox, struct sender, outbox);

	((struct unbuffered *)sender)->wants_room = false;
	NOTIFY(netio_send_socket, sender, cb_buffers_available);
}

static void on_writable(struct netio_connection *connection)
{
	struct unbuffered *unbuffered = (struct unbuffered *)connection;
	struct outbox *outbox = &unbuffered->sender.outbox;

	if (!connection->session.link)
		return;
	outbox_writable(outbox);
	if (unbuffered->wants_room && is_clear(outbox)) {
		outbox->room.wanted = 0;
		on_room(outbox);
	} else {
		outbox_report_room(outbox);
	}
}

static void on_free(struct plx_connector *session)
{
	struct unbuffered *unbuffered = (struct unbuffered *)session;

	plx_task_cancel(&unbuffered->report);
	outbox_fini(&unbuffered->sender.outbox);
	references_fini(&unbuffered->references);
	free(unbuffered);
}

static void on_closed(struct plx_connector *session, enum plx_link_reason reason, const char *why)
{
	report_keys((struct unbuffered *)session);
	notify_closed(session, reason, why);
}

static const struct connection_owner owner = {
	.session = {CONNECTION_SESSION, .opened = on_opened, .closed = on_closed,
		    .base.settle = sender_settle, .ended = sender_ended, .free = on_free},
	.role = WIRE_SENDER,
	.suspect = notify_suspect,
	.received = on_received,
	.writable = on_writable,
};

static const struct outbox_owner outbox_owner = {.room = on_room, .sent = sender_sent};

int netio_send_socket_init(struct netio_eventloop *evloop, struct netio_send_socket *socket,
			   const struct netio_connect_attr *attr)
{
	static const struct netio_buffered_attr pages = {
		.page_bytes = PAGE_BYTES,
		.page_count = OUTBOX_COLLECT_PAGES,
		.watermark_bytes = PAGE_BYTES,
		.timeout_ns = PLX_NEVER,
	};
	struct connection_attr checked;
	struct unbuffered *unbuffered;
	int rc;

	*socket = (struct netio_send_socket){0};
	unbuffered = netio_allocate(evloop, "netio_send_socket_init", sizeof(*unbuffered), &rc);
	if (!unbuffered)
		return rc;
	rc = netio_logged(connection_check_attr(attr, &checked));
	if (rc) {
		free(unbuffered);
		return rc;
	}
	outbox_init(&unbuffered->sender.outbox, &pages, &outbox_owner);
	plx_task_init(&unbuffered->report, report, unbuffered);
	connection_init(&unbuffered->sender.connection, evloop, socket, &socket->connection, &owner,
			&checked);
	return 0;
}

DEFINE_CONNECTING(netio_send_socket, netio_connect, netio_disconnect)
