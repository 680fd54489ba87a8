/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of world_callbacks.h, and phases that make each of their callbacks run. */
#ifndef WORLD_H
#define WORLD_H

#include "world_callbacks.h"

#define WORLD_HOST "127.0.0.1"

/* Callbacks that all kinds of connections have. */
#define WORLD_SET(socket, thing)                                                \
	do {                                                                    \
		(socket)->cb_connection_established = on_##thing##_established; \
		(socket)->cb_connection_closed = on_##thing##_closed;           \
	} while (0)
#define WORLD_SET_CONNECTING(socket, thing)                             \
	do {                                                            \
		WORLD_SET(socket, thing);                               \
		(socket)->cb_connection_refused = on_##thing##_refused; \
		(socket)->cb_msg_received = on_##thing##_message;       \
	} while (0)

static inline int world_send_up(struct netio_send_socket *socket)
{
	int rc = netio_send_socket_init(&world.loop, socket, NULL);

	WORLD_SET_CONNECTING(socket, SEND);
	socket->cb_buffers_available = on_SEND_available;
	socket->cb_send_completed = on_SEND_completed;
	return rc;
}

static inline void world_buffered_up(struct netio_buffered_send_socket *socket)
{
	struct netio_buffered_attr attr = {.page_bytes = WORLD_BYTES, .page_count = 4};

	WORLD_MUST(0, netio_buffered_send_socket_init(&world.loop, socket, &attr));
	WORLD_SET_CONNECTING(socket, BUFFERED);
	socket->cb_buffers_available = on_BUFFERED_available;
}

static inline void world_listen_up(void)
{
	struct netio_listen_attr attr = {.buffer_bytes = WORLD_BYTES, .buffer_count = 4};

	WORLD_MUST(0, netio_listen_socket_init(&world.loop, &world.listen, &attr));
	WORLD_SET(&world.listen, LISTEN);
	world.listen.cb_msg_received = on_LISTEN_message;
	world.listen.cb_buffers_available = on_LISTEN_available;
	world.listen.cb_send_completed = on_LISTEN_completed;
	WORLD_MUST(0, netio_listen(&world.listen, WORLD_HOST, 0));
	attr.queue_count = 2;
	WORLD_MUST(0, netio_listen_socket_init(&world.loop, &world.queue, &attr));
	WORLD_SET(&world.queue, QUEUE);
	WORLD_MUST(0, netio_listen(&world.queue, WORLD_HOST, 0));
}

static inline void world_publish_up(void)
{
	struct netio_publish_attr attr = {
		.page_bytes = WORLD_BYTES, .page_count = 4, .subscriptions_max = 2};

	WORLD_MUST(0, netio_publish_socket_init(&world.loop, &world.publish, &attr));
	WORLD_SET(&world.publish, PUBLISH);
	world.publish.cb_subscribed = on_PUBLISH_subscribed;
	world.publish.cb_unsubscribed = on_PUBLISH_unsubscribed;
	world.publish.cb_buffers_available = on_PUBLISH_available;
	WORLD_MUST(0, netio_publish_listen(&world.publish, WORLD_HOST, 0));

	WORLD_MUST(0, netio_unbuffered_publish_socket_init(&world.loop, &world.unbuffered, &attr));
	WORLD_SET(&world.unbuffered, UNBUFFERED);
	world.unbuffered.cb_subscribed = on_UNBUFFERED_subscribed;
	world.unbuffered.cb_unsubscribed = on_UNBUFFERED_unsubscribed;
	world.unbuffered.cb_buffers_available = on_UNBUFFERED_available;
	world.unbuffered.cb_msg_published = on_UNBUFFERED_published;
	WORLD_MUST(0, netio_unbuffered_publish_listen(&world.unbuffered, WORLD_HOST, 0));
}

