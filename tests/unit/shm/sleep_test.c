/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a completion queue: which endpoints ask to be called, how, and when they need not ask
 * again. */
#include "shm_meet.h"

#define MARK        UINT32_C(0x40) /* an unused request bit, to detect overwriting */
#define QUIET_POLLS 100000

static char in[16];

static void expect_text(struct fid_ep *ep)
{
	assert_int_equal(fi_recv(ep, in, sizeof(in), NULL, 0, ep), 0);
}

static int setup_receiver(void **state)
{
	setup_pair(state);
	expect_text(two);
	return 0;
}

static void go_to_sleep(void)
{
	assert_int_equal(trywait(&server, server.rx_cq), 0);
}

static void sleep_asking_for(uint32_t how)
{
	go_to_sleep();
	assert_int_equal(wish(two), how);
}

static bool is_server_woken(void)
{
	return is_woken(&server.rx_cq->fid, 0);
}

static void speak(struct fid_ep *ep)
{
	assert_int_equal(fi_inject(ep, "hear me", 8, 0), 0);
}

/* A message without a call. */
static void whisper(struct fid_ep *ep)
{
	struct ring_writer *ring = &((struct shm_ep *)ep)->writer;
	uint8_t *at = ring_claim(ring, RECORD_UNIT);

	assert_non_null(at);
	memcpy(ring_payload(at, 0, 0), "hear me", 8);
	ring_commit(ring, RECORD_MESSAGE, 0, 8, RECORD_UNIT);
}

static void send_byte(struct fid_ep *ep)
{
	assert_int_equal(send(((struct shm_ep *)ep)->base.source.fd, "", 1, MSG_DONTWAIT), 1);
}

/* By the very next poll. */
static void expect_heard(struct fid_ep *ep)
{
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_read(server.rx_cq, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, ep);
	assert_string_equal(in, "hear me");
	memset(in, 0, sizeof(in));
	expect_text(ep);
}

/* The poll that sees its bell checks it from the next poll on. */
static void expect_heard_by_bell(struct fid_ep *ep)
{
	poll_once(&server);
	expect_heard(ep);
}

/* Poll until it asks for its bell. */
static void grow_quiet(struct fid_ep *ep)
{
	for (int i = 0; i < QUIET_POLLS && !(wish(ep) & CALL_BELL); i++)
		poll_once(&server);
	assert_int_equal(wish(ep), CALL_BELL);
}

/* Sending ------------------------------------------------------------------------------------- */

#define TEST(name) PLX_TEST_WITH(name, setup_receiver, teardown)

/* It is longer than the ring: its sender sleeps until there is room, repeatedly. */
PLX_TEST_WITH(a_sender_asleep_in_a_long_message_is_woken, setup_pair, teardown)
{
	static uint8_t out[1 << 20], long_in[sizeof(out)];
	struct fi_cq_data_entry entry;
	unsigned sleeps = 0;
	bool received = false;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 31 + i / 251);
	assert_int_equal(fi_recv(two, long_in, sizeof(long_in), NULL, 0, two), 0);
	assert_int_equal(fi_send(one, out, sizeof(out), NULL, 0, one), 0);
	for (int looks = 0; fi_cq_read(client.rx_cq, &entry, 1) == -FI_EAGAIN; looks++) {
		assert_true(looks < 1000);
		if (trywait(&client, client.rx_cq) == -FI_EAGAIN)
			continue;
		sleeps++;
		assert_false(is_woken(&client.rx_cq->fid, 0));
		received |= fi_cq_read(server.rx_cq, &entry, 1) == 1;
		assert_true(is_woken(&client.rx_cq->fid, 0));
	}
	assert_ptr_equal(entry.op_context, one);
	assert_true(sleeps > sizeof(out) / SEGMENT_RING_BYTES_MIN / 2);
	for (int i = 0; i < 100 && !received; i++)
		received = fi_cq_read(server.rx_cq, &entry, 1) == 1;
	assert_true(received);
	assert_memory_equal(long_in, out, sizeof(out));
}

/* Active endpoints --------------------------------------------------------------------------- */

TEST(an_active_endpoint_is_woken_without_a_bell)
{
	assert_int_equal(wish(two), CALL_NONE);
	sleep_asking_for(CALL_WAKE);
	assert_false(is_server_woken());
	speak(one);
	assert_true(is_server_woken());
	assert_int_equal(wish(two), CALL_NONE);
	assert_false(take_bell(two));
	expect_heard(two);
}

/* Its peer may have taken the request, and had no memory for the byte. */
TEST(a_message_renews_the_request_for_a_call)
{
	go_to_sleep();
	set_wish(two, CALL_NONE);
	whisper(one);
	expect_heard(two);
	sleep_asking_for(CALL_WAKE);
}

/* The peer that takes the request sends a byte. */
TEST(a_byte_on_the_socket_renews_the_request_for_a_call)
{
	go_to_sleep();
	set_wish(two, MARK);
	send_byte(one);
	assert_true(is_server_woken());
	sleep_asking_for(CALL_WAKE);
	assert_false(is_server_woken());
}

TEST(a_message_before_the_request_for_a_call_prevents_sleep)
{
	whisper(one);
	assert_int_equal(trywait(&server, server.rx_cq), -FI_EAGAIN);
	assert_int_equal(wish(two), CALL_NONE);
	expect_heard(two);
	sleep_asking_for(CALL_WAKE);
}

/* Others -------------------------------------------------------------------------------------- */

TEST(a_quiet_endpoint_requests_a_wake_up_and_a_bell)
{
	grow_quiet(two);
	sleep_asking_for(BOTH);
	set_wish(two, MARK);
	sleep_asking_for(MARK);
	set_wish(two, BOTH);
	speak(one);
	assert_true(is_server_woken());
	expect_heard_by_bell(two); /* a poll does not take the byte */
	sleep_asking_for(CALL_WAKE);
}

PLX_TEST_MAIN()
