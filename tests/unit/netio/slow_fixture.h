/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers that keep messages, so that their links take no more. */
#ifndef SLOW_FIXTURE_H
#define SLOW_FIXTURE_H

#include "publish_fixture.h"

#define SMALL_PAGES &(struct netio_publish_attr){.page_bytes = 1024, .page_count = 8}

/* One that keeps everything, in four buffers. */
static inline void slow_sub(struct sub *sub, struct netio_subscription what)
{
	if (!sub->socket.core)
		sub_up(sub,
		       &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = 4});
	sub->keep = 64;
	sub_to(sub, port(), what);
}

#define SUBSCRIBE_SLOW(i, ...) slow_sub(&subs[i], (struct netio_subscription){__VA_ARGS__})

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
	sub_catch_up(sub);
	FLUSH_UNTIL(has_all(sub));
}

/* For tests that run with several values. */
static inline void end_case(void)
{
	netio_publish_socket_fini(&publisher);
	subs_down();
	turn_ms(5);
}

#define SLOW_TEST(test) PLX_TEST_WITH(test, netio_up, pubsub_down)

#endif
