/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receiver a push socket chooses, and what happens to messages when it dies. push_life_test.c
 * tests its life. */
#include "push_fixture.h"

#define ALL 1000

static void begin_two(struct netio_listen_attr first, struct netio_listen_attr second)
{
	pull_listen(&pulls[0], &first);
	pull_listen(&pulls[1], &second);
	make_pusher(NULL);
	connect_pulls(2);
}

/* Sharing ------------------------------------------------------------------------------------- */

PUSH_TEST(the_receiver_with_the_most_credit_gets_a_message)
{
	begin_two((struct netio_listen_attr){.buffer_count = 4},
		  (struct netio_listen_attr){.buffer_count = 9});
	uint32_t less = stats_of(0).credit;
	uint32_t more = stats_of(1).credit;
	assert_true(less > 0 && more > less);
	assert_int_equal(push_some(more - less, 64), 0);
	assert_int_equal(stats_of(0).handed, 0);
	assert_int_equal(stats_of(1).handed, more - less);
	/* Their credit is now equal. */
	assert_int_equal(push_some(2, 64), 0);
	assert_int_equal(stats_of(0).handed, 1);
	assert_int_equal(stats_of(1).handed, more - less + 1);
	TURN_UNTIL(pulls[0].messages + pulls[1].messages == next);
}

PUSH_TEST(equal_receivers_take_turns)
{
	begin(3, 16, NULL);
	assert_int_equal(push_some(30, 64), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(stats_of(i).handed, 10);
		assert_int_equal(stats_of(i).under_way, 10);
		TURN_UNTIL(pulls[i].messages == 10);
		for (unsigned j = 0; j < 10; j++)
			assert_int_equal(pulls[i].numbers[j], 3 * j + i);
	}
	while (next < 3000) {
		push_some(7, 64);
		plx_loop_turn();
	}
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(stats_of(i).handed, 900, 1110);
	assert_int_equal(push_stats().messages, next);
}

/* Messages that it keeps hold back its credit, so it gets no more than it has room for. */
PUSH_TEST(a_busy_receiver_gets_less)
{
	begin(2, 4, NULL);
	pulls[0].kept.more = ALL;
	while (next < 500) {
		push_some(1, 64);
		plx_loop_turn();
	}
	TURN_UNTIL(pulls[0].messages + pulls[1].messages == 500);
	/* Nearly every message exceeds its credit. */
	assert_in_range(pulls[0].messages, 3, 4);
	assert_in_range(stats_of(0).credit, 0, 1);
	assert_int_equal(stats_of(0).under_way, pulls[0].messages);
	assert_true(stats_of(0).finished == 0 && stats_of(1).finished > 490);
	release_all(&pulls[0].kept);
	TURN_UNTIL(stats_of(0).finished == pulls[0].messages);
	assert_true(stats_of(0).credit >= 3);
}

PUSH_TEST(one_free_receiver_of_many_is_found)
{
	const struct netio_listen_attr small = {.buffer_bytes = 256, .buffer_count = 2};
	static struct netio_listen_socket one;

	if (getenv("PLX_TEST_HOST"))
		skip(); /* only loopback has many names */
	/* The same receiver under many names. */
	assert_works(netio_listen_socket_init(&ctx.evloop, &one, &small));
	assert_int_equal(netio_listen(&one, "*", 0), 0);
	unsigned port = netio_listen_socket_port(&one);
	make_pusher(NULL);
	for (unsigned i = 1; i <= 64; i++) {
		char host[32];

		snprintf(host, sizeof(host), "127.0.0.%u", i);
		assert_int_equal(netio_push_connect(&pusher, host, port), 0);
	}
	TURN_UNTIL(established == 64);
	assert_int_equal(push_stats().connected, 64);
	assert_int_equal(push_some(64, 64), 0); /* one each */
	assert_int_equal(push_stats().under_way, 64);
	while (next < 2000) {
		push_some(64, 64);
		plx_loop_turn();
	}
	TURN_UNTIL(push_stats().finished > 1800);
	netio_push_socket_fini(&pusher);
	netio_listen_socket_fini(&one);
}

/* No room ------------------------------------------------------------------------------------- */

