/* SPDX-License-Identifier: BSD-3-Clause */
/* One of every NetIO object on one loop, and their callbacks, each of which calls world_hook, where
 * a test ends objects, or throws. Without cmocka, because a program that is partly C++ uses it too
 * (tests/apps/exception_netio.cc). world.h sets them up and makes each callback run. */
#ifndef WORLD_CALLBACKS_H
#define WORLD_CALLBACKS_H

#include "netio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WORLD_THINGS(T) \
	T(SEND)         \
	T(BUFFERED)     \
	T(LISTEN)       \
	T(QUEUE)        \
	T(PUBLISH)      \
	T(UNBUFFERED)   \
	T(SUBSCRIBE)    \
	T(PUSH)         \
	T(SIGNAL)       \
	T(TIMER)        \
	T(FD)           \
	T(LOOP)

/* Callbacks: whose, and which. */
#define WORLD_CALLBACKS(C)          \
	C(SEND, established)        \
	C(SEND, completed)          \
	C(SEND, message)            \
	C(SEND, available)          \
	C(SEND, refused)            \
	C(SEND, closed)             \
	C(BUFFERED, established)    \
	C(BUFFERED, message)        \
	C(BUFFERED, available)      \
	C(BUFFERED, refused)        \
	C(BUFFERED, closed)         \
	C(LISTEN, established)      \
	C(LISTEN, message)          \
	C(LISTEN, available)        \
	C(LISTEN, completed)        \
	C(LISTEN, closed)           \
	C(QUEUE, established)       \
	C(QUEUE, closed)            \
	C(PUBLISH, established)     \
	C(PUBLISH, subscribed)      \
	C(PUBLISH, available)       \
	C(PUBLISH, unsubscribed)    \
	C(PUBLISH, closed)          \
	C(UNBUFFERED, established)  \
	C(UNBUFFERED, subscribed)   \
	C(UNBUFFERED, available)    \
	C(UNBUFFERED, published)    \
	C(UNBUFFERED, unsubscribed) \
	C(UNBUFFERED, closed)       \
	C(SUBSCRIBE, established)   \
	C(SUBSCRIBE, subscribed)    \
	C(SUBSCRIBE, message)       \
	C(SUBSCRIBE, gap)           \
	C(SUBSCRIBE, refused)       \
	C(SUBSCRIBE, not_taken)     \
	C(SUBSCRIBE, lost)          \
	C(SUBSCRIBE, closed)        \
	C(SUBSCRIBE, resumed)       \
	C(SUBSCRIBE, unsubscribed)  \
	C(PUSH, established)        \
	C(PUSH, message)            \
	C(PUSH, available)          \
	C(PUSH, refused)            \
	C(PUSH, closed)             \
	C(SIGNAL, fired)            \
	C(TIMER, expired)           \
	C(FD, ready)                \
	C(LOOP, posted)

#define WORLD_NAME_THING(thing)          thing,
#define WORLD_NAME_CALLBACK(thing, what) thing##_##what,
enum world_thing { WORLD_THINGS(WORLD_NAME_THING) WORLD_THING_COUNT };
enum world_callback { WORLD_CALLBACKS(WORLD_NAME_CALLBACK) WORLD_CALLBACK_COUNT };
#undef WORLD_NAME_THING
#undef WORLD_NAME_CALLBACK

#define WORLD_CALLBACK_NAME(thing, what) #thing " " #what,
static const char *const world_names[] = {WORLD_CALLBACKS(WORLD_CALLBACK_NAME)};
#undef WORLD_CALLBACK_NAME
#define WORLD_CALLBACK_THING(thing, what) thing,
static const enum world_thing world_thing_of[] = {WORLD_CALLBACKS(WORLD_CALLBACK_THING)};
#undef WORLD_CALLBACK_THING

#define WORLD_BYTES    4096
#define WORLD_LIMIT_NS (20 * PLX_NS_PER_S)
#define WORLD_KEPT_MAX 4096

