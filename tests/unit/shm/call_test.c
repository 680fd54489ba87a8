/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling the peer: at once for requests made before a message was sent; by the next poll for
 * requests made while the message is in flight, if the sender checks too early. The request is set
 * in the middle of a send, so the race occurs each time. */
#include "shm_meet.h"

/* Ways to send ------------------------------------------------------------------------------ */

static ssize_t send_flagged(struct fid_ep *ep, const void *buf, size_t length, uint64_t flags,
			    void *context)
{
	struct iovec iov = {(void *)(uintptr_t)buf, length};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = context, .data = 0x1234};

	return fi_sendmsg(ep, &msg, flags);
}

/* Takes its completion, which is there, so this queue read is not a poll. */
static void send_with_more(struct fid_ep *ep)
{
	struct fi_cq_data_entry entry;

	assert_int_equal(send_flagged(ep, "more", 5, FI_MORE | FI_COMPLETION, NULL), 0);
	assert_int_equal(fi_cq_read(client.rx_cq, &entry, 1), 1);
}

static void send_in_place(struct fid_ep *ep)
{
	void *place = send_claim(ep, 5);

	assert_non_null(place);
	memcpy(place, "place", 5);
	send_commit(ep, 5);
}

static void send_alone(struct fid_ep *ep)
{
	assert_int_equal(fi_inject(ep, "alone", 5, 0), 0);
}

/* Sends that check early: all tests run with each of them. */
static const struct way {
	const char *text; /* that it sends */
	void (*send)(struct fid_ep *ep);
} early[] = {{"more", send_with_more}, {"place", send_in_place}};

static const struct way *way;

/* The peer was called that way, and its wish is taken. */
static void expect_called(uint32_t how)
{
	assert_int_equal(take_call(two), how);
	assert_int_equal(wish(two), CALL_NONE);
}

#define TEST(name) PLX_TEST_WITH(name, setup_pair, teardown)

/* When ---------------------------------------------------------------------------------------- */

TEST(a_call_wanted_before_a_send_is_made_at_once)
{
	for (uint32_t how = CALL_BELL; how <= BOTH; how++) {
		set_wish(two, how);
		way->send(one);
		expect_called(how);
	}
}

/* The peer may have taken the message and gone back to sleep before the next poll. */
TEST(a_peer_is_called_once_per_request)
{
	set_wish(two, CALL_NONE);
	way->send(one);
	set_wish(two, CALL_WAKE);
	way->send(one);
	assert_int_equal(take_call(two), CALL_WAKE);
	set_wish(two, CALL_WAKE);
	poll_once(&client);
	assert_int_equal(trywait(&client, client.rx_cq), 0);
	assert_int_equal(take_call(two), CALL_NONE);
	assert_int_equal(wish(two), CALL_WAKE);
}

TEST(a_call_wanted_after_a_send_is_made_by_the_next_poll)
{
	for (uint32_t how = CALL_BELL; how <= BOTH; how++) {
		way->send(one);
		set_wish(two, how);
		assert_int_equal(take_call(two), CALL_NONE);
		poll_once(&client);
		expect_called(how);
	}
}

TEST(a_call_wanted_after_a_send_is_made_before_the_sender_sleeps)
{
	way->send(one);
	set_wish(two, CALL_WAKE);
	assert_int_equal(trywait(&client, client.rx_cq), 0);
	expect_called(CALL_WAKE);
}

TEST(a_call_wanted_during_a_burst_is_made_by_its_last_send)
{
	way->send(one);
	way->send(one);
	set_wish(two, CALL_WAKE);
	send_alone(one);
	assert_int_equal(take_call(two), CALL_WAKE);
}

/* It also checked for the earlier ones. */
TEST(no_call_is_owed_after_a_send_without_fi_more)
{
	way->send(one);
	send_alone(one);
	set_wish(two, CALL_WAKE);
	poll_once(&client);
	assert_int_equal(trywait(&client, client.rx_cq), 0);
	assert_int_equal(take_call(two), CALL_NONE);
	set_wish(two, CALL_NONE);
	way->send(one);
	set_wish(two, CALL_WAKE);
	poll_once(&client);
	assert_int_equal(take_call(two), CALL_WAKE);
}