PUSH_TEST(a_fast_sender_is_notified_once_of_room)
{
	int rc = 0;

	begin(2, 4, NULL);
	pulls[0].kept.more = pulls[1].kept.more = ALL;
	while (rc == 0 || next < 8) {
		rc = push_some(1, 64);
		plx_loop_turn();
	}
	assert_int_equal(rc, NETIO_STATUS_AGAIN);
	assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
	assert_int_equal(next, 8);
	TURN_UNTIL(pulls[0].messages == 4 && pulls[1].messages == 4);
	turn_ms(5);
	available = 0; /* between the first ones */
	assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
	assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
	assert_true(push_stats().again >= 4);
	turn_ms(5);
	assert_int_equal(available, 0);
	release_messages(&pulls[1].kept, 2);
	TURN_UNTIL(available == 1);
	assert_int_equal(push_some(1, 64), 0);
	TURN_UNTIL(pulls[1].messages == 5);
	release_messages(&pulls[1].kept, 1);
	turn_ms(5);
	assert_int_equal(available, 1);
}

/* Longer messages occupy operations of this side until the transport has them. There are fewer
 * operations than some receivers have buffers, so other receivers get messages, and pushing
 * continues automatically. */
PUSH_TEST(a_sender_without_free_operations_resumes_automatically)
{
	begin(2, 200, NULL);
	while (push_some(1, 4000) == 0)
		assert_true(next < 200);
	assert_true(next > 40 && stats_of(0).credit > 150 && stats_of(1).credit > 150);
	assert_true(stats_of(0).handed > 20 && stats_of(1).handed > 20);
	assert_int_equal(push_stats().again, 1);
	TURN_UNTIL(available == 1);
	assert_int_equal(push_some(1, 4000), 0);
	TURN_UNTIL(pulls[0].messages + pulls[1].messages == next);
}

PUSH_TEST(a_new_receiver_makes_room)
{
	begin(1, 2, NULL);
	pull_listen(&pulls[1], NULL);
	pulls[0].kept.more = ALL;
	TURN_UNTIL(push_some(1, 64) == NETIO_STATUS_AGAIN && pulls[0].messages == 2);
	turn_ms(5);
	available = 0;
	assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
	connect_to(&pulls[1]);
	TURN_UNTIL(available == 1);
	assert_int_equal(push_some(1, 64), 0);
	TURN_UNTIL(pulls[1].messages == 1);
}

PUSH_TEST(messages_that_cannot_be_pushed_are_refused)
{
	struct iovec pieces[NETIO_IOV_MAX + 1] = {{0}};

	assert_int_equal(netio_push(&pusher, "x", 1), NETIO_STATUS_NOT_CONNECTED); /* not set up */
	pull_listen(&pulls[0], &(struct netio_listen_attr){.message_max_bytes = 1000});
	pull_listen(&pulls[1], &(struct netio_listen_attr){.message_max_bytes = 5000});
	make_pusher(NULL);
	assert_int_equal(netio_push(&pusher, "x", 1), NETIO_STATUS_NOT_CONNECTED);
	connect_pulls(2);
	assert_fails(push_number(0, 5001), NETIO_STATUS_TOO_BIG, "5000");
	assert_int_equal(netio_pushv_tagged(&pusher, 0, pieces, NETIO_IOV_MAX + 1), -EINVAL);
	assert_int_equal(push_stats().messages, 0);

	/* A receiver that only accepts shorter messages is skipped. */
	assert_int_equal(push_some(6, 1001), 0);
	assert_int_equal(stats_of(1).handed, 6);
	assert_int_equal(push_some(6, 1000), 0); /* it then has more room */
	assert_int_equal(stats_of(0).handed, 6);
	TURN_UNTIL(pulls[0].messages == 6 && pulls[1].messages == 6);

	/* Also if it is the one with room. */
	pulls[1].kept.more = ALL;
	TURN_UNTIL(push_some(1, 1001) == NETIO_STATUS_AGAIN && pulls[1].messages == 6 + 16);
	assert_int_equal(push_some(1, 1000), 0);
	assert_int_equal(stats_of(0).handed, 7);

	cut_connection(&pulls[1]);
	TURN_UNTIL(closed == 1);
	assert_fails(push_number(0, 1001), NETIO_STATUS_TOO_BIG, "1000");
}

