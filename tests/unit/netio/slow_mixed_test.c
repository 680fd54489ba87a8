/* SPDX-License-Identifier: BSD-3-Clause */
/* Slow subscribers, with subscriptions of several policies, and messages of all lengths. */
#include "dice.h"
#include "publish_fixture.h"

/* A subscriber that drops a long message must not make a blocking one wait for that room. */
PUBSUB_TEST(room_is_reported_next_to_a_subscriber_that_drops_long_messages)
{
	for (unsigned with = 0; with < 2; with++) {
		begin_slow(NETIO_POLICY_DEFAULT);
		SUBSCRIBE_SLOW(0, .tag = 2, .policy = NETIO_POLICY_DROP_NEW);
		publish_until_again(600);
		if (with)
			assert_int_equal(publish(2, 2900, 0), NETIO_STATUS_OK);
		turn_ms(10);
		assert_int_equal(available, 0);
		do {
			release_messages(&subs[0].kept, 1);
			turn_ms(20);
		} while (!with && !available &&
			 newest_subscriber()->outbox.waiting_count > 1); /* it is paced */
		turn_ms(80);
		if (!available) /* there would be room */
			assert_int_equal(publish(1, 600, NETIO_REENTRY), NETIO_STATUS_OK);
		assert_int_equal(available, 1);
		end_case();
	}
}

/* The gap precedes the answer: with the last subscription the connection closes. */
PUBSUB_TEST(a_gap_precedes_the_answer)
{
	begin_slow(NETIO_POLICY_DROP_NEW);
	publish_all(1, 976, 200); /* each fills a page: none is left for the gap */
	assert_int_equal(newest_subscriber()->outbox.free_count, 0);
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
	turn_ms(20);
	release_all(&subs[0].kept);
	TURN_UNTIL(subs[0].unsubscribed == 1);
	assert_int_equal(subs[0].messages + missed(&subs[0]), number);
	TURN_UNTIL(subs[0].closed == 1);
	assert_int_equal(subs[0].messages + missed(&subs[0]), number);
}

/* Pages for gaps only must not block a long message. */
PUBSUB_TEST(a_long_message_is_conflated_and_arrives)
{
	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 4});
	SUBSCRIBE_SLOW(0, .last = 9, .policy = NETIO_POLICY_CONFLATE);
	sub_take_tagged(&subs[0]);
	for (unsigned i = 0; i < 40; i++)
		publish_all(2, 400, 1);
	publish_all(1, 3300, 1); /* four pages */
	assert_int_equal(newest_subscriber()->outbox.latest.count, 2);
	for (unsigned i = 0; i < 20000 && !came_of[1]; i++) { /* it takes some, repeatedly */
		publish(2, 400, 0);
		publish(2, 400, 0);
		plx_loop_turn();
		subs[0].kept.more = 64;
		if (i % 8 == 0 && subs[0].kept.count)
			release_messages(&subs[0].kept, 1);
	}
	assert_int_equal(came_of[1], 1);
}

PUBSUB_TEST(pages_queued_after_those_of_a_blocking_policy_are_dropped)
{
	begin_slow(NETIO_POLICY_BLOCK);
	SUBSCRIBE_SLOW(0, .tag = 2, .policy = NETIO_POLICY_DROP_OLD);
	while (!newest_subscriber()->outbox.waiting_count)
		publish_all(2, 900, 1);
	assert_int_equal(publish(1, 900, 0), NETIO_STATUS_OK);
	publish_all(2, 2900, 2);
	publish_all(2, 900, 30);
	assert_true(stats().dropped_old > 10);
	catch_up(&subs[0]);
}

static void expect_room_with_pages(uint32_t page_count)
{
	unsigned turns = 0;

	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = page_count});
	SUBSCRIBE_SLOW(0, .tag = 1);
	SUBSCRIBE_SLOW(0, .tag = 2, .policy = NETIO_POLICY_DROP_NEW);
	sub_take_tagged(&subs[0]);
	publish_until_again(700);
	uint64_t end = plx_now_ns() + 3 * PLX_NS_PER_S;
	while (plx_now_ns() < end && !available) {
		publish_all(2, 700, 1);
		subs[0].kept.more = 8;
		if (subs[0].kept.count && turns++ % 8 == 0)
			release_messages(&subs[0].kept, 1);
	}
	assert_true(available > 0);
	end_case();
}

