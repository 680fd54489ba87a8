/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing copies, in pages and at once. */
#include "publish_fixture.h"

static void publish_many(unsigned count, netio_tag_t tag, size_t len)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(publish(tag, len, 0), NETIO_STATUS_OK);
}

/* Turn the loop while there is no room. */
static void publish_all_of(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		while (publish(1, 300, NETIO_REENTRY) != NETIO_STATUS_OK)
			plx_loop_turn();
}

/* Matching and delivery ----------------------------------------------------------------------- */

PUBSUB_TEST(a_message_goes_to_subscribers_of_its_tag)
{
	publish_with(NULL);
	assert_int_equal(publish(5, 8, 0), NETIO_STATUS_NO_SUBSCRIBERS);
	SUBSCRIBE(0, .tag = 5);
	assert_int_equal(subs[0].what.tag, 5);
	assert_int_equal(subscription.tag, 5);
	SUBSCRIBE(1, .tag = 4, .last = 6);
	assert_int_equal(subscription.last, 6);
	SUBSCRIBE(2, .tag = 4, .mask = 4);
	assert_int_equal(subscription.mask, 4);
	SUBSCRIBE(3, .tag = 0);
	assert_int_equal(came, 4);

	assert_int_equal(publish(5, 100, 0), NETIO_STATUS_OK);
	FLUSH_UNTIL(subs[0].messages == 1 && subs[1].messages == 1 && subs[2].messages == 1);
	assert_int_equal(subs[0].tag, 5);
	assert_int_equal(subs[0].len, 100);
	assert_int_equal(subs[0].source, subs[0].publisher->id);
	assert_int_equal(publish(6, 100, 0), NETIO_STATUS_OK);
	FLUSH_UNTIL(subs[1].messages == 2 && subs[2].messages == 2);
	assert_int_equal(publish(0, 0, 0), NETIO_STATUS_OK); /* an ordinary tag */
	FLUSH_UNTIL(subs[3].messages == 1);
	assert_int_equal(publish(7, 8, 0), NETIO_STATUS_OK);
	FLUSH_UNTIL(subs[2].messages == 3);
	assert_int_equal(publish(8, 8, 0), NETIO_STATUS_NO_SUBSCRIBERS);
	turn_ms(20);
	assert_int_equal(subs[0].messages, 1);
	assert_int_equal(subs[1].messages, 2);
	assert_int_equal(subs[2].messages, 3);
	assert_int_equal(subs[3].messages, 1);
	assert_int_equal(stats().messages, 4);
	assert_int_equal(stats().copies, 7);
	assert_int_equal(stats().no_subscribers, 2);
	assert_int_equal(stats().subscribers, 4);
	assert_int_equal(stats().subscriptions, 4);
	subs_expect_wrong();
}

/* Pages of 1 KiB, and a subscriber that keeps 64 messages and has that many buffers. */
static void publish_to_slow(uint32_t page_count, uint32_t buffer_count)
{
	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = page_count});
	sub_up(&subs[0],
	       &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = buffer_count});
	subs[0].kept.more = 64;
}

/* The subscriber has tag 1. */
static void publish_one_to_slow(uint32_t page_count)
{
	publish_to_slow(page_count, 2);
	SUBSCRIBE(0, .tag = 1);
}

PUBSUB_TEST(a_message_is_copied_once_however_many_subscriptions_match)
{
	publish_with(NULL);
	SUBSCRIBE(0, .tag = 9);
	SUBSCRIBE(0, .tag = 0, .last = 100);
	SUBSCRIBE(0, .tag = 1, .mask = 1);
	assert_int_equal(came, 1); /* by one connection */
	assert_int_equal(publish(9, 8, 0), NETIO_STATUS_OK);
	FLUSH_UNTIL(subs[0].messages == 1);
	turn_ms(20);
	assert_int_equal(subs[0].messages, 1);
	assert_int_equal(stats().copies, 1);
}

