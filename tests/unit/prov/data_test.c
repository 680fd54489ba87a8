/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"
#include "plx_fabric_driver.h"

extern const struct plx_fabric_driver plx_driver_shm, plx_driver_tcp;

static int set_up_selective(void **state)
{
	return open_with((struct pair_attr){.rx_selective = true, .tx_selective = true});
}

#define TEST(name, up)      PLX_TEST_WITH(name, up, tear_down)
#define DATA_TEST(name, up) PLX_TEST_AGAIN(name, up, tear_down)

DATA_TEST(messages_of_all_sizes_arrive, set_up)
DATA_TEST(pieces_are_gathered_and_scattered, set_up)
DATA_TEST(immediate_data_arrives_with_its_message, set_up)
DATA_TEST(a_message_longer_than_its_receive_is_truncated_with_an_error, set_up)
DATA_TEST(two_sides_that_wait_for_delivery_do_not_deadlock, set_up_two_cqs)
DATA_TEST(messages_of_different_kinds_stay_in_order, set_up)

TEST(more_pieces_than_the_limit_are_refused, set_up)
{
	struct iovec iov[PROV_IOV_MAX + 1] = {0};

	assert_int_equal(fi_sendv(pair.a.ep, iov, NULL, PROV_IOV_MAX + 1, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_recvv(pair.a.ep, iov, NULL, PROV_IOV_MAX + 1, 0, NULL), -FI_EINVAL);
}

TEST(an_inject_has_no_completion_and_a_size_limit, set_up)
{
	uint32_t most = (uint32_t)tested->most->tx_attr->inject_size;

	renew(most + 1, 1);
	post(&pair.b, in, most, 1);
	assert_int_equal(fi_inject(pair.a.ep, out, most, 0), 0);
	memset(out, 0, most);
	expect_received(&pair.b, 1, most);
	assert_int_equal(in[1], (uint8_t)(1 + 31));
	assert_empty(pair.a.tx_cq);
	assert_int_equal(fi_inject(pair.a.ep, out, most + 1, 0), -FI_EINVAL);
}

TEST(only_selected_operations_complete, set_up_selective)
{
	struct iovec iov = {(char[8]){0}, 8};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = CONTEXT(5)};

	post(&pair.b, iov.iov_base, 8, 1);
	assert_int_equal(fi_recvmsg(pair.b.ep, &msg, FI_COMPLETION), 0);
	assert_int_equal(fi_send(pair.a.ep, "silent", 7, NULL, 0, CONTEXT(2)), 0);
	assert_empty(pair.a.tx_cq);
	assert_empty(pair.b.rx_cq);
	assert_int_equal(fi_sendmsg(pair.a.ep, &msg, FI_COMPLETION), 0);
	expect_sent(&pair.a, 5);
	expect_received(&pair.b, 5, 8);
}

TEST(sizes_of_queues_are_enforced, set_up_small)
{
	for (int i = 0; i < 3; i++)
		post(&pair.b, in, 8, 1);
	assert_int_equal(fi_recv(pair.b.ep, in, 8, NULL, 0, NULL), -FI_EAGAIN);
	for (int i = 0; i < 4; i++) /* the queue's size */
		assert_int_equal(fi_send(pair.a.ep, "x", 1, NULL, 0, CONTEXT(i)), 0);
	assert_int_equal(fi_send(pair.a.ep, "x", 1, NULL, 0, NULL), -FI_EAGAIN);
	assert_int_equal(fi_inject(pair.a.ep, "x", 1, 0), 0); /* which needs no place in it */
	for (uintptr_t i = 0; i < 4; i++)
		expect_sent(&pair.a, i);
	for (int i = 0; i < 3; i++)
		expect_received(&pair.b, 1, 1);
	for (int i = 0; i < 2; i++) {
		post(&pair.b, in, 8, 1);
		expect_received(&pair.b, 1, 1);
	}
}

TEST(a_receive_can_be_cancelled, set_up)
{
	struct fi_cq_err_entry error;

	for (uintptr_t i = 0; i < 3; i++)
		post(&pair.b, in + 8 * i, 8, i);
	assert_int_equal(fi_cancel(&pair.b.ep->fid, CONTEXT(1)), 0);
	assert_int_equal(fi_cancel(&pair.b.ep->fid, CONTEXT(1)), -FI_ENOENT);
	assert_int_equal(fi_cancel(&pair.b.ep->fid, CONTEXT(9)), -FI_ENOENT);
	error = cq_wait_error(pair.b.rx_cq, NULL);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_ptr_equal(error.op_context, CONTEXT(1));
	fi_inject(pair.a.ep, "one", 4, 0);
	fi_inject(pair.a.ep, "two", 4, 0);
	expect_received(&pair.b, 0, 4);
	expect_received(&pair.b, 2, 4);
	assert_memory_equal(in + 16, "two", 4);
}

/* The receiver is not ready, so most of a long one is copied. */
TEST(a_copied_message_may_be_changed_at_once, set_up)
{
	bool is_shm = strcmp(tested->libfabric->name, plx_driver_shm.provider) == 0;
	const struct plx_fabric_driver *driver = is_shm ? &plx_driver_shm : &plx_driver_tcp;
	static const size_t lengths[] = {20, 1000, 20000, 100000, 1 << 20, 8 << 20};
	static uint8_t room[DATA_MAX], expected[DATA_MAX];

	for (size_t i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		size_t length = lengths[i];
		struct iovec pieces[2] = {{out, 10}, {out + 10, length - 10}};

		renew(length, i);
		memcpy(expected, out, length);
		assert_int_equal(driver->send_copy(pair.a.ep, pieces, 2, room, CONTEXT(9)), 0);
		memset(out, 0, length);
		post(&pair.b, in, length, 7);
		expect_received(&pair.b, 7, length);
		expect_sent(&pair.a, 9);
		assert_memory_equal(in, expected, length);
	}
}

TESTED_MAIN()
