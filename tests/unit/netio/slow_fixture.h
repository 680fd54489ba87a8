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

static inline void go_on(struct sub *sub)
{
	sub->keep = 0;
	sub_release(sub);
}

/* No subscriber blocks the publisher. */
static inline void publish_all(netio_tag_t tag, size_t len, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(publish(tag, len, 0), NETIO_STATUS_OK);
		plx_loop_turn();
	}
}

/* Until it has received or missed everything published. */
static inline void hear_all(struct sub *sub)
{
	TURN_UNTIL(sub->messages + missed(sub) == number);
	assert_int_equal(sub->wrong, 0);
}

#define SLOW_TEST(test) PLX_TEST_WITH(test, netio_up, pubsub_down)

#endif