/* A blocking subscriber is notified of room, although others' messages take it. */
PUBSUB_TEST(room_is_reported_next_to_a_subscriber_that_drops)
{
	expect_room_with_pages(2);
	expect_room_with_pages(8); /* of which at least two are always queued */
}

PUBSUB_TEST(conflated_messages_arrive_next_to_other_tags)
{
	begin_slow(NETIO_POLICY_CONFLATE);
	SUBSCRIBE_SLOW(0, .tag = 2, .policy = NETIO_POLICY_DROP_OLD);
	sub_take_tagged(&subs[0]);
	subs[0].kept.more = 8;
	publish_all(2, 400, 40);
	publish_all(1, 400, 1);
	assert_int_equal(newest_subscriber()->outbox.latest.count, 1);
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
	/* It takes some, more slowly than they are published. */
	for (unsigned i = 0; i < 400 || !subs[0].unsubscribed; i++) {
		publish_all(2, 400, 4);
		subs[0].kept.more = 8;
		release_messages(&subs[0].kept, subs[0].kept.count);
		publish_all(2, 400, 4);
	}
	assert_true(came_of[2] > 100);
	assert_int_equal(subs[0].unsubscribed, 1);
	assert_int_equal(came_of[1], 1);
}

PUBSUB_TEST(a_stricter_policy_keeps_the_order)
{
	begin_slow(NETIO_POLICY_CONFLATE);
	SUBSCRIBE_SLOW(0, .tag = 2, .policy = NETIO_POLICY_DROP_NEW);
	sub_take_tagged(&subs[0]);
	while (!newest_subscriber()->outbox.waiting_count)
		publish_all(1, 400, 1);
	publish_all(1, 400, 2);
	assert_int_equal(newest_subscriber()->outbox.latest.count, 1);
	REQUEST(0, .last = 9, .policy = NETIO_POLICY_DROP_NEW);
	TURN_UNTIL(subscribed == 3);
	publish_all(1, 400, 1);
	assert_int_equal(stats().dropped_new, 0);
	catch_up(&subs[0]);
}

PUBSUB_TEST(nothing_is_dropped_for_a_message_that_is_too_big)
{
	begin_slow(NETIO_POLICY_DROP_OLD);
	publish_all(1, 400, 14);
	uint64_t before = stats().dropped_old;
	publish(1, 20000, 0);
	assert_int_equal(stats().dropped_old, before);
}
PUBSUB_TEST(a_message_that_is_too_big_disconnects_no_subscriber)
{
	begin_slow(NETIO_POLICY_DISCONNECT);
	while (!newest_subscriber()->outbox.waiting_count)
		publish_all(1, 400, 1);
	assert_int_equal(publish(1, 20000, 0), NETIO_STATUS_TOO_BIG);
	assert_int_equal(stats().disconnected, 0);
}

PUBSUB_TEST(messages_queued_for_a_closed_subscriber_are_counted)
{
	begin_slow(NETIO_POLICY_DEFAULT);
	publish_until_again(400);
	netio_subscriber_close(subscriber);
	release_all(&subs[0].kept);
	TURN_UNTIL(went == 1 && subs[0].closed == 1);
	assert_int_equal(stats().given_up, 1);
	assert_int_equal(subs[0].messages + missed(&subs[0]) + stats().lost, number);
}

/* Returned pages are for the newest messages, not one for each gap. */
PUBSUB_TEST(gaps_take_no_pages_from_the_latest_messages)
{
	unsigned before, turns = 0, pages;

	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 2});
	SUBSCRIBE_SLOW(0, .last = 63, .policy = NETIO_POLICY_CONFLATE);
	sub_take_tagged(&subs[0]);
	for (unsigned i = 0; i < 400; i++)
		publish_all(i % 8, 400, 1);
	release_all(&subs[0].kept);
	before = subs[0].messages;
	pages = (unsigned)stats().pages;
	/* It takes everything; each tag changes with each turn. */
	for (; turns < 2000; turns++) {
		for (unsigned i = 0; i < 8; i++)
			publish(i, 400, 0);
		plx_loop_turn();
	}
	pages = (unsigned)stats().pages - pages;
	assert_true(subs[0].messages - before > pages);
}

