/* SPDX-License-Identifier: BSD-3-Clause */
/* How far an incomplete message has arrived: plx_arrival.h. */
#include "data.h"
#include "plx_arrival.h"
#include "shm.h"

#define LONG (8 << 20) /* in parts, over each provider */

static const struct plx_arrival_ops *ops_of(const struct side *side)
{
	const struct plx_arrival_ops *ops = NULL;

	assert_int_equal(fi_open_ops(&side->ep->fid, PLX_ARRIVAL_OPS, 0, (void **)&ops, NULL), 0);
	return ops;
}

static struct plx_arrival look_at(const struct side *side)
{
	struct plx_arrival arrival;

	ops_of(side)->look(side->ep, &arrival);
	return arrival;
}

static void *send_long(size_t length)
{
	uint8_t *bytes = make_bytes(length, 1);

	assert_int_equal(fi_send(pair.a.ep, bytes, length, NULL, 0, CONTEXT(1)), 0);
	return bytes;
}

#define TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

TEST(bytes_are_counted_while_a_message_arrives)
{
	uint8_t *to = malloc(LONG), *from;
	struct fi_cq_data_entry entry;
	struct plx_arrival before, now;
	unsigned rises = 0;

	for (unsigned round = 0; round < 2; round++) {
		before = look_at(&pair.b);
		assert_int_equal(before.bytes, before.begin);
		post(&pair.b, to, LONG, 2);
		from = send_long(LONG);
		while (fi_cq_read(pair.b.rx_cq, &entry, 1) == -FI_EAGAIN) {
			now = look_at(&pair.b);
			assert_true(now.bytes >= before.bytes);
			assert_true(now.begin == before.begin || now.bytes == now.begin);
			rises += now.bytes > before.bytes;
			before.bytes = now.bytes;
			fi_cq_read(pair.a.tx_cq, NULL, 0);
		}
		now = look_at(&pair.b);
		assert_int_equal(now.bytes, now.begin);
		assert_true(now.bytes >= before.begin + LONG);
		expect_sent(&pair.a, 1);
		assert_memory_equal(from, to, LONG);
		free(from);
	}
	assert_true(rises >= 4);
	free(to);
}

TEST(a_message_that_waits_for_a_receive_is_held)
{
	uint8_t *to = malloc(LONG), *from = send_long(LONG);
	struct plx_arrival arrival = {0};

	for (unsigned i = 0; i < 100; i++) {
		fi_cq_read(pair.a.tx_cq, NULL, 0);
		fi_cq_read(pair.b.rx_cq, NULL, 0);
		arrival = look_at(&pair.b);
		if (arrival.bytes != arrival.begin) /* plx_shm leaves it in the ring */
			assert_true(arrival.is_held);
	}
	assert_true(tested == &shm_kind || arrival.is_held);
	post(&pair.b, to, LONG, 2);
	fi_cq_read(pair.b.rx_cq, NULL, 0);
	arrival = look_at(&pair.b);
	assert_true(arrival.bytes != arrival.begin && !arrival.is_held);
	expect_received(&pair.b, 2, LONG);
	expect_sent(&pair.a, 1);
	free(from);
	free(to);
}

TESTED_MAIN()
