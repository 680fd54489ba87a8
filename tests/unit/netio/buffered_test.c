/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending in pages. */
#include "socket_fixture.h"

#define BIG        (8u << 20)
#define TIMEOUT_NS (800 * PLX_NS_PER_MS)

static struct netio_buffered_send_socket sender;
static unsigned established, closed, available;
static uint64_t sent;
static uint8_t bytes[BIG];

PLX_COUNTS(on_established, established, struct netio_buffered_send_socket *socket)
PLX_COUNTS(on_closed, closed, struct netio_buffered_send_socket *socket,
	   enum plx_link_reason reason, const char *why)
PLX_COUNTS(on_available, available, struct netio_buffered_send_socket *socket)

static void begin_with(const struct netio_listen_attr *listen, struct netio_buffered_attr attr)
{
	established = closed = available = 0;
	sent = 0;
	listen_with(listen);
	assert_int_equal(netio_buffered_send_socket_init(&ctx.evloop, &sender, &attr), 0);
	sender.cb_connection_established = on_established;
	sender.cb_connection_closed = on_closed;
	sender.cb_buffers_available = on_available;
	connect_buffered_to_listening(&sender);
	TURN_UNTIL(established == 1 && heard.established == 1);
}

/* Pages of 1 KiB, and two buffers of the peer. */
static void begin_with_timeout(uint32_t count, uint64_t timeout_ns)
{
	begin_with(&(struct netio_listen_attr){.buffer_bytes = 1024, .buffer_count = 2},
		   (struct netio_buffered_attr){
			   .page_bytes = 1024, .page_count = count, .timeout_ns = timeout_ns});
}

static void begin_with_pages(uint32_t count)
{
	begin_with_timeout(count, 0);
}

PLX_READS(struct netio_buffered_stats, stats, (void), netio_buffered_stats_read(&sender, &it))

/* Send the next message with that length. Return: its status. */
static int send_next(size_t len)
{
	fill(bytes, sent, len);
	int rc = netio_buffered_send(&sender, bytes, len);
	sent += rc == 0;
	return rc;
}

static void send_surely(size_t len)
{
	int rc;

	while ((rc = send_next(len)) == NETIO_STATUS_AGAIN)
		plx_loop_turn();
	assert_int_equal(rc, 0);
}

/* All that was sent arrives. */
static void flush(void)
{
	assert_int_equal(netio_buffered_flush(&sender), 0);
	TURN_UNTIL(heard.messages == sent);
}

static void end(void)
{
	netio_buffered_send_socket_fini(&sender);
	netio_buffered_send_socket_fini(&sender);
}

static int sender_down(void **state)
{
	assert_int_equal(heard.wrong, 0);
	end();
	return sockets_down(state);
}

#define SEND_TEST(test) PLX_TEST_WITH(test, netio_up, sender_down)

SEND_TEST(many_small_messages_share_a_page)
{
	begin_with(NULL, (struct netio_buffered_attr){0});
	for (unsigned i = 0; i < 20000; i++)
		send_surely(8 + i % 100);
	flush();
	assert_int_equal(stats().messages, sent);
	assert_in_range(stats().pages, 15, 30); /* 20 000 of some 72 bytes in pages of 64 KiB */
	assert_int_equal(netio_buffered_flush(&sender), 0); /* an empty one */
	assert_int_equal(stats().messages_lost, 0);
}

