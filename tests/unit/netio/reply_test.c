/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers by reference: what arrives, and when their memory is free. */
#include "socket_fixture.h"

#define KEYS 64

static struct netio_send_socket asker;
static unsigned answers, wrong, completed, available, closed_before;
static uint64_t keys[KEYS];
static int statuses[KEYS];
static size_t len;
static uint8_t bytes[1u << 20];

static void on_answer(struct netio_send_socket *socket, const struct netio_msg *msg)
{
	uint64_t number;

	wrong += !read_number(msg, &number, &wrong) || number != answers;
	len = msg->len;
	answers++;
	keep_message(&heard.kept, msg);
}

static void on_completed(struct netio_recv_socket *socket, uint64_t key, int status)
{
	assert_ptr_equal(socket, heard.from);
	assert_in_range(completed, 0, KEYS - 1);
	closed_before += heard.closed;
	keys[completed] = key;
	statuses[completed++] = status;
}

PLX_COUNTS(on_room, available, struct netio_recv_socket *socket)

static void begin(const struct netio_connect_attr *attr)
{
	answers = wrong = completed = available = closed_before = 0;
	listen_with(NULL);
	heard.socket.cb_send_completed = on_completed;
	heard.socket.cb_buffers_available = on_room;
	assert_works(netio_send_socket_init(&ctx.evloop, &asker, attr));
	asker.cb_msg_received = on_answer;
	connect_to_listening(&asker);
	TURN_UNTIL(heard.established == 1);
}

PLX_FIXTURE(reply_down, sockets_down(state), netio_send_socket_fini(&asker))
#define REPLY_TEST(test) PLX_TEST_WITH(test, netio_up, reply_down)

/* Answer until there is no room, with keys from 100 on. Return: how many. */
static unsigned reply_all(size_t length)
{
	unsigned count = 0;

	while (netio_reply_ref(heard.from, bytes, length, 100 + count) == 0)
		count++;
	assert_in_range(count, 2, KEYS);
	return count;
}

static void expect_keys(unsigned count)
{
	assert_int_equal(completed, count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(keys[i], 100 + i);
	assert_int_equal(closed_before, 0);
}

REPLY_TEST(each_key_is_returned_once)
{
	struct iovec pieces[2] = {{bytes, 300000}, {bytes + 300000, 200000}};

	begin(NULL);
	for (uint64_t i = 0; i < 3; i++) {
		fill(bytes, i, sizeof(bytes));
		assert_works(netio_replyv_ref(heard.from, 9, pieces, 2, 100 + i));
		TURN_UNTIL(completed == i + 1 && answers == i + 1);
		assert_int_equal(statuses[i], 0);
		assert_int_equal(len, 500000);
	}
	expect_keys(3);
	assert_int_equal(wrong, 0);
	assert_int_equal(netio_reply_ref(heard.from, NULL, 0, 103), 0);
	TURN_UNTIL(completed == 4 && answers == 4);
	assert_int_equal(len, 0);
}

/* The memory of an answer that was refused is the caller's: no callback follows. */
REPLY_TEST(an_answer_that_cannot_be_sent_is_refused)
{
	static struct iovec pieces[NETIO_IOV_MAX + 1];

	begin(&(struct netio_connect_attr){.message_max_bytes = 1000});
	assert_fails(netio_reply_ref(heard.from, bytes, 1001, 1), NETIO_STATUS_TOO_BIG,
		     "1001 bytes: at most 1000");
	assert_int_equal(netio_replyv_ref(heard.from, 0, pieces, NETIO_IOV_MAX + 1, 2), -EINVAL);
	netio_recv_socket_close(heard.from);
	assert_int_equal(netio_reply_ref(heard.from, bytes, 8, 3), NETIO_STATUS_NOT_CONNECTED);
	TURN_UNTIL(heard.closed == 1);
	assert_int_equal(completed + answers, 0);
}

REPLY_TEST(after_again_there_is_room)
{
	unsigned count;

	begin(NULL);
	heard.kept.more = KEYS;
	count = reply_all(3000);
	turn_ms(20);
	assert_int_equal(available, 0);
	release_all(&heard.kept);
	TURN_UNTIL(available > 0 && answers == count);
	expect_keys(count);
	assert_int_equal(netio_reply_ref(heard.from, bytes, 3000, 100 + count), 0);
	TURN_UNTIL(completed == count + 1);
}

/* The peer dies without reading. */
REPLY_TEST(each_key_is_returned_once_if_the_link_is_lost)
{
	unsigned count;

	begin(NULL);
	count = reply_all(15000); /* each takes four of six frames: the last one is cut */
	cut_connection(&heard);
	TURN_UNTIL(heard.closed == 1);
	expect_keys(count);
	assert_int_not_equal(statuses[count - 1], 0);
}

REPLY_TEST(without_a_callback_answers_arrive)
{
	begin(NULL);
	heard.socket.cb_send_completed = NULL;
	fill(bytes, 0, 100000);
	assert_works(netio_reply_ref(heard.from, bytes, 100000, 1));
	TURN_UNTIL(answers == 1);
	assert_int_equal(wrong, 0);
}

PLX_TEST_MAIN()
