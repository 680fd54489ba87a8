/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers that block their publisher for long: the log names them, and block_max_ns ends it. */
#include "log_capture.h"
#include "publish_fixture.h"

static char why_went[256];

static void note_why_went(struct netio_subscriber *who, enum plx_link_reason reason,
			  const char *why)
{
	went++;
	snprintf(why_went, sizeof(why_went), "%s", why);
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

static uint64_t blocked_ms(void)
{
	struct netio_subscriber_stats now;

	netio_subscriber_stats_read(subscriber, &now);
	return now.blocked_ns / PLX_NS_PER_MS;
}

/* The number before " ms" in the log line with that text. */
static unsigned long ms_of(const char *text)
{
	const char *at = strstr(log_text, text);

	assert_non_null(at);
	return strtoul(at + strlen(text), NULL, 10);
}

PUBSUB_TEST(a_subscriber_that_blocks_for_a_second_is_logged_once)
{
	char begin[PLX_ADDRESS_MAX + 64];

	begin_block(0);
	snprintf(begin, sizeof(begin),
		 "subscriber %s (unit_netio_bloc, pid %d) has blocked its "
		 "publisher for ",
		 subscriber->peer, (int)getpid());
	assert_int_equal(log_count("has blocked"), 0);
	TURN_UNTIL(log_count("has blocked") == 1);
	assert_in_range(ms_of(begin), 1000, 60000);
	assert_int_equal(log_count("netio:1: "), 1);
	assert_int_equal(log_count(" 8 of 8 pages are in use"), 1);
	assert_int_equal(log_count(": 0 bytes wait"), 0);
	assert_int_equal(log_count("nothing is on the way to it: its receive buffers are full"), 1);
	assert_in_range(blocked_ms(), 1000, 60000);
	assert_int_equal(publish(1, 400, NETIO_REENTRY), NETIO_STATUS_AGAIN);
	turn_ms(1200); /* no second line */
	assert_int_equal(log_count("has blocked"), 1);
	assert_int_equal(log_count("had blocked"), 0);

	release_all(&subs[0].kept);
	TURN_UNTIL(available == 1);
	assert_int_equal(log_count("has room after it had blocked its publisher for "), 1);
	assert_in_range(ms_of("has room after it had blocked its publisher for "), 2000, 60000);
	assert_int_equal(publish(1, 400, NETIO_REENTRY), NETIO_STATUS_OK);
	FLUSH_UNTIL(has_all(&subs[0]));
	assert_int_equal(subs[0].gaps + subs[1].gaps, 0);
	assert_int_equal(went, 0);
}

/* For 1.5 s in all, but each time for less than a second. */
PUBSUB_TEST(a_subscriber_that_takes_a_little_is_not_logged)
{
	uint64_t longest_ms = 0;

	begin_block(0);
	for (unsigned i = 0; i < 15; i++) {
		uint64_t before_ms = blocked_ms();
		unsigned before = available;

		turn_ms(100);
		while (available == before) {
			release_all(&subs[0].kept);
			subs[0].kept.more = 8;
			turn_ms(10);
		}
		if (blocked_ms() - before_ms > longest_ms)
			longest_ms = blocked_ms() - before_ms;
		if (publish(1, 400, NETIO_REENTRY) == NETIO_STATUS_OK)
			publish_until_again(400);
	}
	assert_true(blocked_ms() > 0);
	if (longest_ms < 1000) /* else the host stood still */
		assert_int_equal(log_count("has blocked"), 0);
	release_all(&subs[0].kept);
}

PUBSUB_TEST(the_end_of_a_connection_ends_the_block)
{
	begin_block(0);
	TURN_UNTIL(log_count("has blocked") == 1);
	cut_subscriber();
	TURN_UNTIL(went == 1 && available == 1);
	assert_int_equal(log_count("is disconnected after it had blocked its publisher for "), 1);
	assert_int_equal(stats().disconnected, 0);
}

PUBSUB_TEST(a_subscriber_that_blocks_for_too_long_is_disconnected)
{
	begin_block(300 * PLX_NS_PER_MS);
	TURN_UNTIL(available == 1);
	assert_int_equal(log_count("is disconnected: it has blocked its publisher for "), 1);
	assert_in_range(ms_of("it has blocked its publisher for "), 300, 60000);
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
	assert_int_equal(subs[0].reason, PLX_LINK_CLOSED);
	TURN_UNTIL(subs[0].resumed == 1);
	assert_int_equal(log_count("had blocked"), 0);
}

static void end_it(struct netio_publish_socket *socket)
{
	available++;
	netio_publish_socket_fini(socket);
}

PUBSUB_TEST(a_socket_may_end_when_its_blocking_subscriber_is_disconnected)
{
	begin_block(10 * PLX_NS_PER_MS);
	publisher.cb_buffers_available = end_it;
	TURN_UNTIL(available == 1);
	release_all(&subs[0].kept);
	TURN_UNTIL(subs[0].lost == 1 && subs[1].lost == 1);
}

PUBSUB_TEST(a_later_block_is_logged_too)
{
	begin_block(3600 * PLX_NS_PER_S);
	TURN_UNTIL(log_count("has blocked") == 1);
	release_all(&subs[0].kept);
	TURN_UNTIL(available == 1);
	assert_int_equal(publish(1, 400, NETIO_REENTRY), NETIO_STATUS_OK);
	TURN_UNTIL(subs[0].messages == number);
	release_all(&subs[0].kept);
	subs[0].kept.more = 512;
	do {
		publish_until_again(400);
		turn_ms(20); /* the last credit of its link */
	} while (publish(1, 400, NETIO_REENTRY) == NETIO_STATUS_OK);
	TURN_UNTIL(log_count("has blocked") == 2);
	release_all(&subs[0].kept);
}

PLX_TEST_MAIN()
