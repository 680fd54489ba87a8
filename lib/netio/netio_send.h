/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sockets that send: unbuffered for low latency, buffered for high throughput. Part of netio.h.
 */
#ifndef NETIO_SEND_H
#define NETIO_SEND_H

#include "netio_socket.h"

PLX_BEGIN_DECLS

/* Unbuffered: low latency ------------------------------------------------------------------ */

/** Sends each message at once. */
struct netio_send_socket {
	NETIO_CONNECT_CALLBACKS(struct netio_send_socket *socket)
	/** After NETIO_STATUS_AGAIN, once: there is some room, which may be too little for a long
	 * message; then AGAIN and this come again. Not where the connection ends before: go on in
	 * cb_connection_established, too. */
	void (*cb_buffers_available)(struct netio_send_socket *socket);
	/** What was sent by reference with that key is not needed any more; once for each, and
	 * before cb_connection_closed. status: 0 the transport has taken it; -ETIMEDOUT: the
	 * provider did not give it back, and may read it for good; another -errno: the connection
	 * ended, and it may have arrived or not. */
	void (*cb_send_completed)(struct netio_send_socket *socket, uint64_t key, int status);
	/** An answer (netio_reply). */
	void (*cb_msg_received)(struct netio_send_socket *socket, const struct netio_msg *msg);
	void *data;                          /**< the user's */
	struct netio_connection *connection; /**< private */
};

/** attr: NULL for the defaults. Return: 0; -EINVAL; -ENOMEM; -EPERM another thread's loop. */
int netio_send_socket_init(struct netio_eventloop *evloop, struct netio_send_socket *socket,
			   const struct netio_connect_attr *attr);

/** Connect to a listening socket. Returns at once; cb_connection_established or _refused follows. A
 * name (not a number) is looked up on another thread, for each attempt, and at most once a second;
 * one that does not resolve is refused. Return: 0; -EINVAL an address that cannot be; -EALREADY it
 * is connected, or about to be; or as plx_link_connect: it is not tried again. */
int netio_connect(struct netio_send_socket *socket, const char *host, unsigned port);

/** Close the connection without loss, but for what the peer does not take for 2 s, or give up
 * opening one: cb_connection_closed follows. Return: 0; -ENOTCONN. */
int netio_disconnect(struct netio_send_socket *socket);

/** No callback comes any more. A connection is closed without loss, behind the socket's back; what
 * was sent by reference must stay until netio_fini: netio_disconnect first where that matters. What
 * a peer does not take for 2 s is lost.
 * Accepts a socket that is zeroed. */
void netio_send_socket_fini(struct netio_send_socket *socket);

/** Send a copy of a message. Return: enum netio_status; -EINVAL; -ENOMEM. */
int netio_send(struct netio_send_socket *socket, const void *data, size_t len);
int netio_sendv(struct netio_send_socket *socket, const struct iovec *iov, size_t count);
int netio_sendv_tagged(struct netio_send_socket *socket, netio_tag_t tag, const struct iovec *iov,
		       size_t count);

/** Send a message without copying it: it must stay as it is until cb_send_completed gives the key.
 * Over verbs, memory that is not of plx_mem_alloc is copied all the same.
 * Return: as netio_send; with an error there is no callback, and the memory stays the caller's. */
int netio_sendv_ref(struct netio_send_socket *socket, netio_tag_t tag, const struct iovec *iov,
		    size_t count, uint64_t key);

/* Buffered: high throughput ---------------------------------------------------------------- */

#define NETIO_PAGE_BYTES_MIN 256
#define NETIO_PAGE_BYTES_MAX (8u << 20)
#define NETIO_PAGE_COUNT_MAX 65536

/** 0 or NULL: the default. */
struct netio_buffered_attr {
	struct netio_connect_attr connect;
	uint32_t page_bytes;      /**< 256 to 8 MiB; default 64 KiB. Of messages, of which each
				       takes 8 more (16 with a tag) and is rounded up to 8 */
	uint32_t page_count;      /**< 2 to 65536; default 256 */
	uint32_t watermark_bytes; /**< a page with so much in it leaves; default page_bytes */
	uint64_t timeout_ns;      /**< one that began so long ago leaves; default 2 s;
				       PLX_NEVER */
};

/** Pages as NetIO used to have them: 1 MiB, 128 of them, 2 s. */
#define NETIO_BUFFERED_ATTR_1M {.page_bytes = 1u << 20, .page_count = 128}

/** Copies messages into pages, which leave when they are full, at the watermark, by
 * netio_buffered_flush, or after a time. */
struct netio_buffered_send_socket {
	/* What of the accepted messages was not sent when a connection ends is lost, and
	 * counted. */
	NETIO_CONNECT_CALLBACKS(struct netio_buffered_send_socket *socket)
	/** After NETIO_STATUS_AGAIN, once: there are as many free pages as the message needed, and
	 * so few wait for the link that they may be filled. */
	void (*cb_buffers_available)(struct netio_buffered_send_socket *socket);
	void (*cb_msg_received)(struct netio_buffered_send_socket *socket,
				const struct netio_msg *msg);
	void *data;
	struct netio_connection *connection; /**< private */
};

/** As netio_send_socket_init. */
int netio_buffered_send_socket_init(struct netio_eventloop *evloop,
				    struct netio_buffered_send_socket *socket,
				    const struct netio_buffered_attr *attr);
int netio_buffered_connect(struct netio_buffered_send_socket *socket, const char *host,
			   unsigned port);
int netio_buffered_disconnect(struct netio_buffered_send_socket *socket);
void netio_buffered_send_socket_fini(struct netio_buffered_send_socket *socket);

/** Copy a message into the page. One that is longer than a page goes into several, of which all
 * must be free, and leaves at once. Return: enum netio_status; -EINVAL. */
int netio_buffered_send(struct netio_buffered_send_socket *socket, const void *data, size_t len);
int netio_buffered_sendv(struct netio_buffered_send_socket *socket, struct iovec *iov, size_t num);
int netio_buffered_sendv_tagged(struct netio_buffered_send_socket *socket, netio_tag_t tag,
				const struct iovec *iov, size_t count);

/** Let the page leave. Return: NETIO_STATUS_OK, also where it is empty;
 * NETIO_STATUS_NOT_CONNECTED. */
int netio_buffered_flush(struct netio_buffered_send_socket *socket);

struct netio_buffered_stats {
	uint64_t messages;      /**< accepted */
	uint64_t pages;         /**< that left */
	uint64_t again;         /**< sends that found no room */
	uint64_t messages_lost; /**< accepted, and in pages that the transport had not taken when
				     the connection ended; what it had taken may be lost, too */
	uint32_t pages_free;
};

void netio_buffered_stats(const struct netio_buffered_send_socket *socket,
			  struct netio_buffered_stats *stats_out);

PLX_END_DECLS

#endif
