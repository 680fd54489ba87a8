/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * NetIO: an event loop with signals, timers, descriptors and sockets, in the manner of CERN's
 * NetIO-next.
 * The loop is that of the lcore that runs it (plx_lcore.h): it polls and sleeps as the idle policy
 * says, and carries links, pollers and timers of Pollux' own as well.
 *
 * Callbacks run on the thread that is in netio_run, one after the other, and must not block. Where
 * nothing else stands there, a function belongs to the thread that has set the loop up. Functions
 * that return an int give 0, or a negative errno value with plx_error(); that is written to the
 * log, too, for programs that do not look, but for what sends and receives messages.
 */
#ifndef NETIO_H
#define NETIO_H

#include "plx_fabric.h"
#include "plx_lcore.h"

#include <errno.h>

PLX_BEGIN_DECLS

struct netio_connection;
struct netio_feeds;
struct netio_listener;
struct netio_publish_core;
struct netio_push_core;
struct netio_subscribe_socket;
struct plx_eal_conf;

/* The event loop --------------------------------------------------------------------------- */

struct netio_eventloop {
	void (*cb_init)(void); /**< the first thing that netio_run calls; NULL: nothing */
	/* Private. */
	struct plx_signal terminate;
	uint32_t lcore_id;
	bool ready;
	bool running;
	bool terminated;
	bool draining;
	struct netio_connection *connections;
};

struct netio_context {
	struct netio_eventloop evloop;
};

/** Set up a context and its event loop. The calling thread is the one that runs it. If it is an
 * lcore already (plx_eal_init, plx_lcore_launch), the loop is that lcore's. If the process has no
 * lcores, the thread becomes one, pinned to a CPU, with the EAL options (pollux(7): -l 2 --idle
 * poll ...) that the environment variable NETIO_OPTIONS holds, words between blanks, until
 * netio_fini. Set evloop.cb_init behind it. Not between two calls of getopt.
 * Return: 0; -EINVAL an option; -ENOENT the thread is none of the lcores that there are; or what
 * plx_eal_init gave. */
int netio_init(struct netio_context *ctx);

/** The same with what the program wants where NETIO_OPTIONS says nothing (plx_eal.h): conf as for
 * plx_eal_init, whatever is in it counting as set by the program; NULL: the defaults. */
int netio_init_conf(struct netio_context *ctx, const struct plx_eal_conf *conf);

/** Give back what netio_init took. Stop and end signals, timers and descriptors of the loop before:
 * their callbacks come while it waits for connections to close. Sockets end before or with it, as
 * by their own _fini; a process that ends without it is as one that died: the
 * peers of its sockets are not told. Accepts a
 * context that is zeroed or whose set-up failed. Return: 0; -EPERM another thread's; -EBUSY inside
 * its loop; -ETIMEDOUT an lcore does not end: it may be called again. */
int netio_fini(struct netio_context *ctx);

/** What netio_init and netio_fini do to ctx->evloop, for loops without a context. */
int netio_eventloop_init(struct netio_eventloop *evloop);
int netio_eventloop_fini(struct netio_eventloop *evloop);

/** Call cb_init, and then be the loop, until netio_terminate or plx_stop, which SIGINT and SIGTERM
 * call in a program that asks for it by plx_stop_on_signals. May be called again; after plx_stop it
 * returns at once until the lcores are set up anew.
 * Return: 0; -EINVAL not set up; -EPERM another thread's; -EBUSY inside it. */
int netio_run(struct netio_eventloop *evloop);

/** Let netio_run return at the end of this turn. Other callbacks of the turn may come before that;
 * what is posted and fired, and not yet called, waits for the next netio_run. Where the loop does
 * not run, the next netio_run returns behind cb_init. Thread: any, before netio_fini begins; no
 * signal handler: fire a signal there. */
void netio_terminate(struct netio_eventloop *evloop);

