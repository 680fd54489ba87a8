/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Send sockets: unbuffered for low latency, buffered for high throughput. Part of netio.h.
 */
#ifndef NETIO_SEND_H
#define NETIO_SEND_H

#include "netio_socket.h"

PLX_BEGIN_DECLS

/* Unbuffered: low latency ------------------------------------------------------------------ */

/** Sends each message at once. While the receiver has no free buffer, messages of up to 1 KiB are
 * collected in two pages of 8 KiB, so at least 128 messages of 64 bytes find room. */
struct netio_send_socket {
	NETIO_CONNECT_CALLBACKS(struct netio_send_socket *socket)
	/** Once after NETIO_STATUS_AGAIN: there is room, maybe too little for a long message,
	 * which then gets AGAIN and this callback again. It does not run if the connection ends
	 * first: also continue in cb_connection_established. */
	void (*cb_buffers_available)(struct netio_send_socket *socket);
	/** The library is done with the message sent by reference with that key. Once per message,
	 * before cb_connection_closed. status:
	 * 0: the transport took it, or a copy.
	 * -ETIMEDOUT: the provider did not return it and may still read it; never change or free
	 * it.
	 * Another -errno: the connection ended; it may have arrived or not. */
	void (*cb_send_completed)(struct netio_send_socket *socket, uint64_t key, int status);
	/** An answer (netio_reply). */
	void (*cb_msg_received)(struct netio_send_socket *socket, const struct netio_msg *msg);
	void *data;                          /**< the user's */
	struct netio_connection *connection; /**< private */
};

/** attr: NULL for the defaults.
 * Return: 0; -EINVAL; -ENOMEM; -EPERM another thread's loop; -ESHUTDOWN during netio_fini. */
int netio_send_socket_init(struct netio_eventloop *evloop, struct netio_send_socket *socket,
			   const struct netio_connect_attr *attr);

/** Connect to a listening socket. Returns at once; cb_connection_established or _refused follows.
 * Each attempt resolves a name on another thread, at most once a second. A name that does not
 * resolve, or a host without a route, is refused like a port where nobody listens, and retried.
 * Return: 0; -EINVAL impossible address or unknown provider; -EALREADY connected or connecting;
 * -ESHUTDOWN during netio_drain; -ENODEV and -EACCES as plx_link_connect, without another
 * attempt. */
int netio_connect(struct netio_send_socket *socket, const char *host, unsigned port);

/** Close the connection without loss, or stop connecting; cb_connection_closed follows. Messages
 * that the peer does not take within PLX_CLOSE_NS (5 s) are lost.
 * Return: 0; -ENOTCONN. */
int netio_disconnect(struct netio_send_socket *socket);

/** No callbacks run after this returns. The connection is closed in the background without loss;
 * messages that the peer does not take within PLX_CLOSE_NS (5 s) are lost. Memory sent by reference
 * must stay until netio_fini: if that matters, call netio_disconnect first. Accepts a zeroed
 * socket. */
void netio_send_socket_fini(struct netio_send_socket *socket);

/** Send a copy of a message. At most NETIO_IOV_MAX pieces, and PLX_SEND_COPY_MAX bytes, 32 MiB.
 * Return: enum netio_status; -EINVAL; -ENOMEM. */
int netio_send(struct netio_send_socket *socket, const void *data, size_t len);
int netio_sendv(struct netio_send_socket *socket, const struct iovec *iov, size_t count);
int netio_sendv_tagged(struct netio_send_socket *socket, netio_tag_t tag, const struct iovec *iov,
		       size_t count);

/** Send a message without copying it, up to the peer's maximum. It must not change until
 * cb_send_completed returns the key, after this call. Messages of up to 2 KiB are copied, which is
 * faster; their keys return at the end of the turn. Over verbs, memory outside plx_mem_alloc is
 * copied, up to PLX_SEND_COPY_MAX.
 * Return: as netio_send; on error the caller keeps the memory and no callback follows. */
int netio_sendv_ref(struct netio_send_socket *socket, netio_tag_t tag, const struct iovec *iov,
		    size_t count, uint64_t key);

/* Buffered: high throughput ---------------------------------------------------------------- */

#define NETIO_PAGE_BYTES_MIN 256
#define NETIO_PAGE_BYTES_MAX (8u << 20)
#define NETIO_PAGE_COUNT_MAX 65536

/** 0 or NULL: the default. */
struct netio_buffered_attr {
	struct netio_connect_attr connect;
	uint32_t page_bytes;      /**< 256 to 8 MiB; default 64 KiB. Each message takes 8 bytes more
				       (16 with a tag), rounded up to 8 */
	uint32_t page_count;      /**< 2 to 65536; default 256 */
	uint32_t watermark_bytes; /**< a page with this much in it leaves; default page_bytes */
	uint64_t timeout_ns; /**< a page leaves this long after its first message; default 1 ms;
				  PLX_NEVER */
};

/** A timeout_ns for programs that prefer full pages to short delays, also of a publish socket: that
 * of the NetIO that preceded NetIO-next, 2 s. */
#define NETIO_FILL_TIMEOUT_NS (2 * PLX_NS_PER_S)

/** The pages of that NetIO: 128 of 1 MiB, 2 s. */
#define NETIO_BUFFERED_ATTR_1M {{NULL, 0, 0, 0, 0}, 1u << 20, 128, 0, NETIO_FILL_TIMEOUT_NS}

/** Copies messages into pages. A page leaves when it is full, at the watermark, after timeout_ns,
 * or by netio_buffered_flush: as soon as the link has taken the pages before it. Until then
 * messages join it. */
struct netio_buffered_send_socket {
	/* When a connection ends, accepted messages that were not sent are lost and counted. */
	NETIO_CONNECT_CALLBACKS(struct netio_buffered_send_socket *socket)
	/** Once after NETIO_STATUS_AGAIN: enough pages for that message are free, and few enough
	 * wait for the link that they may be filled. */
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

/** Copy a message into the page. A message longer than a page takes several, which must all be
 * free, and leaves at once. A message of half a page or more that does not fit into the page needs
 * none if the link has room and one receive buffer of the peer holds it. Longer ones than
 * PLX_SEND_COPY_MAX need a netio_send_socket.
 * Return: enum netio_status; -EINVAL. */
int netio_buffered_send(struct netio_buffered_send_socket *socket, const void *data, size_t len);
int netio_buffered_sendv(struct netio_buffered_send_socket *socket, struct iovec *iov, size_t num);
int netio_buffered_sendv_tagged(struct netio_buffered_send_socket *socket, netio_tag_t tag,
				const struct iovec *iov, size_t count);

/** Send the page, as soon as the link has taken those before it.
 * Return: NETIO_STATUS_OK, also if it is empty; NETIO_STATUS_NOT_CONNECTED. */
int netio_buffered_flush(struct netio_buffered_send_socket *socket);

struct netio_buffered_stats {
	uint64_t messages;      /**< accepted */
	uint64_t pages;         /**< sent */
	uint64_t again;         /**< sends that found no room */
	uint64_t messages_lost; /**< accepted, in pages that the transport had not taken when the
				     connection ended. Pages it had taken may be lost too */
	uint32_t pages_free;
};

void netio_buffered_stats_read(const struct netio_buffered_send_socket *socket,
			       struct netio_buffered_stats *stats_out);

PLX_END_DECLS

#endif
