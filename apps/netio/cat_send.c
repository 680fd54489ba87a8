/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat send: a buffered or unbuffered send socket, which connects once. Copies of messages
 * that are sent by reference, also for publish. */
#include "cat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define LOOK_US 500 /* between checks for pages in flight */

/* Copies -------------------------------------------------------------------------------------- */

struct copy {
	LIST_ENTRY(copy) link;
	size_t len;
	uint8_t bytes[];
};

static LIST_HEAD(copies, copy) copies = LIST_HEAD_INITIALIZER(copies);
static unsigned count;

static struct copy *make(const void *data, size_t len)
{
	struct copy *copy = malloc(sizeof(*copy) + len);

	if (!copy) {
		plx_fail(ENOMEM, "out of memory for a message of %zu bytes", len);
		return NULL;
	}
	copy->len = len;
	memcpy(copy->bytes, data, len);
	LIST_INSERT_HEAD(&copies, copy, link);
	count++;
	return copy;
}

int cat_copy_send(const void *data, size_t len, bool again,
		  int (*send)(const struct iovec *iov, uint64_t key, bool again))
{
	struct copy *copy = again ? LIST_FIRST(&copies) : make(data, len);
	int rc;

	if (!copy)
		return -ENOMEM;
	rc = send(&(struct iovec){copy->bytes, copy->len}, (uintptr_t)copy, again);
	if (rc != NETIO_STATUS_OK && rc != NETIO_STATUS_AGAIN && rc != NETIO_STATUS_PARTIAL)
		cat_copy_done((uintptr_t)copy, 0);
	return rc;
}

void cat_copy_done(uint64_t key, int status)
{
	struct copy *copy = (struct copy *)(uintptr_t)key;

	LIST_REMOVE(copy, link);
	count--;
	if (status != -ETIMEDOUT) /* otherwise the peer may still read it: never free it */
		free(copy);
}

unsigned cat_copy_count(void)
{
	return count;
}

/* The socket ---------------------------------------------------------------------------------- */

static struct netio_buffered_send_socket buffered;
static struct netio_send_socket unbuffered;
static struct netio_timer timer;
static uint32_t page_count;
static bool is_over;  /* no more messages */
static uint64_t lost; /* unbuffered */

static struct netio_buffered_stats pages(void)
{
	struct netio_buffered_stats stats;

	netio_buffered_stats_read(&buffered, &stats);
	return stats;
}

/* Sending ------------------------------------------------------------------------------------- */

static int send_buffered(const void *data, size_t len, bool again)
{
	struct iovec iov = {(void *)data, len};

	return netio_buffered_sendv_tagged(&buffered, cat_tag(), &iov, 1);
}

static int send_reference(const struct iovec *iov, uint64_t key, bool again)
{
	return netio_sendv_ref(&unbuffered, cat_tag(), iov, 1, key);
}

static int send_unbuffered(const void *data, size_t len, bool again)
{
	return cat_copy_send(data, len, again, send_reference);
}

static void flush_buffered(void)
{
	netio_buffered_flush(&buffered);
}

/* Closing waits only 5 s for a slow peer, so it comes when all pages are sent. */
static void on_look(void *data)
{
	if (pages().pages_free < page_count)
		return;
	netio_timer_stop(&timer);
	cat_end();
}

static void finish_buffered(void)
{
	is_over = true;
	netio_buffered_flush(&buffered);
	netio_timer_start_us(&timer, LOOK_US);
}

static void finish_unbuffered(void)
{
	is_over = true;
	if (cat_copy_count() == 0)
		cat_end();
}

static void on_completed(struct netio_send_socket *socket, uint64_t key, int status)
{
	cat_copy_done(key, status);
	lost += status != 0;
	if (is_over)
		finish_unbuffered();
}

/* The connection ------------------------------------------------------------------------------ */

static void established(void)
{
	if (!cat_conf.unbuffered)
		page_count = pages().pages_free;
	cat_input_go();
}

static void refused(const char *why)
{
	cat_fail("%s", why);
	cat_end();
}

/* If everything was sent, the peer may be the first to close. */
static void closed(enum plx_link_reason reason, const char *why)
{
	if (!is_over || reason != PLX_LINK_CLOSED ||
	    (cat_conf.unbuffered ? lost : pages().messages_lost))
		cat_fail("the connection ended before all was sent: %s", why);
	cat_end();
}

/* Define the callbacks of a kind of socket, and a function that sets them. */
#define CALLBACKS(kind, type)                                                        \
	static void kind##_established(struct type *socket)                          \
	{                                                                            \
		established();                                                       \
	}                                                                            \
	static void kind##_refused(struct type *socket, enum plx_link_reason reason, \
				   const char *why)                                  \
	{                                                                            \
		refused(why);                                                        \
	}                                                                            \
	static void kind##_closed(struct type *socket, enum plx_link_reason reason,  \
				  const char *why)                                   \
	{                                                                            \
		closed(reason, why);                                                 \
	}                                                                            \
	static void kind##_suspect(struct type *socket, bool suspect)                \
	{                                                                            \
		cat_tell_suspect("the receiver", suspect);                           \
	}                                                                            \
	static void kind##_available(struct type *socket)                            \
	{                                                                            \
		cat_input_go();                                                      \
	}                                                                            \
	static void set_##kind##_callbacks(void)                                     \
	{                                                                            \
		kind.cb_connection_established = kind##_established;                 \
		kind.cb_connection_refused = kind##_refused;                         \
		kind.cb_connection_closed = kind##_closed;                           \
		kind.cb_connection_suspect = kind##_suspect;                         \
		kind.cb_buffers_available = kind##_available;                        \
	}

CALLBACKS(buffered, netio_buffered_send_socket)
CALLBACKS(unbuffered, netio_send_socket)

static int connect_buffered(struct netio_eventloop *evloop)
{
	struct netio_buffered_attr attr = {.connect.reconnect_min_ns = PLX_NEVER};

	if (netio_timer_init(evloop, &timer) != 0 ||
	    netio_buffered_send_socket_init(evloop, &buffered, &attr) != 0)
		return -1;
	timer.cb = on_look;
	set_buffered_callbacks();
	return netio_buffered_connect(&buffered, cat_conf.addresses->host,
				      cat_conf.addresses->port);
}

static int connect_unbuffered(struct netio_eventloop *evloop)
{
	struct netio_connect_attr attr = {.reconnect_min_ns = PLX_NEVER};

	if (netio_send_socket_init(evloop, &unbuffered, &attr) != 0)
		return -1;
	set_unbuffered_callbacks();
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