TEST(no_call_is_owed_after_a_poll)
{
	way->send(one);
	way->send(one);
	poll_once(&client);
	set_wish(two, CALL_WAKE);
	for (int i = 0; i < 200; i++)
		poll_once(&client);
	assert_int_equal(trywait(&client, client.rx_cq), 0);
	assert_int_equal(take_call(two), CALL_NONE);
	assert_int_equal(wish(two), CALL_WAKE);
	set_wish(two, CALL_NONE);
}

/* Many ---------------------------------------------------------------------------------------- */

#define PAIRS 3

static struct fid_ep *senders[PAIRS], *receivers[PAIRS];

static void make_pairs(void)
{
	for (int i = 0; i < PAIRS; i++)
		make_pair(&senders[i], &receivers[i]);
}

static void all_send_early(void)
{
	for (int i = 0; i < PAIRS; i++) {
		for (size_t k = 0; k < PLX_ARRAY_LEN(early); k++)
			early[k].send(senders[i]);
		set_wish(receivers[i], CALL_WAKE);
	}
}

static void close_pair(int i)
{
	if (senders[i])
		close_ep(senders[i]);
	close_ep(receivers[i]);
	senders[i] = receivers[i] = NULL;
}

TEST(one_poll_makes_all_owed_calls)
{
	make_pairs();
	for (int round = 0; round < 3; round++) {
		all_send_early();
		poll_once(&client);
		for (int i = 0; i < PAIRS; i++)
			assert_int_equal(take_call(receivers[i]), CALL_WAKE);
	}
	for (int i = 0; i < PAIRS; i++)
		close_pair(i);
}

static void expect_forgotten(const struct fid_ep *closed)
{
	const struct shm_ep *ep = ((struct shm_domain *)client.domain)->callers;

	for (; ep; ep = ep->next_caller)
		assert_ptr_not_equal(&ep->base.fid, closed);
}

/* Wherever it was in the list, the others are called, once each. */
TEST(an_endpoint_that_owes_a_call_may_be_closed)
{
	for (int which = 0; which < PAIRS; which++) {
		struct fid_ep *closed;

		make_pairs();
		all_send_early();
		closed = senders[which];
		close_ep(closed);
		senders[which] = NULL;
		expect_forgotten(closed);
		poll_once(&client);
		for (int i = 0; i < PAIRS; i++) {
			if (i != which)
				assert_int_equal(take_call(receivers[i]), CALL_WAKE);
			close_pair(i);
		}
	}
}

/* Messages ------------------------------------------------------------------------------------ */

static void expect_text(const char *in, const char *text)
{
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_read(server.rx_cq, &entry, 1), 1);
	assert_int_equal(entry.len, 5);
	assert_memory_equal(in, text, 5);
}

TEST(a_message_is_visible_before_the_call)
{
	char in[8];

	assert_int_equal(fi_recv(two, in, sizeof(in), NULL, 0, in), 0);
	way->send(one);
	expect_text(in, way->text);
}