SEND_TEST(a_page_is_sent_by_timer_flush_and_watermark)
{
	begin_with(NULL, (struct netio_buffered_attr){.page_bytes = 4096,
						      .watermark_bytes = 1000,
						      .timeout_ns = TIMEOUT_NS});
	/* By the timer. */
	uint64_t began_ns = plx_now_ns();
	send_surely(64);
	TURN_UNTIL(heard.messages == 1);
	assert_in_range(plx_now_ns() - began_ns, TIMEOUT_NS - TIMEOUT_NS / 50, LIMIT_NS);
	assert_int_equal(stats().pages, 1);

	/* On request, before that. */
	send_surely(64);
	flush();

	/* At the watermark. */
	for (unsigned i = 0; i < 13; i++)
		send_surely(64);
	assert_int_equal(stats().pages, 2); /* 13 entries of 72 bytes are queued */
	send_surely(64);
	assert_int_equal(stats().pages, 3);
	TURN_UNTIL(heard.messages == sent);

	/* If a message does not fit, it starts another page; a long one needs none, or over verbs
	 * one, too. */
	send_surely(800);
	send_surely(1500);
	send_surely(1600);
	send_surely(3600);
	TURN_UNTIL(heard.messages == sent);
	assert_in_range(stats().pages, 5, 6);
	assert_int_equal(stats().messages, sent);
}

SEND_TEST(a_message_longer_than_a_page_is_reassembled)
{
	static const size_t around[] = {512, 1024, 1536, 2048, 5120};
	struct iovec pieces[3] = {{bytes, 1}, {bytes + 1, 2001}, {bytes + 2002, 998}};

	begin_with(&(struct netio_listen_attr){.buffer_bytes = 512},
		   (struct netio_buffered_attr){.page_bytes = 512, .page_count = 16});
	for (unsigned i = 0; i < PLX_ARRAY_LEN(around); i++) {
		for (size_t len = around[i] - 80; len < around[i] + 80; len++) {
			send_surely(len);
			if (len % 3 == 0)
				send_surely(8 + len % 50);
			if (len % 5 == 0)
				assert_int_equal(netio_buffered_flush(&sender), 0);
		}
	}
	flush();

	/* In pieces, with a tag, and kept while the next one arrives. */
	fill(bytes, sent++, 3000);
	heard.kept.more = 2;
	TURN_UNTIL(netio_buffered_sendv_tagged(&sender, 42, pieces, 3) == 0);
	send_surely(3001);
	send_surely(20);
	flush();
	assert_int_equal(heard.kept.msgs[0].len, 3000);
	assert_int_equal(heard.kept.msgs[0].tag, 42);
	assert_int_equal(((const uint8_t *)heard.kept.msgs[0].data)[2999], (uint8_t)(sent - 3));
	assert_int_equal(heard.tag, 0);
}

SEND_TEST(a_message_that_is_too_big_is_refused)
{
	assert_int_equal(netio_buffered_send(&sender, "x", 1), NETIO_STATUS_NOT_CONNECTED);
	begin_with(&(struct netio_listen_attr){.message_max_bytes = 20000},
		   (struct netio_buffered_attr){.page_bytes = 1024, .page_count = 4});
	assert_int_equal(netio_buffered_send(&sender, bytes, 20001), NETIO_STATUS_TOO_BIG);
	assert_int_equal(netio_buffered_send(&sender, bytes, SIZE_MAX), NETIO_STATUS_TOO_BIG);
	assert_fails(netio_buffered_send(&sender, bytes, 4273), NETIO_STATUS_TOO_BIG, "4 pages");
	send_surely(4096); /* all of them */
	send_surely(10);
	flush();
}

/* If the receiver keeps messages, the pages run out; one callback reports room. */
SEND_TEST(a_fast_sender_is_notified_of_room)
{
	uint64_t limit_ns = plx_now_ns() + LIMIT_NS;

	begin_with_pages(4);
	heard.kept.more = 500;
	while (send_next(500) == 0 || stats().pages_free) {
		turn_ms(1);
		assert_true(plx_now_ns() < limit_ns);
	}
	turn_ms(20);
	uint64_t stuck = sent;
	assert_int_equal(available, 0);
	assert_int_equal(send_next(500), NETIO_STATUS_AGAIN);
	release_all(&heard.kept);
	TURN_UNTIL(available == 1);
	turn_ms(20);
	assert_int_equal(available, 1);
	send_surely(500);
	assert_int_equal(netio_buffered_flush(&sender), 0);
	TURN_UNTIL(heard.messages == stuck + 1);
	assert_true(stats().again >= 2);
	assert_int_equal(stats().messages_lost, 0);
}