PUBSUB_TEST(the_unsubscribed_callback_follows_the_last_message)
{
	publish_to_one(NULL);
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

/* More than a cache line holds, and more than one batch of requests. */
PUBSUB_TEST(a_subscriber_may_have_many_tags)
{
	const unsigned count = 3000;

	publish_with(NULL);
	sub_up(&subs[0], NULL);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(netio_subscribe(&subs[0].socket, test_host(), port(), i << 8), 0);
	TURN_UNTIL(subs[0].subscribed == count);
	assert_int_equal(subscribed, count);
	for (unsigned i = 0; i < count; i++)
		while (publish(i << 8, 64, 0) == NETIO_STATUS_AGAIN)
			plx_loop_turn();
	FLUSH_UNTIL(subs[0].messages == count);
	for (unsigned i = 0; i < count; i += 2)
		assert_works(netio_unsubscribe(&subs[0].socket, test_host(), port(), i << 8));
	TURN_UNTIL(subs[0].unsubscribed == count / 2);
	assert_int_equal(stats().subscriptions, count / 2);
	assert_int_equal(publish(0, 64, 0), NETIO_STATUS_NO_SUBSCRIBERS);
	assert_int_equal(publish(256, 64, 0), NETIO_STATUS_OK);
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(unsubscribed == count && went == 1);
	assert_int_equal(stats().subscriptions, 0);
}

PUBSUB_TEST(delivery_at_once_needs_no_flush)
{
	publish_to_one(NULL);
	SUBSCRIBE(1, .tag = 1, .delivery = NETIO_DELIVERY_AT_ONCE);
	assert_int_equal(subscription.delivery, NETIO_DELIVERY_AT_ONCE);
	publish_many(10, 1, 64);
	TURN_UNTIL(subs[1].messages == 10);
	turn_ms(50);
	assert_int_equal(subs[0].messages, 0);
	FLUSH_UNTIL(subs[0].messages == 10);
}

PUBSUB_TEST(messages_at_once_and_buffered_stay_in_order)
{
	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 8});
	sub_up(&subs[0], &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = 2});
	SUBSCRIBE(0, .tag = 1);
	SUBSCRIBE(0, .tag = 2, .delivery = NETIO_DELIVERY_AT_ONCE);
	for (unsigned i = 0; i < 3000; i++) {
		netio_tag_t tag = 1 + (i * 7 % 5 == 0);
		size_t len = i % 11 == 0 ? 3000 : 8 + i % 200;

		while (publish(tag, len, NETIO_REENTRY) != NETIO_STATUS_OK)
			plx_loop_turn();
		if (i % 300 == 0)
			turn_ms(1);
	}
	FLUSH_UNTIL(subs[0].messages == 3000);
	assert_true(stats().again > 0);
}

PUBSUB_TEST(a_page_is_sent_by_watermark_and_timeout)
{
	publish_to_one(&(struct netio_publish_attr){
		.page_bytes = 65536, .watermark_bytes = 1000, .timeout_ns = 20 * PLX_NS_PER_MS});
	publish_many(10, 1, 100);
	TURN_UNTIL(subs[0].messages >= 9);
	TURN_UNTIL(subs[0].messages == 10);
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
	publish_to_slow(4, 4);
	SUBSCRIBE(0, .tag = 1);
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

	publish_one_to_slow(2);
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

PUBSUB_TEST(a_disconnected_subscriber_is_not_waited_for)
{
	publish_one_to_slow(2);
	SUBSCRIBE(1, .tag = 1);
	fill_up();
	available = 0;
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(went == 1);
	assert_int_equal(available, 1);
	assert_int_equal(publish(1, 900, NETIO_REENTRY), NETIO_STATUS_OK);
	FLUSH_UNTIL(subs[1].messages == number);
}

/* A full page is sent automatically, and no new one is started. */
PUBSUB_TEST(a_slow_subscriber_gets_delivery_at_once)
{
	struct netio_subscription at_once = {.tag = 1, .delivery = NETIO_DELIVERY_AT_ONCE};

	publish_to_slow(4, 2);
	sub_to(&subs[0], port(), at_once);
	while (publish(1, 1008, NETIO_REENTRY) == NETIO_STATUS_OK)
		turn_ms(1);
	release_all(&subs[0].kept);
	TURN_UNTIL(publish(1, 8, NETIO_REENTRY) == NETIO_STATUS_OK);
	TURN_UNTIL(subs[0].messages == number);
}

PUBSUB_TEST(a_message_at_once_longer_than_all_pages_is_too_big)
{
	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 4});
	SUBSCRIBE(0, .tag = 1, .delivery = NETIO_DELIVERY_AT_ONCE);
	assert_int_equal(publish(1, 5000, 0), NETIO_STATUS_TOO_BIG);
	assert_int_equal(publish(1, 4000, 0), NETIO_STATUS_OK);
	TURN_UNTIL(subs[0].messages == 1);
	subs_expect_wrong();
}

PUBSUB_TEST(an_unsubscribed_tag_gets_no_retry)
{
	publish_one_to_slow(2);
	SUBSCRIBE(0, .tag = 2);
	fill_up();
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
	turn_ms(20);
	release_all(&subs[0].kept);
	TURN_UNTIL(subs[0].unsubscribed == 1);
	assert_int_equal(subs[0].messages, number);
	assert_int_equal(publish(1, 900, NETIO_REENTRY), NETIO_STATUS_NO_SUBSCRIBERS);
	assert_int_equal(publish(2, 900, 0), NETIO_STATUS_OK);
	FLUSH_UNTIL(subs[0].messages == number);
	assert_int_equal(subs[0].tag, 2);
}