/** Stop listening, and close all connections of the loop's sockets: what was accepted from them is
 * sent first, and their callbacks tell of each end. For who is about to end, behind netio_run. The
 * sockets are there afterwards, and may listen and connect again. timeout_ns: of it all; and what a
 * peer takes nothing of for 2 s is lost. Return: 0; -EBUSY inside netio_run: call netio_terminate,
 * and do it behind that; -ETIMEDOUT some are open still; -EINVAL; -EPERM. */
int netio_drain(struct netio_eventloop *evloop, uint64_t timeout_ns);

/** Call fn(arg) in the loop. Thread: any, before netio_fini begins. Return: 0; -EAGAIN too many
 * wait already (no error text, no log): try later; -EINVAL no function, or a loop that was not set
 * up; -ENOMEM the first one from another lcore has no memory for its lane. */
int netio_post(struct netio_eventloop *evloop, void (*fn)(void *arg), void *arg);

/* Signals ---------------------------------------------------------------------------------- */

/** Calls of cb that any thread may ask for. Set cb and data behind netio_signal_init. */
struct netio_signal {
	void (*cb)(void *data); /**< once for each time that it was fired */
	void *data;
	/* Private. */
	struct netio_eventloop *evloop;
	struct plx_signal fired;
	uint64_t backlog;
	bool *gone;
};

/** Return: 0; -EINVAL a loop that was not set up. */
int netio_signal_init(struct netio_eventloop *evloop, struct netio_signal *signal);

/** Let cb be called; from inside cb: in a later turn. Between netio_signal_init and
 * netio_signal_fini. Thread: any + signal handlers. */
void netio_signal_fire(struct netio_signal *signal);

/** cb is not called any more, also for what was fired before. Allowed inside cb, which may free the
 * signal then. Accepts one that is zeroed. */
void netio_signal_fini(struct netio_signal *signal);

/* Timers ----------------------------------------------------------------------------------- */

/** Calls of cb at equal distances. Set cb and data behind netio_timer_init. */
struct netio_timer {
	void (*cb)(void *data);
	void *data;
	/* Private. */
	struct netio_eventloop *evloop;
	struct plx_timer timer;
};

/** Return: 0; -EINVAL a loop that was not set up. */
int netio_timer_init(struct netio_eventloop *evloop, struct netio_timer *timer);

/** Call cb every so long, the first time after that, until netio_timer_stop; a timer that runs
 * begins anew. Periods that a long callback made it miss are skipped. Range: 1 to UINT64_MAX ns;
 * what is longer is that long. A period below the wheel's tick of 1.024 us is one call a tick.
 * Return: 0; -EINVAL 0, or not set up; -EPERM another thread's. */
int netio_timer_start_s(struct netio_timer *timer, unsigned long long seconds);
int netio_timer_start_ms(struct netio_timer *timer, unsigned long long milliseconds);
int netio_timer_start_us(struct netio_timer *timer, unsigned long long microseconds);
int netio_timer_start_ns(struct netio_timer *timer, unsigned long long nanoseconds);

/** cb is not called any more until it is started again. Allowed inside cb, which may free the timer
 * then. Accepts one that does not run. */
void netio_timer_stop(struct netio_timer *timer);

/* Descriptors ------------------------------------------------------------------------------ */

/** A descriptor that the loop watches. */
struct netio_fd {
	void (*cb)(int fd, uint32_t events, void *data); /**< events: of epoll(7), that are there */
	void *data;
	/* Private. */
	struct plx_fd *watch;
};

/** Call watch->cb, which is set before, when one of events (EPOLLIN, EPOLLOUT, EPOLLET, ...: see
 * plx_fd_add) is there. fd stays the caller's, and open until netio_fd_fini. Return: as plx_fd_add;
 * -EPERM also: another thread's. */
int netio_fd_init(struct netio_eventloop *evloop, struct netio_fd *watch, int fd, uint32_t events);

