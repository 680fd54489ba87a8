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

/* The callbacks of a socket, which differ in its type only; `name`_set sets them. */
#define SOCKET_CALLBACKS(name, type)                                                      \
	static void name##_established(struct type *socket)                               \
	{                                                                                 \
		throughput_established();                                                 \
	}                                                                                 \
	static void name##_ended(struct type *socket, enum plx_link_reason reason,        \
				 const char *why)                                         \
	{                                                                                 \
		throughput_ended(why);                                                    \
	}                                                                                 \
	static void name##_suspect(struct type *socket, bool suspect)                     \
	{                                                                                 \
		plx_app_say("the receiver %s", suspect ? "is silent" : "is heard again"); \
	}                                                                                 \
	static void name##_available(struct type *socket)                                 \
	{                                                                                 \
		throughput_available();                                                   \
	}                                                                                 \
	static void name##_message(struct type *socket, const struct netio_msg *msg)      \
	{                                                                                 \
		throughput_answered(msg);                                                 \
	}                                                                                 \
	static void name##_set(struct type *socket)                                       \
	{                                                                                 \
		socket->cb_connection_established = name##_established;                   \
		socket->cb_connection_refused = name##_ended;                             \
		socket->cb_connection_closed = name##_ended;                              \
		socket->cb_connection_suspect = name##_suspect;                           \
		socket->cb_buffers_available = name##_available;                          \
		socket->cb_msg_received = name##_message;                                 \
	}

SOCKET_CALLBACKS(unbuffered, netio_send_socket)
SOCKET_CALLBACKS(buffered, netio_buffered_send_socket)

int throughput_connect(struct netio_eventloop *evloop)
{
	struct netio_buffered_attr attr = {
		.page_bytes = (uint32_t)throughput_conf.page_bytes,
		.page_count = (uint32_t)throughput_conf.page_count,
	};
	char host[PLX_ADDRESS_MAX];
	unsigned port;
	int rc = plx_address_split("--connect", throughput_conf.connect, host, &port);

	if (rc)
		return rc;
	if (throughput_conf.mode == MODE_BUFFERED) {
		rc = netio_buffered_send_socket_init(evloop, &buffered, &attr);
		buffered_set(&buffered);
		return rc ? rc : netio_buffered_connect(&buffered, host, port);
	}
	rc = netio_send_socket_init(evloop, &unbuffered, NULL);
	unbuffered_set(&unbuffered);
	return rc ? rc : netio_connect(&unbuffered, host, port);
}
