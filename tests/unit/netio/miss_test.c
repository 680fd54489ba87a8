/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers that miss messages: the log names them, and their counts say what they missed. */
#include "publish_fixture.h"

static void begin_with(enum netio_policy policy, enum plx_log_level level)
{
	netio_log->level = level;
	begin_slow(policy);
	log_capture();
}

static void expect_log(enum plx_log_level level, const char *why)
{
	char begin[PLX_ADDRESS_MAX + 64], end[64];

	snprintf(begin, sizeof(begin),
		 "netio:%d: subscriber %s (unit_netio_miss, pid %d) misses messages: ", (int)level,
		 subscriber->peer, (int)getpid());
	snprintf(end, sizeof(end), " so far (%s)", why);
	assert_int_equal(log_count(begin), 1);
	assert_int_equal(log_count(end), 1);
	assert_int_equal(log_count("netio:1: "), level == PLX_LOG_WARNING);
}

/* As if it had missed nothing for that long. */
static void rest(uint64_t ns)
{
	struct subscriber *its = newest_subscriber();

	for (unsigned i = 0; i < PLX_ARRAY_LEN(its->missed_ns); i++)
		its->missed_ns[i] -= its->missed_ns[i] ? ns : 0;
}

PUBSUB_TEST(a_subscriber_that_begins_to_miss_messages_is_logged_once)
{
	begin_with(NETIO_POLICY_DROP_OLD, PLX_LOG_NOTICE);
	publish_all(1, 400, 4);
	assert_int_equal(log_count("misses messages"), 0);
	publish_all(1, 400, 200);
	expect_log(PLX_LOG_WARNING, "dropped as old");
	rest(8 * PLX_NS_PER_S);
	publish_all(1, 400, 10);
	assert_int_equal(log_count("misses messages"), 1);
	rest(11 * PLX_NS_PER_S);
	publish_all(1, 400, 10);
	assert_int_equal(log_count("misses messages"), 2);
	catch_up(&subs[0]);
}

PUBSUB_TEST(a_subscriber_that_is_disconnected_by_its_policy_is_logged)
{
	begin_with(NETIO_POLICY_DISCONNECT, PLX_LOG_NOTICE);
	while (stats().disconnected == 0)
		publish_all(1, 400, 1);
	expect_log(PLX_LOG_WARNING, netio_gap_reason_name(NETIO_GAP_DISCONNECTED));
	release_all(&subs[0].kept);
	TURN_UNTIL(went == 1);
}

PUBSUB_TEST(conflated_messages_are_logged_at_level_info_only)
{
	begin_with(NETIO_POLICY_CONFLATE, PLX_LOG_NOTICE);
	publish_all(1, 400, 200);
	assert_true(stats().conflated > 100);
	assert_int_equal(log_count("misses messages"), 0);
	catch_up(&subs[0]);
	end_case();

	begin_with(NETIO_POLICY_CONFLATE, PLX_LOG_INFO);
	publish_all(1, 400, 200);
	expect_log(PLX_LOG_INFO, "conflated");
	netio_log->level = PLX_LOG_NOTICE;
	catch_up(&subs[0]);
}

/* It is named later, while it still misses messages. */
PUBSUB_TEST(a_line_that_is_suppressed_is_logged_later)
{
	struct plx_log_limit *limit;

	begin_with(NETIO_POLICY_DROP_NEW, PLX_LOG_NOTICE);
	limit = &publisher.core->miss_limit;
	while (plx_log_allowed(limit, plx_loop_now_ns()))
		continue;
	while (stats().dropped_new == 0)
		publish_all(1, 400, 1);
	TURN_UNTIL(publish(1, 400, 0) == NETIO_STATUS_OK && log_count("misses messages") == 1);
	assert_true(stats().dropped_new > 1);
	catch_up(&subs[0]);
}

/* What a subscriber lost ----------------------------------------------------------------------- */

static struct netio_subscriber_stats at_end;

static void note_end_of(struct netio_subscriber *who, enum plx_link_reason reason, const char *why)
{
	went++;
	netio_subscriber_stats_read(who, &at_end);
}

PUBSUB_TEST(what_is_lost_with_a_connection_is_counted_for_its_subscriber)
{
	begin_slow(NETIO_POLICY_BLOCK);
	publisher.cb_connection_closed = note_end_of;
	publish_until_again(400);
	netio_subscriber_stats_read(subscriber, &at_end);
	assert_int_equal(at_end.lost, 0);
	cut_subscriber();
	TURN_UNTIL(went == 1);
	assert_in_range(at_end.lost, 1, number);
	assert_int_equal(at_end.lost, stats().lost);
	assert_int_equal(at_end.missed[NETIO_GAP_GIVEN_UP], 1); /* the one that got AGAIN */
	number++;
	catch_up(&subs[0]);
}

PLX_TEST_MAIN()