PUSH_TEST(pieces_are_pushed_as_one_message)
{
	static const size_t lengths[] = {8, 16, 495, 496, 497, 4096, 65536, 65537, 1 << 20};
	uint64_t number = 7;
	struct iovec pieces[3] = {{&number, 8}, {NULL, 0}, {bytes, 5}};

	begin(1, 16, NULL);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		assert_int_equal(push_some(1, lengths[i]), 0);
		TURN_UNTIL(pulls[0].messages == i + 1);
		assert_int_equal(pulls[0].numbers[i], i);
	}
	memset(bytes, 7, 5);
	assert_int_equal(netio_pushv_tagged(&pusher, 7, pieces, 3), 0);
	TURN_UNTIL(pulls[0].messages == PLX_ARRAY_LEN(lengths) + 1);
	assert_int_equal(pulls[0].numbers[PLX_ARRAY_LEN(lengths)], 7);
}

PUSH_TEST(a_suspect_receiver_is_skipped)
{
	begin(2, 16, NULL);
	make_suspect(receivers[0], true);
	assert_int_equal(suspects, 1);
	assert_int_equal(push_some(16, 64), 0);
	assert_int_equal(stats_of(0).handed, 0);
	/* Also if the other one has no room. */
	assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
	make_suspect(receivers[0], false);
	assert_int_equal(available, 1);
	assert_int_equal(push_some(1, 64), 0);
	assert_int_equal(stats_of(0).handed, 1);

	/* If all are suspect, all are equal. */
	TURN_UNTIL(stats_of(1).credit > 1);
	make_suspect(receivers[0], true);
	make_suspect(receivers[1], true);
	assert_int_equal(push_some(2, 64), 0);
	TURN_UNTIL(pulls[0].messages + pulls[1].messages == next);
	cut_connection(&pulls[1]);
	TURN_UNTIL(closed == 1);
	assert_int_equal(push_some(1, 64), 0);
	TURN_UNTIL(established == 3);

	/* The one that is heard again is no longer suspect. */
	uint64_t before = stats_of(0).handed;
	assert_int_equal(push_some(10, 64), 0);
	assert_int_equal(stats_of(0).handed, before);
}

/* Death --------------------------------------------------------------------------------------- */

/* With 4 of 6 messages unfinished. */
static void let_the_first_die(void)
{
	pulls[0].kept.more = ALL;
	assert_int_equal(push_some(12, 64), 0);
	TURN_UNTIL(pulls[0].messages == 6 && pulls[1].messages == 6);
	release_messages(&pulls[0].kept, 2);
	TURN_UNTIL(stats_of(0).under_way == 4);
	cut_connection(&pulls[0]);
}

/* Exactly those, in order. */
PUSH_TEST(unfinished_messages_of_a_failed_receiver_go_to_others)
{
	static const uint64_t expected[] = {4, 6, 8, 10};

	begin(2, 7, NULL);
	let_the_first_die();
	TURN_UNTIL(pulls[1].messages == 10);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pulls[1].numbers[6 + i], expected[i]);
	TURN_UNTIL(closed == 1);
	assert_int_equal(reason, PLX_LINK_PEER_DOWN);
	assert_int_equal(waiting_at_close, 0); /* they were handed over before that was reported */
	turn_ms(5);
	assert_int_equal(pulls[1].messages, 10);
	assert_int_equal(stats_of(0).taken_away, 4);
	assert_int_equal(push_stats().handed_again, 4);
	assert_int_equal(push_stats().lost + push_stats().waiting, 0);
	assert_int_equal(push_stats().messages, 12);
}

