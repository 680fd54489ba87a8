/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a push socket: receivers that connect and leave, and its end, at any point. */
#include "dice.h"
#include "push_fixture.h"

PUSH_TEST(bad_attributes_are_refused)
{
	const struct netio_push_attr no_promise = {.promise = NETIO_PUSH_AT_MOST_ONCE + 1};
	struct netio_push_socket unset = {0};
	char longest[PLX_ADDRESS_MAX + 1];

	assert_int_equal(netio_push_connect(&unset, "127.0.0.1", 1), -EINVAL);
	assert_int_equal(netio_push_disconnect(&unset, "127.0.0.1", 1), -EINVAL);
	netio_push_socket_fini(&unset);
	assert_int_equal(netio_push_socket_init(NULL, &pusher, NULL), -EINVAL);
	assert_fails(netio_push_socket_init(&ctx.evloop, &pusher, &no_promise), -EINVAL,
		     "promise 2");
	make_pusher(NULL);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(netio_push_connect(&pusher, NULL, 1), -EINVAL);
	assert_int_equal(netio_push_connect(&pusher, "", 1), -EINVAL);
	assert_int_equal(netio_push_connect(&pusher, longest, 1), -EINVAL);
	assert_int_equal(netio_push_connect(&pusher, "127.0.0.1", 65536), -EINVAL);
	assert_int_equal(push_stats().receivers, 0); /* none of these */
	assert_int_equal(netio_push_disconnect(&pusher, "127.0.0.1", 1), -ENOENT);
	assert_int_equal(netio_push_disconnect(&pusher, NULL, 1), -EINVAL);
}

PUSH_TEST(a_disconnected_receiver_loses_nothing)
{
	begin(2, 16, NULL);
	assert_int_equal(push_some(20, 64), 0);
	assert_int_equal(netio_push_disconnect(&pusher, "127.0.0.1", pulls[0].port), 0);
	assert_int_equal(netio_push_connect(&pusher, "127.0.0.1", pulls[0].port), -EALREADY);
	assert_int_equal(push_some(3, 64), 0);
	TURN_UNTIL(closed == 1 && pulls[0].closed == 1);
	assert_int_equal(reason, PLX_LINK_CLOSED);
	assert_int_equal(push_stats().receivers, 1);
	TURN_UNTIL(pulls[1].messages == 13);
	turn_ms(50);
	assert_int_equal(pulls[0].messages, 10);
	assert_int_equal(push_stats().handed_again, 0);
	assert_int_equal(netio_push_disconnect(&pusher, "127.0.0.1", pulls[0].port), -ENOENT);
	connect_to(&pulls[0]);

	/* Also before it is open, and between attempts. */
	assert_int_equal(netio_push_disconnect(&pusher, "127.0.0.1", pulls[0].port), 0);
	TURN_UNTIL(closed == 2);
	assert_int_equal(netio_push_connect(&pusher, "127.0.0.1", 1), 0);
	assert_int_equal(netio_push_connect(&pusher, "127.0.0.1", 1), -EEXIST);
	TURN_UNTIL(refused > 1);
	assert_int_equal(reason, PLX_LINK_REFUSED);
	assert_int_equal(netio_push_disconnect(&pusher, "127.0.0.1", 1), 0);
	TURN_UNTIL(closed == 3);
	assert_int_equal(push_stats().receivers, 1);
}

/* Each keeps 6 messages: unfinished messages of the first wait, except one that the second has room
 * for. Then the second is disconnected. */
static void let_one_of_two_die(void)
{
	pulls[0].kept.more = pulls[1].kept.more = 1000;
	assert_int_equal(push_some(12, 64), 0);
	TURN_UNTIL(pulls[0].messages == 6 && pulls[1].messages == 6);
	netio_listen_socket_fini(&pulls[0].socket);
	TURN_UNTIL(closed == 1 && push_stats().waiting == 5);
	assert_int_equal(netio_push_disconnect(&pusher, "127.0.0.1", pulls[1].port), 0);
}

PUSH_TEST(the_last_receiver_gets_queued_messages)
{
	begin(2, 7, NULL);
	let_one_of_two_die();
	assert_int_equal(push_some(1, 64), NETIO_STATUS_NOT_CONNECTED);
	assert_int_equal(push_stats().connected, 0);
	turn_ms(20);
	assert_int_equal(closed, 1);
	release_all(&pulls[1].kept);
	TURN_UNTIL(closed == 2);
	assert_int_equal(reason, PLX_LINK_CLOSED);
	assert_int_equal(pulls[1].messages, 12);
	assert_int_equal(push_stats().waiting, 0);
}