static struct world {
	struct netio_eventloop loop;
	struct netio_send_socket send, lone_send,
		to_queue; /* lone: nobody listens where it connects */
	struct netio_buffered_send_socket buffered, lone_buffered;
	struct netio_listen_socket listen, queue;
	struct netio_publish_socket publish;
	struct netio_unbuffered_publish_socket unbuffered;
	struct netio_subscribe_socket subscribe;
	struct netio_push_socket push;
	struct netio_signal signal;
	struct netio_timer timer;
	struct netio_fd watch, other_watch;
	int fd, other_fd;

	struct netio_recv_socket *from[8]; /* connections of `listen` */
	struct netio_subscriber *subscriber, *unbuffered_subscriber;
	bool keeps; /* receivers keep what they get */
	struct netio_msg kept[WORLD_KEPT_MAX];
	unsigned kept_count;

	unsigned counts[WORLD_CALLBACK_COUNT];
	bool ended[WORLD_THING_COUNT]; /* its callbacks must not run */
	bool disturbed;                /* the hook did something: expect no more */
	const char *at;                /* for messages */
} world;

/* Set by the test. */
static void (*world_hook)(enum world_callback callback);

static inline void world_fail(const char *what, int rc)
{
	fprintf(stderr, "world: %s: %s: %d, %s\n", world.at ? world.at : "", what, rc, plx_error());
	abort();
}

#define WORLD_MUST(expected, call)                   \
	do {                                         \
		int world_rc = (int)(call);          \
		if (world_rc != (expected))          \
			world_fail(#call, world_rc); \
	} while (0)

/* Callbacks ----------------------------------------------------------------------------------- */

static inline void world_called(enum world_callback callback)
{
	if (world.ended[world_thing_of[callback]])
		world_fail(world_names[callback], 0);
	world.counts[callback]++;
	if (world_hook)
		world_hook(callback);
}

static inline void world_keep(const struct netio_msg *msg)
{
	if (!world.keeps || world.kept_count == WORLD_KEPT_MAX)
		return;
	netio_msg_keep(msg);
	world.kept[world.kept_count++] = *msg;
}

static inline void world_release_kept(void)
{
	world.keeps = false;
	while (world.kept_count)
		netio_msg_release(&world.kept[--world.kept_count]);
}

#define WORLD_CALLBACK(thing, what, before, ...)            \
	static inline void on_##thing##_##what(__VA_ARGS__) \
	{                                                   \
		before;                                     \
		world_called(thing##_##what);               \
	}

static inline void world_add(struct netio_recv_socket *socket)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(world.from); i++) {
		if (!world.from[i]) {
			world.from[i] = socket;
			return;
		}
	}
}

static inline void world_remove(const struct netio_recv_socket *socket)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(world.from); i++) {
		if (world.from[i] == socket)
			world.from[i] = NULL;
	}
}

typedef enum plx_link_reason world_reason;
typedef const struct netio_subscription world_what;

WORLD_CALLBACK(SEND, established, , struct netio_send_socket *socket)
WORLD_CALLBACK(SEND, closed, , struct netio_send_socket *socket, world_reason reason,
	       const char *why)
WORLD_CALLBACK(SEND, refused, , struct netio_send_socket *socket, world_reason reason,
	       const char *why)
WORLD_CALLBACK(SEND, available, , struct netio_send_socket *socket)
WORLD_CALLBACK(SEND, completed, , struct netio_send_socket *socket, uint64_t key, int status)
WORLD_CALLBACK(SEND, message, world_keep(msg), struct netio_send_socket *socket,
	       const struct netio_msg *msg)

WORLD_CALLBACK(BUFFERED, established, , struct netio_buffered_send_socket *socket)
WORLD_CALLBACK(BUFFERED, closed, , struct netio_buffered_send_socket *socket, world_reason reason,
	       const char *why)
WORLD_CALLBACK(BUFFERED, refused, , struct netio_buffered_send_socket *socket, world_reason reason,
	       const char *why)
WORLD_CALLBACK(BUFFERED, available, , struct netio_buffered_send_socket *socket)
WORLD_CALLBACK(BUFFERED, message, world_keep(msg), struct netio_buffered_send_socket *socket,
	       const struct netio_msg *msg)

WORLD_CALLBACK(LISTEN, established, world_add(socket), struct netio_recv_socket *socket)
WORLD_CALLBACK(LISTEN, closed, world_remove(socket), struct netio_recv_socket *socket,
	       world_reason reason, const char *why)
