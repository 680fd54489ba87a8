/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat send: a buffered or unbuffered send socket, which connects once. */
#include "cat.h"

#include <inttypes.h>

#define LOOK_US 500 /* between checks for pages in flight */

static struct netio_buffered_send_socket buffered;
static struct netio_send_socket unbuffered;
static struct netio_timer timer;
static uint32_t page_count;
static bool is_over;    /* no more messages */
static bool is_closing; /* all of them are sent */
static uint64_t lost;   /* unbuffered */
static uint64_t copy;   /* key of the message to send; unbuffered */

static netio_tag_t tag(void)
{
	return cat_conf.tags[0].tag; /* 0 if not given */
}

static void refused(const char *why)
{
	cat_fail("%s", why);
	cat_end();
}

/* If everything was sent, the peer may be the first to close. */
static void closed(uint64_t messages_lost, enum plx_link_reason reason, const char *why)
{
	if (!is_over || messages_lost || reason != PLX_LINK_CLOSED)
		cat_fail("the connection ended before all was sent: %s", why);
	cat_end();
}

/* Buffered ------------------------------------------------------------------------------------ */

static struct netio_buffered_stats pages(void)
{
	struct netio_buffered_stats stats;

	netio_buffered_stats_read(&buffered, &stats);
	return stats;
}

static int send_buffered(const void *data, size_t len, bool again)
{
	struct iovec iov = {(void *)data, len};

	return netio_buffered_sendv_tagged(&buffered, tag(), &iov, 1);
}

static void flush_buffered(void)
{
	netio_buffered_flush(&buffered);
}

/* Closing waits only 5 s for a slow peer, so it comes when all pages are sent. */
static void on_look(void *data)
{
	if (is_closing || pages().pages_free < page_count)
		return;
	is_closing = true;
	netio_timer_stop(&timer);
	netio_buffered_disconnect(&buffered);
}

static void finish_buffered(void)
{
	is_over = true;
	netio_buffered_flush(&buffered);
	netio_timer_start_us(&timer, LOOK_US);
}

static void on_buffered_established(struct netio_buffered_send_socket *socket)
{
	page_count = pages().pages_free;
	cat_input_go();
}

static void on_buffered_refused(struct netio_buffered_send_socket *socket,
				enum plx_link_reason reason, const char *why)
{
	refused(why);
}

static void on_buffered_closed(struct netio_buffered_send_socket *socket,
			       enum plx_link_reason reason, const char *why)
{
	closed(pages().messages_lost, reason, why);
}

static void on_buffered_suspect(struct netio_buffered_send_socket *socket, bool suspect)
{
	cat_tell_suspect("the receiver", suspect);
}

static void on_buffered_available(struct netio_buffered_send_socket *socket)
{
	cat_input_go();
}

static int connect_buffered(struct netio_eventloop *evloop)
{
	struct netio_buffered_attr attr = {.connect.reconnect_min_ns = PLX_NEVER};

	if (netio_timer_init(evloop, &timer) != 0 ||
	    netio_buffered_send_socket_init(evloop, &buffered, &attr) != 0)
		return -1;
	timer.cb = on_look;
	buffered.cb_connection_established = on_buffered_established;
	buffered.cb_connection_refused = on_buffered_refused;
	buffered.cb_connection_closed = on_buffered_closed;
	buffered.cb_connection_suspect = on_buffered_suspect;
	buffered.cb_buffers_available = on_buffered_available;
	return netio_buffered_connect(&buffered, cat_conf.addresses->host,
				      cat_conf.addresses->port);
}

/* Unbuffered: messages are kept until the transport has them. --------------------------------- */

static int send_unbuffered(const void *data, size_t len, bool again)
{
	struct iovec iov;
	int rc = again ? 0 : cat_copy_make(data, len, &copy);

	if (rc)
		return rc;
	iov = cat_copy_iov(copy);
	rc = netio_sendv_ref(&unbuffered, tag(), &iov, 1, copy);
	if (rc != NETIO_STATUS_OK && rc != NETIO_STATUS_AGAIN)
		cat_copy_done(copy, 0);
	return rc;
}

static void finish_unbuffered(void)
{
	is_over = true;
	if (is_closing || cat_copy_count() > 0)
		return;
	is_closing = true;
	netio_disconnect(&unbuffered);
}

static void on_completed(struct netio_send_socket *socket, uint64_t key, int status)
{
	cat_copy_done(key, status);
	lost += status != 0;
	if (is_over)
		finish_unbuffered();
}

static void on_unbuffered_established(struct netio_send_socket *socket)
{
	cat_input_go();
}

static void on_unbuffered_refused(struct netio_send_socket *socket, enum plx_link_reason reason,
				  const char *why)
{
	refused(why);
}

static void on_unbuffered_closed(struct netio_send_socket *socket, enum plx_link_reason reason,
				 const char *why)
{
	closed(lost, reason, why);
}

static void on_unbuffered_suspect(struct netio_send_socket *socket, bool suspect)
{
	cat_tell_suspect("the receiver", suspect);
}

static void on_unbuffered_available(struct netio_send_socket *socket)
{
	cat_input_go();
}

static int connect_unbuffered(struct netio_eventloop *evloop)
{
	struct netio_connect_attr attr = {.reconnect_min_ns = PLX_NEVER};

	if (netio_send_socket_init(evloop, &unbuffered, &attr) != 0)
		return -1;
	unbuffered.cb_connection_established = on_unbuffered_established;
	unbuffered.cb_connection_refused = on_unbuffered_refused;
	unbuffered.cb_connection_closed = on_unbuffered_closed;
	unbuffered.cb_connection_suspect = on_unbuffered_suspect;
	unbuffered.cb_buffers_available = on_unbuffered_available;
	unbuffered.cb_send_completed = on_completed;
	return netio_connect(&unbuffered, cat_conf.addresses->host, cat_conf.addresses->port);
}

int cat_send_start(struct netio_eventloop *evloop)
{
	static const struct cat_sender senders[] = {
		{send_buffered, flush_buffered, finish_buffered},
		{send_unbuffered, NULL, finish_unbuffered},
	};
	int rc = cat_conf.unbuffered ? connect_unbuffered(evloop) : connect_buffered(evloop);

	return rc ? rc : cat_input_start(&senders[cat_conf.unbuffered]);
}
