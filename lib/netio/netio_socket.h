/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What all sockets have: what sending gives, messages that were received, attributes and callbacks
 * of connections. Part of netio.h.
 */
#ifndef NETIO_SOCKET_H
#define NETIO_SOCKET_H

#include "netio_loop.h"
#include "plx_fabric.h"

#include <errno.h>

PLX_BEGIN_DECLS

/* A send socket connects to a listening one, and sends it messages: an unbuffered one each by
 * itself and at once, a buffered one many in a page. A listening socket takes both. Messages arrive
 * whole and in the order in which they were sent. Whom they come from may be answered.
 *
 * Sockets belong to the thread of their loop, which their callbacks come on, and no callback comes
 * inside a call into a socket. Set the callbacks behind _init; each may be NULL. Every function of
 * a socket may be called in its callbacks. */

typedef uint64_t netio_tag_t;

/** Every function of NetIO that returns an int returns 0 or a negative errno value, as all of
 * Pollux. What a program that sends, pushes or publishes acts on has a name, too, with the same
 * value: NETIO_STATUS_AGAIN is -EAGAIN. Any other value is a failure, with plx_error(), such as
 * -EINVAL and -ENOMEM.
 * A message that is not OK or PARTIAL was not taken, and stays the caller's; of one that is
 * published with a copy for each subscriber, some may have it.
 * AGAIN, PARTIAL and NO_SUBSCRIBERS are no failures: they leave plx_error() as it is.
 * Functions that send, push, publish, post and receive log nothing. All others log their failures,
 * for programs that do not look at them. */
enum netio_status {
	NETIO_STATUS_OK = 0,
	NETIO_STATUS_AGAIN = -EAGAIN,     /**< no room now: cb_buffers_available follows */
	NETIO_STATUS_TOO_BIG = -EMSGSIZE, /**< longer than the peer accepts, or than the pages of
					       a buffered socket hold together */
	NETIO_STATUS_NOT_CONNECTED = -ENOTCONN,
	NETIO_STATUS_PARTIAL = -EINPROGRESS,  /**< published to some, and the others have no room:
						   call again with NETIO_REENTRY */
	NETIO_STATUS_NO_SUBSCRIBERS = -ENXIO, /**< nobody has subscribed to the tag */
};

#define NETIO_IOV_MAX 63 /**< pieces of one message that is sent */

/** A message that was received. */
struct netio_msg {
	const void *data; /**< aligned to 8 bytes */
	size_t len;
	netio_tag_t tag;     /**< 0 where none was sent */
	uint64_t source;     /**< number of the connection that it came on: netio_recv_socket.id */
	struct plx_buf *buf; /**< private */
};

/** Keep a message beyond its callback: data stays where it is until netio_msg_release of a copy of
 * *msg. What is kept takes its place out of those that the sender may fill, so that it has to wait
 * in the end. Thread: the loop's. */
void netio_msg_keep(const struct netio_msg *msg);

/** Let go of a message that was kept, or that netio_recv gave. Thread: any. */
void netio_msg_release(const struct netio_msg *msg);

/** 0 or NULL: the default. */
struct netio_connect_attr {
	const char *provider;        /**< as plx_link_attr.provider; copied */
	uint64_t connect_timeout_ns; /**< default 5 s; PLX_NEVER */
	uint64_t reconnect_min_ns;   /**< default 10 ms; PLX_NEVER: no next attempt */
	uint64_t reconnect_max_ns;   /**< default 1 s */
	uint64_t message_max_bytes;  /**< longest answer that is accepted: 256 to 1 GiB - 4 KiB;
					  default 16 MiB */
};

/** Callbacks that every socket has, for its connections. connection: the socket, or the struct that
 * it has for each connection. Each may be NULL.
 * cb_connection_established: the connection may be used.
 * cb_connection_closed: the connection ended; why: for people. A socket that connects tries again,
 * as after cb_connection_refused, unless the user closed it; a connection that lasted for
 * reconnect_max_ns makes the times begin anew.
 * cb_connection_suspect: nothing was heard of the peer's process for half of the time after which
 * it is given up (plx_fabric_conf: 250 of 500 ms); or, suspect false, it is heard again. */
#define NETIO_CONNECTION_CALLBACKS(connection)                                                  \
	void (*cb_connection_established)(connection);                                          \
	void (*cb_connection_closed)(connection, enum plx_link_reason reason, const char *why); \
	void (*cb_connection_suspect)(connection, bool suspect);

/** The same for sockets that connect, and:
 * cb_connection_refused: an attempt to connect came to nothing; why: for people. Without this
 * callback it is logged, once for each address and reason until the socket is connected. Unless
 * reconnect_min_ns is PLX_NEVER, the next one follows after a time between 0 and reconnect_min_ns *
 * 2^attempts, at random, reconnect_max_ns at most, or PLX_RECONNECT_SAME_HOST_NS after a refusal on
 * this host. */
#define NETIO_CONNECT_CALLBACKS(connection)    \
	NETIO_CONNECTION_CALLBACKS(connection) \
	void (*cb_connection_refused)(connection, enum plx_link_reason reason, const char *why);

PLX_END_DECLS

#endif
