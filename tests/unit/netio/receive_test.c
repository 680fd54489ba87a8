/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket with misbehaving peers, and its queue. */
#include "socket_fixture.h"

#include "netio_wire.h"
#include "raw_link.h"

#include <sched.h>

static void connect_after_greeting(void)
{
	unsigned before = heard.established;

	raw_connect_to_listening(&good_sender);
	TURN_UNTIL(raw && heard.established == before + 1);
}

SOCKET_TEST(bad_greetings_are_refused)
{
	static const struct {
		struct wire_greeting greeting;
		const char *why;
	} bad[] = {
		{GREETING(WIRE_WELCOME, WIRE_SENDER, 4096), "is not NetIO's"},
		{GREETING_OF(WIRE_HELLO, WIRE_VERSION_MAX + 1, WIRE_VERSION_MAX + 2, WIRE_SENDER,
			     4096),
		 "no version"},
		{GREETING_OF(WIRE_HELLO, 0, 0, WIRE_SENDER, 4096), "no version"},
		{GREETING_OF(WIRE_HELLO, WIRE_VERSION_MAX + 1, WIRE_VERSION_MAX, WIRE_SENDER, 4096),
		 "no version"},
		{GREETING(WIRE_HELLO, 77, 4096), "another kind"},
		{GREETING(WIRE_HELLO, WIRE_SUBSCRIBER, 4096), "is a listening socket's"},
		{GREETING(WIRE_HELLO, WIRE_SENDER, 255), "out of range"},
		{GREETING(WIRE_HELLO, WIRE_SENDER, UINT64_MAX), "out of range"},
	};

	listen_with(NULL);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		raw_connect_to_listening(&bad[i].greeting);
		TURN_UNTIL(raw_closed == 1);
		assert_non_null(strstr(raw_why, bad[i].why));
	}
	raw_connect_to_listening(NULL); /* with an empty HELLO */
	TURN_UNTIL(raw_closed == 1);
	assert_non_null(strstr(raw_why, "refused the link: the HELLO is not NetIO's"));
	assert_null(raw);
	assert_in_range(log_count("did not complete the handshake: it was refused: the "), 1,
			1 + PLX_ARRAY_LEN(bad));
	assert_int_equal(heard.established, 0);
	assert_int_equal(heard.closed, 0);

	/* A later version that also supports this one. */
	raw_connect_to_listening(&(struct wire_greeting)GREETING_OF(
		WIRE_HELLO, WIRE_VERSION_MIN, WIRE_VERSION_MAX + 8, WIRE_SENDER, 4096));
	TURN_UNTIL(heard.established == 1 && raw);
	plx_link_close(raw);
	TURN_UNTIL(heard.closed == 1);
}

#define PAGE_HEAD            WIRE_PAGE, 0, 0, 0, 0, 0, 0, 0
#define ENTRY(length, flags) (length), 0, 0, 0, (flags), 0, 0, 0
#define WORD(value)          (value), 0, 0, 0, 0, 0, 0, 0

static const struct {
	uint8_t bytes[64];
	size_t len;
	const char *why;
} broken[] = {
	{.bytes = {0}, .len = 0, .why = "neither a message nor a page"},
	{.bytes = {9}, .len = 64, .why = "neither a message nor a page"},
	{.bytes = {WIRE_HELLO}, .len = 16, .why = "neither a message nor a page"},
	{.bytes = {WIRE_MESSAGE}, .len = 15, .why = "without a header"},
	{.bytes = {WIRE_MESSAGE, 1}, .len = 16, .why = "unknown flags"},
	{.bytes = {WIRE_PAGE}, .len = 1, .why = "without a header"},
	{.bytes = {PAGE_HEAD}, .len = 8, .why = "without entries"},
	{.bytes = {WIRE_PAGE, 0, 1}, .len = 16, .why = "a gap that makes no sense"},
	{.bytes = {WIRE_PAGE, 1, 0}, .len = 16, .why = "a gap that makes no sense"},
	{.bytes = {WIRE_PAGE, 1, 1}, .len = 16, .why = "a gap that makes no sense"},
	{.bytes = {WIRE_PAGE, 3, 1}, .len = 16, .why = "a gap that makes no sense"},
	{.bytes = {WIRE_PAGE, 2, 1}, .len = 8, .why = "a gap where nothing may be missed"},
	{.bytes = {PAGE_HEAD, 1, 0, 0, 0}, .len = 12, .why = "without a header"},
	{.bytes = {PAGE_HEAD, ENTRY(1, 0)}, .len = 16, .why = "longer than its page"},
	{.bytes = {PAGE_HEAD, ENTRY(9, 0), WORD(0)}, .len = 24, .why = "longer than its page"},
	{.bytes = {PAGE_HEAD, 255, 255, 255, 255, 0, 0, 0, 0, WORD(0)},
	 .len = 24,
	 .why = "longer than its page"},
	{.bytes = {PAGE_HEAD, ENTRY(8, 8), WORD(0)}, .len = 24, .why = "unknown flags"},
	{.bytes = {PAGE_HEAD, 8, 0, 0, 0, 0, 1, 0, 0, WORD(0)}, .len = 24, .why = "unknown flags"},
	{.bytes = {PAGE_HEAD, ENTRY(0, WIRE_TAG)}, .len = 16, .why = "longer than its page"},
	{.bytes = {PAGE_HEAD, ENTRY(8, 2), WORD(16), WORD(0)}, .len = 32, .why = "unknown flags"},
};