static inline void world_subscribe_up(void)
{
	struct netio_subscribe_attr attr = {.buffer_bytes = WORLD_BYTES, .buffer_count = 4};

	WORLD_MUST(0, netio_subscribe_socket_init(&world.loop, &world.subscribe, &attr));
	WORLD_SET_CONNECTING(&world.subscribe, SUBSCRIBE);
	world.subscribe.cb_subscribed = on_SUBSCRIBE_subscribed;
	world.subscribe.cb_subscription_refused = on_SUBSCRIBE_not_taken;
	world.subscribe.cb_subscription_lost = on_SUBSCRIBE_lost;
	world.subscribe.cb_subscription_resumed = on_SUBSCRIBE_resumed;
	world.subscribe.cb_unsubscribed = on_SUBSCRIBE_unsubscribed;
	world.subscribe.cb_gap = on_SUBSCRIBE_gap;
}

static inline void world_push_up(void)
{
	WORLD_MUST(0, netio_push_socket_init(&world.loop, &world.push, NULL));
	WORLD_SET_CONNECTING(&world.push, PUSH);
	world.push.cb_buffers_available = on_PUSH_available;
}

static inline void world_callbacks_up(void)
{
	WORLD_MUST(0, netio_signal_init(&world.loop, &world.signal));
	world.signal.cb = on_SIGNAL_fired;
	WORLD_MUST(0, netio_timer_init(&world.loop, &world.timer));
	world.timer.cb = on_TIMER_expired;
	world.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	world.other_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	world.watch.cb = world.other_watch.cb = on_FD_ready;
	WORLD_MUST(0, netio_fd_init(&world.loop, &world.watch, world.fd, EPOLLIN));
	WORLD_MUST(0, netio_fd_init(&world.loop, &world.other_watch, world.other_fd, EPOLLIN));
}

static inline void world_up(void)
{
	world = (struct world){0};
	WORLD_MUST(0, netio_eventloop_init(&world.loop));
	WORLD_MUST(0, world_send_up(&world.send));
	WORLD_MUST(0, world_send_up(&world.lone_send));
	WORLD_MUST(0, world_send_up(&world.to_queue));
	world_buffered_up(&world.buffered);
	world_buffered_up(&world.lone_buffered);
	world_listen_up();
	world_publish_up();
	world_subscribe_up();
	world_push_up();
	world_callbacks_up();
}

static inline unsigned world_port(void)
{
	return netio_listen_socket_port(&world.listen);
}

/* Objects may have ended: then their calls fail. */
static inline void world_subscribe(unsigned port, netio_tag_t tag, enum netio_policy policy)
{
	struct netio_subscription what = {.tag = tag, .policy = policy};

	netio_subscribe_to(&world.subscribe, WORLD_HOST, port, &what);
}

static inline void world_connect(void)
{
	uint64_t one = 1;

	netio_connect(&world.send, WORLD_HOST, world_port());
	netio_connect(&world.to_queue, WORLD_HOST, netio_listen_socket_port(&world.queue));
	netio_buffered_connect(&world.buffered, WORLD_HOST, world_port());
	netio_push_connect(&world.push, WORLD_HOST, world_port());
	world_subscribe(netio_publish_socket_port(&world.publish), 1, NETIO_POLICY_BLOCK);
	world_subscribe(netio_publish_socket_port(&world.publish), 2, NETIO_POLICY_DROP_NEW);
	world_subscribe(netio_unbuffered_publish_socket_port(&world.unbuffered), 1, 0);
	netio_signal_fire(&world.signal);
	netio_signal_fire(&world.signal);
	netio_timer_start_us(&world.timer, 100);
	WORLD_MUST(8, write(world.fd, &one, sizeof(one)));
	WORLD_MUST(8, write(world.other_fd, &one, sizeof(one)));
	netio_post(&world.loop, on_LOOP_posted, NULL);
}

static uint8_t world_bytes[WORLD_BYTES / 2]; /* not sent by reference more than once at a time */
static uint8_t world_answer[64];

