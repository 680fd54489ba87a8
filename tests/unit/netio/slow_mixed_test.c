/* SPDX-License-Identifier: BSD-3-Clause */
/* Slow subscribers, with subscriptions of several policies, and messages of all lengths. */
#include "dice.h"
#include "publish_fixture.h"

/* With the last subscription the connection closes. */
PUBSUB_TEST(gaps_and_latest_messages_precede_the_answer)
{
	static const enum netio_policy policies[] = {NETIO_POLICY_DROP_NEW, NETIO_POLICY_CONFLATE};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(policies); i++) {
		begin_slow(policies[i]);
		sub_take_tagged(&subs[0]);
		publish_all(1, 976, 200); /* each fills a page: none is left for the gap */
		assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
		turn_ms(20);
		release_all(&subs[0].kept);
		TURN_UNTIL(subs[0].unsubscribed == 1);
		assert_int_equal(subs[0].messages + missed(&subs[0]), number);
		TURN_UNTIL(subs[0].closed == 1);
		assert_int_equal(subs[0].messages + missed(&subs[0]), number);
		end_case();
	}
}

PUBSUB_TEST(a_message_that_is_too_big_disconnects_no_subscriber)
{
	begin_slow(NETIO_POLICY_DISCONNECT);
	while (!newest_subscriber()->outbox.waiting_count)
		publish_all(1, 400, 1);
	assert_int_equal(publish(1, 20000, 0), NETIO_STATUS_TOO_BIG);
	assert_int_equal(stats().disconnected, 0);
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
	for (uint32_t seed = 1; seed < 9; seed++) {
		at_random(seed, false);
		at_random(seed, true);
	}
}

PLX_TEST_MAIN()
