/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving, as libfabric programs see it: tests for each message path of a
 * provider. */
#ifndef PROV_TEST_DATA_H
#define PROV_TEST_DATA_H

#include "pair.h"

#define DATA_MAX ((16 << 20) + 1)

static inline int set_up_two_cqs(void **state)
{
	return open_with((struct pair_attr){.two_cqs = true});
}

static inline int set_up_small(void **state)
{
	return open_with((struct pair_attr){.cq_size = 4, .tx_size = 2, .rx_size = 3});
}

/* The message of a test, and what was received of it. */
static uint8_t out[DATA_MAX], in[DATA_MAX];

static inline void renew(size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i++) {
		out[i] = (uint8_t)(seed + i * 31 + i / 251);
		in[i] = (uint8_t)~out[i];
	}
}

static inline void one_message(size_t length)
{
	renew(length, length);
	post(&pair.b, in, length, 7);
	assert_int_equal(fi_send(pair.a.ep, out, length, NULL, 0, CONTEXT(9)), 0);
	expect_received(&pair.b, 7, length);
	expect_sent(&pair.a, 9);
	assert_memory_equal(in, out, length);
	assert_empty(pair.a.rx_cq);
	assert_empty(pair.b.rx_cq);
}

static inline void messages_of_all_sizes_arrive(void **state)
{
	static const size_t lengths[] = {0,      1,       8,       55,     56,    57,    64,
					 1024,   4096,    16383,   16384,  16385, 32704, 32705,
					 40000,  40896,   40897,   65408,  65536, 99999, 262144,
					 262145, 1 << 20, 3000001, 8 << 20};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++)
		one_message(lengths[i]);
}

static inline void pieces_are_gathered_and_scattered(void **state)
{
	static const size_t splits[][4] = {{1, 2, 3, 4},
					   {0, 60, 0, 4},
					   {30000, 1, 0, 70000},
					   {20, 7, 0, 70000},
					   {20, 0, 0, 70000}};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(splits); i++) {
		size_t total = splits[i][0] + splits[i][1] + splits[i][2] + splits[i][3];
		struct iovec from[4], to[4];
		size_t at = 0, back = total;

		renew(total, i);
		for (int j = 0; j < 4; j++) {
			from[j] = (struct iovec){out + at, splits[i][j]};
			at += splits[i][j];
			to[3 - j].iov_len = splits[i][j];
		}
		for (int j = 3; j >= 0; j--) {
			back -= to[j].iov_len;
			to[j].iov_base = in + back;
		}
		assert_int_equal(fi_recvv(pair.b.ep, to, NULL, 4, 0, CONTEXT(1)), 0);
		assert_int_equal(fi_sendv(pair.a.ep, from, NULL, 4, 0, CONTEXT(2)), 0);
		expect_received(&pair.b, 1, total);
		expect_sent(&pair.a, 2);
		assert_memory_equal(in, out, total);
	}
}

static inline void immediate_data_arrives_with_its_message(void **state)
{
	static const size_t lengths[] = {0, 8, 48, 49, 20000, 1 << 20};
	uint64_t data = UINT64_C(0xfedcba9876543210);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		struct fi_cq_err_entry entry;

		renew(lengths[i], i);
		post(&pair.b, in, lengths[i], 3);
		assert_fi_works(
			fi_senddata(pair.a.ep, out, lengths[i], NULL, data + i, 0, CONTEXT(4)));
		entry = cq_wait(pair.b.rx_cq, pair.a.tx_cq);
		assert_int_equal(entry.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
		assert_int_equal(entry.data, data + i);
		assert_int_equal(entry.len, lengths[i]);
		assert_memory_equal(in, out, lengths[i]);
		expect_sent(&pair.a, 4);
	}
	post(&pair.b, NULL, 0, 5);
	assert_int_equal(fi_injectdata(pair.a.ep, NULL, 0, 77, 0), 0);
	assert_int_equal(cq_wait(pair.b.rx_cq, NULL).data, 77);
}

static inline void a_message_longer_than_its_receive_is_truncated_with_an_error(void **state)
{
	static const size_t lengths[] = {65, 300, 70000, 2 << 20};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		struct fi_cq_err_entry error;

		renew(lengths[i], i);
		in[64] = 0;
		post(&pair.b, in, 64, 1);
		assert_int_equal(fi_send(pair.a.ep, out, lengths[i], NULL, 0, CONTEXT(2)), 0);
		error = cq_wait_error(pair.b.rx_cq, pair.a.tx_cq);
		assert_int_equal(error.err, FI_ETRUNC);
		assert_int_equal(error.len, 64);
		assert_int_equal(error.olen, lengths[i] - 64);
		assert_ptr_equal(error.op_context, CONTEXT(1));
		assert_memory_equal(in, out, 64);
		assert_int_equal(in[64], 0);
		expect_sent(&pair.a, 2);
	}
	one_message(64); /* and it continues */
}

/* Each side only reads its send queue. */
static inline void two_sides_that_wait_for_delivery_do_not_deadlock(void **state)
{
	char in_a[8], in_b[8];

	post(&pair.a, in_a, 8, 1);
	post(&pair.b, in_b, 8, 2);
	assert_int_equal(fi_send(pair.a.ep, "to b", 5, NULL, 0, CONTEXT(3)), 0);
	assert_int_equal(fi_send(pair.b.ep, "to a", 5, NULL, 0, CONTEXT(4)), 0);
	assert_ptr_equal(cq_wait(pair.a.tx_cq, pair.b.tx_cq).op_context, CONTEXT(3));
	assert_ptr_equal(cq_wait(pair.b.tx_cq, pair.a.tx_cq).op_context, CONTEXT(4));
	assert_ptr_equal(cq_wait(pair.a.rx_cq, NULL).op_context, CONTEXT(1));
	assert_ptr_equal(cq_wait(pair.b.rx_cq, NULL).op_context, CONTEXT(2));
}

static inline void messages_of_different_kinds_stay_in_order(void **state)
{
	size_t lengths[] = {10, 200000, 5, 20000, 0, 1 << 20, 64};

	renew(DATA_MAX, 1);
	for (uintptr_t i = 0; i < PLX_ARRAY_LEN(lengths); i++)
		post(&pair.b, in + (i << 20), 1 << 20, i);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		while (fi_send(pair.a.ep, out, lengths[i], NULL, 0, NULL) == -FI_EAGAIN) {
			struct fi_cq_data_entry entry;

			fi_cq_read(pair.a.tx_cq, &entry, 1);
			fi_cq_read(pair.b.rx_cq, NULL, 0);
		}
	}
	for (uintptr_t i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		expect_received(&pair.b, i, lengths[i]);
		assert_memory_equal(in + (i << 20), out, lengths[i]);
	}
}

#endif
