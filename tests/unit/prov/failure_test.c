/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that fail complete with an error, whether or not they asked for a completion
 * (fi_cq.3). And FI_INJECT as a default flag. */
#include "pair.h"

#define LARGE     (1 << 20)
#define COUNT_MAX 4096
#define BYTES_MAX (16 << 20) /* sent at most */
#define VAIN_MAX  200        /* polls in a row after which nothing more is accepted */
#define KEY       7
#define RMA_BYTES (4 << 20)

static struct side *const a = &pair.a, *const b = &pair.b; /* a posts the operations */
static uint8_t out[RMA_BYTES], in[RMA_BYTES];

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

static ssize_t write_plain(size_t length, uintptr_t i)
{
	return fi_write(a->ep, out, length, NULL, 0, 0, KEY, CONTEXT(i));
}

static ssize_t read_plain(size_t length, uintptr_t i)
{
	return fi_read(a->ep, in, length, NULL, 0, 0, KEY, CONTEXT(i));
}

static ssize_t inject(size_t length, uintptr_t i)
{
	return fi_inject(a->ep, out, length, 0);
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
	until(!a->ep || fi_eq_read(a->eq, &number, &event, sizeof(event), 0) != -FI_EAGAIN,
	      fi_cq_read(a->tx_cq, NULL, 0));
}

/* Messages that the peer has are no longer in flight when it leaves. */
static void operations_fail_when(struct side *side, operation *start, size_t length)
{
	unsigned accepted = start_all(start, length, COUNT_MAX);

	leave(side);
	assert_in_range(take_errors(accepted), 1, accepted);
}

#define TEST(name) PLX_TEST_WITH(name, set_up_silent, tear_down)

TEST(sends_without_a_completion_fail_when_their_endpoint_closes)
{
	operations_fail_when(a, send_plain, LARGE);
}

