/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers slower than their publisher. Gap reports must account for every missing message;
 * otherwise the numbers in the messages do not match. */
#include "publish_fixture.h"

/* Dropping ------------------------------------------------------------------------------------ */

PUBSUB_TEST(drop_new_drops_new_messages)
{
	begin_slow(NETIO_POLICY_DROP_NEW);
	assert_int_equal(subscription.policy, NETIO_POLICY_DROP_NEW);
	publish_all(1, 400, 200);
	assert_true(stats().dropped_new > 100);
	assert_int_equal(subs[0].gaps, 0); /* there is no room for that either */
	release_all(&subs[0].kept);
	TURN_UNTIL(has_all(&subs[0]));
	assert_int_equal(subs[0].gaps, 1);
	assert_int_equal(subs[0].gap.reasons, NETIO_GAP_BIT(NETIO_GAP_DROPPED_NEW));
	assert_int_equal(subs[0].gap.last, number); /* reported without another message */
	assert_int_equal(missed(&subs[0]), stats().dropped_new);
	publish_all(1, 400, 3);
	FLUSH_UNTIL(has_all(&subs[0]));
	assert_int_equal(subs[0].gaps, 1);
}

PUBSUB_TEST(drop_old_drops_old_messages)
{
	begin_slow(NETIO_POLICY_DROP_OLD);
	publish_all(1, 400, 201);
	assert_true(stats().dropped_old > 100);
	assert_int_equal(stats().dropped_new, 0);
	catch_up(&subs[0]);
	assert_int_equal(subs[0].gaps, 1);
	assert_int_equal(subs[0].gap.reasons, NETIO_GAP_BIT(NETIO_GAP_DROPPED_OLD));
	assert_in_range(number - subs[0].gap.last, 2, 20); /* the newest have come */
	assert_int_equal(missed(&subs[0]), stats().dropped_old);
}

PUBSUB_TEST(the_backlog_of_a_subscriber_stays_within_its_bound)
{
	struct netio_subscriber_stats now;

	publish_with(&(struct netio_publish_attr){.page_bytes = 1024, .page_count = 64});
	SUBSCRIBE_SLOW(0, .tag = 1, .policy = NETIO_POLICY_DROP_NEW, .backlog_bytes = 3000);
	for (unsigned i = 0; i < 100; i++) {
		publish_all(1, 400, 1);
		netio_subscriber_stats_read(subscriber, &now);
		assert_in_range(now.backlog_bytes, 0, 3000 + 1100);
	}
	assert_true(now.is_slow);
	assert_true(now.backlog_bytes > 1500);
	assert_in_range(now.pages_under_way, 4, 4 + 5);
	assert_int_equal(now.missed[NETIO_GAP_DROPPED_NEW], stats().dropped_new);
	catch_up(&subs[0]);
	netio_subscriber_stats_read(subscriber, &now);
	assert_false(now.is_slow);
	assert_int_equal(now.backlog_bytes, 0);
}

/* Neither a flush nor the timer closes a page that cannot leave: otherwise each would hold one
 * message. */
static void fill_backlog(void (*after_each)(void))
{
	enum { BACKLOG_BYTES = 64 * 1024, ENTRY_BYTES = 64 + 16 };

	publish_with(&(struct netio_publish_attr){.page_bytes = 4096, .page_count = 64});
	SUBSCRIBE_SLOW(0, .tag = 1, .backlog_bytes = BACKLOG_BYTES);
	while (publish(1, 64, 0) == NETIO_STATUS_OK) {
		after_each();
		plx_loop_turn();
	}
	assert_true(number * ENTRY_BYTES >= BACKLOG_BYTES * 9 / 10);
	release_all(&subs[0].kept);
	TURN_UNTIL(has_all(&subs[0])); /* without another flush */
	assert_int_equal(subs[0].gaps, 0);
}

static void flush(void)
{
	netio_buffered_publish_flush(&publisher);
}

PUBSUB_TEST(a_flush_after_each_message_fills_the_backlog)
{
	fill_backlog(flush);
}

static void wait_for_timer(void)
{
	TURN_UNTIL(!plx_timer_running(&newest_subscriber()->outbox.timer));
}

PUBSUB_TEST(the_default_timeout_after_each_message_fills_the_backlog)
{
	fill_backlog(wait_for_timer);
	assert_int_equal(publisher.core->outbox_attr.timeout_ns, PLX_NS_PER_MS);
}

