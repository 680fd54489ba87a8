/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing copies, in pages and at once. */
#include "publish_fixture.h"

static void publish_many(unsigned count, netio_tag_t tag, size_t len)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(publish(tag, len, 0), NETIO_STATUS_OK);
}

/* Matching and delivery ----------------------------------------------------------------------- */

PUBSUB_TEST(a_message_goes_to_subscribers_of_its_tag)
{
	static const struct {
		netio_tag_t tag;
		unsigned arrives[3];
	} rows[] = {{5, {1, 1, 1}}, {6, {0, 1, 1}}, {7, {0, 0, 1}}, {8, {0, 0, 0}}, {3, {0, 0, 0}}};
	unsigned expected[3] = {0};

	publish_with(NULL);
	assert_int_equal(publish(5, 8, 0), NETIO_STATUS_NO_SUBSCRIBERS);
	SUBSCRIBE(0, .tag = 5);
	assert_int_equal(subs[0].what.tag, 5);
	assert_int_equal(subscription.tag, 5);
	SUBSCRIBE(1, .tag = 4, .last = 6);
	assert_int_equal(subscription.last, 6);
	SUBSCRIBE(2, .tag = 4, .mask = 4);
	assert_int_equal(subscription.mask, 4);
	SUBSCRIBE(2, .tag = 6, .last = 7); /* a message comes once, however many match */
	assert_int_equal(came, 3);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		int rc = publish(rows[i].tag, 100, 0);

		assert_int_equal(rc, rows[i].arrives[2] ? NETIO_STATUS_OK
							: NETIO_STATUS_NO_SUBSCRIBERS);
		netio_buffered_publish_flush(&publisher);
		turn_ms(5);
		for (unsigned j = 0; j < 3; j++) {
			expected[j] += rows[i].arrives[j];
			TURN_UNTIL(subs[j].messages == expected[j]);
		}
	}
	assert_int_equal(subs[2].tag, 7);
	assert_int_equal(subs[2].len, 100);
	assert_int_equal(subs[2].source, subs[2].publisher->id);
	assert_int_equal(stats().messages, 3);
	assert_int_equal(stats().copies, 6);
	assert_int_equal(stats().no_subscribers, 3);
	assert_int_equal(stats().subscribers, 3);
	assert_int_equal(stats().subscriptions, 4);
	subs_expect_wrong();
}

PUBSUB_TEST(the_unsubscribed_callback_follows_the_last_message)
{
	publish_to_one(&(struct netio_publish_attr){.timeout_ns = PLX_NEVER});
	SUBSCRIBE(0, .tag = 2);
	publish_many(100, 1, 64);
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), -ENOENT);
	while (!unsubscribed) {
		publish(1, 64, 0);
		plx_loop_turn();
	}
	TURN_UNTIL(subs[0].unsubscribed == 1);
	assert_int_equal(subs[0].messages, number); /* without a flush */
	assert_int_equal(publish(1, 64, 0), NETIO_STATUS_NO_SUBSCRIBERS);
	assert_int_equal(publish(2, 64, 0), NETIO_STATUS_OK);
	/* The connection closes with the last subscription. */
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 2), 0);
	TURN_UNTIL(subs[0].closed == 1 && went == 1);
	assert_int_equal(subs[0].unsubscribed, 2);
	assert_int_equal(subs[0].reason, PLX_LINK_CLOSED);
	assert_int_equal(unsubscribed, 2);
	assert_int_equal(stats().subscriptions, 0);
}

/* The message goes to `copies` subscribers. */
static void publish_cached(netio_tag_t tag, struct netio_subscription_cache *cache, unsigned copies)
{
	uint64_t before = stats().copies;
	int rc = netio_buffered_publish(&publisher, tag, "", 1, 0, cache);

	assert_int_equal(rc, copies ? NETIO_STATUS_OK : NETIO_STATUS_NO_SUBSCRIBERS);
	assert_int_equal(stats().copies, before + copies);
}

PUBSUB_TEST(a_cache_follows_the_subscriptions)
{
	struct netio_subscription_cache cache = {0};
	struct netio_subscription range = {.tag = 1, .last = 2};

	publish_with(NULL);
	publish_cached(1, &cache, 0);
	SUBSCRIBE(0, .tag = 1);
	for (unsigned i = 0; i < 10; i++)
		publish_cached(1, &cache, 1);
	assert_int_equal(publisher.core->lookups, 2);
	sub_to(&subs[1], port(), range);
	publish_cached(1, &cache, 2);
	publish_cached(2, &cache, 1);
	publish_cached(1, &cache, 2);
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(went == 1);
	publish_cached(1, &cache, 1);
	assert_int_equal(netio_unsubscribe_from(&subs[1].socket, test_host(), port(), &range), 0);
	TURN_UNTIL(went == 2);
	publish_cached(1, &cache, 0);
}

