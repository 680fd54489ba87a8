/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that fail complete with an error, whether or not they asked for a completion
 * (fi_cq.3). And FI_INJECT as a default flag. */
#include "pair.h"

#define LARGE     (1 << 20)
#define COUNT_MAX 4096
#define BYTES_MAX (16 << 20) /* sent at most */
#define VAIN_MAX  200        /* polls in a row after which nothing more is accepted */
#define KEY       7

static struct side *const a = &pair.a, *const b = &pair.b; /* a posts the operations */
static uint8_t out[LARGE], in[LARGE];

static int set_up_silent(void **state)
{
	return open_with((struct pair_attr){.tx_selective = true, .rx_selective = true});
}

/* Operations ---------------------------------------------------------------------------------- */

typedef ssize_t operation(size_t length, uintptr_t i);

static ssize_t send_plain(size_t length, uintptr_t i)
{
	return fi_send(a->ep, out, length, NULL, 0, CONTEXT(i));
}

static ssize_t read_plain(size_t length, uintptr_t i)
{
	return fi_read(a->ep, in, length, NULL, 0, 0, KEY, CONTEXT(i));
}

/* Start operations until nothing more is accepted, or there are enough: the peer reads nothing.
 * Return: how many. */
static unsigned start_all(operation *start, size_t length, unsigned most)
{
	unsigned accepted = 0;

	for (int vain = 0; vain < VAIN_MAX && accepted < most; vain++) {
		ssize_t rc = start(length, accepted);

		assert_true(rc == 0 || rc == -FI_EAGAIN);
		if (rc == 0) {
			accepted++;
			vain = 0;
		}
		assert_empty(a->tx_cq);
	}
	assert_true(accepted > 0);
	return accepted;
}

/* The errors of the last of these operations, in their order. Return: how many. */
static unsigned take_errors(unsigned accepted)
{
	struct fi_cq_err_entry error;
	struct fi_cq_data_entry entry;
	unsigned failed = 0;
	uintptr_t next = 0;

	for (; fi_cq_read(a->tx_cq, &entry, 1) == -FI_EAVAIL; failed++, next++) {
		error = cq_wait_error(a->tx_cq, NULL);
		if (!failed)
			next = (uintptr_t)error.op_context;
		assert_ptr_equal(error.op_context, CONTEXT(next));
	}
	if (failed)
		assert_int_equal(next, accepted);
	return failed;
}

static void leave(struct side *side)
{
	union cm_event event;
	uint32_t number;

	side_close_ep(side);
	wait_doing(!a->ep || fi_eq_read(a->eq, &number, &event, sizeof(event), 0) != -FI_EAGAIN,
		   fi_cq_read(a->tx_cq, NULL, 0));
}

#define TEST(name) PLX_TEST_WITH(name, set_up_silent, tear_down)

/* Messages that the peer has are no longer in flight when it leaves. */
PLX_TEST(sends_without_a_completion_fail_when_either_end_closes)
{
	for (int is_peer = 0; is_peer < 2; is_peer++) {
		unsigned accepted;

		set_up_silent(NULL);
		accepted = start_all(send_plain, LARGE, COUNT_MAX);
		leave(is_peer ? b : a);
		assert_in_range(take_errors(accepted), 1, accepted);
		tear_down(NULL);
	}
}

static unsigned receive_all(size_t length)
{
	unsigned received = 0;

	for (;; received++) {
		struct fi_cq_err_entry done;
		struct iovec iov = {in, length};
		struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};

		if (fi_recvmsg(b->ep, &msg, FI_COMPLETION) != 0)
			return received;
		done = cq_next(b->rx_cq, NULL);
		if (done.err)
			return received;
		assert_int_equal(done.len, length);
	}
}

static void no_send_vanishes(size_t length)
{
	unsigned accepted, failed;

	set_up_silent(NULL);
	accepted = start_all(send_plain, length, BYTES_MAX / length);
	assert_int_equal(fi_shutdown(a->ep, 0), 0);
	failed = take_errors(accepted);
	assert_int_equal(receive_all(length) + failed, accepted);
	tear_down(NULL);
}

PLX_TEST(each_send_without_a_completion_arrives_or_fails)
{
	no_send_vanishes(64);
	no_send_vanishes(5000);
	no_send_vanishes(LARGE);
}

TEST(receives_without_a_completion_fail_at_a_shutdown)
{
	for (uintptr_t i = 0; i < 5; i++)
		post(a, in, 8, i);
	assert_int_equal(fi_shutdown(a->ep, 0), 0);
	for (uintptr_t i = 0; i < 5; i++)
		expect_cancelled(a->rx_cq, CONTEXT(i));
}

TEST(reads_without_a_completion_fail_when_the_peer_closes)
{
	struct fid_mr *mr;
	unsigned accepted;

	if (!tested_has_rma())
		skip();
	assert_fi_works(fi_mr_reg(b->domain, in, sizeof(in), FI_REMOTE_READ, 0, KEY, 0, &mr, NULL));
	accepted = start_all(read_plain, 8, 16);
	leave(b);
	assert_int_equal(take_errors(accepted), accepted);
	assert_int_equal(fi_close(&mr->fid), 0);
}

static int set_up_inject(void **state)
{
	return open_with((struct pair_attr){.op_flags = FI_INJECT});
}

PLX_TEST_WITH(the_memory_of_sends_may_change_if_they_are_injected_by_default, set_up_inject,
	      tear_down)
{
	const size_t lengths[] = {1, 64, 300, a->info->tx_attr->inject_size};

	assert_int_equal(send_plain(lengths[3] + 1, 5), -FI_EINVAL);
	for (size_t i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		memset(out, 1, lengths[i]);
		memset(in, 0, lengths[i]);
		assert_int_equal(send_plain(lengths[i], 5), 0);
		memset(out, 2, lengths[i]);
		assert_ptr_equal(cq_wait(a->tx_cq, b->rx_cq).op_context, CONTEXT(5));
		post(b, in, lengths[i], 1);
		assert_ptr_equal(cq_wait(b->rx_cq, a->tx_cq).op_context, CONTEXT(1));
		memset(out, 1, lengths[i]);
		assert_memory_equal(in, out, lengths[i]);
	}
}

TESTED_MAIN()