/** Other events. Return: 0; -EINVAL; -ENOMEM. */
int netio_fd_modify(struct netio_fd *watch, uint32_t events);

/** cb is not called any more. Allowed inside cb. Accepts one that is zeroed. */
void netio_fd_fini(struct netio_fd *watch);

/* Sockets ---------------------------------------------------------------------------------- */

/* A send socket connects to a listening one, and sends it messages: an unbuffered one each by
 * itself and at once, a buffered one many in a page. A listening socket takes both. Messages arrive
 * whole and in the order in which they were sent. Whom they come from may be answered.
 *
 * Sockets belong to the thread of their loop, which their callbacks come on, and no callback comes
 * inside a call into a socket. Set the callbacks behind _init; each may be NULL. Every function of
 * a socket may be called in its callbacks. */

typedef uint64_t netio_tag_t;

/** What sending gives. None of it is written to the log; AGAIN, PARTIAL and NO_SUBSCRIBERS leave
 * plx_error() as it is. */
enum netio_status {
	NETIO_STATUS_OK = 0,
	NETIO_STATUS_AGAIN = -EAGAIN,     /**< no room now, and nothing of the message was taken:
					       cb_buffers_available follows */
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

/** 0 or NULL in any field: the default. */
struct netio_connect_attr {
	const char *provider;        /**< as plx_link_attr.provider; copied */
	uint64_t connect_timeout_ns; /**< default 5 s */
	uint64_t reconnect_min_ns;   /**< default 10 ms; UINT64_MAX: never try again */
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
 * reconnect_min_ns says never, the next one follows after a time between 0 and reconnect_min_ns *
 * 2^attempts, at random, reconnect_max_ns at most, or PLX_RECONNECT_SAME_HOST_NS after a refusal on
 * this host. */
#define NETIO_CONNECT_CALLBACKS(connection)    \
	NETIO_CONNECTION_CALLBACKS(connection) \
	void (*cb_connection_refused)(connection, enum plx_link_reason reason, const char *why);

/** Callbacks of both publish sockets.
 * cb_connection_closed: cb_unsubscribed came before for each subscription that was left.
 * cb_subscribed: from here on messages that match go there. */
#define NETIO_PUBLISH_CALLBACKS(subscriber)                                               \
	NETIO_CONNECTION_CALLBACKS(subscriber)                                            \
	void (*cb_subscribed)(subscriber, const struct netio_subscription *subscription); \
	void (*cb_unsubscribed)(subscriber, const struct netio_subscription *subscription);

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

/** 0 in any field: the default. */
struct netio_buffered_attr {
	struct netio_connect_attr connect;
	uint32_t page_bytes;      /**< 256 to 8 MiB; default 64 KiB. Of messages, of which each
				       takes 8 more (16 with a tag) and is rounded up to 8 */
	uint32_t page_count;      /**< 2 to 65536; default 256 */
	uint32_t watermark_bytes; /**< a page with so much in it leaves; default page_bytes */
	uint64_t timeout_ns;      /**< one that began so long ago leaves; default 2 s; UINT64_MAX:
				       never */
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

/* Receiving -------------------------------------------------------------------------------- */

/** 0 or NULL in any field: the default. */
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
};

/** One connection of a listening socket; from cb_connection_established until
 * cb_connection_closed returns. */
struct netio_recv_socket {
	struct netio_listen_socket *listen_socket;
	uint64_t id;          /**< counts up from 1 */
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
 */
void netio_listen_socket_fini(struct netio_listen_socket *socket);

/** Close one connection, without loss; cb_connection_closed follows. */
void netio_recv_socket_close(struct netio_recv_socket *socket);

/** Answer on a connection. Return: as netio_send. */
int netio_reply(struct netio_recv_socket *socket, const void *data, size_t len);
int netio_replyv_tagged(struct netio_recv_socket *socket, netio_tag_t tag, const struct iovec *iov,
			size_t count);

/** Take the next message of a listening socket with a queue; netio_msg_release gives it back. While
 * the queue is full, senders wait. Nothing wakes a thread for it: it looks again. Thread: one, any,
 * between netio_listen_socket_init and _fini. Return: 0; -EAGAIN there is none; -EINVAL no queue.
 */
int netio_recv(struct netio_listen_socket *socket, struct netio_msg *msg_out);

/* Push ------------------------------------------------------------------------------------- */

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

/** 0 or NULL in any field: the default. */
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

/* Publish/subscribe ------------------------------------------------------------------------ */

/* A publish socket listens; a subscribe socket connects to as many of them as it likes, says what
 * it wants by tags, and gets it on the same connection. What nobody wants is not sent. A message
 * goes once to each subscriber, however many of its subscriptions match. What the publisher sends
 * to one subscriber arrives in the order in which it was published. */

/** When messages of a subscription leave the publisher. */
enum netio_delivery {
	NETIO_DELIVERY_DEFAULT,  /**< as the publish socket does: buffered, or at once */
	NETIO_DELIVERY_AT_ONCE,  /**< low latency. Where several subscriptions of a subscriber match
				      a message, and one of them is such, it leaves at once */
	NETIO_DELIVERY_BUFFERED, /**< high throughput: many in a page */
};

/** What becomes of messages for a subscriber that takes them more slowly than they are published:
 * where its link has no room, they wait at the publisher (netio_subscription.backlog_bytes), and
 * then ... Where several subscriptions of a subscriber match a message, the one whose policy stands
 * first here decides, and of several such the greatest bound. */
enum netio_policy {
	NETIO_POLICY_DEFAULT,    /**< as the publish socket says (netio_publish_attr) */
	NETIO_POLICY_BLOCK,      /**< nothing is lost: publishing gives AGAIN or PARTIAL */
	NETIO_POLICY_DISCONNECT, /**< its connection is closed: what waits is lost, and told, if it
				      takes anything within 2 s */
	NETIO_POLICY_DROP_OLD,   /**< the oldest page that waits is dropped; if it has messages of
				      the above, the next one; if there is none, the new message */
	NETIO_POLICY_DROP_NEW,   /**< the new message is */
	NETIO_POLICY_CONFLATE,   /**< of each tag only the newest message waits. It takes the place
				      of the one before, so that it may come before older ones of
				      other tags. Where too many wait, new ones are dropped */
	NETIO_POLICY_COUNT,
};

/** Their names, for options: an array that ends with NULL. */
#define NETIO_POLICY_NAMES \
	{"default", "block", "disconnect", "drop-old", "drop-new", "conflate", NULL}

/** Why a subscriber misses messages. */
enum netio_gap_reason {
	NETIO_GAP_DROPPED_NEW = 1, /**< by policy; also where DROP_OLD, CONFLATE find no room */
	NETIO_GAP_DROPPED_OLD,
	NETIO_GAP_CONFLATED,    /**< newer ones of their tags came */
	NETIO_GAP_DISCONNECTED, /**< by policy: the connection closes */
	NETIO_GAP_TOO_BIG,      /**< longer than it accepts, or than the publisher's pages hold */
	NETIO_GAP_GIVEN_UP,     /**< it had no room, and they were not published again */
	NETIO_GAP_REASON_COUNT,
};

/** A reason in a set of them. */
#define NETIO_GAP_BIT(reason) (1u << (reason))

/** "dropped as new", "dropped as old", "conflated", ... */
const char *netio_gap_reason_name(enum netio_gap_reason reason);

#define NETIO_GAP_TEXT_BYTES 96 /**< room for the names of all */

/** The names of a set: "dropped as new, conflated". Returns out. */
const char *netio_gap_reasons_format(uint32_t reasons, char out[NETIO_GAP_TEXT_BYTES]);

/** Which messages a subscriber wants: those with one tag, or with one of a range, or with some bits
 * as they are here. */
struct netio_subscription {
	netio_tag_t tag;  /**< the tag; or the first one of the range; or the bits under the mask */
	netio_tag_t last; /**< the last one of the range; 0: no range */
	netio_tag_t mask; /**< which bits are looked at; 0: no mask. One that is all ones from the
			       top down is as good as a range; of others a publisher takes 64
			       different ones at a time */
	enum netio_delivery delivery;
	enum netio_policy policy; /**< where the subscriber is slow */
	uint64_t backlog_bytes; /**< so much may wait for this subscriber at the publisher while its
				     link has no room, and a page more. 0: what its pages hold
				     (netio_publish_attr), to which more is cut; with
				   POLICY_DEFAULT: as the publish socket says */
};

/** One subscriber of a publish socket; from cb_connection_established until cb_connection_closed
 * returns. */
struct netio_subscriber {
	void *socket;         /**< the publish socket */
	uint64_t id;          /**< counts up from 1 */
	const char *peer;     /**< its address */
	const char *provider; /**< as netio_recv_socket.provider */
	void *data;           /**< the user's */
};

/** What one subscriber has cost. */
struct netio_subscriber_stats {
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /**< messages, by enum netio_gap_reason */
	uint64_t backlog_bytes;   /**< that wait for its link, or for a page to be full */
	uint32_t pages_under_way; /**< begun, waiting, or with the transport */
	bool is_slow;             /**< some wait for its link */
};

void netio_subscriber_stats(const struct netio_subscriber *subscriber,
			    struct netio_subscriber_stats *stats_out);

/** Close its connection; cb_connection_closed follows. What was published is sent before, but for
 * what the peer does not take for 2 s. */
void netio_subscriber_close(struct netio_subscriber *subscriber);

#define NETIO_PUBLISH_PAGE_COUNT_DEFAULT       32
#define NETIO_SUBSCRIBERS_DEFAULT              1024
#define NETIO_SUBSCRIPTIONS_DEFAULT            (1u << 20)
#define NETIO_SUBSCRIBER_SUBSCRIPTIONS_DEFAULT (1u << 17)

/** 0 or NULL in any field: the default. */
struct netio_publish_attr {
	const char *provider;     /**< as plx_link_attr.provider; copied */
	uint32_t page_bytes;      /**< as in netio_buffered_attr */
	uint32_t page_count;      /**< for each subscriber: 2 to 65536; default 32 */
	uint32_t watermark_bytes; /**< as in netio_buffered_attr, as the next */
	uint64_t timeout_ns;
	uint32_t subscribers_max;   /**< more connections are refused; default 1024 */
	uint32_t subscriptions_max; /**< of all subscribers; more are refused; default 2^20. A range
					 counts as the blocks that it is made of, 126 at most */
	uint32_t subscriber_subscriptions_max; /**< the same of one of them; default 2^17 */
	enum netio_policy policy; /**< of subscriptions that name none; default: to block */
	uint64_t backlog_bytes;   /**< of these, as in netio_subscription */
	bool refuse_block; /**< who asks to block is refused; needs another policy as the default */
};

/** The newest lookup of a publisher, for who publishes the same tag again and again: the
 * subscriptions are searched when they have changed, or with another tag. Zeroed at first, then the
 * library's; of one socket, and worth having for one tag. It needs no end. */
struct netio_subscription_cache {
	/* Private. */
	uint64_t version;
	netio_tag_t tag;
	uint32_t count;
	struct {
		void *subscriber;
		uint64_t backlog_bytes;
		uint8_t policy;
		bool at_once;
	} to[8];
};

/** For publishing: that is the message for which it was AGAIN or PARTIAL the last time: it goes to
 * those that missed it and want it still. One that the socket does not know (any more) is published
 * as a new one. */
#define NETIO_REENTRY 1

/** So many messages at once a buffered publish socket remembers to have been AGAIN; with more, the
 * oldest is given up. */
#define NETIO_REENTRY_MAX 4096

/** Copies messages into a page for each subscriber. */
struct netio_publish_socket {
	NETIO_PUBLISH_CALLBACKS(struct netio_subscriber *subscriber)
	/** After NETIO_STATUS_AGAIN, once: a subscriber that had no room has some, or is gone.
	 * Publish again what was refused, with NETIO_REENTRY; it may be AGAIN for another one. */
	void (*cb_buffers_available)(struct netio_publish_socket *socket);
	void *data;                      /**< the user's */
	struct netio_publish_core *core; /**< private */
};

/** As netio_send_socket_init. */
int netio_publish_socket_init(struct netio_eventloop *evloop, struct netio_publish_socket *socket,
			      const struct netio_publish_attr *attr);

/** Take subscribers at that address; as netio_listen. */
int netio_publish_listen(struct netio_publish_socket *socket, const char *host, unsigned port);

/** The port that it listens at; 0: it does not. */
unsigned netio_publish_socket_port(const struct netio_publish_socket *socket);

/** No callback comes any more. Connections are closed without loss of what was published, as by
 * netio_send_socket_fini. Accepts a socket that is zeroed. */
void netio_publish_socket_fini(struct netio_publish_socket *socket);

/** Publish a copy of a message. flags: 0 or NETIO_REENTRY; cache: may be NULL.
 * Return: NETIO_STATUS_OK every subscriber has it, in a page or sent;
 * NETIO_STATUS_AGAIN one has no room, and others may have the message: wait for
 * cb_buffers_available and publish it again with NETIO_REENTRY, when it goes to those that have
 * missed it and are still there. Publishing another message of that tag without it gives this one
 * up;
 * NETIO_STATUS_TOO_BIG no subscriber accepts a message of that length, or the pages do not hold it;
 * where some do, it is OK, and the others count as too_big;
 * NETIO_STATUS_NO_SUBSCRIBERS; -EINVAL; -ENOMEM: some miss it, which counts as given up. */
int netio_buffered_publish(struct netio_publish_socket *socket, netio_tag_t tag, void *data,
			   size_t len, int flags, struct netio_subscription_cache *cache);

/** The same for a message in pieces. */
int netio_buffered_publishv(struct netio_publish_socket *socket, netio_tag_t tag,
			    const struct iovec *iov, size_t count, int flags,
			    struct netio_subscription_cache *cache);

/** Let the pages of all subscribers leave. */
void netio_buffered_publish_flush(struct netio_publish_socket *socket);

/** Publishes each message at once, without copying it. */
struct netio_unbuffered_publish_socket {
	NETIO_PUBLISH_CALLBACKS(struct netio_subscriber *subscriber)
	/** After NETIO_STATUS_AGAIN or NETIO_STATUS_PARTIAL, once; as there. */
	void (*cb_buffers_available)(struct netio_unbuffered_publish_socket *socket);
	/** What was published with that key is not needed any more; once for each message that was
	 * OK in the end, or given up, in any order. status: 0 it went to all; -ECANCELED it was
	 * given up; -ETIMEDOUT: a provider did not give it back, and may read it for good; another
	 * -errno: the connection of a subscriber ended, and all others have it. */
	void (*cb_msg_published)(struct netio_unbuffered_publish_socket *socket, uint64_t key,
				 int status);
	void *data;                      /**< the user's */
	struct netio_publish_core *core; /**< private */
};

int netio_unbuffered_publish_socket_init(struct netio_eventloop *evloop,
					 struct netio_unbuffered_publish_socket *socket,
					 const struct netio_publish_attr *attr);
int netio_unbuffered_publish_listen(struct netio_unbuffered_publish_socket *socket,
				    const char *host, unsigned port);
unsigned netio_unbuffered_publish_socket_port(const struct netio_unbuffered_publish_socket *socket);
void netio_unbuffered_publish_socket_fini(struct netio_unbuffered_publish_socket *socket);

/** Publish a message without copying it: it must stay as it is until cb_msg_published gives *key.
 * (Subscribers that want it buffered get a copy.) *key is only read, and may be reused on return,
 * but with REENTRY it must be the same.
 * Return: NETIO_STATUS_OK each subscriber's transport has it, or will have;
 * NETIO_STATUS_AGAIN nobody had room, and nothing was taken: there is no callback for it, and
 * NETIO_REENTRY makes no difference the next time;
 * NETIO_STATUS_PARTIAL some had: the message must stay, and be published again with NETIO_REENTRY,
 * tag and key as before, until it is not PARTIAL any more, or given up: it goes to those that have
 * missed it and are still there. In both cases after cb_buffers_available;
 * NETIO_STATUS_TOO_BIG as netio_buffered_publish; NETIO_STATUS_NO_SUBSCRIBERS; -EINVAL; -EALREADY
 * it is PARTIAL, and NETIO_REENTRY is missing; -ENOMEM: nobody has it. */
int netio_unbuffered_publishv(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
			      struct iovec *iov, size_t count, uint64_t *key, int flags,
			      struct netio_subscription_cache *cache);

/** Give up a message that was PARTIAL: those that have missed it never get it, and cb_msg_published
 * follows, with -ECANCELED, when the others' transports have let go of it. Return: 0; -ENOENT. */
int netio_unbuffered_publish_give_up(struct netio_unbuffered_publish_socket *socket,
				     netio_tag_t tag, uint64_t key);

/** The same with a header of usr_size bytes, 0 to 8, before the message: the first ones of usr as
 * it lies in memory. It is copied; subscribers see it as the beginning of the message. */
int netio_unbuffered_publishv_usr(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
				  struct iovec *iov, size_t count, uint64_t *key, int flags,
				  struct netio_subscription_cache *cache, uint64_t usr,
				  uint8_t usr_size);

struct netio_publish_stats {
	uint64_t messages;       /**< published: OK, or with some subscribers that missed them */
	uint64_t copies;         /**< taken for subscribers, of all messages; those that are dropped
				      as old, conflated, disconnected or lost later among them */
	uint64_t pages;          /**< that left */
	uint64_t again;          /**< AGAIN and PARTIAL */
	uint64_t no_subscribers; /**< messages that nobody wanted */
	uint64_t too_big;        /**< copies that subscribers missed, as they accept none so long */
	uint64_t given_up;       /**< copies that subscribers missed, as the message was not
				      published again, or there was no memory */
	uint64_t lost;           /**< copies in pages that were not sent when a connection ended */
	uint64_t dropped_new, dropped_old, conflated; /**< copies that were, by policy */
	uint64_t disconnected; /**< copies that were, with their subscribers */
	uint64_t requests;     /**< to subscribe and unsubscribe */
	uint64_t refused;      /**< of these */
	uint32_t subscribers, subscriptions;
	uint32_t pages_under_way; /**< of all subscribers: begun, waiting, or with a transport */
};

void netio_publish_stats(const struct netio_publish_socket *socket,
			 struct netio_publish_stats *stats_out);
void netio_unbuffered_publish_stats(const struct netio_unbuffered_publish_socket *socket,
				    struct netio_publish_stats *stats_out);

/** 0 in any field: the default. */
struct netio_subscribe_attr {
	struct netio_connect_attr
		connect;       /**< message_max_bytes: longest message, default 16 MiB */
	uint32_t buffer_bytes; /**< as in netio_listen_attr, of each publisher */
	uint32_t buffer_count; /**< as there */
};

/** One publisher of a subscribe socket: from the first subscription to it until it has none, and
 * cb_connection_closed returned. */
struct netio_publisher {
	struct netio_subscribe_socket *subscribe_socket;
	uint64_t id;          /**< counts up from 1; netio_msg.source of what comes from it */
	const char *address;  /**< "host:port", as the user gave it */
	const char *provider; /**< as netio_recv_socket.provider; "" while it is not connected */
	void *data;           /**< the user's */
};

/** Messages that a publisher did not send. They are numbered from 1 with each connection, those
 * that come and those that do not, in the order in which they would have come; of conflated ones
 * only how many they are has a meaning. */
struct netio_gap {
	uint64_t first, last;
	uint32_t reasons; /**< NETIO_GAP_BIT of each reason: gaps that meet become one */
};

struct netio_subscribe_socket {
	/* What was subscribed to is asked for anew with each connection. */
	NETIO_CONNECT_CALLBACKS(struct netio_publisher *publisher)
	/** The publisher has it: what it publishes from now on comes. Messages may come before
	 * this, from when it took the subscription. */
	void (*cb_subscribed)(struct netio_publisher *publisher,
			      const struct netio_subscription *subscription);
	/** It does not take it, which ends the subscription; why: for people. */
	void (*cb_subscription_refused)(struct netio_publisher *publisher,
					const struct netio_subscription *subscription,
					const char *why);
	/** The connection ended, which cb_connection_closed tells behind it: messages are missed
	 * until cb_subscription_resumed. */
	void (*cb_subscription_lost)(struct netio_publisher *publisher,
				     const struct netio_subscription *subscription,
				     const char *why);
	/** As cb_subscribed, for one that was lost. */
	void (*cb_subscription_resumed)(struct netio_publisher *publisher,
					const struct netio_subscription *subscription);
	/** After netio_unsubscribe: no message comes for it any more. */
	void (*cb_unsubscribed)(struct netio_publisher *publisher,
				const struct netio_subscription *subscription);
	/** Messages are missed, between those that came before and those that come now. */
	void (*cb_gap)(struct netio_publisher *publisher, const struct netio_gap *gap);
	/** A message; valid until it returns, unless it is kept (netio_msg_keep). */
	void (*cb_msg_received)(struct netio_subscribe_socket *socket, const struct netio_msg *msg);
	void *data;                /**< the user's */
	struct netio_feeds *feeds; /**< private */
};

/** As netio_send_socket_init. */
int netio_subscribe_socket_init(struct netio_eventloop *evloop,
				struct netio_subscribe_socket *socket,
				const struct netio_subscribe_attr *attr);

struct netio_subscribe_stats {
	uint64_t messages; /**< that came */
	uint64_t gaps;
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /**< messages in gaps, by enum netio_gap_reason; of
						      one with several, by its first */
};

void netio_subscribe_stats(const struct netio_subscribe_socket *socket,
			   struct netio_subscribe_stats *stats_out);

/** No callback comes any more. Messages that were kept stay. Accepts a socket that is zeroed. */
void netio_subscribe_socket_fini(struct netio_subscribe_socket *socket);

/** Subscribe to a tag of the publisher at that address, which is connected to with the first
 * subscription. Returns at once; cb_subscribed or cb_subscription_refused follows, or, while there
 * is no connection, cb_connection_refused for each attempt. Publishers that are named alike share a
 * connection. Return: 0; -EEXIST it is subscribed to, with whatever delivery
 * and policy; -EINVAL; -ENOMEM; or as netio_connect. Of a publisher whose connection is not tried
 * again (reconnect_min_ns), what is subscribed to may be subscribed to again: that connects anew.
 */
int netio_subscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		    netio_tag_t tag);

/** The same for anything. */
int netio_subscribe_to(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		       const struct netio_subscription *subscription);

/** End a subscription: cb_unsubscribed follows. With the last one of a publisher its connection is
 * closed. Return: 0; -ENOENT there is no such; -EINVAL. */
int netio_unsubscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		      netio_tag_t tag);
int netio_unsubscribe_from(struct netio_subscribe_socket *socket, const char *host, unsigned port,
			   const struct netio_subscription *subscription);

PLX_END_DECLS

#endif
