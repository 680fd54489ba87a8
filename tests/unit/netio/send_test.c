/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending without pages, by copy and by reference, and the answers to that. */
#include "socket_fixture.h"

#include "netio_wire.h"
#include "raw_link.h"

#define BIG   (1u << 20)
#define KEYS  128
#define SHORT 64
#define LONG  2000

static struct netio_send_socket sender;
static unsigned established, refused, closed, available, completed, answers;
static enum plx_link_reason reason;
static char why[256];
static uint64_t keys[KEYS];
static int status;    /* of the newest key */
static uint64_t sent; /* messages with a number */
static struct netio_msg answer;
static uint8_t bytes[BIG];

static void on_established(struct netio_send_socket *socket)
{
	assert_ptr_equal(socket, &sender);
	established++;
}

/* A callback that counts a refused or closed connection, and notes why. */
#define NOTES_WHY(callback, counter)                                                         \
	static void callback(struct netio_send_socket *socket, enum plx_link_reason why_not, \
			     const char *text)                                               \
	{                                                                                    \
		counter++;                                                                   \
		reason = why_not;                                                            \
		snprintf(why, sizeof(why), "%s", text);                                      \
	}

NOTES_WHY(on_refused, refused)
NOTES_WHY(on_closed, closed)
PLX_COUNTS(on_available, available, struct netio_send_socket *socket)

static void note_key(uint64_t key, int how)
{
	assert_in_range(completed, 0, KEYS - 1);
	keys[completed++] = key;
	status = how;
}

static void on_completed(struct netio_send_socket *socket, uint64_t key, int how)
{
	assert_int_equal(closed, 0);
	note_key(key, how);
}

static void on_answer(struct netio_send_socket *socket, const struct netio_msg *msg)
{
	answers++;
	answer = *msg;
	keep_message(&heard.kept, msg);
}

/* Of answers by reference. */
static void on_replied(struct netio_recv_socket *socket, uint64_t key, int how)
{
	assert_int_equal(heard.closed, 0);
	note_key(key, how);
}

PLX_COUNTS(on_room_for_answers, available, struct netio_recv_socket *socket)

static const struct netio_connect_attr once = {.reconnect_min_ns = PLX_NEVER};

static void make_sender(const struct netio_connect_attr *attr)
{
	established = refused = closed = available = completed = answers = 0;
	sent = 0;
	assert_int_equal(netio_send_socket_init(&ctx.evloop, &sender, attr), 0);
	sender.cb_connection_established = on_established;
	sender.cb_connection_refused = on_refused;
	sender.cb_connection_closed = on_closed;
	sender.cb_buffers_available = on_available;
	sender.cb_send_completed = on_completed;
	sender.cb_msg_received = on_answer;
}

static void connect_with(const struct netio_connect_attr *attr)
{
	heard.socket.cb_send_completed = on_replied;
	heard.socket.cb_buffers_available = on_room_for_answers;
	make_sender(attr);
	connect_to_listening(&sender);
	TURN_UNTIL(established == 1 && heard.established == 1);
}

static void begin(void)
{
	listen_with(NULL);
	connect_with(NULL);
}

static void end(void)
{
	netio_send_socket_fini(&sender);
	netio_send_socket_fini(&sender);
}

PLX_FIXTURE(sender_down, sockets_down(state), end())
#define SEND_TEST(test) PLX_TEST_WITH(test, netio_up, sender_down)

static void expect_keys(unsigned count, uint64_t from)
{
	TURN_UNTIL(completed == count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(keys[i], from + i);
}

SEND_TEST(a_message_arrives_whole)
{
	static const size_t lengths[] = {0, 1, 7, 8, 64, 4096, 65536, 65537, 200000, BIG};
	struct iovec pieces[3] = {{"one ", 4}, {NULL, 0}, {"two", 3}};

	begin();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		fill(bytes, heard.next, lengths[i]);
		assert_int_equal(netio_send(&sender, bytes, lengths[i]), NETIO_STATUS_OK);
		TURN_UNTIL(heard.messages == i + 1);
		assert_int_equal(heard.len, lengths[i]);
		assert_int_equal(heard.tag, 0);
		assert_int_equal(heard.wrong, 0);
		assert_memory_equal(heard.bytes, bytes, lengths[i]);
	}
	assert_int_equal(netio_sendv_tagged(&sender, UINT64_MAX - 1, pieces, 3), 0);
	TURN_UNTIL(heard.len == 7);
	assert_memory_equal(heard.bytes, "one two", 7);
	assert_true(heard.tag == UINT64_MAX - 1);
	assert_int_equal(heard.source, 1);
	end();
	TURN_UNTIL(heard.closed == 1);
	assert_int_equal(heard.reason, PLX_LINK_CLOSED);
	assert_int_equal(closed, 0); /* the socket was gone */
}