/* More than one batch of requests. */
PUBSUB_TEST(a_subscriber_may_have_many_tags)
{
	const unsigned count = 3000;

	publish_with(NULL);
	sub_up(&subs[0], NULL);
	for (unsigned i = 0; i < count; i++)
		REQUEST(0, .tag = i << 8);
	TURN_UNTIL(subs[0].subscribed == count);
	for (unsigned i = 0; i < count; i++)
		publish_all(i << 8, 64, 1);
	FLUSH_UNTIL(subs[0].messages == count);
	for (unsigned i = 0; i < count; i += 2)
		assert_works(netio_unsubscribe(&subs[0].socket, test_host(), port(), i << 8));
	TURN_UNTIL(subs[0].unsubscribed == count / 2);
	assert_int_equal(stats().subscriptions, count / 2);
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(unsubscribed == count && went == 1);
	assert_int_equal(stats().subscriptions, 0);
}

PUBSUB_TEST(delivery_at_once_needs_no_flush)
{
	publish_to_one(&(struct netio_publish_attr){.timeout_ns = PLX_NEVER});
	SUBSCRIBE(1, .tag = 1, .delivery = NETIO_DELIVERY_AT_ONCE);
	assert_int_equal(subscription.delivery, NETIO_DELIVERY_AT_ONCE);
	publish_many(10, 1, 64);
	TURN_UNTIL(subs[1].messages == 10);
	turn_ms(50);
	assert_int_equal(subs[0].messages, 0);
	FLUSH_UNTIL(subs[0].messages == 10);
}

/* Room ---------------------------------------------------------------------------------------- */

/* Publish until some subscriber takes nothing more, however long the wait. The refused message is
 * the next one. */
static void fill_up(void)
{
	do {
		while (publish(1, 900, NETIO_REENTRY) == NETIO_STATUS_OK)
			;
		turn_ms(5);
	} while (publish(1, 900, NETIO_REENTRY) == NETIO_STATUS_OK);
}

/* One keeps everything, so its pages fill up. */
PUBSUB_TEST(a_retry_goes_to_subscribers_that_missed_it)
{
	begin_slow(NETIO_POLICY_BLOCK);
	SUBSCRIBE(1, .tag = 1);
	fill_up();
	for (unsigned i = 0; i < 5; i++) { /* still none; the other one does not get it twice */
		turn_ms(2);
		assert_int_equal(publish(1, 900, NETIO_REENTRY), NETIO_STATUS_AGAIN);
	}
	FLUSH_UNTIL(subs[1].messages == number + 1);
	available = 0;
	turn_ms(20);
	assert_int_equal(available, 0);
	release_all(&subs[0].kept);
	TURN_UNTIL(available == 1);
	assert_int_equal(publish(1, 900, NETIO_REENTRY), NETIO_STATUS_OK);
	assert_int_equal(publish(1, 900, 0), NETIO_STATUS_OK);
	FLUSH_UNTIL(subs[0].messages == number && subs[1].messages == number);
	assert_int_equal(stats().given_up, 0);
}

PUBSUB_TEST(a_message_that_is_not_retried_is_abandoned)
{
	struct netio_subscribe_stats counted;

	begin_slow(NETIO_POLICY_BLOCK);
	fill_up();
	number++;
	assert_int_equal(publish(1, 900, 0), NETIO_STATUS_AGAIN);
	number++;
	assert_int_equal(publish(1, 900, 0), NETIO_STATUS_AGAIN);
	assert_int_equal(stats().given_up, 2);
	available = 0;
	release_all(&subs[0].kept);
	TURN_UNTIL(available == 1);
	assert_int_equal(publish(1, 900, NETIO_REENTRY), NETIO_STATUS_OK);
	FLUSH_UNTIL(subs[0].messages == number - 2);
	assert_int_equal(subs[0].missed[NETIO_GAP_GIVEN_UP], 2);
	netio_subscribe_stats_read(&subs[0].socket, &counted);
	assert_int_equal(counted.messages, subs[0].messages);
	assert_int_equal(counted.gaps, subs[0].gaps);
	assert_int_equal(counted.missed[NETIO_GAP_GIVEN_UP], 2);
}

