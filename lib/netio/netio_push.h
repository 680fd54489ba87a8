/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The socket that gives each message to one of several receivers. Part of netio.h.
 */
#ifndef NETIO_PUSH_H
#define NETIO_PUSH_H

#include "netio_socket.h"

PLX_BEGIN_DECLS

struct netio_push_core;

/* A push socket connects to several listening sockets, and gives each message to one of them: to
 * the one that has most room for more. So a receiver that works faster gets more, and what one that
 * dies had not finished goes to the others.
 *
 * The room of a receiver is its credit: those of its buffer_count buffers that hold nothing. A
 * message takes one (one that is longer than buffer_bytes several while it arrives) from when it is
 * pushed until the receiver is done with it: its cb_msg_received has returned, or it was released,
 * where it was kept (netio_msg_keep) or came by netio_recv. Then it is finished. */

/** What becomes of messages that a receiver had not finished when its connection ended. */
enum netio_push_promise {
	/** They go to the others, before new ones and in the order in which they had been pushed to
	 * it. One that it had done, and not told yet, arrives twice. What it tells is how many it
	 * is done with: receivers that keep messages and release later ones first may have
	 * others taken for done than are, of which one is lost for each that is released out of
	 * order, if they die. */
	NETIO_PUSH_AT_LEAST_ONCE,
	/** They are not sent again, and count as lost: it may have done them, or not. */
	NETIO_PUSH_AT_MOST_ONCE,
};

/** 0 or NULL: the default. */
struct netio_push_attr {
	struct netio_connect_attr connect; /**< of each receiver */
	enum netio_push_promise promise;   /**< default NETIO_PUSH_AT_LEAST_ONCE */
};

/** One receiver of a push socket: from netio_push_connect until the cb_connection_closed that
 * follows netio_push_disconnect or netio_drain returns, across connections that end and are made
 * anew. */
struct netio_push_receiver {
	struct netio_push_socket *push_socket;
	uint64_t id;          /**< counts up from 1; netio_msg.source of its answers */
	const char *address;  /**< "host:port", as the user gave it */
	const char *provider; /**< as netio_recv_socket.provider; "" while it is not connected */
	void *data;           /**< the user's */
};

struct netio_push_socket {
	/* In cb_connection_closed, what the receiver had not finished is with the others by now, as
	 * far as these have room. A receiver that is suspect gets nothing while there is another
	 * one that is not, even if that has no room: what it got would most likely go to another
	 * one in the end, and late. */
	NETIO_CONNECT_CALLBACKS(struct netio_push_receiver *receiver)
	/** After NETIO_STATUS_AGAIN, once: a receiver has room, perhaps one that has connected only
	 * now. If all connections ended meanwhile it comes when there is one again. */
	void (*cb_buffers_available)(struct netio_push_socket *socket);
	/** An answer (netio_reply). */
	void (*cb_msg_received)(struct netio_push_receiver *receiver, const struct netio_msg *msg);
	void *data;                   /**< the user's */
	struct netio_push_core *core; /**< private */
};

/** As netio_send_socket_init; -EINVAL also: a promise that there is not. */
int netio_push_socket_init(struct netio_eventloop *evloop, struct netio_push_socket *socket,
			   const struct netio_push_attr *attr);

/** Connect to one more receiver, a listening socket; as netio_connect. Return: 0; -EEXIST it is
 * connected to, or tried, already (names are compared as they are given); -EALREADY its end by
 * netio_push_disconnect is still to be told; -EINVAL; -ENOMEM; or as netio_connect. A receiver that
 * is not tried again (reconnect_min_ns) may be connected to again. */
int netio_push_connect(struct netio_push_socket *socket, const char *host, unsigned port);

/** Take a receiver away: its connection is closed without loss, but for what it does not take for
 * 2 s, and cb_connection_closed follows; one that is not tried again is gone at once, without it.
 * What has arrived there when the receiver agrees counts as finished; otherwise it goes to the
 * others. If it is the last one, it gets what waits before. Return: 0; -ENOENT; -EINVAL. */
int netio_push_disconnect(struct netio_push_socket *socket, const char *host, unsigned port);

/** No callback comes any more. Connections are closed without loss, as by netio_send_socket_fini;
 * what a receiver that dies by then has not finished, and what waited for one, is lost:
 * netio_push_disconnect or netio_drain first where that matters. Accepts a socket that is zeroed.
 */
void netio_push_socket_fini(struct netio_push_socket *socket);

/** Push a copy of a message. Return: NETIO_STATUS_OK; NETIO_STATUS_AGAIN no receiver has room, or
 * messages of one that died wait for it; NETIO_STATUS_TOO_BIG none that is connected accepts a
 * message of that length: those that accept only shorter ones are passed over;
 * NETIO_STATUS_NOT_CONNECTED no receiver is, and what waits is kept; -EINVAL; -ENOMEM. */
int netio_push(struct netio_push_socket *socket, const void *data, size_t len);
int netio_pushv_tagged(struct netio_push_socket *socket, netio_tag_t tag, const struct iovec *iov,
		       size_t count);

struct netio_push_stats {
	uint64_t messages;     /**< pushed: OK */
	uint64_t again;        /**< AGAIN */
	uint64_t finished;     /**< that receivers were done with, as far as they have told: the
				    last ones with the next heartbeat. Where there are none
				    (turned off, or a process with itself) these stay under way
				    until it closes */
	uint64_t handed_again; /**< that went to another receiver; one may do so several times */
	uint64_t lost;         /**< with NETIO_PUSH_AT_MOST_ONCE: that were not finished when a
				    connection ended */
	uint32_t under_way;    /**< that receivers have and have not finished */
	uint32_t waiting;      /**< to go to another receiver. With those under way no more than
				    all receivers had room for */
	uint32_t receivers, connected;
};

void netio_push_stats(const struct netio_push_socket *socket, struct netio_push_stats *stats_out);

struct netio_push_receiver_stats {
	uint64_t handed;     /**< messages that it was given */
	uint64_t finished;   /**< that it was done with */
	uint64_t taken_away; /**< that it had not finished when a connection ended */
	uint32_t under_way;  /**< that it has and has not finished */
	uint32_t credit;     /**< messages of buffer_bytes at most that it has room for, as far as
				  it has told: it tells late while that is much */
};

void netio_push_receiver_stats(const struct netio_push_receiver *receiver,
			       struct netio_push_receiver_stats *stats_out);

PLX_END_DECLS

#endif