SEND_TEST(each_key_sent_by_reference_is_returned_once)
{
	struct iovec pieces[NETIO_IOV_MAX];

	begin();
	for (uint64_t number = 0; number < 100; number++) {
		int rc;

		fill(bytes + number * 1000, number, 1000);
		pieces[0] = (struct iovec){bytes + number * 1000, 400};
		pieces[1] = (struct iovec){bytes + number * 1000 + 400, 600};
		while ((rc = netio_sendv_ref(&sender, 7, pieces, 2, 1000 + number)) ==
		       NETIO_STATUS_AGAIN)
			plx_loop_turn();
		assert_int_equal(rc, 0);
	}
	TURN_UNTIL(heard.messages == 100);
	expect_keys(100, 1000);
	assert_int_equal(status, 0);
	assert_int_equal(heard.tag, 7);

	/* The maximum number of pieces. */
	fill(bytes, heard.next, NETIO_IOV_MAX * 8);
	for (unsigned i = 0; i < NETIO_IOV_MAX; i++)
		pieces[i] = (struct iovec){bytes + i * 8, 8};
	assert_int_equal(netio_sendv_ref(&sender, 0, pieces, NETIO_IOV_MAX, 5), 0);
	TURN_UNTIL(heard.messages == 101 && completed == 101);
	assert_int_equal(heard.len, NETIO_IOV_MAX * 8);
	assert_int_equal(heard.wrong, 0);
}

/* The peer dies without reading: each key is still returned, before the closure is reported. */
SEND_TEST(each_key_sent_by_reference_is_returned_once_if_the_peer_dies)
{
	struct iovec piece = {bytes, 150000}; /* three of 16 frames: the last one is cut */
	unsigned accepted = 0;

	begin();
	heard.kept.more = 64;
	while (netio_sendv_ref(&sender, 0, &piece, 1, accepted) == 0)
		accepted++;
	assert_true(accepted > 0);
	cut_connection(&heard);
	TURN_UNTIL(closed == 1);
	expect_keys(accepted, 0);
	assert_int_not_equal(status, 0);
	assert_int_equal(reason, PLX_LINK_PEER_DOWN);
}

/* Short messages that find no credit wait in pages. */

static int send_next(size_t len)
{
	int rc;

	fill(bytes, sent, len);
	rc = netio_sendv_tagged(&sender, sent, &(struct iovec){bytes, len}, 1);
	sent += rc == 0;
	return rc;
}

/* While the loop does not turn, so that the receiver reads nothing. */
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

SEND_TEST(long_messages_do_not_overtake_short_ones_that_wait)
{
	begin();
	send_until_again(LONG);
	assert_true(sent >= 16);
	while (sent < 100)
		assert_int_equal(send_next(SHORT), 0);
	assert_int_equal(send_next(LONG), NETIO_STATUS_AGAIN);
	fill(bytes, sent, LONG);
	assert_int_equal(netio_sendv_ref(&sender, 0, &(struct iovec){bytes, LONG}, 1, 1),
			 NETIO_STATUS_AGAIN);
	TURN_UNTIL(available == 1);
	assert_int_equal(netio_sendv_ref(&sender, 0, &(struct iovec){bytes, LONG}, 1, 1), 0);
	sent++;
	TURN_UNTIL(completed == 1);
	assert_int_equal(send_next(LONG), 0);
	TURN_UNTIL(has_all());
}

SEND_TEST(messages_that_wait_are_sent_before_the_connection_closes)
{
	begin();
	send_until_again(SHORT);
	assert_int_equal(netio_disconnect(&sender), 0);
	assert_int_equal(send_next(SHORT), NETIO_STATUS_NOT_CONNECTED);
	assert_int_equal(netio_sendv_ref(&sender, 0, NULL, 0, 1), NETIO_STATUS_NOT_CONNECTED);
	TURN_UNTIL(closed == 1 && heard.closed == 1);
	assert_true(has_all());
	assert_int_equal(available, 0);
}

/* Refusals ------------------------------------------------------------------------------------ */