#define WORLD_UNTIL_FULL(call)                                         \
	for (unsigned sends = 0; sends < 4096 && (call) == 0; sends++) \
		;

/* All receivers keep what they get, so that all senders run out of room. */
static inline void world_fill(void)
{
	struct iovec iov = {world_bytes, sizeof(world_bytes)};
	uint64_t key = 7;

	world.keeps = true;
	netio_sendv_ref(&world.send, 0, &iov, 1, key);
	WORLD_UNTIL_FULL(netio_send(&world.send, world_bytes, sizeof(world_bytes)));
	WORLD_UNTIL_FULL(netio_send(&world.to_queue, world_bytes, sizeof(world_bytes)));
	WORLD_UNTIL_FULL(netio_buffered_send(&world.buffered, world_bytes, sizeof(world_bytes)));
	WORLD_UNTIL_FULL(netio_push(&world.push, world_bytes, sizeof(world_bytes)));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(world.from); i++) {
		if (!world.from[i])
			continue;
		netio_reply_ref(world.from[i], world_answer, sizeof(world_answer), key);
		WORLD_UNTIL_FULL(netio_reply(world.from[i], world_bytes, sizeof(world_bytes)));
	}
	WORLD_UNTIL_FULL(netio_buffered_publish(&world.publish, 1, world_bytes, sizeof(world_bytes),
						0, NULL));
	WORLD_UNTIL_FULL(
		netio_buffered_publish(&world.publish, 2, world_bytes, sizeof(world_bytes), 0, NULL)
			?: sends > 8);
	WORLD_UNTIL_FULL(netio_unbuffered_publishv(&world.unbuffered, 1, &iov, 1, &key, 0, NULL));
}

/* Connect to where nobody listens, and ask for too much. */
static inline void world_ask(void)
{
	netio_unbuffered_publish_give_up(&world.unbuffered, 1, 7);
	netio_connect(&world.lone_send, WORLD_HOST, 1);
	netio_buffered_connect(&world.lone_buffered, WORLD_HOST, 1);
	netio_push_connect(&world.push, WORLD_HOST, 1);
	world_subscribe(1, 1, 0);
	world_subscribe(netio_publish_socket_port(&world.publish), 3, 0);
}

static inline void world_unsubscribe(void)
{
	netio_unsubscribe(&world.subscribe, WORLD_HOST, netio_publish_socket_port(&world.publish),
			  2);
	netio_unsubscribe(&world.subscribe, WORLD_HOST,
			  netio_unbuffered_publish_socket_port(&world.unbuffered), 1);
}

static inline void world_lose(void)
{
	if (world.subscriber)
		netio_subscriber_close(world.subscriber);
}

static inline void world_close(void)
{
	netio_disconnect(&world.send);
	netio_disconnect(&world.to_queue);
	netio_buffered_disconnect(&world.buffered);
	netio_push_disconnect(&world.push, WORLD_HOST, world_port());
}

static inline void world_take_queued(void)
{
	struct netio_msg msg;

	while (netio_recv(&world.queue, &msg) == 0)
		netio_msg_release(&msg);
}

#define WORLD_EXPECTED_MAX 20

struct world_phase {
	void (*begin)(void);
	void (*each_turn)(void);
	unsigned count;
	enum world_callback expected[WORLD_EXPECTED_MAX];
};

#define WORLD_PHASE(begin, each_turn, ...)                             \
	{                                                              \
		begin, each_turn,                                      \
			sizeof((enum world_callback[]){__VA_ARGS__}) / \
				sizeof(enum world_callback),           \
		{                                                      \
			__VA_ARGS__                                    \
		}                                                      \
	}

#define WORLD_OPEN_PHASES 6 /* those that leave everything open */
#define WORLD_PHASES      PLX_ARRAY_LEN(world_phases)

