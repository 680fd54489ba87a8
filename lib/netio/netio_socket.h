/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Common to all sockets: status codes, received messages, attributes and callbacks of connections.
 * Part of netio.h.
 */
#ifndef NETIO_SOCKET_H
#define NETIO_SOCKET_H

#include "netio_loop.h"
#include "plx_fabric.h"

#include <errno.h>

PLX_BEGIN_DECLS

/* A send socket connects to a listening socket and sends it messages. An unbuffered one sends
 * each message at once; a buffered one collects them in pages. A listening socket takes both kinds.
 * Messages arrive whole and in the order in which they were sent. The receiver may answer.
 *
 * Sockets belong to their loop's thread. Callbacks run there, and never inside a call into a
 * socket. Set them after _init; each may be NULL. They may call every function of every socket.
 * Even _fini of the socket that runs the callback: it ends the socket's structs for single
 * connections, and the callback may then free the socket. */

typedef uint64_t netio_tag_t;

/** Every NetIO function that returns an int returns 0 or a negative errno, as everywhere in
 * Pollux. The codes that programs act on have names: NETIO_STATUS_AGAIN is -EAGAIN. Any other code
 * is a failure with a text in plx_error(), such as -EINVAL and -ENOMEM.
 * OK and PARTIAL mean that the message was taken. Otherwise the caller keeps it; when each
 * subscriber gets a copy, some may have it.
 * AGAIN, PARTIAL and NO_SUBSCRIBERS leave plx_error() unchanged.
 * Functions that send, push, publish, post and receive log nothing. All others log their failures,
 * because programs often ignore what they return. */
enum netio_status {
	NETIO_STATUS_OK = 0,
	NETIO_STATUS_AGAIN = -EAGAIN,     /**< no room now; cb_buffers_available follows */
	NETIO_STATUS_TOO_BIG = -EMSGSIZE, /**< above the peer's maximum, more than all pages, or a
					       copy above PLX_SEND_COPY_MAX */
	NETIO_STATUS_NOT_CONNECTED = -ENOTCONN,
	NETIO_STATUS_PARTIAL = -EINPROGRESS,  /**< published to some subscribers; the others have no
						   room: call again with NETIO_REENTRY */
	NETIO_STATUS_NO_SUBSCRIBERS = -ENXIO, /**< no subscription matches the tag */
};

#define NETIO_IOV_MAX 63 /**< pieces of a sent message */

/** A message that was received. */
struct netio_msg {
	const void *data; /**< aligned to 8 bytes */
	size_t len;
	netio_tag_t tag;     /**< 0 if none was sent */
	uint64_t source;     /**< id of the connection: netio_recv_socket.id */
	struct plx_buf *buf; /**< private */
};

/** Keep a message after its callback returns. data stays valid until netio_msg_release of a copy
 * of *msg. A kept message occupies a receive buffer, so keeping many stalls the sender.
 * Thread: the loop's. */
void netio_msg_keep(const struct netio_msg *msg);

/** Release a message that was kept or that netio_recv returned. Thread: any. */
void netio_msg_release(const struct netio_msg *msg);

/** 0 or NULL: the default. */
struct netio_connect_attr {
	const char *provider;        /**< as plx_link_attr.provider; copied */
	uint64_t connect_timeout_ns; /**< default 5 s; PLX_NEVER */
	uint64_t reconnect_min_ns;   /**< default 10 ms; PLX_NEVER: do not reconnect */
	uint64_t reconnect_max_ns;   /**< default 1 s */
	uint64_t message_max_bytes;  /**< longest answer accepted: 256 to 1 GiB - 4 KiB; default 16
					  MiB. Above PLX_SEND_COPY_MAX they come by reference */
};

/** Callbacks of every socket for its connections. connection: the socket, or its struct for one
 * connection. Each may be NULL. why is for people.
 * cb_connection_established: the connection is ready.
 * cb_connection_closed: the connection ended. A connecting socket tries again, as after
 * cb_connection_refused, unless the user closed it. The back-off restarts if the connection stayed
 * up for reconnect_max_ns.
 * cb_connection_suspect: the peer's process was silent for half of dead_after_ns (plx_fabric_conf:
 * 250 of 500 ms); or, with suspect false, it is heard again. */
#define NETIO_CONNECTION_CALLBACKS(connection)                                                  \
	void (*cb_connection_established)(connection);                                          \
	void (*cb_connection_closed)(connection, enum plx_link_reason reason, const char *why); \
	void (*cb_connection_suspect)(connection, bool suspect);

/** Callbacks of sockets that connect: the above, and:
 * cb_connection_refused: an attempt to connect failed; why is for people. Without this callback
 * the failure is logged, once per address and reason until the socket connects. The next attempt
 * follows after a random time, unless reconnect_min_ns is PLX_NEVER. That time is up to
 * reconnect_min_ns * 2^attempts, at most reconnect_max_ns, or at most PLX_RECONNECT_SAME_HOST_NS
 * after a refusal on this host. */
#define NETIO_CONNECT_CALLBACKS(connection)    \
	NETIO_CONNECTION_CALLBACKS(connection) \
	void (*cb_connection_refused)(connection, enum plx_link_reason reason, const char *why);

PLX_END_DECLS

#endif