SEND_TEST(messages_that_cannot_be_sent_are_refused)
{
	struct iovec pieces[NETIO_IOV_MAX + 1] = {{bytes, SIZE_MAX}, {bytes, 2}, {bytes, SIZE_MAX}};

	assert_int_equal(netio_send(&sender, "x", 1), NETIO_STATUS_NOT_CONNECTED);
	assert_int_equal(netio_sendv_ref(&sender, 0, pieces, 1, 1), NETIO_STATUS_NOT_CONNECTED);
	assert_int_equal(netio_disconnect(&sender), -EINVAL);
	listen_with(&(struct netio_listen_attr){.message_max_bytes = 1000});
	make_sender(NULL);
	assert_int_equal(netio_send(&sender, "x", 1), NETIO_STATUS_NOT_CONNECTED);
	assert_int_equal(netio_disconnect(&sender), -ENOTCONN);
	connect_with(NULL);
	assert_fails(netio_send(&sender, bytes, 1001), NETIO_STATUS_TOO_BIG, "1000");
	assert_int_equal(netio_sendv(&sender, pieces, 2), NETIO_STATUS_TOO_BIG);
	assert_int_equal(netio_sendv_ref(&sender, 0, pieces, 2, 1), NETIO_STATUS_TOO_BIG);
	assert_int_equal(netio_sendv(&sender, pieces + 1, 2), NETIO_STATUS_TOO_BIG);
	assert_int_equal(netio_sendv(&sender, pieces, NETIO_IOV_MAX + 1), -EINVAL);
	assert_int_equal(netio_connect(&sender, "127.0.0.1", 1), -EALREADY);
	fill(bytes, 0, 1000);
	assert_int_equal(netio_send(&sender, bytes, 1000), 0);
	TURN_UNTIL(heard.messages == 1);
	assert_int_equal(completed, 0);
}

SEND_TEST(bad_addresses_are_refused)
{
	static const struct {
		const char *host;
		unsigned port;
	} bad[] = {{"127.0.0.1", 65536}, {"127.0.0.1", 0}, {"", 1}, {NULL, 1}};

	assert_int_equal(netio_connect(&sender, "127.0.0.1", 1), -EINVAL); /* not set up */
	make_sender(NULL);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bad); i++)
		assert_int_equal(netio_connect(&sender, bad[i].host, bad[i].port), -EINVAL);
	assert_int_equal(netio_connect(&sender, "LOCALHOST", 1), 0);
	assert_int_equal(netio_disconnect(&sender), 0); /* while it looks up the name */
	TURN_UNTIL(closed == 1);
	assert_int_equal(netio_listen_socket_port(&heard.socket), 0);
	listen_with(NULL);
	assert_int_equal(netio_listen(&heard.socket, "127.0.0.1", 0), -EALREADY);
}

/* Answers ------------------------------------------------------------------------------------- */

SEND_TEST(each_key_of_an_answer_is_returned_once)
{
	struct iovec pieces[2] = {{bytes, 300000}, {bytes + 300000, 200000}};

	begin();
	assert_works(netio_replyv_ref(heard.from, 9, pieces, 2, 100));
	TURN_UNTIL(completed == 1 && answers == 1);
	assert_int_equal(status, 0);
	assert_int_equal(answer.len, 500000);
	assert_int_equal(answer.tag, 9);
	assert_int_equal(netio_reply_ref(heard.from, NULL, 0, 101), 0);
	TURN_UNTIL(answers == 2);
	expect_keys(2, 100);
	assert_int_equal(answer.len, 0);
	assert_int_equal(netio_reply(heard.from, "pong", 4), 0); /* by copy: without a key */
	TURN_UNTIL(answers == 3);
	assert_int_equal(answer.len, 4);
}

/* The memory of an answer that was refused is the caller's: no callback follows. */
SEND_TEST(an_answer_that_cannot_be_sent_is_refused)
{
	static struct iovec pieces[NETIO_IOV_MAX + 1];

	listen_with(NULL);
	connect_with(&(struct netio_connect_attr){.message_max_bytes = 1000});
	assert_fails(netio_reply_ref(heard.from, bytes, 1001, 1), NETIO_STATUS_TOO_BIG,
		     "1001 bytes: at most 1000");
	assert_int_equal(netio_replyv_ref(heard.from, 0, pieces, NETIO_IOV_MAX + 1, 2), -EINVAL);
	netio_recv_socket_close(heard.from);
	assert_int_equal(netio_reply_ref(heard.from, bytes, 8, 3), NETIO_STATUS_NOT_CONNECTED);
	TURN_UNTIL(heard.closed == 1);
	assert_int_equal(completed + answers, 0);
}