static const struct world_phase world_phases[] = {
	WORLD_PHASE(world_connect, NULL, SEND_established, BUFFERED_established, LISTEN_established,
		    QUEUE_established, PUBLISH_established, PUBLISH_subscribed,
		    UNBUFFERED_established, UNBUFFERED_subscribed, SUBSCRIBE_established,
		    SUBSCRIBE_subscribed, PUSH_established, SIGNAL_fired, TIMER_expired, FD_ready,
		    LOOP_posted),
	WORLD_PHASE(world_fill, NULL, SEND_completed, SEND_message, BUFFERED_message,
		    LISTEN_message, LISTEN_completed, SUBSCRIBE_message, PUSH_message),
	WORLD_PHASE(world_release_kept, NULL, SEND_available, BUFFERED_available, LISTEN_available,
		    PUBLISH_available, UNBUFFERED_available, PUSH_available, SUBSCRIBE_gap),
	WORLD_PHASE(world_ask, NULL, SEND_refused, BUFFERED_refused, PUSH_refused,
		    SUBSCRIBE_refused, SUBSCRIBE_not_taken, UNBUFFERED_published),
	WORLD_PHASE(world_unsubscribe, NULL, SUBSCRIBE_unsubscribed, PUBLISH_unsubscribed,
		    UNBUFFERED_unsubscribed, UNBUFFERED_closed),
	WORLD_PHASE(world_lose, NULL, SUBSCRIBE_lost, SUBSCRIBE_closed, PUBLISH_closed,
		    SUBSCRIBE_resumed),
	WORLD_PHASE(world_close, world_take_queued, SEND_closed, BUFFERED_closed, PUSH_closed,
		    LISTEN_closed, QUEUE_closed),
};

/* Return: the first expected callback that has not run; WORLD_CALLBACK_COUNT: all have. */
static inline unsigned world_missing(const struct world_phase *phase)
{
	for (unsigned i = 0; i < phase->count; i++) {
		if (!world.counts[phase->expected[i]])
			return phase->expected[i];
	}
	return WORLD_CALLBACK_COUNT;
}

#define WORLD_DISTURBED_NS (300 * PLX_NS_PER_US) /* of a phase after the hook did something */

/* Run the first phases. turn: one turn of the loop. */
static inline void world_run(unsigned phase_count, void (*turn)(void))
{
	for (unsigned i = 0; i < phase_count; i++) {
		const struct world_phase *phase = &world_phases[i];
		uint64_t began_ns = plx_now_ns();

		phase->begin();
		do {
			turn();
			if (phase->each_turn)
				phase->each_turn();
			if (plx_now_ns() - began_ns > WORLD_LIMIT_NS && !world.disturbed)
				world_fail(world_names[world_missing(phase)], 0);
		} while (world.disturbed ? plx_now_ns() - began_ns < WORLD_DISTURBED_NS
					 : world_missing(phase) != WORLD_CALLBACK_COUNT);
	}
}

/* End all objects; some may have ended. */
static inline void world_end_sockets(void)
{
	netio_send_socket_fini(&world.send);
	netio_send_socket_fini(&world.lone_send);
	netio_send_socket_fini(&world.to_queue);
	netio_buffered_send_socket_fini(&world.buffered);
	netio_buffered_send_socket_fini(&world.lone_buffered);
	netio_listen_socket_fini(&world.listen);
	netio_listen_socket_fini(&world.queue);
	netio_publish_socket_fini(&world.publish);
	netio_unbuffered_publish_socket_fini(&world.unbuffered);
	netio_subscribe_socket_fini(&world.subscribe);
	netio_push_socket_fini(&world.push);
}

static inline void world_end_callbacks(void)
{
	netio_signal_fini(&world.signal);
	netio_timer_stop(&world.timer);
	netio_fd_fini(&world.watch);
	netio_fd_fini(&world.other_watch);
}

static inline void world_close_descriptors(void)
{
	close(world.fd);
	close(world.other_fd);
}

#endif