/* The latest ---------------------------------------------------------------------------------- */

static void begin_latest(uint64_t backlog_bytes)
{
	publish_with(SMALL_PAGES);
	SUBSCRIBE_SLOW(0, .tag = 0, .last = 63, .policy = NETIO_POLICY_CONFLATE,
		       .backlog_bytes = backlog_bytes);
	sub_take_tagged(&subs[0]);
}

PUBSUB_TEST(conflation_delivers_the_latest_message_of_each_tag)
{
	begin_latest(0);
	for (unsigned i = 0; i < 1000; i++) /* tag 0 changes more often than all others together */
		publish_all(i % 2 ? i / 2 % 16 : 0, 40 + 8 * (i % 30), 1);
	assert_true(stats().conflated > 500);
	assert_int_equal(stats().dropped_new, 0);
	release_all(&subs[0].kept);
	TURN_UNTIL(has_all(&subs[0]));
	assert_int_equal(missed(&subs[0]), stats().conflated);
	assert_int_equal(newest_of[0], 998);
	for (unsigned i = 1; i < 16; i++)
		assert_in_range(newest_of[i], 1000 - 32, 999);
	assert_int_equal(newest_of[(999 / 2) % 16], 999);
	assert_int_equal(stats().copies, number);
	publish_all(5, 40, 1); /* nothing is queued: an ordinary one */
	FLUSH_UNTIL(has_all(&subs[0]));
	assert_int_equal(newest_of[5], 1000);
}

PUBSUB_TEST(the_latest_messages_are_sent_before_a_close)
{
	begin_latest(0);
	for (unsigned i = 0; i < 320; i++)
		publish_all(i % 16, 200, 1);
	netio_subscriber_close(subscriber);
	turn_ms(20);
	assert_int_equal(went, 0);
	release_all(&subs[0].kept);
	TURN_UNTIL(went == 1 && subs[0].closed == 1);
	assert_int_equal(subs[0].messages + missed(&subs[0]), number);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(newest_of[i], 304 + i);
	assert_int_equal(stats().lost, 0);
}

PUBSUB_TEST(a_slow_subscriber_is_disconnected)
{
	begin_slow(NETIO_POLICY_DISCONNECT);
	SUBSCRIBE(1, .tag = 1);
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(publish(1, 400, 0), NETIO_STATUS_OK);
		TURN_UNTIL(subs[1].messages + 8 > number);
	}
	FLUSH_UNTIL(has_all(&subs[1]));
	assert_int_equal(subs[1].gaps, 0);
	assert_true(stats().disconnected > 5);
	release_all(&subs[0].kept);
	TURN_UNTIL(went == 1 && subs[0].lost == 1);
	assert_true(subs[0].gap.reasons & NETIO_GAP_BIT(NETIO_GAP_DISCONNECTED));
	assert_int_equal(missed(&subs[0]), stats().disconnected);
	assert_int_equal(subs[0].gap.last, subs[0].messages + missed(&subs[0]));
	assert_int_equal(subs[0].reason, PLX_LINK_CLOSED);
	TURN_UNTIL(subs[0].resumed == 1);
}

PUBSUB_TEST(a_subscriber_that_takes_nothing_is_disconnected_too)
{
	uint64_t begin_ns = plx_now_ns();

	begin_slow(NETIO_POLICY_DISCONNECT);
	publish_until_again(400);
	assert_int_equal(publish(1, 400, 0), NETIO_STATUS_NO_SUBSCRIBERS); /* at once */
	assert_in_range(number, 8, 40);
	assert_int_equal(went, 0);
	TURN_UNTIL(went == 1);
	assert_in_range((plx_now_ns() - begin_ns) / PLX_NS_PER_MS, 1900, 6000);
}

/* Choosing a policy --------------------------------------------------------------------------- */

PUBSUB_TEST(the_publisher_has_a_default_policy)
{
	publish_with(&(struct netio_publish_attr){.page_bytes = 1024,
						  .page_count = 8,
						  .policy = NETIO_POLICY_DROP_NEW,
						  .backlog_bytes = 2048,
						  .refuse_block = true});
	SUBSCRIBE_SLOW(0, .tag = 1);
	assert_int_equal(subscription.policy, NETIO_POLICY_DEFAULT); /* as requested */
	publish_all(1, 400, 100);
	assert_true(stats().dropped_new > 50);
	REQUEST(0, .tag = 2, .policy = NETIO_POLICY_BLOCK);
	release_all(&subs[0].kept);
	TURN_UNTIL(subs[0].not_taken == 1);
	assert_non_null(strstr(subs[0].why, "lets nobody block it"));
	assert_int_equal(subs[0].unsubscribed, 1); /* that ends it */
	assert_int_equal(stats().refused, 1);
	assert_int_equal(log_count("is refused a subscription: it would block (refuse_block)"), 1);
	TURN_UNTIL(has_all(&subs[0]));
}

