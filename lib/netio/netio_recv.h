/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Listening sockets, which receive from send and push sockets. Part of netio.h.
 */
#ifndef NETIO_RECV_H
#define NETIO_RECV_H

#include "netio_socket.h"

PLX_BEGIN_DECLS

/** Which lcore gets a listening socket's next connection. Candidates are lcores that run their
 * loop (netio_run, plx_loop_run), and the socket's own. The connection stays on that lcore: its
 * callbacks run there. Reply, and call netio_msg_keep and netio_recv_socket_close there, too. */
enum netio_spread {
	NETIO_SPREAD_NONE,        /**< the socket's own */
	NETIO_SPREAD_ROUND_ROBIN, /**< each in turn */
	NETIO_SPREAD_LEAST_LOAD,  /**< fewest connections of this socket; ties in turn */
};

/** 0 or NULL: the default. */
struct netio_listen_attr {
	const char *provider;       /**< as plx_link_attr.provider; copied */
	uint32_t buffer_bytes;      /**< receive buffer, of each connection: 256 to 8 MiB; default
					 64 KiB. Longer messages are reassembled, which copies. Use
					 the senders' page_bytes */
	uint32_t buffer_count;      /**< of each connection: 2 to 200; default 2 MiB of buffers, at
					 least 6 and at most 16. All buffers of a connection: below
					 1 GiB */
	uint64_t message_max_bytes; /**< longest message: 256 to 1 GiB - 4 KiB; default 16 MiB.
					 Above PLX_SEND_COPY_MAX they come by reference */
	uint32_t queue_count;       /**< 0: messages arrive by cb_msg_received. Else they wait for
					 netio_recv: at most this many (up to 2^24), and at most
					 buffer_count buffers of each connection */
	enum netio_spread spread;   /**< default: none. Not with queue_count */
};

/** One connection of a listening socket. Valid from cb_connection_established until
 * cb_connection_closed returns. */
struct netio_recv_socket {
	struct netio_listen_socket *listen_socket;
	uint64_t id;          /**< counts from 1; if spread, per lcore, plus its id << 48 */
	const char *peer;     /**< the peer's address, "192.0.2.1:40312" */
	const char *provider; /**< as plx_link_provider, "tcp (libfabric plx_tcp)" */
	const char *choice;   /**< why that provider, as plx_link_choice */
	const char *program;  /**< the peer's, as plx_link_peer_program; "": unknown */
	pid_t pid;            /**< the peer's, as plx_link_peer_pid; 0: unknown */
	void *data;           /**< the user's */
};

struct netio_listen_socket {
	NETIO_CONNECTION_CALLBACKS(struct netio_recv_socket *socket)
	/** A message; valid until this returns, unless it is kept (netio_msg_keep). */
	void (*cb_msg_received)(struct netio_recv_socket *socket, const struct netio_msg *msg);
	/** There is room again after NETIO_STATUS_AGAIN of a reply. */
	void (*cb_buffers_available)(struct netio_recv_socket *socket);
	/** The library is done with the answer sent by reference with that key; as in
	 * netio_send_socket. */
	void (*cb_send_completed)(struct netio_recv_socket *socket, uint64_t key, int status);
	void *data;                      /**< the user's */
	struct netio_listener *listener; /**< private */
};

/** As netio_send_socket_init. */
int netio_listen_socket_init(struct netio_eventloop *evloop, struct netio_listen_socket *socket,
			     const struct netio_listen_attr *attr);

/** Listen at a number, a name, or "*" for all addresses of this host; port 0 takes a free one.
 * Return: 0; -EADDRINUSE; -EADDRNOTAVAIL; -EINVAL; -EALREADY; -ESHUTDOWN during netio_drain; ... */
int netio_listen(struct netio_listen_socket *socket, const char *host, unsigned port);

/** The port; 0 if the socket does not listen. */
unsigned netio_listen_socket_port(const struct netio_listen_socket *socket);

/** No callbacks run on this lcore after this returns. Connections are closed without loss of what
 * this side sent. Kept messages stay valid; queued ones do not. Memory sent by reference must stay
 * until netio_fini: if that matters, close the connections first. Accepts a zeroed socket.
 *
 * If connections are spread, other lcores close theirs when they turn their loops, and callbacks
 * run there until then. So call netio_drain on the socket's loop before, or join those lcores, or
 * keep *socket. When an lcore ends, netio_fini of its loop closes its connections of other loops'
 * sockets. Connections that are left when the main lcore calls this are aborted. */
void netio_listen_socket_fini(struct netio_listen_socket *socket);

/** Close one connection without loss; cb_connection_closed follows. */
void netio_recv_socket_close(struct netio_recv_socket *socket);

/** Answer on a connection with a copy. Limits and return: as netio_send. */
int netio_reply(struct netio_recv_socket *socket, const void *data, size_t len);
int netio_replyv_tagged(struct netio_recv_socket *socket, netio_tag_t tag, const struct iovec *iov,
			size_t count);

/** Answer without a copy; as netio_sendv_ref. */
int netio_reply_ref(struct netio_recv_socket *socket, const void *data, size_t len, uint64_t key);
int netio_replyv_ref(struct netio_recv_socket *socket, netio_tag_t tag, const struct iovec *iov,
		     size_t count, uint64_t key);

/** Take the next message of a socket with a queue; give it back with netio_msg_release. While the
 * queue is full, senders wait.
 * Thread: any, one at a time, between netio_listen_socket_init and _fini; the same applies to the
 * next two.
 * Return: 0; -EAGAIN no message; -EINVAL no queue. */
int netio_recv(struct netio_listen_socket *socket, struct netio_msg *msg_out);

/** netio_recv that sleeps until there is a message, for up to timeout_ns; PLX_NEVER: no limit. No
 * thread may be inside it when the socket ends.
 * Return: 0; -ETIMEDOUT; -EINTR a signal handler ran; -EINVAL; -EDEADLK an lcore must not wait. */
int netio_recv_wait(struct netio_listen_socket *socket, struct netio_msg *msg_out,
		    uint64_t timeout_ns);

/** A descriptor for poll(2) and the like. It is readable if there may be messages: call netio_recv
 * until it returns -EAGAIN, and only then wait again. Do not read or close it; the socket closes
 * it.
 * Return: the descriptor; -EINVAL no queue. */
int netio_recv_fd(struct netio_listen_socket *socket);

PLX_END_DECLS

#endif