WORLD_CALLBACK(LISTEN, available, , struct netio_recv_socket *socket)
WORLD_CALLBACK(LISTEN, completed, , struct netio_recv_socket *socket, uint64_t key, int status)
WORLD_CALLBACK(LISTEN, message, world_keep(msg), struct netio_recv_socket *socket,
	       const struct netio_msg *msg)
WORLD_CALLBACK(QUEUE, established, , struct netio_recv_socket *socket)
WORLD_CALLBACK(QUEUE, closed, , struct netio_recv_socket *socket, world_reason reason,
	       const char *why)

WORLD_CALLBACK(PUBLISH, established, world.subscriber = who, struct netio_subscriber *who)
WORLD_CALLBACK(PUBLISH, closed, world.subscriber = NULL, struct netio_subscriber *who,
	       world_reason reason, const char *why)
WORLD_CALLBACK(PUBLISH, subscribed, , struct netio_subscriber *who, world_what *what)
WORLD_CALLBACK(PUBLISH, unsubscribed, , struct netio_subscriber *who, world_what *what)
WORLD_CALLBACK(PUBLISH, available, , struct netio_publish_socket *socket)

WORLD_CALLBACK(UNBUFFERED, established, world.unbuffered_subscriber = who,
	       struct netio_subscriber *who)
WORLD_CALLBACK(UNBUFFERED, closed, world.unbuffered_subscriber = NULL, struct netio_subscriber *who,
	       world_reason reason, const char *why)
WORLD_CALLBACK(UNBUFFERED, subscribed, , struct netio_subscriber *who, world_what *what)
WORLD_CALLBACK(UNBUFFERED, unsubscribed, , struct netio_subscriber *who, world_what *what)
WORLD_CALLBACK(UNBUFFERED, available, , struct netio_unbuffered_publish_socket *socket)
WORLD_CALLBACK(UNBUFFERED, published, , struct netio_unbuffered_publish_socket *socket,
	       uint64_t key, int status)

WORLD_CALLBACK(SUBSCRIBE, established, , struct netio_publisher *publisher)
WORLD_CALLBACK(SUBSCRIBE, closed, , struct netio_publisher *publisher, world_reason reason,
	       const char *why)
WORLD_CALLBACK(SUBSCRIBE, refused, , struct netio_publisher *publisher, world_reason reason,
	       const char *why)
WORLD_CALLBACK(SUBSCRIBE, subscribed, , struct netio_publisher *publisher, world_what *what)
WORLD_CALLBACK(SUBSCRIBE, not_taken, , struct netio_publisher *publisher, world_what *what,
	       const char *why)
WORLD_CALLBACK(SUBSCRIBE, lost, , struct netio_publisher *publisher, world_what *what,
	       const char *why)
WORLD_CALLBACK(SUBSCRIBE, resumed, , struct netio_publisher *publisher, world_what *what)
WORLD_CALLBACK(SUBSCRIBE, unsubscribed, , struct netio_publisher *publisher, world_what *what)
WORLD_CALLBACK(SUBSCRIBE, gap, , struct netio_publisher *publisher, const struct netio_gap *gap)
WORLD_CALLBACK(SUBSCRIBE, message, world_keep(msg), struct netio_subscribe_socket *socket,
	       const struct netio_msg *msg)

WORLD_CALLBACK(PUSH, established, , struct netio_push_receiver *receiver)
WORLD_CALLBACK(PUSH, closed, , struct netio_push_receiver *receiver, world_reason reason,
	       const char *why)
WORLD_CALLBACK(PUSH, refused, , struct netio_push_receiver *receiver, world_reason reason,
	       const char *why)
WORLD_CALLBACK(PUSH, available, , struct netio_push_socket *socket)
WORLD_CALLBACK(PUSH, message, world_keep(msg), struct netio_push_receiver *receiver,
	       const struct netio_msg *msg)

WORLD_CALLBACK(SIGNAL, fired, , void *data)
WORLD_CALLBACK(TIMER, expired, , void *data)
WORLD_CALLBACK(FD, ready, (void)!read(fd, &(uint64_t){0}, 8), int fd, uint32_t events, void *data)
WORLD_CALLBACK(LOOP, posted, , void *arg)

#undef WORLD_CALLBACK

#endif
