/* SPDX-License-Identifier: BSD-3-Clause */
/* How much an unbuffered send socket accepts at once, with default attributes: short messages that
 * find no credit wait in pages. */
#include "socket_fixture.h"

#define SHORT 64
#define LONG  2000

static const char *provider;
static struct netio_send_socket sender;
static unsigned established, closed, available, completed;
static uint64_t sent;
static uint8_t bytes[LONG];

PLX_COUNTS(on_established, established, struct netio_send_socket *socket)
PLX_COUNTS(on_available, available, struct netio_send_socket *socket)
PLX_COUNTS(on_completed, completed, struct netio_send_socket *socket, uint64_t key, int status)
PLX_COUNTS(on_closed, closed, struct netio_send_socket *socket, enum plx_link_reason reason,
	   const char *why)

static void begin(void)
{
	const struct netio_connect_attr attr = {.provider = provider};

	sent = established = closed = available = completed = 0;
	listen_with(&(struct netio_listen_attr){.provider = provider});
	assert_int_equal(netio_send_socket_init(&ctx.evloop, &sender, &attr), 0);
	sender.cb_connection_established = on_established;
	sender.cb_connection_closed = on_closed;
	sender.cb_buffers_available = on_available;
	sender.cb_send_completed = on_completed;
	connect_to_listening(&sender);
	TURN_UNTIL(established == 1 && heard.established == 1);
}

/* Send the next message. */
static int send_next(size_t len)
{
	int rc;

	fill(bytes, sent, len);
	rc = netio_sendv_tagged(&sender, sent, &(struct iovec){bytes, len}, 1);
	sent += rc == 0;
	return rc;
}

/* Send while the loop does not turn, so that the receiver reads nothing. */
static void send_until_again(size_t len)
{
	while (send_next(len) == NETIO_STATUS_OK)
		assert_in_range(sent, 1, 1000);
}

static bool has_all(void)
{
	assert_int_equal(heard.wrong, 0);
	return heard.messages == sent;
}

static void short_messages_find_room_for_128(void **state)
{
	begin();
	heard.kept.more = 512;
	send_until_again(SHORT);
	assert_true(sent >= 128);
	release_all(&heard.kept);
	TURN_UNTIL(has_all());
	assert_int_equal(heard.tag, sent - 1);
	TURN_UNTIL(available == 1);
	assert_int_equal(send_next(SHORT), 0);
	TURN_UNTIL(has_all());
	assert_int_equal(available, 1);
}

static void what_follows_does_not_overtake_them(void **state)
{
	begin();
	send_until_again(LONG);
	assert_true(sent >= 16);
	fill(bytes, sent, LONG);
	assert_int_equal(netio_sendv_ref(&sender, 0, &(struct iovec){bytes, LONG}, 1, 1),
			 NETIO_STATUS_AGAIN);
	while (sent < 100)
		assert_int_equal(send_next(SHORT), 0);
	assert_int_equal(send_next(LONG), NETIO_STATUS_AGAIN);
	TURN_UNTIL(available == 1);
	fill(bytes, sent, LONG);
	assert_int_equal(netio_sendv_ref(&sender, 0, &(struct iovec){bytes, LONG}, 1, 1), 0);
	sent++;
	TURN_UNTIL(completed == 1);
	assert_int_equal(send_next(LONG), 0);
	TURN_UNTIL(has_all());
	assert_int_equal(available, 1);
}

static void they_are_sent_before_the_connection_closes(void **state)
{
	begin();
	send_until_again(SHORT);
	assert_int_equal(netio_disconnect(&sender), 0);
	assert_int_equal(send_next(SHORT), NETIO_STATUS_NOT_CONNECTED);
	assert_int_equal(send_next(LONG), NETIO_STATUS_NOT_CONNECTED);
	TURN_UNTIL(closed == 1 && heard.closed == 1);
	assert_true(has_all());
	assert_int_equal(available, 0);
}

static void a_new_connection_begins_without_them(void **state)
{
	begin();
	send_until_again(SHORT);
	netio_recv_socket_close(heard.from);
	TURN_UNTIL(closed == 1 && established == 2);
	heard.next = sent;
	heard.wrong = 0;
	heard.messages = 0;
	assert_int_equal(send_next(SHORT), 0);
	TURN_UNTIL(heard.messages == 1);
	assert_int_equal(heard.wrong, 0);
	assert_int_equal(available, 0);
}

PLX_FIXTURE(down, sockets_down(state), netio_send_socket_fini(&sender))
PLX_FIXTURE(up_tcp, netio_up(state), provider = "tcp")
PLX_FIXTURE(up_shm, netio_up(state), provider = "shm")

#define OVER_BOTH(test)                    \
	PLX_TEST_AGAIN(test, up_tcp, down) \
	PLX_TEST_AGAIN(test, up_shm, down)

OVER_BOTH(short_messages_find_room_for_128)
OVER_BOTH(what_follows_does_not_overtake_them)
OVER_BOTH(they_are_sent_before_the_connection_closes)
OVER_BOTH(a_new_connection_begins_without_them)

PLX_TEST_MAIN()