TEST(a_send_with_more_carries_data_and_completes)
{
	struct fi_cq_data_entry entry;
	char in[8];

	assert_int_equal(fi_recv(two, in, sizeof(in), NULL, 0, in), 0);
	assert_int_equal(
		send_flagged(one, "data!", 5, FI_MORE | FI_REMOTE_CQ_DATA | FI_COMPLETION, one), 0);
	assert_int_equal(fi_cq_read(client.rx_cq, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, one);
	assert_int_equal(entry.flags, FI_SEND | FI_MSG);
	assert_int_equal(fi_cq_read(server.rx_cq, &entry, 1), 1);
	assert_int_equal(entry.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	assert_int_equal(entry.data, 0x1234);
	assert_int_equal(entry.len, 5);
	assert_memory_equal(in, "data!", 5);
}

TEST(a_send_with_more_completes_when_it_is_delivered)
{
	static const uint64_t flags = FI_MORE | FI_DELIVERY_COMPLETE | FI_COMPLETION;
	struct fi_cq_data_entry entry;
	char in[8];

	assert_int_equal(fi_recv(two, in, sizeof(in), NULL, 0, in), 0);
	assert_int_equal(send_flagged(one, "there", 5, flags, one), 0);
	set_wish(two, CALL_WAKE);
	for (int i = 0; i < 100; i++)
		assert_int_equal(fi_cq_read(client.rx_cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(take_call(two), CALL_WAKE);
	expect_text(in, "there");
	assert_int_equal(fi_cq_read(client.rx_cq, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, one);
}

static void send_short_and_long_ones(void)
{
	static const size_t lengths[] = {0, 100, 20000, 1, 16000, 20000, 100};
	static uint8_t out[20000], in[PLX_ARRAY_LEN(lengths)][sizeof(out)];
	struct fi_cq_data_entry entry;
	size_t received = 0;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 31 + i / 251);
	for (size_t i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		assert_int_equal(fi_recv(two, in[i], sizeof(out), NULL, 0, in[i]), 0);
		assert_int_equal(send_flagged(one, out, lengths[i], FI_MORE | FI_COMPLETION, one),
				 0);
	}
	for (int i = 0; i < 1000000 && received < PLX_ARRAY_LEN(lengths); i++) {
		if (fi_cq_read(server.rx_cq, &entry, 1) == 1) {
			assert_ptr_equal(entry.op_context, in[received]);
			assert_int_equal(entry.len, lengths[received]);
			assert_memory_equal(in[received], out, lengths[received]);
			received++;
		}
		poll_once(&client);
	}
	assert_int_equal(received, PLX_ARRAY_LEN(lengths));
}

/* A long message goes in parts, or the peer reads it; it checks after a fence at once. */
TEST(short_and_long_messages_stay_in_order)
{
	uint64_t copy_max = shm_params.copy_max;

	send_short_and_long_ones();
	shm_params.copy_max = 0;
	send_short_and_long_ones();
	shm_params.copy_max = copy_max;
}

static uint64_t written(struct fid_ep *ep)
{
	return ((struct shm_ep *)ep)->writer.tail;
}

/* Both have enough room. */
TEST(one_poll_writes_a_bounded_number_of_parts_for_all_in_turn)
{
	static uint8_t out[1 << 20], in[2][sizeof(out)];
	uint64_t most = SHM_POLL_PARTS * (SEGMENT_RING_BYTES_MIN / 8 * 5 / 4);
	struct fid_ep *other_a, *other_b;
	uint64_t first, second;

	make_pair(&other_a, &other_b);
	assert_int_equal(fi_recv(two, in[0], sizeof(out), NULL, 0, NULL), 0);
	assert_int_equal(fi_recv(other_b, in[1], sizeof(out), NULL, 0, NULL), 0);
	assert_int_equal(fi_send(one, out, sizeof(out), NULL, 0, NULL), 0);
	assert_int_equal(fi_send(other_a, out, sizeof(out), NULL, 0, NULL), 0);
	first = written(one);
	second = written(other_a);
	for (int i = 0; i < 4; i++) {
		uint64_t before = written(one) + written(other_a);

		for (int look = 0; look < 10; look++)
			poll_once(&server);
		poll_once(&client);
		assert_in_range(written(one) + written(other_a) - before, 1, most);
	}
	assert_true(written(one) > first && written(other_a) > second);
	close_ep(other_a);
	close_ep(other_b);
}

/* A peer that makes invalid requests ---------------------------------------------------------- */

TEST(an_invalid_call_request_does_no_more_than_a_call)
{
	static const uint32_t wishes[] = {UINT32_MAX, 4, 4 | CALL_WAKE, 4 | CALL_BELL,
					  UINT32_C(1) << 31};
	for (size_t i = 0; i < PLX_ARRAY_LEN(wishes); i++) {
		set_wish(two, wishes[i]);
		send_alone(one);
		expect_called(wishes[i] & BOTH);
		set_wish(two, wishes[i]);
		send_in_place(one);
		expect_called(wishes[i] & BOTH);
		send_in_place(one);
		set_wish(two, wishes[i]);
		poll_once(&client);
		expect_called(wishes[i] & BOTH);
	}
}

int main(void)
{
	int failed = 0;

	for (way = early; way < early + PLX_ARRAY_LEN(early); way++)
		failed += plx_test_run(way->text, NULL, NULL);
	return failed;
}
