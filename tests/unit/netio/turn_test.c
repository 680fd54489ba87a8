/* SPDX-License-Identifier: BSD-3-Clause */
/* Receivers whose turns have time for one message: they keep their place in a page. */
#include "publish_fixture.h"

#include "netio_wire.h"
#include "raw_link.h"

#define COUNT 60

static unsigned turns, last_turn, crowded;

static int count_turn(void *arg, uint64_t now_ns)
{
	turns++;
	return 0;
}

static struct plx_poller *turn_counter;

static int up(void **state)
{
	netio_up_with("--turn-max 1");
	turns = crowded = 0;
	last_turn = UINT32_MAX;
	assert_works(plx_poller_add("turns", count_turn, NULL, &turn_counter));
	return 0;
}

static int down(void **state)
{
	unsigned wrong = hear_no_more(&heard) + subs_down();

	netio_publish_socket_fini(&publisher);
	plx_poller_remove(turn_counter);
	return netio_down(state) || wrong;
}

#define TEST(name) PLX_TEST_WITH(name, up, down)

static void note_turn(void)
{
	crowded += turns == last_turn;
	last_turn = turns;
}

static void hear_in_turn(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	note_turn();
	hear_message(socket, msg);
}

static void begin_to_listen(void)
{
	listen_with(NULL);
	heard.socket.cb_msg_received = hear_in_turn;
}

static void connect_buffered(struct netio_buffered_send_socket *sender)
{
	unsigned before = heard.established;

	assert_works(netio_buffered_send_socket_init(&ctx.evloop, sender, NULL));
	connect_buffered_to_listening(sender);
	TURN_UNTIL(heard.established == before + 1 && netio_buffered_flush(sender) == 0);
}

/* COUNT messages from that number on, which leave in one page. */
static void send_page_from(struct netio_buffered_send_socket *sender, uint64_t first)
{
	uint8_t message[24];

	for (uint64_t i = first; i < first + COUNT; i++) {
		fill(message, i, sizeof(message));
		assert_works(netio_buffered_send(sender, message, sizeof(message)));
	}
	assert_works(netio_buffered_flush(sender));
}

TEST(a_page_is_delivered_one_message_a_turn)
{
	struct netio_buffered_send_socket sender;

	begin_to_listen();
	connect_buffered(&sender);
	for (unsigned i = 0; i < 3; i++)
		send_page_from(&sender, i * COUNT);
	TURN_UNTIL(heard.messages == 3 * COUNT);
	assert_int_equal(crowded, 0);
	netio_buffered_send_socket_fini(&sender);
	TURN_UNTIL(heard.closed == 1);
	assert_int_equal(heard.reason, PLX_LINK_CLOSED);
}

/* Ends ----------------------------------------------------------------------------------------- */

static uint8_t page[WIRE_PAGE_BYTES + COUNT * 16];

static void begin_raw(void)
{
	memset(page, 0, sizeof(page));
	page[0] = WIRE_PAGE;
	for (unsigned i = 0; i < COUNT; i++) {
		page[WIRE_PAGE_BYTES + 16 * i] = 8; /* bytes */
		page[WIRE_PAGE_BYTES + 16 * i + 8] = (uint8_t)i;
	}
	begin_to_listen();
	raw_connect_to_listening(&good_sender);
	TURN_UNTIL(raw && heard.established == 1);
	assert_works(plx_link_send(raw, page, sizeof(page)));
	TURN_UNTIL(heard.messages == 1);
}

TEST(a_connection_that_breaks_delivers_its_page_first)
{
	begin_raw();
	plx_link_abort(raw);
	TURN_UNTIL(heard.closed == 1);
	assert_int_equal(heard.messages, COUNT);
	assert_int_equal(heard.reason, PLX_LINK_PEER_DOWN);
}

static void end_socket_at_5(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	heard.messages++;
	assert_in_range(heard.messages, 1, 5);
	if (heard.messages == 5)
		netio_listen_socket_fini(&heard.socket);
}

TEST(a_callback_may_end_the_socket_inside_a_page)
{
	struct netio_buffered_send_socket sender;

	listen_with(NULL);
	heard.socket.cb_msg_received = end_socket_at_5;
	connect_buffered(&sender);
	send_page_from(&sender, 0);
	send_page_from(&sender, COUNT);
	TURN_UNTIL(heard.messages == 5);
	turn_ms(20);
	assert_int_equal(heard.closed, 0);
	netio_buffered_send_socket_fini(&sender);
}

TEST(sockets_may_end_while_pages_wait)
{
	begin_raw();
	netio_listen_socket_fini(&heard.socket);
	heard.next = 0;
	turn_ms(5);
	assert_in_range(heard.messages, 1, 2);
}

/* Publishers ----------------------------------------------------------------------------------- */

static void sub_message_in_turn(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	note_turn();
	sub_message(socket, msg);
}

static void publish_page(void)
{
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(publish(1, 24, 0), NETIO_STATUS_OK);
	netio_buffered_publish_flush(&publisher);
}

TEST(answers_do_not_overtake_messages)
{
	publish_with(NULL);
	SUBSCRIBE(0, .tag = 1);
	subs[0].socket.cb_msg_received = sub_message_in_turn;
	publish_page();
	TURN_UNTIL(subs[0].messages == 1);
	SUBSCRIBE(0, .tag = 2);
	assert_int_equal(subs[0].messages, COUNT);
	publish_page();
	TURN_UNTIL(subs[0].messages == COUNT + 1);
	assert_works(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1));
	TURN_UNTIL(subs[0].unsubscribed == 1);
	assert_int_equal(subs[0].messages, 2 * COUNT);
	assert_int_equal(crowded, 0);
}

/* A gap stands where its messages are missing. */
TEST(gaps_do_not_overtake_messages)
{
	publish_with(SMALL_PAGES);
	sub_up(&subs[0], &(struct netio_subscribe_attr){.buffer_bytes = 1024, .buffer_count = 4});
	subs[0].socket.cb_msg_received = sub_message_in_turn;
	SUBSCRIBE(0, .tag = 1, .policy = NETIO_POLICY_DROP_OLD);
	for (unsigned i = 0; i < 4000; i++) {
		assert_int_equal(publish(1, 64, 0), NETIO_STATUS_OK);
		if (i % 8 == 0)
			plx_loop_turn();
	}
	FLUSH_UNTIL(has_all(&subs[0]));
	assert_true(subs[0].gaps > 1);
	assert_int_equal(crowded, 0);
}

PLX_TEST_MAIN()
