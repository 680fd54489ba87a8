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
		if (how == CALL_WAKE) /* or before the sender sleeps */
			assert_int_equal(trywait(&client, client.rx_cq), 0);
		else
			poll_once(&client);
		expect_called(how);
	}
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

/* Wherever it was in the list, the others are called, once each. */
TEST(an_endpoint_that_owes_a_call_may_be_closed)
{
	for (int which = 0; which < PAIRS; which++) {
		make_pairs();
		all_send_early();
		close_ep(senders[which]);
		senders[which] = NULL;
		poll_once(&client);
		for (int i = 0; i < PAIRS; i++) {
			if (i != which)
				assert_int_equal(take_call(receivers[i]), CALL_WAKE);
			close_pair(i);
		}
	}
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
