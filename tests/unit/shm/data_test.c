/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving, over each path. */
#include "prov/data.h"
#include "shm.h"

#include <sys/socket.h>
#include <unistd.h>

static struct shm_params params; /* the defaults */

static int set_up_delivery(void **state)
{
	return open_with((struct pair_attr){.op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE});
}

static int set_up_delivery_with_reading(void **state)
{
	shm_params.copy_max = 0;
	return set_up_delivery(state);
}

/* The receiver reads messages that do not fit in a record, instead of receiving parts. */
static int set_up_with_reading(void **state)
{
	shm_params.copy_max = 0;
	return open_with((struct pair_attr){0});
}

static int set_up_small_ring(void **state)
{
	shm_params.ring_bytes = SEGMENT_RING_BYTES_MIN;
	return open_with((struct pair_attr){0});
}

static int tear_down_params(void **state)
{
	shm_params = params;
	return tear_down(state);
}

static void a_part_begins_behind(uint64_t records)
{
	size_t length = 50000;
	struct fi_cq_err_entry entry;
	char small[8];

	renew(length, records);
	for (uint64_t i = 0; i < records; i++) {
		post(&pair.b, small, sizeof(small), 1);
		assert_int_equal(fi_inject(pair.a.ep, "small", 6, 0), 0);
		expect_received(&pair.b, 1, 6);
	}
	post(&pair.b, in, length, 2);
	assert_int_equal(fi_senddata(pair.a.ep, out, length, NULL, records, 0, CONTEXT(3)), 0);
	entry = cq_wait(pair.b.rx_cq, pair.a.tx_cq);
	assert_int_equal(entry.len, length);
	assert_int_equal(entry.data, records);
	expect_sent(&pair.a, 3);
	assert_memory_equal(in, out, length);
}

/* Later parts end at the ring's end, whose position varies with the number of records before. */
static void parts_may_begin_anywhere_in_the_ring(void **state)
{
	const struct ring_writer *writer = &((struct shm_ep *)pair.a.ep)->writer;
	uint32_t mask = writer->segment.ring_bytes - 1;

	for (uint32_t at = 0; at <= mask; at += RECORD_UNIT) {
		uint32_t ahead = (at - (uint32_t)writer->tail) & mask;

		a_part_begins_behind(ahead / RECORD_UNIT);
	}
}

/* Bytes that went through the ring: the message, or its address. */
static uint64_t ring_bytes_of(size_t length)
{
	const struct ring_writer *writer = &((struct shm_ep *)pair.a.ep)->writer;
	uint64_t before = writer->tail;

	one_message(length);
	return writer->tail - before;
}

static void only_the_longest_messages_are_read_from_the_peers_memory(void **state)
{
	skip_if_emulated();
	assert_true(ring_bytes_of(16 << 20) > 16 << 20);
	assert_int_equal(ring_bytes_of((16 << 20) + 1), RECORD_UNIT);
	shm_params.copy_max = 100000;
	assert_true(ring_bytes_of(100000) > 100000);
	assert_int_equal(ring_bytes_of(100001), RECORD_UNIT);
}

/* Parts would be in the ring, and the sends complete, before the receiver looks. */
static void in_a_stream_long_messages_are_read_from_the_peers_memory(void **state)
{
	const size_t length = 60000, first = 40000;

	skip_if_emulated();
	renew(2 * length, 1);
	assert_int_equal(fi_send(pair.a.ep, out, first, NULL, 0, CONTEXT(8)), 0);
	expect_sent(&pair.a, 8);
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(fi_send(pair.a.ep, out + i * length, length, NULL, 0, CONTEXT(i)),
				 0);
	/* A short one is in the ring, and completes after those before it all the same. */
	assert_int_equal(fi_send(pair.a.ep, "last", 5, NULL, 0, CONTEXT(2)), 0);
	assert_empty(pair.a.tx_cq);
	post(&pair.b, in, first, 7);
	expect_received(&pair.b, 7, first);
	for (uintptr_t i = 0; i < 2; i++) {
		post(&pair.b, in + i * length, length, 7);
		expect_received(&pair.b, 7, length);
		expect_sent(&pair.a, i);
	}
	expect_sent(&pair.a, 2);
	assert_memory_equal(in, out, 2 * length);
	post(&pair.b, in, 5, 7);
	expect_received(&pair.b, 7, 5);
	/* Nothing is under way now. */
	assert_int_equal(fi_send(pair.a.ep, out, length, NULL, 0, CONTEXT(3)), 0);
	expect_sent(&pair.a, 3);
}