/* A receiver that takes nothing is given up, and they wait for the next. */
PUSH_TEST(a_last_receiver_that_takes_nothing_is_abandoned)
{
	begin(2, 7, NULL);
	let_one_of_two_die();
	TURN_UNTIL(closed == 2);
	assert_int_equal(reason, PLX_LINK_TIMEOUT);
	assert_int_equal(push_stats().waiting, 12);
	log_capture();
	netio_push_socket_fini(&pusher);
	assert_int_equal(log_count("12 messages"), 1);
}

PUSH_TEST(a_socket_may_end_after_its_loop)
{
	struct netio_eventloop loop;

	pull_listen(&pulls[0], NULL);
	assert_int_equal(netio_eventloop_init(&loop), 0);
	assert_int_equal(netio_push_socket_init(&loop, &pusher, NULL), 0);
	connect_to(&pulls[0]);
	TURN_UNTIL(pulls[0].established == 1);
	TURN_UNTIL(push_number(1, 64) == 0);
	assert_int_equal(netio_eventloop_fini(&loop), 0);
	assert_null(pusher.core);
	assert_int_equal(pulls[0].messages, 1);
	assert_int_equal(netio_push(&pusher, "x", 1), NETIO_STATUS_NOT_CONNECTED);
}

PUSH_TEST(fini_loses_nothing)
{
	begin(2, 16, NULL);
	assert_int_equal(push_some(20, 3000), 0);
	netio_push_socket_fini(&pusher);
	TURN_UNTIL(pulls[0].closed == 1 && pulls[1].closed == 1);
	assert_int_equal(pulls[0].messages + pulls[1].messages, 20);
	assert_int_equal(closed, 0);
}

static void end_it(struct netio_push_receiver *receiver, bool suspect)
{
	suspects++;
	netio_push_socket_fini(receiver->push_socket);
}

PUSH_TEST(a_push_socket_may_end_when_a_receiver_is_suspect)
{
	begin(1, 4, NULL);
	pusher.cb_connection_suspect = end_it;
	assert_int_equal(push_some(2, 64), 0);
	make_suspect(receivers[0], true);
	assert_int_equal(suspects, 1);
	TURN_UNTIL(pulls[0].closed == 1);
	assert_int_equal(pulls[0].messages, 2);
}

struct storm {
	uint64_t dice;
	unsigned deaths;
	bool seen[100000];
};

/* One turn, after something that dice choose. */
static void storm_turn(struct storm *storm)
{
	uint64_t random = dice_next(&storm->dice);
	struct heard *pull = &pulls[random % 3];

	switch (random >> 32 & 255) {
	case 0:
		if (pull->from) {
			cut_connection(pull);
			storm->deaths++;
		}
		break;
	case 1:
		if (pull->from)
			netio_recv_socket_close(pull->from);
		break;
	case 2 ... 20:
		pull->kept.more = 4;
		break;
	case 21 ... 50:
		release_all(&pull->kept);
		break;
	default:
		assert_true(next < sizeof(storm->seen) - 10);
		push_some(random >> 40 & 7, random >> 50 & 15 ? 64 : 3000);
	}
	plx_loop_turn();
	note_seen(storm->seen);
}

PUSH_TEST(no_message_is_lost_while_receivers_reconnect)
{
	static struct storm storm;

	storm = (struct storm){0};
	begin(3, 8, &(struct netio_push_attr){.connect.reconnect_max_ns = 10 * PLX_NS_PER_MS});
	wait_doing(storm.deaths == 30, storm_turn(&storm));
	for (unsigned i = 0; i < 3; i++)
		release_all(&pulls[i].kept);
	TURN_UNTIL(push_stats().connected > 0 && push_stats().waiting == 0);
	turn_ms(300);
	note_seen(storm.seen);
	for (unsigned i = 0; i < next; i++)
		assert_true(storm.seen[i]);
	assert_int_equal(push_stats().messages, next);
	assert_int_equal(push_stats().finished + push_stats().under_way, next);
}

PLX_TEST_MAIN()