/* Queued messages precede new ones. */
PUSH_TEST(unfinished_messages_wait_for_room)
{
	uint64_t number = 0;
	unsigned before;

	begin(2, 4, NULL);
	pulls[0].kept.more = pulls[1].kept.more = ALL;
	TURN_UNTIL(push_some(1, 64) == NETIO_STATUS_AGAIN && pulls[0].messages == 4 &&
		   pulls[1].messages == 4);
	assert_int_equal(next, 8);
	turn_ms(5);
	pulls[0].socket.cb_connection_established = NULL;
	netio_push_disconnect(&pusher, test_host(), pulls[0].port); /* permanently */
	cut_connection(&pulls[0]);
	TURN_UNTIL(closed == 1);
	assert_int_equal(push_stats().waiting, 4);
	assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
	available = 0;
	while (pulls[1].messages < 8) {
		assert_int_equal(available, 0);
		assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
		before = pulls[1].messages;
		release_messages(&pulls[1].kept, 1);
		TURN_UNTIL(pulls[1].messages > before);
	}
	assert_int_equal(push_stats().waiting, 0);
	for (unsigned i = 5; i < 8; i++)
		assert_true(pulls[1].numbers[i] > pulls[1].numbers[i - 1]);
	release_messages(&pulls[1].kept, 1);
	TURN_UNTIL(available == 1);
	assert_int_equal(push_some(1, 64), 0);
	TURN_UNTIL(pulls[1].messages == 9);
	assert_int_equal(pulls[1].numbers[8], 8);
	for (unsigned i = 0; i < 8; i++)
		number += pulls[1].numbers[i];
	assert_int_equal(number, 28); /* each once */
}

/* Also if they wait for a receiver that accepts them while another one has room. */
PUSH_TEST(new_messages_do_not_overtake_unfinished_ones)
{
	pull_listen(&pulls[0], &(struct netio_listen_attr){.buffer_count = 7});
	pull_listen(&pulls[1], &(struct netio_listen_attr){.buffer_count = 4});
	pull_listen(&pulls[2], &(struct netio_listen_attr){.message_max_bytes = 1000});
	make_pusher(NULL);
	connect_pulls(2);
	pulls[0].kept.more = pulls[1].kept.more = ALL;
	TURN_UNTIL(push_some(1, 2000) == NETIO_STATUS_AGAIN && pulls[0].messages == 7 &&
		   pulls[1].messages == 4);
	connect_to(&pulls[2]);
	TURN_UNTIL(established == 3);
	assert_int_equal(push_some(1, 1000), 0);
	cut_connection(&pulls[1]);
	TURN_UNTIL(closed == 1 && waiting_at_close == 4);
	netio_push_disconnect(&pusher, test_host(), pulls[1].port);
	available = 0;
	assert_int_equal(push_some(1, 1000), NETIO_STATUS_AGAIN);
	release_messages(&pulls[0].kept, 7);
	TURN_UNTIL(available == 1 && push_stats().waiting == 0);
	assert_int_equal(push_some(1, 1000), 0);
}

PUSH_TEST(at_most_once_unfinished_messages_are_lost_and_counted)
{
	begin(2, 7, &(struct netio_push_attr){.promise = NETIO_PUSH_AT_MOST_ONCE});
	let_the_first_die();
	TURN_UNTIL(closed == 1);
	turn_ms(5);
	assert_int_equal(pulls[1].messages, 6);
	assert_int_equal(push_stats().lost, 4);
	assert_int_equal(stats_of(0).taken_away, 4);
	assert_int_equal(push_stats().handed_again + push_stats().waiting, 0);
}

/* Messages of several frames, one of which is in flight when the receiver dies. */
PUSH_TEST(unfinished_long_messages_go_to_other_receivers)
{
	const struct netio_listen_attr attr = {.buffer_bytes = 1024, .buffer_count = 4};
	bool seen[64] = {false};

	begin_two(attr, attr);
	pulls[0].kept.more = pulls[1].kept.more = ALL;
	TURN_UNTIL(push_some(1, 2500) == NETIO_STATUS_AGAIN && pulls[0].kept.count >= 3 &&
		   pulls[1].kept.count >= 3);
	release_messages(&pulls[0].kept, 1);
	turn_ms(5);
	pulls[1].kept.more = 0;
	cut_connection(&pulls[0]);
	release_all(&pulls[1].kept);
	TURN_UNTIL(closed == 1 && push_stats().waiting == 0);
	turn_ms(50);
	unsigned got = pulls[0].messages;
	note_seen(seen);
	for (unsigned i = 0; i < next; i++)
		assert_true(seen[i]);
	/* A finished message is not resent for each unfinished or partial one. */
	assert_in_range(stats_of(0).taken_away, got - 1, got + 1);
}

