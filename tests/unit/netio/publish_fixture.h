/* SPDX-License-Identifier: BSD-3-Clause */
/* A buffered publish socket and its recorded events, next to subscribe sockets. */
#ifndef PUBLISH_FIXTURE_H
#define PUBLISH_FIXTURE_H

#include "pubsub_fixture.h"

static struct netio_publish_socket publisher;
static unsigned available, subscribed, unsubscribed;
static struct netio_subscription subscription;
static uint64_t number;
static uint8_t bytes[1u << 20];

static inline void on_subscribed(struct netio_subscriber *who,
				 const struct netio_subscription *what)
{
	subscription = *what;
	subscribed++;
}

static inline void on_unsubscribed(struct netio_subscriber *who,
				   const struct netio_subscription *what)
{
	subscription = *what;
	unsubscribed++;
}

static inline void on_available(struct netio_publish_socket *socket)
{
	assert_ptr_equal(socket, &publisher);
	available++;
}

static inline unsigned port(void)
{
	return netio_publish_socket_port(&publisher);
}

static inline void publish_with(const struct netio_publish_attr *attr)
{
	available = came = went = subscribed = unsubscribed = 0;
	number = 0;
	publishing = &publisher;
	assert_int_equal(netio_publish_socket_init(&ctx.evloop, &publisher, attr), 0);
	publisher.cb_connection_established = on_established;
	publisher.cb_connection_closed = on_closed;
	publisher.cb_subscribed = on_subscribed;
	publisher.cb_unsubscribed = on_unsubscribed;
	publisher.cb_buffers_available = on_available;
	assert_int_equal(netio_publish_listen(&publisher, test_host(), 0), 0);
}

static inline void publish_to_one(const struct netio_publish_attr *attr)
{
	publish_with(attr);
	SUBSCRIBE(0, .tag = 1);
}

static inline int pubsub_down(void **state)
{
	unsigned wrong = subs_down();

	netio_publish_socket_fini(&publisher);
	netio_publish_socket_fini(&publisher);
	return netio_down(state) || wrong;
}

PLX_READS(struct netio_publish_stats, stats, (void), netio_publish_stats_read(&publisher, &it))

#define FLUSH_UNTIL(cond)                                 \
	do {                                              \
		netio_buffered_publish_flush(&publisher); \
		TURN_UNTIL(cond);                         \
	} while (0)

/* Publish the next message, which starts with its number. */
static inline int publish(netio_tag_t tag, size_t len, int flags)
{
	fill(bytes, number, len);
	int rc = netio_buffered_publish(&publisher, tag, bytes, len, flags, NULL);
	if (rc == 0)
		number++;
	return rc;
}

/* Slow subscribers: they keep messages, so that their links take no more. */

#define SMALL_PAGES &(struct netio_publish_attr){.page_bytes = 1024, .page_count = 8}

/* One that keeps everything, in four buffers. */
static inline void slow_sub(struct sub *sub, struct netio_subscription what)
{
	if (!sub->socket.core)
		sub_up(sub,
		       &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = 4});
	sub->kept.more = 64;
	sub_to(sub, port(), what);
}

#define SUBSCRIBE_SLOW(i, ...) slow_sub(&subs[i], (struct netio_subscription){__VA_ARGS__})

/* It has tag 1. */
static inline void begin_slow(enum netio_policy policy)
{
	publish_with(SMALL_PAGES);
	SUBSCRIBE_SLOW(0, .tag = 1, .policy = policy);
}

/* No subscriber blocks the publisher. */
static inline void publish_all(netio_tag_t tag, size_t len, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(publish(tag, len, 0), NETIO_STATUS_OK);
		plx_loop_turn();
	}
}

/* Until one takes nothing more. */
static inline void publish_until_again(size_t len)
{
	while (publish(1, len, 0) == NETIO_STATUS_OK)
		plx_loop_turn();
}

/* It has received or missed everything published. */
static inline bool has_all(const struct sub *sub)
{
	assert_int_equal(sub->wrong, 0);
	return sub->messages + missed(sub) == number;
}

/* It keeps no more, and has all of it. */
static inline void catch_up(struct sub *sub)
{
	release_all(&sub->kept);
	FLUSH_UNTIL(has_all(sub));
}

/* For tests that run with several values. */
static inline void end_case(void)
{
	netio_publish_socket_fini(&publisher);
	subs_down();
	turn_ms(5);
}

#define PUBSUB_TEST(test) PLX_TEST_WITH(test, netio_up, pubsub_down)

#endif
