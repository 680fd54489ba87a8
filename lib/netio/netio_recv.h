/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The socket that listens, for what send and push sockets send. Part of netio.h.
 */
#ifndef NETIO_RECV_H
#define NETIO_RECV_H

#include "netio_socket.h"

PLX_BEGIN_DECLS

/** Which lcore gets the next connection of a listening socket, among those that run their loop
 * (netio_run, plx_loop_run) and the socket's own. The connection stays there: its callbacks run on
 * that lcore, where netio_msg_keep, netio_reply and netio_recv_socket_close are called for it, too.
 */
enum netio_spread {
	NETIO_SPREAD_NONE,        /**< the socket's own */
	NETIO_SPREAD_ROUND_ROBIN, /**< each in turn */
	NETIO_SPREAD_LEAST_LOAD,  /**< the one with the fewest connections of this socket; of those
				       that have as few, each in turn */
};

/** 0 or NULL: the default. */
struct netio_listen_attr {
	const char *provider;       /**< as plx_link_attr.provider; copied */
	uint32_t buffer_bytes;      /**< what arrives in one piece, of each connection: 256 to
					 8 MiB; default 64 KiB. What is longer is put together,
					 by copying. Let it be the senders' page_bytes */
	uint32_t buffer_count;      /**< of each connection: 2 to 200; default 2 MiB of them, but
					 6 to 16; with buffer_bytes less than 1 GiB in all */
	uint64_t message_max_bytes; /**< longest message: 256 to 1 GiB - 4 KiB; default 16 MiB */
	uint32_t queue_count;       /**< 0: messages come by cb_msg_received. Else they wait for
					 netio_recv, so many at most (up to 2^24), and no more
					 than are in buffer_count buffers of each connection */
	enum netio_spread spread;   /**< default: none. Not with queue_count */
};

/** One connection of a listening socket; from cb_connection_established until
 * cb_connection_closed returns. */
struct netio_recv_socket {
	struct netio_listen_socket *listen_socket;
	uint64_t id;          /**< counts up from 1; if spread, on each lcore, plus its id << 48 */
	const char *peer;     /**< its address, "192.0.2.1:40312" */
	const char *provider; /**< as plx_link_provider, "tcp (libfabric plx_tcp)" */
	void *data;           /**< the user's */
};

struct netio_listen_socket {
	NETIO_CONNECTION_CALLBACKS(struct netio_recv_socket *socket)
	/** A message; valid until it returns, unless it is kept (netio_msg_keep). */
	void (*cb_msg_received)(struct netio_recv_socket *socket, const struct netio_msg *msg);
	/** After NETIO_STATUS_AGAIN of netio_reply. */
	void (*cb_buffers_available)(struct netio_recv_socket *socket);
	void *data;                      /**< the user's */
	struct netio_listener *listener; /**< private */
};

/** As netio_send_socket_init. */
int netio_listen_socket_init(struct netio_eventloop *evloop, struct netio_listen_socket *socket,
			     const struct netio_listen_attr *attr);

/** Take connections at that address: a number, a name, or "*" for all of this host; port 0 takes a
 * free one. Return: 0; -EADDRINUSE; -EADDRNOTAVAIL; -EINVAL; -EALREADY; ... */
int netio_listen(struct netio_listen_socket *socket, const char *host, unsigned port);

/** The port that it listens at; 0: it does not. */
unsigned netio_listen_socket_port(const struct netio_listen_socket *socket);

/** No callback comes any more; connections are closed without loss of what was sent on them from
 * here. Messages that were kept stay, those of the queue do not. Accepts a socket that is zeroed.
 *
 * Of one that spreads its connections, other lcores close theirs when they turn their loops, and
 * callbacks come there until then: so netio_drain the socket's loop before, or join those lcores,
 * or keep *socket. If an lcore ends, netio_fini of its loop closes what it has of other loops'
 * sockets; what is left when the main lcore calls this is aborted. */
void netio_listen_socket_fini(struct netio_listen_socket *socket);

/** Close one connection, without loss; cb_connection_closed follows. */
void netio_recv_socket_close(struct netio_recv_socket *socket);

/** Answer on a connection. Return: as netio_send. */
int netio_reply(struct netio_recv_socket *socket, const void *data, size_t len);
int netio_replyv_tagged(struct netio_recv_socket *socket, netio_tag_t tag, const struct iovec *iov,
			size_t count);

/** Take the next message of a listening socket with a queue; netio_msg_release gives it back. While
 * the queue is full, senders wait. Thread: one, any, between netio_listen_socket_init and _fini, as
 * of the next two. Return: 0; -EAGAIN there is none; -EINVAL no queue. */
int netio_recv(struct netio_listen_socket *socket, struct netio_msg *msg_out);

/** The same, and sleep until there is a message, for up to timeout_ns; PLX_NEVER: no limit. No
 * thread may be in it when the socket ends. Return: 0; -ETIMEDOUT; -EINTR a signal handler ran;
 * -EINVAL; -EDEADLK on an lcore, which may not sleep here. */
int netio_recv_wait(struct netio_listen_socket *socket, struct netio_msg *msg_out,
		    uint64_t timeout_ns);

/** A descriptor to wait for messages with poll(2) and the like. It is readable if there may be
 * some: then call netio_recv until it returns -EAGAIN, and only then wait again. Do not read or
 * close it; the socket closes it when it ends. Return: the descriptor; -EINVAL no queue. */
int netio_recv_fd(struct netio_listen_socket *socket);

PLX_END_DECLS

#endif
