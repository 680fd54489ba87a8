/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The push socket, which gives each message to one of several receivers. Part of netio.h.
 */
#ifndef NETIO_PUSH_H
#define NETIO_PUSH_H

#include "netio_socket.h"

PLX_BEGIN_DECLS

struct netio_push_core;

/* A push socket connects to several listening sockets and gives each message to the one with the
 * most room. So a faster receiver gets more messages. Messages that a failed receiver had not
 * finished go to the others.
 *
 * A receiver's room is its credit: the free ones of its buffer_count buffers. A message occupies
 * one buffer; if it is longer than buffer_bytes, several while it arrives. The receiver finishes
 * it when cb_msg_received returns, or it releases one from netio_msg_keep or netio_recv. */

/** What happens to messages that a receiver had not finished when its connection ended. */
enum netio_push_promise {
	/** They go to the others, before new ones and in their order. A message that was finished
	 * but not yet reported arrives twice. Receivers report how many messages they finished, not
	 * which ones. So if a receiver releases kept messages out of order and then fails, one
	 * message may be lost for each such release. */
	NETIO_PUSH_AT_LEAST_ONCE,
	/** They are not sent again, and count as lost; the receiver may have processed them. */
	NETIO_PUSH_AT_MOST_ONCE,
};

/** 0 or NULL: the default. */
struct netio_push_attr {
	struct netio_connect_attr connect; /**< for each receiver */
	enum netio_push_promise promise;   /**< default NETIO_PUSH_AT_LEAST_ONCE */
};

/** One receiver of a push socket, across reconnects. Valid from netio_push_connect until
 * cb_connection_closed returns that follows netio_push_disconnect or netio_drain. */
struct netio_push_receiver {
	struct netio_push_socket *push_socket;
	uint64_t id;          /**< counts from 1; netio_msg.source of its answers */
	const char *address;  /**< "host:port", as the user gave it */
	const char *provider; /**< this and the next three: as in netio_recv_socket; "" and 0
				   while not connected, once the callbacks have returned */
	const char *choice;
	const char *program;
	pid_t pid;
	void *data; /**< the user's */
};

struct netio_push_socket {
	/* Before cb_connection_closed, unfinished messages have moved to other receivers, as far
	 * as those have room. A suspect receiver gets nothing while another one is not suspect,
	 * even if that one has no room. Its messages would probably move later anyway. */
	NETIO_CONNECT_CALLBACKS(struct netio_push_receiver *receiver)
	/** Once after NETIO_STATUS_AGAIN: a receiver has room, maybe one that has just connected.
	 * If all connections ended, it runs after the next one is established. */
	void (*cb_buffers_available)(struct netio_push_socket *socket);
	/** An answer (netio_reply). */
	void (*cb_msg_received)(struct netio_push_receiver *receiver, const struct netio_msg *msg);
	void *data;                   /**< the user's */
	struct netio_push_core *core; /**< private */
};

/** As netio_send_socket_init; -EINVAL also: unknown promise. */
int netio_push_socket_init(struct netio_eventloop *evloop, struct netio_push_socket *socket,
			   const struct netio_push_attr *attr);

/** Connect to one more receiver, a listening socket; as netio_connect. A receiver that is not
 * tried again (reconnect_min_ns) may be connected again.
 * Return: 0; -EEXIST already connected or connecting (names are compared as text); -EALREADY its
 * cb_connection_closed after netio_push_disconnect has not run yet; -EINVAL; -ENOMEM; or as
 * netio_connect. */
int netio_push_connect(struct netio_push_socket *socket, const char *host, unsigned port);

/** Remove a receiver. Its connection closes without loss, except for messages it does not take
 * within PLX_CLOSE_NS (5 s), and cb_connection_closed follows. A receiver that is not tried again
 * is removed at once, without a callback. Messages that had arrived when the receiver agrees to
 * close count as finished; the rest goes to the others. The last receiver first gets all waiting
 * messages. Return: 0; -ENOENT; -EINVAL. */
int netio_push_disconnect(struct netio_push_socket *socket, const char *host, unsigned port);

/** No callbacks run after this returns. Connections close without loss, as by
 * netio_send_socket_fini. Waiting messages are lost, and those unfinished at a receiver that fails
 * meanwhile; netio_push_disconnect or netio_drain avoids that. Accepts a zeroed socket. */
void netio_push_socket_fini(struct netio_push_socket *socket);

/** Push a copy of a message, which is kept until it is finished. Receivers that do not accept its
 * length are skipped.
 * Return: NETIO_STATUS_OK; NETIO_STATUS_AGAIN no receiver has room, or messages of a failed one
 * wait for it; NETIO_STATUS_TOO_BIG above PLX_SEND_COPY_MAX, or no connected receiver accepts it;
 * NETIO_STATUS_NOT_CONNECTED none is, and waiting messages are kept; -EINVAL; -ENOMEM. */
int netio_push(struct netio_push_socket *socket, const void *data, size_t len);
int netio_pushv_tagged(struct netio_push_socket *socket, netio_tag_t tag, const struct iovec *iov,
		       size_t count);

struct netio_push_stats {
	uint64_t messages;     /**< pushed: OK */
	uint64_t again;        /**< AGAIN */
	uint64_t finished;     /**< as reported by the receivers, the last ones with the next
				    heartbeat. Without heartbeats (turned off, or a process
				    connected to itself) the last ones stay under way until the
				    close */
	uint64_t handed_again; /**< sent to another receiver; a message may count several times */
	uint64_t lost;         /**< NETIO_PUSH_AT_MOST_ONCE: unfinished when a connection ended */
	uint32_t under_way;    /**< sent and not finished */
	uint32_t waiting;      /**< for another receiver. Waiting and under way never exceed the
				    room of all receivers */
	uint32_t receivers, connected;
};

void netio_push_stats_read(const struct netio_push_socket *socket,
			   struct netio_push_stats *stats_out);

struct netio_push_receiver_stats {
	uint64_t handed;     /**< messages sent to it */
	uint64_t finished;   /**< finished by it */
	uint64_t taken_away; /**< unfinished when a connection ended */
	uint32_t under_way;  /**< sent to it and not finished */
	uint32_t credit;     /**< messages of up to buffer_bytes that it has room for, as last
				  reported. It may lag while much is free */
};

void netio_push_receiver_stats_read(const struct netio_push_receiver *receiver,
				    struct netio_push_receiver_stats *stats_out);

PLX_END_DECLS

#endif
