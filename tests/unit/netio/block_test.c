/* SPDX-License-Identifier: BSD-3-Clause */
/* Slow subscribers as their publisher sees them: the log names those that block it and those that
 * miss messages, and block_max_ns ends a block. */
#include "log_capture.h"
#include "publish_fixture.h"

static char why_went[256];
static struct netio_subscriber_stats at_end;

static void note_why_went(struct netio_subscriber *who, enum plx_link_reason reason,
			  const char *why)
{
	went++;
	snprintf(why_went, sizeof(why_went), "%s", why);
	netio_subscriber_stats_read(who, &at_end);
}

/* One subscriber that takes nothing, and one that takes all. */
static void begin_block(uint64_t block_max_ns)
{
	publish_with(&(struct netio_publish_attr){
		.page_bytes = 1024, .page_count = 8, .block_max_ns = block_max_ns});
	publisher.cb_connection_closed = note_why_went;
	SUBSCRIBE(1, .tag = 1, .policy = NETIO_POLICY_BLOCK);
	SUBSCRIBE_SLOW(0, .tag = 1, .policy = NETIO_POLICY_BLOCK);
	log_capture();
	publish_until_again(400);
}

/* The number before " ms" in the log line with that text. */
static unsigned long ms_of(const char *text)
{
	const char *at = strstr(log_text, text);

	assert_non_null(at);
	return strtoul(at + strlen(text), NULL, 10);
}

/* The log names the subscriber, once, at that level. */
static void expect_log(enum plx_log_level level, const char *what)
{
	char begin[PLX_ADDRESS_MAX + 128];

	snprintf(begin, sizeof(begin), "netio:%d: subscriber %s (unit_netio_bloc, pid %d) %s",
		 (int)level, subscriber->peer, (int)getpid(), what);
	assert_int_equal(log_count(begin), 1);
}

PUBSUB_TEST(a_subscriber_that_blocks_for_a_second_is_logged_once)
{
	begin_block(0);
	assert_int_equal(log_count("has blocked"), 0);
	TURN_UNTIL(log_count("has blocked") == 1);
	expect_log(PLX_LOG_WARNING, "has blocked its publisher for ");
	assert_in_range(ms_of("has blocked its publisher for "), 1000, 60000);
	assert_int_equal(log_count(" 8 of 8 pages are in use"), 1);
	assert_int_equal(log_count("nothing is on the way to it: its receive buffers are full"), 1);
	turn_ms(1200); /* no second line */
	assert_int_equal(log_count("has blocked"), 1);

	release_all(&subs[0].kept);
	TURN_UNTIL(available == 1);
	assert_in_range(ms_of("has room after it had blocked its publisher for "), 2000, 60000);
	assert_int_equal(publish(1, 400, NETIO_REENTRY), NETIO_STATUS_OK);
	FLUSH_UNTIL(has_all(&subs[0]));
	assert_int_equal(subs[0].gaps + subs[1].gaps, 0);
	assert_int_equal(went, 0);
}

PUBSUB_TEST(the_end_of_a_connection_ends_the_block)
{
	begin_block(0);
	TURN_UNTIL(log_count("has blocked") == 1);
	cut_subscriber();
	TURN_UNTIL(went == 1 && available == 1);
	assert_int_equal(log_count("is disconnected after it had blocked its publisher for "), 1);
	/* What it had not taken is counted. */
	assert_in_range(at_end.lost, 1, number);
	assert_int_equal(at_end.lost, stats().lost);
	assert_int_equal(publish(1, 400, NETIO_REENTRY), NETIO_STATUS_OK);
	FLUSH_UNTIL(has_all(&subs[1]));
}

PUBSUB_TEST(a_subscriber_that_blocks_for_too_long_is_disconnected)
{
	begin_block(300 * PLX_NS_PER_MS);
	TURN_UNTIL(available == 1);
	assert_in_range(ms_of("is disconnected: it has blocked its publisher for "), 300, 60000);
	assert_int_equal(log_count("block_max_ns is 300 ms"), 1);
	/* All is published to the other one, without its message being lost or sent twice. */
	assert_int_equal(publish(1, 400, NETIO_REENTRY), NETIO_STATUS_OK);
	publish_all(1, 400, 5);
	FLUSH_UNTIL(has_all(&subs[1]));
	assert_int_equal(subs[1].gaps, 0);
	assert_true(stats().disconnected > 5);
	assert_int_equal(stats().lost, 0);

	release_all(&subs[0].kept);
	TURN_UNTIL(went == 1 && subs[0].lost == 1);
	assert_non_null(strstr(why_went, "longer than block_max_ns"));
	assert_int_equal(subs[0].gap.reasons, NETIO_GAP_BIT(NETIO_GAP_DISCONNECTED));
	assert_int_equal(missed(&subs[0]), stats().disconnected);
	assert_int_equal(subs[0].messages + missed(&subs[0]), number - 5);
	TURN_UNTIL(subs[0].resumed == 1);
}

/* Missed messages ------------------------------------------------------------------------------ */

PUBSUB_TEST(a_subscriber_that_begins_to_miss_messages_is_logged_once)
{
	begin_slow(NETIO_POLICY_DROP_OLD);
	log_capture();
	publish_all(1, 400, 4);
	assert_int_equal(log_count("misses messages"), 0);
	publish_all(1, 400, 200);
	expect_log(PLX_LOG_WARNING, "misses messages: ");
	assert_int_equal(log_count(" so far (dropped as old)"), 1);
	publish_all(1, 400, 10);
	assert_int_equal(log_count("misses messages"), 1);
	catch_up(&subs[0]);
}

PLX_TEST_MAIN()