TEST(sends_without_a_completion_fail_when_the_peer_closes)
{
	operations_fail_when(b, send_plain, LARGE);
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
	no_send_vanishes(1000);
	no_send_vanishes(5000);
	no_send_vanishes(20000);
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

TEST(receives_without_a_completion_fail_when_they_are_too_short)
{
	struct fi_cq_err_entry error;

	post(b, in, 8, 1);
	assert_int_equal(fi_inject(a->ep, out, 9, 0), 0);
	error = cq_wait_error(b->rx_cq, a->tx_cq);
	assert_int_equal(error.err, FI_ETRUNC);
	assert_ptr_equal(error.op_context, CONTEXT(1));
}

TEST(injected_messages_report_nothing)
{
	unsigned accepted = start_all(inject, 1, COUNT_MAX);

	leave(b);
	assert_int_equal(take_errors(accepted), 0);
}

/* Of short messages too: they are in flight until the peer has read them. */
static int set_up_delivery(void **state)
{
	return open_with((struct pair_attr){
		.tx_selective = true,
		.op_flags = tested->most->tx_attr->op_flags & FI_DELIVERY_COMPLETE,
	});
}

PLX_TEST_WITH(undelivered_sends_without_a_completion_fail, set_up_delivery, tear_down)
{
	if (!pair.attr.op_flags)
		skip();
	for (uintptr_t i = 0; i < 5; i++)
		assert_int_equal(send_plain(8, i), 0);
	leave(b);
	assert_int_equal(take_errors(5), 5);
}

/* One-sided access ----------------------------------------------------------------------------- */

static struct fid_mr *mr;

static int grant_memory(void)
{
	if (tested_has_rma())
		assert_fi_works(fi_mr_reg(b->domain, in, sizeof(in),
					  FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	return 0;
}

static int set_up_memory(void **state)
{
	set_up_silent(state);
	return grant_memory();
}

static int tear_down_memory(void **state)
{
	if (tested_has_rma())
		assert_int_equal(fi_close(&mr->fid), 0);
	return tear_down(state);
}

#define RMA_TEST(name)                                        \
	static void name(void **state);                       \
	PLX_TEST_AGAIN(name, set_up_memory, tear_down_memory) \
	static void name(void **state)

RMA_TEST(reads_without_a_completion_fail_when_the_peer_closes)
{
	unsigned accepted;

	if (!tested_has_rma())
		skip();
	accepted = start_all(read_plain, 8, 16);
	leave(b);
	assert_int_equal(take_errors(accepted), accepted);
}

RMA_TEST(writes_without_a_completion_fail_when_the_peer_closes)
{
	if (!tested_has_rma())
		skip();
	operations_fail_when(b, write_plain, LARGE);
}

/* FI_INJECT as a default flag ------------------------------------------------------------------ */

static int set_up_inject(void **state)
{
	return open_with((struct pair_attr){.op_flags = FI_INJECT});
}

static int set_up_inject_memory(void **state)
{
	set_up_inject(state);
	return grant_memory();
}

static ssize_t send_pieces(size_t length, uintptr_t i)
{
	struct iovec iov[] = {{out, length / 2}, {out + length / 2, length - length / 2}};

	return fi_sendv(a->ep, iov, NULL, 2, 0, CONTEXT(i));
}

static ssize_t send_with_data(size_t length, uintptr_t i)
{
	return fi_senddata(a->ep, out, length, NULL, 1, 0, CONTEXT(i));
}

static ssize_t write_pieces(size_t length, uintptr_t i)
{
	struct iovec iov[] = {{out, length / 2}, {out + length / 2, length - length / 2}};

	return fi_writev(a->ep, iov, NULL, 2, 0, 0, KEY, CONTEXT(i));
}

static ssize_t write_with_data(size_t length, uintptr_t i)
{
	return fi_writedata(a->ep, out, length, NULL, 1, 0, 0, KEY, CONTEXT(i));
}

static const size_t inject_lengths[] = {1, 64, 1000, 4096, 4097, 8192, 8193, 20000, 100000, LARGE};

/* Refused above the limit of fi_inject. Otherwise the memory may change at once. */
static bool is_injected(operation *start, size_t length)
{
	bool fits = length <= a->info->tx_attr->inject_size;

	memset(out, 1, length);
	memset(in, 0, length);
	assert_int_equal(start(length, 5), fits ? 0 : -FI_EINVAL);
	if (!fits)
		return false;
	memset(out, 2, length);
	assert_ptr_equal(cq_wait(a->tx_cq, b->rx_cq).op_context, CONTEXT(5));
	return true;
}

static void expect_injected(size_t length)
{
	memset(out, 1, length);
	assert_memory_equal(in, out, length);
}

PLX_TEST_WITH(the_memory_of_sends_may_change_if_they_are_injected_by_default, set_up_inject,
	      tear_down)
{
	static operation *const ways[] = {send_plain, send_pieces, send_with_data};

	for (size_t i = 0; i < PLX_ARRAY_LEN(ways) * PLX_ARRAY_LEN(inject_lengths); i++) {
		size_t length = inject_lengths[i / PLX_ARRAY_LEN(ways)];

		if (!is_injected(ways[i % PLX_ARRAY_LEN(ways)], length))
			continue;
		post(b, in, length, 1);
		assert_ptr_equal(cq_wait(b->rx_cq, a->tx_cq).op_context, CONTEXT(1));
		expect_injected(length);
	}
}

PLX_TEST_WITH(the_memory_of_writes_may_change_if_they_are_injected_by_default, set_up_inject_memory,
	      tear_down_memory)
{
	static operation *const ways[] = {write_plain, write_pieces, write_with_data};

	if (!tested_has_rma())
		skip();
	for (size_t i = 0; i < PLX_ARRAY_LEN(ways) * PLX_ARRAY_LEN(inject_lengths); i++) {
		size_t length = inject_lengths[i / PLX_ARRAY_LEN(ways)];

		if (!is_injected(ways[i % PLX_ARRAY_LEN(ways)], length))
			continue;
		post(b, in + LARGE, 1, 1); /* a message after it shows that it has arrived */
		assert_int_equal(fi_inject(a->ep, out, 1, 0), 0);
		while (cq_wait(b->rx_cq, a->tx_cq).flags & FI_REMOTE_WRITE)
			;
		expect_injected(length);
	}
}

TESTED_MAIN()