/* Each closes its connection with a reason, and no other connection. */
SOCKET_TEST(malformed_messages_end_their_connection)
{
	struct netio_send_socket sender;
	unsigned messages = 0;

	listen_with(NULL);
	assert_int_equal(netio_send_socket_init(&ctx.evloop, &sender, NULL), 0);
	connect_to_listening(&sender);
	TURN_UNTIL(heard.established == 1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(broken); i++) {
		connect_after_greeting();
		assert_int_equal(plx_link_send(raw, broken[i].bytes, broken[i].len), 0);
		TURN_UNTIL(heard.closed == i + 1 && raw_closed == 1);
		assert_int_equal(heard.reason, PLX_LINK_PROTOCOL);
		if (!strstr(heard.why, broken[i].why))
			fail_msg("%u: %s", i, heard.why);
		messages = heard.messages;
		assert_int_equal(netio_send(&sender, "x", 1), 0);
		TURN_UNTIL(heard.messages == messages + 1);
	}
	netio_send_socket_fini(&sender);
}

/* Alone and in a page: one byte more than the socket accepts. */
SOCKET_TEST(messages_longer_than_accepted_end_their_connection)
{
	enum { MAX = 256 };
	static const uint8_t single[WIRE_MESSAGE_BYTES + MAX + 1] = {WIRE_MESSAGE};
	static const uint8_t page[WIRE_PAGE_BYTES + 8 + MAX + 8] = {PAGE_HEAD, 1, 1, 0, 0, 0};
	static const struct iovec each[] = {{(void *)single, sizeof(single)},
					    {(void *)page, sizeof(page)}};

	listen_with(&(struct netio_listen_attr){.message_max_bytes = MAX});
	for (unsigned i = 0; i < PLX_ARRAY_LEN(each); i++) {
		connect_after_greeting();
		assert_works(plx_link_send(raw, single, sizeof(single) - 1));
		TURN_UNTIL(heard.messages == i + 1); /* the longest accepted message */
		assert_works(plx_link_send(raw, each[i].iov_base, each[i].iov_len));
		TURN_UNTIL(heard.closed == i + 1 && raw_closed == 1);
		assert_int_equal(heard.reason, PLX_LINK_PROTOCOL);
		assert_non_null(strstr(heard.why, "longer than it may be"));
	}
	assert_int_equal(heard.messages, 2);
}

enum { COUNT = 1500 };

/* Takes all in order, with pauses. If the threads share a CPU, each switch takes milliseconds, for
 * three messages. */
static void *take_slowly(void *arg)
{
	uint64_t limit_ns = plx_now_ns() + LIMIT_NS, number;
	unsigned wrong = 0, taken = 0;
	struct netio_msg msg;
	cpu_set_t every;

	/* Its creator is pinned, and would share its CPU. */
	memset(&every, 0xff, sizeof(every));
	sched_setaffinity(0, sizeof(every), &every);
	while (taken < COUNT && plx_now_ns() < limit_ns) {
		if (netio_recv(&heard.socket, &msg) != 0)
			continue;
		if (read_number(&msg, &number, &wrong))
			wrong += number != taken;
		taken++;
		netio_msg_release(&msg);
		if (taken % 30 == 0)
			usleep(100);
	}
	assert_int_equal(taken, COUNT);
	assert_int_equal(wrong, 0);
	return NULL;
}

/* Messages of all lengths: several per page, and several pages. */
static size_t length_of(uint64_t number)
{
	return number % 100 == 7 ? 5000 : 8 + number % 200;
}

static void connect_buffered(struct netio_buffered_send_socket *sender, uint32_t page_bytes,
			     uint32_t page_count)
{
	struct netio_buffered_attr attr = {.page_bytes = page_bytes, .page_count = page_count};

	assert_int_equal(netio_buffered_send_socket_init(&ctx.evloop, sender, &attr), 0);
	connect_buffered_to_listening(sender);
	TURN_UNTIL(heard.established == 1);
}