/* As for links: see reuse_receives in plx_fabric_driver.h. */
static void long_receives_may_be_filled_newest_first(void **state)
{
	static const size_t lengths[] = {60000, 8, 60000, 60000};

	prov_ep_reuse_receives(pair.b.ep);
	for (uintptr_t i = 0; i < 3; i++)
		post(&pair.b, in + i * 65536, 65536, i);
	for (size_t i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		renew(lengths[i], i);
		assert_int_equal(fi_send(pair.a.ep, out, lengths[i], NULL, 0, CONTEXT(9)), 0);
		expect_received(&pair.b, 2, lengths[i]);
		expect_sent(&pair.a, 9);
		assert_memory_equal(in + 2 * 65536, out, lengths[i]);
		post(&pair.b, in + 2 * 65536, 65536, 2);
	}
	assert_int_equal(fi_cancel(&pair.b.ep->fid, CONTEXT(2)), 0);
	assert_int_equal(cq_wait_error(pair.b.rx_cq, NULL).err, FI_ECANCELED);
	for (int i = 0; i < 2; i++) {
		struct fi_cq_err_entry entry;

		assert_int_equal(fi_send(pair.a.ep, out, 60000, NULL, 0, CONTEXT(9)), 0);
		entry = cq_wait(pair.b.rx_cq, pair.a.tx_cq);
		assert_ptr_not_equal(entry.op_context, CONTEXT(2));
		expect_sent(&pair.a, 9);
	}
}

/* Until the peer is reported as lost, it counts as slow, not dead. */
static void a_full_ring_refuses_sends_until_it_is_read(void **state)
{
	uint64_t sent = 0;

	while (fi_inject(pair.a.ep, out, 1000, 0) == 0)
		sent++;
	assert_true(sent > 100 && sent < 1000);
	assert_int_equal(fi_inject(pair.a.ep, out, 1000, 0), -FI_EAGAIN);
	for (; sent; sent--) {
		post(&pair.b, in, 1000, 1);
		expect_received(&pair.b, 1, 1000);
	}
	assert_int_equal(fi_inject(pair.a.ep, out, 1000, 0), 0);
}

static void delivery_complete_waits_for_the_receiver(void **state)
{
	static const size_t lengths[] = {8, 100000, 1 << 20};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		renew(lengths[i], i);
		assert_int_equal(fi_send(pair.a.ep, out, lengths[i], NULL, 0, CONTEXT(1)), 0);
		for (int look = 0; look < 100; look++) {
			assert_empty(pair.a.tx_cq);
			assert_empty(pair.b.rx_cq);
		}
		post(&pair.b, in, lengths[i], 2);
		expect_received(&pair.b, 2, lengths[i]);
		expect_sent(&pair.a, 1);
	}
}

#define DATA_TEST(name, up) PLX_TEST_AGAIN(name, up, tear_down_params)

DATA_TEST(messages_of_all_sizes_arrive, set_up_with_reading)
DATA_TEST(messages_of_all_sizes_arrive, set_up_small_ring)
DATA_TEST(parts_may_begin_anywhere_in_the_ring, set_up_small_ring)
DATA_TEST(only_the_longest_messages_are_read_from_the_peers_memory, set_up)
DATA_TEST(in_a_stream_long_messages_are_read_from_the_peers_memory, set_up)
DATA_TEST(long_receives_may_be_filled_newest_first, set_up)
DATA_TEST(pieces_are_gathered_and_scattered, set_up_with_reading)
DATA_TEST(immediate_data_arrives_with_its_message, set_up_with_reading)
DATA_TEST(a_message_longer_than_its_receive_is_truncated_with_an_error, set_up_with_reading)
DATA_TEST(a_full_ring_refuses_sends_until_it_is_read, set_up)
DATA_TEST(delivery_complete_waits_for_the_receiver, set_up_delivery)
DATA_TEST(delivery_complete_waits_for_the_receiver, set_up_delivery_with_reading)
DATA_TEST(messages_of_different_kinds_stay_in_order, set_up_with_reading)

static int socket_of(const struct side *side)
{
	return ((struct shm_ep *)side->ep)->base.source.fd;
}

/* Bytes sent but not taken. */
static int bytes_left(int fd)
{
	char byte;
	int count = 0;

	while (recv(fd, &byte, 1, MSG_DONTWAIT) > 0)
		count++;
	return count;
}

PLX_TEST_WITH(a_bounded_number_of_calls_is_taken_at_a_time, set_up_to_wait, tear_down)
{
	int rung = 0;

	while (send(socket_of(&pair.a), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		rung++;
	assert_true(rung > 100);
	trywait(&pair.b, pair.b.rx_cq);
	assert_true(bytes_left(socket_of(&pair.b)) > rung / 2);
}

int main(void)
{
	params = shm_params;
	return plx_test_run("tests", NULL, NULL);
}