/* Until there is no room, with keys from 100 on. Return: how many. */
static unsigned reply_until_again(size_t len)
{
	unsigned count = 0;

	while (netio_reply_ref(heard.from, bytes, len, 100 + count) == 0)
		count++;
	assert_in_range(count, 2, KEYS);
	return count;
}

SEND_TEST(a_fast_answerer_is_notified_of_room)
{
	unsigned count;

	begin();
	heard.kept.more = KEYS;
	count = reply_until_again(3000);
	turn_ms(20);
	assert_int_equal(available, 0);
	release_all(&heard.kept);
	TURN_UNTIL(available > 0 && answers == count);
	expect_keys(count, 100);
}

/* Life ---------------------------------------------------------------------------------------- */

SEND_TEST(a_send_socket_retries_until_the_peer_listens)
{
	listen_with(NULL);
	netio_listen_socket_fini(&heard.socket);
	make_sender(NULL);
	assert_int_equal(netio_connect(&sender, "127.0.0.1", heard.port), 0);
	TURN_UNTIL(refused >= 3);
	assert_int_equal(reason, PLX_LINK_REFUSED);
	listen_again(&heard, NULL);
	TURN_UNTIL(established == 1);
	assert_int_equal(netio_send(&sender, "x", 1), 0);

	/* And again after the peer has disconnected. */
	netio_listen_socket_fini(&heard.socket);
	TURN_UNTIL(closed == 1);
	assert_int_equal(reason, PLX_LINK_CLOSED);
	assert_int_equal(netio_send(&sender, "x", 1), NETIO_STATUS_NOT_CONNECTED);
	listen_again(&heard, NULL);
	TURN_UNTIL(established == 2);
}

SEND_TEST(a_disconnected_socket_stays_disconnected)
{
	begin();
	fill(bytes, 0, 100);
	assert_int_equal(netio_send(&sender, bytes, 100), 0);
	assert_int_equal(netio_disconnect(&sender), 0);
	assert_int_equal(netio_send(&sender, bytes, 100), NETIO_STATUS_NOT_CONNECTED);
	TURN_UNTIL(closed == 1 && heard.closed == 1);
	assert_int_equal(reason, PLX_LINK_CLOSED);
	assert_int_equal(heard.messages, 1);
	turn_ms(50);
	assert_int_equal(established, 1);
	connect_to_listening(&sender);
	TURN_UNTIL(established == 2);
	netio_recv_socket_close(heard.from);
	TURN_UNTIL(closed == 2 && established == 3); /* the peer closed it: it reconnects */
}

/* It answers with that greeting, and its link takes messages of `accepts` bytes; 0: the default. */
static void refused_by(const struct wire_greeting *greeting, uint64_t accepts, const char *why_not)
{
	struct plx_listener *listener;
	unsigned port = raw_listen(accepts, greeting, &listener);

	make_sender(&once);
	assert_int_equal(netio_connect(&sender, "127.0.0.1", port), 0);
	TURN_UNTIL(refused == 1 && raw_closed == 1);
	assert_int_equal(reason, PLX_LINK_HELLO);
	assert_non_null(strstr(why, why_not));
	assert_non_null(strstr(raw_why, why_not));
	assert_int_equal(established, 0);
	end();
	plx_listener_close(listener);
}

/* The listener is not NetIO: the answer is no greeting, or this side's own. Or its link takes
 * shorter messages than it announces. */
SEND_TEST(a_peer_that_is_no_netio_receiver_is_reported)
{
	static const struct wire_greeting publisher = GREETING(WIRE_WELCOME, WIRE_SUBSCRIBER, BIG);
	static const struct wire_greeting answered = GREETING(WIRE_WELCOME, WIRE_SENDER, BIG);
	static const uint64_t accepts[] = {16, 24, 31, 200, BIG};

	refused_by(NULL, 0, "the HELLO is not NetIO's");
	refused_by(&good_sender, 0, "the HELLO is not NetIO's");
	refused_by(&publisher, 0, "the port is a publish socket's");
	for (unsigned i = 0; i < PLX_ARRAY_LEN(accepts); i++)
		refused_by(&answered, accepts[i], "");
}

PLX_TEST_MAIN()