/* The queue holds three messages. */
SOCKET_TEST(a_full_queue_makes_the_sender_wait)
{
	struct netio_buffered_send_socket sender;
	static uint8_t bytes[5000];
	pthread_t thread;

	listen_with(&(struct netio_listen_attr){
		.buffer_bytes = 2048, .buffer_count = 4, .queue_count = 3});
	connect_buffered(&sender, 2048, 16);
	TURN_UNTIL(netio_buffered_flush(&sender) == 0);
	threads_start(&thread, 1, take_slowly, NULL, 1);
	for (uint64_t number = 0; number < COUNT; number++) {
		fill(bytes, number, length_of(number));
		TURN_UNTIL(netio_buffered_send(&sender, bytes, length_of(number)) == 0);
	}
	netio_buffered_send_socket_fini(&sender);
	TURN_UNTIL(heard.closed == 1);
	threads_join(&thread, 1);
	assert_int_equal(heard.messages, 0);
}

/* A peer that repeatedly connects, sends and leaves may occupy a limited number of links' buffers;
 * after the queue is emptied it may connect again. */
SOCKET_TEST(reconnecting_peers_are_bounded_by_the_queue)
{
	struct netio_connect_attr once = {.reconnect_min_ns = PLX_NEVER};
	struct netio_send_socket sender;
	unsigned round, tries;

	listen_with(&(struct netio_listen_attr){
		.buffer_bytes = 1024, .buffer_count = 2, .queue_count = 10000});
	for (round = 0; round < 2; round++) {
		heard.established = 0;
		for (tries = 0; tries < LISTENER_ENDED_MAX + 8; tries++) {
			unsigned before = heard.established;

			assert_int_equal(netio_send_socket_init(&ctx.evloop, &sender, &once), 0);
			connect_to_listening(&sender);
			turn_ms(before < LISTENER_ENDED_MAX ? 0 : 20);
			/* More than those that are copied. */
			for (unsigned i = 0;
			     before < LISTENER_ENDED_MAX && i <= LISTENER_COPIES_MAX; i++)
				TURN_UNTIL(netio_send(&sender, "x", 1) == 0);
			netio_send_socket_fini(&sender);
			if (before < LISTENER_ENDED_MAX)
				TURN_UNTIL(heard.closed ==
					   heard.established + round * LISTENER_ENDED_MAX);
		}
		assert_int_equal(heard.established, LISTENER_ENDED_MAX);
		take_queued();
	}
}

SOCKET_TEST(a_long_queue_holds_messages_of_many_peers_that_left)
{
	enum { PEERS = 200 };
	struct netio_send_socket sender;
	struct netio_msg msg;

	listen_with(&(struct netio_listen_attr){.queue_count = 100000});
	for (unsigned i = 0; i < PEERS; i++) {
		assert_works(netio_send_socket_init(&ctx.evloop, &sender, NULL));
		connect_to_listening(&sender);
		TURN_UNTIL(netio_send(&sender, &i, sizeof(i)) == 0);
		netio_send_socket_fini(&sender);
		TURN_UNTIL(heard.closed == i + 1);
	}
	for (unsigned i = 0; i < PEERS; i++) {
		assert_int_equal(netio_recv(&heard.socket, &msg), 0);
		assert_int_equal(msg.len, sizeof(i));
		assert_memory_equal(msg.data, &i, sizeof(i));
		netio_msg_release(&msg);
	}
	assert_int_equal(netio_recv(&heard.socket, &msg), -EAGAIN);
}

SOCKET_TEST(queued_messages_may_outlive_their_connection)
{
	struct netio_msg msg, more;
	struct netio_send_socket sender;

	listen_with(&(struct netio_listen_attr){.queue_count = 2});
	assert_int_equal(netio_recv(&heard.socket, &msg), -EAGAIN);
	assert_int_equal(netio_send_socket_init(&ctx.evloop, &sender, NULL), 0);
	connect_to_listening(&sender);
	TURN_UNTIL(netio_send(&sender, "one", 3) == 0);
	assert_int_equal(netio_send(&sender, "two", 3), 0);
	assert_int_equal(netio_send(&sender, "three", 5), 0); /* no room */
	turn_ms(20);
	netio_send_socket_fini(&sender);
	turn_ms(20);
	assert_int_equal(netio_recv(&heard.socket, &msg), 0);
	assert_memory_equal(msg.data, "one", 3);
	TURN_UNTIL(heard.closed == 1);
	assert_int_equal(netio_recv(&heard.socket, &more), 0);
	assert_memory_equal(more.data, "two", 3);
	assert_int_equal(more.source, 1);
	netio_msg_release(&more);
	/* The socket ends with one message in the queue and one handed out. */
	netio_listen_socket_fini(&heard.socket);
	turn_ms(5);
	assert_memory_equal(msg.data, "one", 3);
	netio_msg_release(&msg);
	assert_int_equal(netio_recv(&heard.socket, &more), -EINVAL);
}

PLX_TEST_MAIN()