/* Its copy of the refused message counts as lost. */
PUBSUB_TEST(the_only_subscriber_may_disconnect)
{
	publish_one_to_slow(2);
	fill_up();
	cut_subscriber();
	TURN_UNTIL(went == 1);
	uint64_t lost = stats().lost;
	assert_true(lost >= 2); /* in pages, and the refused one */
	assert_int_equal(publish(1, 900, NETIO_REENTRY), NETIO_STATUS_NO_SUBSCRIBERS);
	assert_int_equal(stats().copies, number);
	assert_int_equal(stats().messages, number);
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
static bool pumping;

static void pump(struct netio_publish_socket *socket)
{
	while (pumping && publish(2, 900, NETIO_REENTRY) == NETIO_STATUS_OK)
		;
}

static void slow_message(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	uint64_t end_ns = plx_now_ns() + 20 * PLX_NS_PER_US;

	sub_message(socket, msg);
	while (plx_now_ns() < end_ns)
		;
}

PUBSUB_TEST(subscription_answers_are_not_delayed_by_messages)
{
	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 32});
	publisher.cb_buffers_available = pump;
	sub_up(&subs[0], &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = 4});
	SUBSCRIBE(0, .tag = 1);
	SUBSCRIBE(0, .tag = 2);
	subs[0].socket.cb_msg_received = slow_message;
	pumping = true;
	pump(&publisher);
	turn_ms(50);
	unsigned before = subs[0].messages;
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
	TURN_UNTIL(subs[0].unsubscribed == 1);
	assert_in_range(subs[0].messages - before, 0, 2 * 32 + 16); /* the messages in flight */
	assert_int_equal(netio_subscribe(&subs[0].socket, test_host(), port(), 3), 0);
	TURN_UNTIL(subs[0].subscribed == 3);
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 2), 0);
	TURN_UNTIL(subs[0].unsubscribed == 2);
	pumping = false;
}

/* A publisher that drops refused messages, tag by tag. */
PUBSUB_TEST(pending_messages_are_bounded)
{
	publish_to_slow(2, 2);
	SUBSCRIBE(0, .last = UINT64_MAX);
	fill_up();
	for (unsigned i = 0; i < NETIO_REENTRY_MAX + 100; i++)
		assert_int_equal(publish(100 + i, 900, 0), NETIO_STATUS_AGAIN);
	assert_int_equal(publisher.core->pending_count, NETIO_REENTRY_MAX);
	assert_int_equal(stats().given_up, 101); /* including that of fill_up */
	netio_publish_socket_fini(&publisher);
}

/* Ends ---------------------------------------------------------------------------------------- */

PUBSUB_TEST(fini_loses_nothing)
{
	publish_to_one(NULL);
	publish_all_of(5000);
	netio_publish_socket_fini(&publisher);
	TURN_UNTIL(subs[0].closed == 1);
	assert_int_equal(subs[0].reason, PLX_LINK_CLOSED);
	assert_int_equal(subs[0].messages, 5000);
	assert_int_equal(subs[0].lost, 1);
}

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

PUBSUB_TEST(requests_during_a_close_lose_nothing)
{
	enum { COUNT = 800 };

	publish_with(NULL);
	sub_up(&subs[0], &(struct netio_subscribe_attr){.connect.reconnect_min_ns = PLX_NEVER});
	SUBSCRIBE(0, .tag = 1);
	publish_many(COUNT, 1, 300);
	netio_subscriber_close(subscriber);
	for (unsigned i = 0; i < 2000 && !subs[0].closed; i++) {
		if (i < 100)
			netio_subscribe(&subs[0].socket, test_host(), port(), 2 + i);
		plx_loop_turn();
	}
	TURN_UNTIL(subs[0].closed == 1 && went == 1);
	assert_int_equal(subs[0].reason, PLX_LINK_CLOSED);
	assert_int_equal(subs[0].messages, COUNT);
	assert_int_equal(stats().lost, 0);
}

PUBSUB_TEST(a_drained_loop_may_be_reused)
{
	publish_with(NULL);
	unsigned first = port();
	listen_with(NULL);
	sub_to(&subs[0], first, (struct netio_subscription){.tag = 1});
	sub_to(&subs[1], first, (struct netio_subscription){.tag = 1});
	publish_all_of(5000);
	assert_int_equal(netio_drain(&ctx.evloop, 10 * PLX_NS_PER_S), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(subs[i].messages, 5000);
		assert_true(subs[i].closed > 0);
		assert_int_equal(subs[i].lost, 1);
		subs[i].refused = 0;
	}
	assert_int_equal(went, 2);
	assert_int_equal(port(), 0);
	assert_int_equal(netio_listen_socket_port(&heard.socket), 0);
	turn_ms(30); /* nothing is retried */
	assert_int_equal(subs[0].refused, 0);
	assert_int_equal(netio_drain(&ctx.evloop, 0), 0); /* nothing is left */

	assert_int_equal(netio_publish_listen(&publisher, test_host(), first), 0);
	assert_int_equal(netio_listen(&heard.socket, test_host(), 0), 0);
	/* Existing subscriptions are requested again. */
	assert_int_equal(netio_subscribe(&subs[0].socket, test_host(), first, 1), 0);
	TURN_UNTIL(subs[0].resumed == 1);
	netio_listen_socket_fini(&heard.socket);
}

PLX_TEST_MAIN()