/* Two messages a page, all in one turn. Return: how many pages until there was no room. */
static unsigned send_until_again(void)
{
	unsigned count = 0;

	while (send_next(490) == 0 && send_next(490) == 0)
		count++;
	return count;
}

/* A sender that has filled all pages may fill a few at a time, until the link has been idle for a
 * while: then a burst gets all of them again. */
SEND_TEST(a_fast_sender_is_paced_until_it_pauses)
{
	begin_with_pages(64);
	assert_int_equal(send_until_again(), 64);
	for (unsigned i = 1; i <= 20; i++) {
		TURN_UNTIL(available == i);
		assert_in_range(stats().pages_free, 60, 64);
		assert_in_range(send_until_again(), 1, 4);
	}
	TURN_UNTIL(available == 21 && stats().pages_free == 64);
	turn_ms(20);
	assert_int_equal(send_until_again(), 64);
	TURN_UNTIL(available == 22);
	flush();
}

/* The page that a short message has started would not be sent for a long time. */
SEND_TEST(a_started_page_does_not_block_a_sender_that_needs_all)
{
	begin_with_timeout(4, PLX_NEVER);
	heard.kept.more = 500;
	TURN_UNTIL(send_next(900) == NETIO_STATUS_AGAIN);
	release_all(&heard.kept);
	TURN_UNTIL(stats().pages_free == 4 && available == 1);
	assert_int_equal(send_next(100), 0);
	assert_int_equal(send_next(4000), NETIO_STATUS_AGAIN);
	assert_int_equal(send_next(8), 0);
	TURN_UNTIL(available == 2);
	assert_int_equal(send_next(4000), 0);
	flush();
}

SEND_TEST(queued_messages_are_sent_before_it_closes)
{
	begin_with_pages(64);
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(send_next(100), 0);
	assert_int_equal(netio_buffered_disconnect(&sender), 0);
	assert_int_equal(send_next(100), NETIO_STATUS_NOT_CONNECTED);
	assert_int_equal(netio_buffered_flush(&sender), NETIO_STATUS_NOT_CONNECTED);
	TURN_UNTIL(closed == 1);
	assert_int_equal(heard.messages, 300);
	assert_int_equal(stats().messages_lost, 0);
	connect_buffered_to_listening(&sender);
	TURN_UNTIL(established == 2);
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(send_next(100), 0);
	end();
	TURN_UNTIL(heard.closed == 2);
	assert_int_equal(heard.messages, 600);
}

SEND_TEST(messages_lost_when_the_peer_dies_are_counted)
{
	begin_with_pages(16);
	heard.kept.more = 500;
	TURN_UNTIL(send_next(100) == NETIO_STATUS_AGAIN);
	cut_connection(&heard);
	TURN_UNTIL(closed == 1);
	assert_int_equal(available, 0);
	assert_true(stats().messages_lost > 0);
	assert_true(heard.messages + stats().messages_lost >= stats().messages);
	assert_int_equal(stats().pages_free, 16);
	/* It reconnects, and starts with a whole message. */
	release_all(&heard.kept);
	TURN_UNTIL(established == 2);
	heard.next = sent;
	send_surely(3000);
	assert_int_equal(netio_buffered_flush(&sender), 0);
	TURN_UNTIL(heard.len == 3000);
}

/* Of pages of 64 KiB, which need none; and two buffers of the peer. */
SEND_TEST(long_messages_lost_when_the_peer_dies_are_counted)
{
	begin_with(&(struct netio_listen_attr){.buffer_bytes = 1 << 20, .buffer_count = 2},
		   (struct netio_buffered_attr){.page_count = 16});
	heard.kept.more = 500;
	TURN_UNTIL(send_next(900000) == NETIO_STATUS_AGAIN);
	cut_connection(&heard);
	TURN_UNTIL(closed == 1); /* those in the pages, and that the link was sending */
	assert_true(stats().messages_lost > 0);
	assert_int_equal(stats().pages_free, 16);
}

PLX_TEST_MAIN()