/* All was sent, and the receiver closed in order: messages not seen or finished are not lost. */
PUSH_TEST(unfinished_messages_of_a_closed_receiver_go_to_others)
{
	begin(2, 7, NULL);
	pulls[0].kept.more = ALL;
	assert_int_equal(push_some(12, 64), 0);
	TURN_UNTIL(pulls[0].messages == 6 && pulls[1].messages == 6);
	release_messages(&pulls[0].kept, 2);
	TURN_UNTIL(stats_of(0).credit >= 2 && stats_of(1).under_way <= 1);
	netio_listen_socket_fini(&pulls[0].socket);
	assert_int_equal(push_some(6, 64), 0); /* some go to it, and are never seen */
	assert_true(stats_of(0).handed > 6);
	TURN_UNTIL(closed == 1);
	assert_int_equal(reason, PLX_LINK_CLOSED);
	TURN_UNTIL(pulls[1].messages == 6 + 4 + 6);
	turn_ms(5);
	assert_int_equal(pulls[1].messages, 6 + 4 + 6);
}

/* Nobody is left ------------------------------------------------------------------------------ */

PUSH_TEST(messages_wait_for_a_receiver)
{
	begin(1, 7, NULL);
	pulls[0].kept.more = 6;
	assert_int_equal(push_some(6, 64), 0);
	TURN_UNTIL(pulls[0].messages == 6);
	netio_listen_socket_fini(&pulls[0].socket);
	TURN_UNTIL(closed == 1);
	assert_int_equal(push_stats().waiting, 6);
	assert_int_equal(push_stats().connected, 0);
	assert_int_equal(push_stats().receivers, 1);
	assert_fails(push_some(1, 64), NETIO_STATUS_NOT_CONNECTED, "not connected");
	TURN_UNTIL(refused > 0);

	/* It reconnects and takes part again. */
	release_messages(&pulls[0].kept, 6);
	pull_listen(&pulls[0], &(struct netio_listen_attr){.buffer_count = 4});
	TURN_UNTIL(pulls[0].messages == 12);
	assert_int_equal(established, 2);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(pulls[0].numbers[6 + i], i);
	TURN_UNTIL(push_some(1, 64) == 0);
	TURN_UNTIL(pulls[0].messages == 13);
	assert_int_equal(pulls[0].numbers[12], 6);
}

/* A message that only the dead receiver accepted waits, without blocking others. */
PUSH_TEST(a_message_too_long_for_the_others_blocks_no_message)
{
	begin_two((struct netio_listen_attr){.message_max_bytes = 5000},
		  (struct netio_listen_attr){.message_max_bytes = 1000});
	pulls[0].kept.more = ALL;
	assert_int_equal(push_some(3, 2000), 0);
	assert_int_equal(push_some(20, 1000), 0);
	TURN_UNTIL(pulls[0].messages + pulls[1].messages == 23);
	TURN_UNTIL(stats_of(1).under_way <= 3);
	netio_listen_socket_fini(&pulls[0].socket);
	release_all(&pulls[0].kept);
	pulls[0].kept.more = 0;
	TURN_UNTIL(closed == 1 && push_stats().waiting == 3);
	assert_int_equal(push_some(1, 1000), 0);
	TURN_UNTIL(pulls[1].numbers[pulls[1].messages - 1] == 23);
	pulls[0].messages = 0;
	pull_listen(&pulls[0], NULL);
	TURN_UNTIL(pulls[0].messages == 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pulls[0].numbers[i], i);
	assert_int_equal(push_stats().waiting, 0);
}

PUSH_TEST(an_answer_names_its_receiver)
{
	begin(2, 4, NULL);
	assert_int_equal(netio_reply(pulls[1].from, "pong", 4), 0);
	TURN_UNTIL(answers == 1);
	assert_int_equal(netio_reply(pulls[0].from, "pong", 4), 0);
	TURN_UNTIL(answers == 2);
}

PLX_TEST_MAIN()