PUBSUB_TEST(the_strictest_of_several_policies_applies)
{
	static const struct {
		enum netio_policy one, other;
		bool blocks, drops_old;
	} pairs[] = {
		{NETIO_POLICY_CONFLATE, NETIO_POLICY_DROP_NEW, false, false},
		{NETIO_POLICY_DROP_OLD, NETIO_POLICY_DROP_NEW, false, true},
		{NETIO_POLICY_DROP_NEW, NETIO_POLICY_BLOCK, true, false},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(pairs); i++) {
		struct netio_subscription_cache cache = {0};
		int rc = 0;

		publish_with(SMALL_PAGES);
		SUBSCRIBE_SLOW(0, .tag = 1, .policy = pairs[i].one);
		SUBSCRIBE_SLOW(0, .last = 9, .policy = pairs[i].other);
		for (unsigned j = 0; j < 100 && rc == 0; j++) {
			fill(bytes, number, 400);
			rc = netio_buffered_publish(&publisher, 1, bytes, 400, 0, &cache);
			number += rc == 0;
			plx_loop_turn();
		}
		assert_int_equal(rc, pairs[i].blocks ? NETIO_STATUS_AGAIN : NETIO_STATUS_OK);
		assert_int_equal(stats().conflated, 0);
		assert_int_equal(stats().dropped_old > 0, pairs[i].drops_old);
		assert_int_equal(stats().dropped_new > 0, !pairs[i].drops_old && !pairs[i].blocks);
		end_case();
	}
}

/* Every policy except blocking. */
PUBSUB_TEST(a_slow_subscriber_never_delays_another)
{
	for (enum netio_policy policy = NETIO_POLICY_DISCONNECT; policy < NETIO_POLICY_COUNT;
	     policy++) {
		begin_slow(policy);
		SUBSCRIBE(1, .tag = 1);
		for (unsigned i = 0; i < 300; i++) {
			assert_int_equal(publish(1, 400, 0), NETIO_STATUS_OK);
			FLUSH_UNTIL(subs[1].messages == number);
		}
		assert_int_equal(subs[1].wrong + subs[1].gaps, 0);
		assert_int_equal(stats().again, 0);
		release_all(&subs[0].kept);
		end_case();
	}
}

/* Other gaps ---------------------------------------------------------------------------------- */

PUBSUB_TEST(a_message_that_is_too_big_is_a_gap)
{
	publish_with(NULL);
	sub_up(&subs[0], &(struct netio_subscribe_attr){.connect = {.message_max_bytes = 1000}});
	SUBSCRIBE(0, .tag = 1);
	SUBSCRIBE(1, .tag = 1);
	publish_all(1, 100, 1);
	publish_all(1, 2000, 3);
	publish_all(1, 100, 1);
	publish_all(1, 3000, 1);
	FLUSH_UNTIL(has_all(&subs[0]));
	TURN_UNTIL(has_all(&subs[1]));
	assert_int_equal(subs[0].messages, 2);
	assert_int_equal(subs[0].gaps, 2);
	assert_int_equal(subs[0].gap.first, 6);
	assert_int_equal(subs[0].missed[NETIO_GAP_TOO_BIG], 4);
	assert_int_equal(stats().too_big, 4);
	assert_int_equal(subs[1].gaps, 0);
}

PUBSUB_TEST(each_reason_for_a_gap_has_a_text)
{
	char all[NETIO_GAP_TEXT_BYTES];

	assert_string_equal(netio_gap_reasons_format(UINT32_MAX, all),
			    "dropped as new, dropped as old, conflated, too slow, and "
			    "disconnected, too big, given up, lost with the connection, unknown");
	assert_string_equal(netio_gap_reasons_format(0, all), "");
	assert_string_equal(netio_gap_reason_name(0), "unknown");
	assert_string_equal(netio_gap_reason_name(NETIO_GAP_REASON_COUNT), "unknown");
}

PLX_TEST_MAIN()
