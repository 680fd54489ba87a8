/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of netio-throughput, buffered or not. */
#include "throughput.h"

static struct netio_send_socket unbuffered;
static struct netio_buffered_send_socket buffered;

int throughput_send(const void *data, size_t len)
{
	switch (throughput_conf.mode) {
	case MODE_BUFFERED:
		return netio_buffered_send(&buffered, data, len);
	case MODE_UNBUFFERED:
		return netio_send(&unbuffered, data, len);
	default:
		return netio_sendv_ref(&unbuffered, 0, &(struct iovec){(void *)data, len}, 1, 0);
	}
}

int throughput_ask(netio_tag_t tag, const void *data, size_t len)
{
	struct iovec iov = {(void *)data, len};
	int rc;

	if (throughput_conf.mode != MODE_BUFFERED)
		return netio_sendv_tagged(&unbuffered, tag, &iov, 1);
	rc = netio_buffered_sendv_tagged(&buffered, tag, &iov, 1);
	return rc ? rc : netio_buffered_flush(&buffered);
}

/* Unbuffered ---------------------------------------------------------------------------------- */

static void on_established(struct netio_send_socket *socket)
{
	throughput_established();
}

static void on_refused(struct netio_send_socket *socket, enum plx_link_reason reason,
		       const char *why)
{
	throughput_refused(why);
}

static void on_closed(struct netio_send_socket *socket, enum plx_link_reason reason,
		      const char *why)
{
	throughput_closed(why);
}

static void tell_suspect(bool suspect)
{
	plx_app_say("the receiver %s", suspect ? "is silent" : "is heard again");
}

static void on_suspect(struct netio_send_socket *socket, bool suspect)
{
	tell_suspect(suspect);
}

static void on_available(struct netio_send_socket *socket)
{
	throughput_available();
}

static void on_message(struct netio_send_socket *socket, const struct netio_msg *msg)
{
	throughput_answered(msg);
}

static int connect_unbuffered(struct netio_eventloop *evloop, const char *host, unsigned port)
{
	if (netio_send_socket_init(evloop, &unbuffered, NULL) != 0)
		return -1;
	unbuffered.cb_connection_established = on_established;
	unbuffered.cb_connection_refused = on_refused;
	unbuffered.cb_connection_closed = on_closed;
	unbuffered.cb_connection_suspect = on_suspect;
	unbuffered.cb_buffers_available = on_available;
	unbuffered.cb_msg_received = on_message;
	return netio_connect(&unbuffered, host, port);
}

/* Buffered ------------------------------------------------------------------------------------ */

static void on_buffered_established(struct netio_buffered_send_socket *socket)
{
	throughput_established();
}

static void on_buffered_refused(struct netio_buffered_send_socket *socket,
				enum plx_link_reason reason, const char *why)
{
	throughput_refused(why);
}

static void on_buffered_closed(struct netio_buffered_send_socket *socket,
			       enum plx_link_reason reason, const char *why)
{
	throughput_closed(why);
}

static void on_buffered_suspect(struct netio_buffered_send_socket *socket, bool suspect)
{
	tell_suspect(suspect);
}

static void on_buffered_available(struct netio_buffered_send_socket *socket)
{
	throughput_available();
}

static void on_buffered_message(struct netio_buffered_send_socket *socket,
				const struct netio_msg *msg)
{
	throughput_answered(msg);
}

static int connect_buffered(struct netio_eventloop *evloop, const char *host, unsigned port)
{
	struct netio_buffered_attr attr = {
		.page_bytes = (uint32_t)throughput_conf.page_bytes,
		.page_count = (uint32_t)throughput_conf.page_count,
	};

	if (netio_buffered_send_socket_init(evloop, &buffered, &attr) != 0)
		return -1;
	buffered.cb_connection_established = on_buffered_established;
	buffered.cb_connection_refused = on_buffered_refused;
	buffered.cb_connection_closed = on_buffered_closed;
	buffered.cb_connection_suspect = on_buffered_suspect;
	buffered.cb_buffers_available = on_buffered_available;
	buffered.cb_msg_received = on_buffered_message;
	return netio_buffered_connect(&buffered, host, port);
}

int throughput_connect(struct netio_eventloop *evloop)
{
	char host[PLX_ADDRESS_MAX];
	unsigned port;
	int rc = plx_address_split("--connect", throughput_conf.connect, host, &port);

	if (rc)
		return rc;
	return throughput_conf.mode == MODE_BUFFERED ? connect_buffered(evloop, host, port)
						     : connect_unbuffered(evloop, host, port);
}