static void publish_when_subscribed(struct netio_subscriber *who,
				    const struct netio_subscription *what)
{
	for (unsigned i = 0; i < 1000; i++)
		publish(1, 300, 0);
}

static unsigned early;

static void note_early(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	early += ((struct sub *)socket->data)->subscribed == 0;
	sub_message(socket, msg);
}

PUBSUB_TEST(a_subscription_answer_precedes_messages_from_the_callback)
{
	publish_with(NULL);
	publisher.cb_subscribed = publish_when_subscribed;
	sub_up(&subs[0], NULL);
	subs[0].socket.cb_msg_received = note_early;
	early = 0;
	assert_int_equal(netio_subscribe(&subs[0].socket, test_host(), port(), 1), 0);
	TURN_UNTIL(subs[0].subscribed == 1);
	FLUSH_UNTIL(subs[0].messages == 1000);
	assert_int_equal(early, 0);
}

/* A publisher with endless messages still answers requests. */
static void pump(struct netio_publish_socket *socket)
{
	while (publish(1, 900, NETIO_REENTRY) == NETIO_STATUS_OK)
		;
}

PUBSUB_TEST(subscription_answers_are_not_delayed_by_messages)
{
	unsigned before;

	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 32});
	publisher.cb_buffers_available = pump;
	sub_up(&subs[0], &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = 4});
	SUBSCRIBE(0, .tag = 1);
	pump(&publisher);
	turn_ms(50);
	before = subs[0].messages;
	SUBSCRIBE(0, .tag = 2);
	assert_in_range(subs[0].messages - before, 0, 2 * 32 + 16); /* the messages in flight */
	publisher.cb_buffers_available = NULL;
}

/* A publisher that drops refused messages, tag by tag. */
PUBSUB_TEST(pending_messages_are_bounded)
{
	publish_with(SMALL_PAGES);
	SUBSCRIBE_SLOW(0, .last = UINT64_MAX);
	fill_up();
	for (unsigned i = 0; i < NETIO_REENTRY_MAX + 100; i++)
		assert_int_equal(publish(100 + i, 900, 0), NETIO_STATUS_AGAIN);
	assert_int_equal(stats().given_up, 101); /* including that of fill_up */
}

/* Ends ---------------------------------------------------------------------------------------- */

PUBSUB_TEST(a_publisher_may_close_a_subscriber)
{
	publish_with(NULL);
	sub_up(&subs[0], &(struct netio_subscribe_attr){.connect.reconnect_min_ns = PLX_NEVER});
	SUBSCRIBE(0, .tag = 1);
	publish_many(100, 1, 300);
	netio_subscriber_close(subscriber);
	netio_subscriber_close(subscriber);
	assert_int_equal(publish(1, 300, 0), NETIO_STATUS_NO_SUBSCRIBERS);
	TURN_UNTIL(subs[0].closed == 1 && went == 1);
	assert_int_equal(subs[0].messages, 100);
	assert_int_equal(unsubscribed, 1);
	/* It is retried only with the next subscription. */
	SUBSCRIBE(0, .tag = 2);
	assert_int_equal(subs[0].resumed, 1);
	assert_int_equal(subs[0].established, 2);
}

PUBSUB_TEST(a_drained_loop_may_be_reused)
{
	unsigned at;

	publish_to_one(NULL);
	at = port();
	publish_many(800, 1, 300);
	assert_int_equal(netio_drain(&ctx.evloop, 10 * PLX_NS_PER_S), 0);
	assert_int_equal(subs[0].messages, 800);
	assert_int_equal(subs[0].lost, 1);
	assert_true(subs[0].closed > 0);
	assert_int_equal(went, 1);
	assert_int_equal(port(), 0);
	subs[0].refused = 0;
	turn_ms(30); /* nothing is retried */
	assert_int_equal(subs[0].refused, 0);
	assert_int_equal(netio_drain(&ctx.evloop, 0), 0); /* nothing is left */

	assert_int_equal(netio_publish_listen(&publisher, test_host(), at), 0);
	/* An existing subscription is requested again. */
	assert_int_equal(netio_subscribe(&subs[0].socket, test_host(), at, 1), 0);
	TURN_UNTIL(subs[0].resumed == 1);
}

PLX_TEST_MAIN()
