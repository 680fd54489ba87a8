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

/* No room ------------------------------------------------------------------------------------- */

/* Until none has room, and these numbers have arrived. */
static void push_until_again(size_t len, unsigned at_first, unsigned at_second)
{
	TURN_UNTIL(push_some(1, len) == NETIO_STATUS_AGAIN && pulls[0].messages == at_first &&
		   pulls[1].messages == at_second);
}

PUSH_TEST(a_fast_sender_is_notified_once_of_room)
{
	begin(2, 4, NULL);
	pulls[0].kept.more = pulls[1].kept.more = ALL;
	push_until_again(64, 4, 4);
	assert_int_equal(next, 8);
	turn_ms(5);
	available = 0; /* between the first ones */
	assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
	assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
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

/* It has credit, but its ring of shared memory is full. */
PUSH_TEST(a_link_without_room_makes_the_sender_wait)
{
	pull_listen(&pulls[0], &(struct netio_listen_attr){.provider = "shm", .buffer_count = 200});
	make_pusher(&(struct netio_push_attr){.connect.provider = "shm"});
	connect_pulls(1);
	assert_int_equal(push_some(200, 3500), NETIO_STATUS_AGAIN);
	assert_true(stats_of(0).credit > 0);
	TURN_UNTIL(available == 1);
	assert_int_equal(push_some(1, 3500), 0);
	TURN_UNTIL(pulls[0].messages == next);
}

PUSH_TEST(messages_that_cannot_be_pushed_are_refused)
{
	struct iovec pieces[NETIO_IOV_MAX + 1] = {{0}};

	assert_int_equal(netio_push(&pusher, "x", 1), NETIO_STATUS_NOT_CONNECTED); /* not set up */
	begin_two((struct netio_listen_attr){.message_max_bytes = 1000},
		  (struct netio_listen_attr){.message_max_bytes = 5000});
	assert_fails(push_number(0, 5001), NETIO_STATUS_TOO_BIG, "5000");
	assert_int_equal(netio_pushv_tagged(&pusher, 0, pieces, NETIO_IOV_MAX + 1), -EINVAL);

	/* A receiver that only accepts shorter messages is skipped. */
	assert_int_equal(push_some(6, 1001), 0);
	assert_int_equal(stats_of(1).handed, 6);
	assert_int_equal(push_some(6, 1000), 0); /* it then has more room */
	assert_int_equal(stats_of(0).handed, 6);

	/* Also if it is the one with room. */
	TURN_UNTIL(pulls[1].messages == 6);
	pulls[1].kept.more = ALL;
	push_until_again(1001, 6, 6 + 16);
	assert_int_equal(push_some(1, 1000), 0);
	assert_int_equal(stats_of(0).handed, 7);
	cut_connection(&pulls[1]);
	TURN_UNTIL(closed == 1);
	assert_fails(push_number(0, 1001), NETIO_STATUS_TOO_BIG, "1000");
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
	assert_int_equal(push_stats().handed_again, 4);
	assert_int_equal(push_stats().lost + push_stats().waiting, 0);
}

/* Each once, and before new ones. */
PUSH_TEST(unfinished_messages_wait_for_room)
{
	bool seen[64] = {false};
	unsigned before;

	begin(2, 4, NULL);
	pulls[0].kept.more = pulls[1].kept.more = ALL;
	push_until_again(64, 4, 4);
	turn_ms(5);
	netio_push_disconnect(&pusher, test_host(), pulls[0].port); /* permanently */
	cut_connection(&pulls[0]);
	TURN_UNTIL(closed == 1);
	assert_int_equal(push_stats().waiting, 4);
	available = 0;
	while (pulls[1].messages < 8) {
		assert_int_equal(available, 0);
		assert_int_equal(push_some(1, 64), NETIO_STATUS_AGAIN);
		before = pulls[1].messages;
		release_messages(&pulls[1].kept, 1);
		TURN_UNTIL(pulls[1].messages > before);
	}
	assert_int_equal(push_stats().waiting, 0);
	release_messages(&pulls[1].kept, 1);
	TURN_UNTIL(available == 1);
	assert_int_equal(push_some(1, 64), 0);
	TURN_UNTIL(pulls[1].messages == 9);
	assert_int_equal(pulls[1].numbers[8], 8);
	pulls[0].messages = 0;
	note_seen(seen);
	for (unsigned i = 0; i <= 8; i++)
		assert_true(seen[i]);
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
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(pulls[0].numbers[6 + i], i);
	TURN_UNTIL(push_some(1, 64) == 0);
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