PUBSUB_TEST(nothing_is_dropped_needlessly)
{
	begin_slow(NETIO_POLICY_DROP_OLD);
	while (newest_subscriber()->outbox.waiting_count < 2)
		publish_all(1, 400, 1);
	for (unsigned i = 0; i < 20; i++) {
		publish_all(1, 400, 1);
		uint64_t old = stats().dropped_old;
		uint64_t new = stats().dropped_new;
		assert_int_equal(publish(1, i % 2 ? 6500 : 7900, 0), NETIO_STATUS_OK);
		assert_true(stats().dropped_old == old || stats().dropped_new == new);
	}
}

static uint64_t dice;

static uint32_t any(uint32_t below)
{
	return dice_roll(&dice, below);
}

/* Tags 1 to 8, each with a different policy; 4 and 8 block. */
static void subscribe_to_all(bool conflates)
{
	static const enum netio_policy policies[] = {NETIO_POLICY_BLOCK, NETIO_POLICY_DROP_OLD,
						     NETIO_POLICY_DROP_NEW, NETIO_POLICY_DROP_OLD};

	for (unsigned tag = 1; tag < 9; tag++) {
		struct netio_subscription what = {
			.tag = tag,
			.policy = conflates && tag > 4 ? NETIO_POLICY_CONFLATE : policies[tag % 4],
			.delivery = any(2) ? NETIO_DELIVERY_AT_ONCE : NETIO_DELIVERY_DEFAULT,
			.backlog_bytes = any(3) ? 0 : 1 + any(4000),
		};

		sub_to(&subs[0], port(), what);
	}
}

static int publish_again(netio_tag_t tag, size_t len)
{
	int rc = NETIO_STATUS_AGAIN;

	while (rc == NETIO_STATUS_AGAIN) {
		available = 0;
		release_all(&subs[0].kept);
		TURN_UNTIL(available >= 1);
		rc = publish(tag, len, NETIO_REENTRY);
	}
	return rc;
}

static void publish_any(void)
{
	unsigned tag = 1 + any(8);
	size_t len = any(10) ? 8 + any(400) : 8 + any(6000);
	int rc = publish(tag, len, 0);

	if (rc == NETIO_STATUS_AGAIN) {
		assert_int_equal(tag % 4, 0);
		if (any(4)) { /* the next message of the tag abandons it */
			number++;
			len = 8;
			rc = publish(tag, len, 0);
		}
		if (rc == NETIO_STATUS_AGAIN)
			rc = publish_again(tag, len);
	}
	if (rc == NETIO_STATUS_TOO_BIG)
		number++;
	else
		assert_int_equal(rc, 0);
}

static void take_any(void)
{
	if (any(10) == 0)
		netio_buffered_publish_flush(&publisher);
	if (any(2))
		plx_loop_turn();
	if (any(20) == 0 || subs[0].kept.count > 200)
		release_all(&subs[0].kept);
	if (any(5) == 0)
		subs[0].kept.more = 1 + any(10);
}

static void at_random(uint32_t seed, bool conflates)
{
	dice = seed * UINT64_C(0x9e3779b97f4a7c15);
	publish_with(&(struct netio_publish_attr){.page_bytes = 512, .page_count = 2 + any(12)});
	sub_up(&subs[0], &(struct netio_subscribe_attr){.buffer_bytes = 512,
							.buffer_count = 2 + any(4),
							.connect.message_max_bytes = 3000});
	if (conflates)
		sub_take_tagged(&subs[0]);
	subscribe_to_all(conflates);
	for (unsigned i = 0; i < 3000; i++) {
		publish_any();
		take_any();
	}
	catch_up(&subs[0]);
	assert_int_equal(subs[0].closed, 0);
	end_case();
}

PUBSUB_TEST(subscriptions_of_different_policies_may_be_mixed)
{
	for (uint32_t seed = 1; seed < 9; seed++)
		at_random(seed, false);
}

PUBSUB_TEST(conflation_may_be_mixed_with_other_policies)
{
	for (uint32_t seed = 1; seed < 9; seed++)
		at_random(seed, true);
}

PLX_TEST_MAIN()
