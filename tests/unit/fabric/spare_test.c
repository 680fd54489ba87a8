/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of long copies: used again once it was sent, never while it is in use; bounded. */
#include "fabric_priv.h"
#include "fixture.h"

#include <stdlib.h>

#define MIB (UINT32_C(1) << 20)

static struct plx_fabric_lcore *home;

static int start(void **state)
{
	fixture_start("tcp", false);
	home = fabric_here();
	assert_non_null(home);
	return 0;
}

static int stop(void **state)
{
	fixture_stop();
	return 0;
}

static size_t bytes_used(void)
{
	struct plx_mem_stats stats;

	plx_mem_stats(&stats);
	return stats.bytes_used;
}

static struct plx_buf *get(uint32_t length)
{
	struct plx_buf *buf = spare_get(home, length);

	assert_non_null(buf);
	assert_int_equal(buf->len, 0);
	assert_null(buf->next);
	assert_true(plx_buf_tailroom(buf) >= length);
	assert_true(plx_buf_headroom(buf) >= FRAME_HEADER_BYTES);
	return buf;
}

static void what_was_sent_is_used_again(void **state)
{
	struct plx_buf *first = get(20000), *second = get(20000), *again;
	size_t before;

	assert_ptr_not_equal(first, second);
	assert_int_not_equal(first->zone_index, PLX_ZONE_NONE);
	plx_buf_append(second, 20000);
	plx_buf_prepend(second, 8);
	plx_buf_unref(second);
	before = bytes_used();
	again = get(17000);
	assert_ptr_equal(again, second);
	plx_buf_unref(again);
	plx_buf_unref(first);
	for (unsigned i = 0; i < 1000; i++)
		plx_buf_unref(get(5000 + 20 * i));
	assert_int_equal(bytes_used(), before);
}

/* A reference that is left keeps it from being written to. */
static void what_is_in_use_is_left_alone(void **state)
{
	struct plx_buf *bufs[SPARE_COUNT + 4];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++) {
		bufs[i] = get(9000);
		memset(plx_buf_append(bufs[i], 9000), (int)i, 9000);
	}
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++) {
		for (unsigned k = 0; k < 9000; k++)
			assert_int_equal(bufs[i]->data[k], i);
		plx_buf_unref(bufs[i]);
	}
}

static void longer_ones_take_the_place_of_shorter_ones(void **state)
{
	struct plx_buf *buf;

	for (unsigned i = 0; i < SPARE_COUNT; i++) {
		struct plx_buf *bufs[SPARE_COUNT];

		for (unsigned k = 0; k <= i; k++)
			bufs[k] = get(6000);
		for (unsigned k = 0; k <= i; k++)
			plx_buf_unref(bufs[k]);
	}
	assert_int_equal(home->spare_bytes, SPARE_COUNT * 8192);
	buf = get(MIB);
	plx_buf_unref(buf);
	assert_int_equal(home->spare_bytes, (SPARE_COUNT - 1) * 8192 + MIB);
	assert_ptr_equal(get(MIB - 5), buf);
	plx_buf_unref(buf);
	spare_free_all(home);
	buf = get(MIB);
	plx_buf_unref(buf);
	assert_ptr_equal(get(5000), buf); /* one that is long enough will do */
	plx_buf_unref(buf);
}

static void what_is_kept_is_bounded(void **state)
{
	size_t before = bytes_used();
	struct plx_buf *bufs[20];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++) {
		bufs[i] = get(MIB);
		assert_in_range(home->spare_bytes, MIB, SPARE_BYTES_MAX);
		memset(plx_buf_append(bufs[i], MIB), 1, MIB);
	}
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++)
		plx_buf_unref(bufs[i]);
	assert_in_range(bytes_used() - before, SPARE_BYTES_MAX, 2 * SPARE_BYTES_MAX);
	plx_buf_unref(get(SPARE_BYTES_MAX + 1)); /* is not kept at all */
	assert_int_equal(home->spare_bytes, SPARE_BYTES_MAX);
	plx_buf_unref(
		get(SPARE_BYTES_MAX)); /* needs the place of all of them, and has that of one */
	assert_in_range(home->spare_bytes, 0, SPARE_BYTES_MAX);
	spare_free_all(home);
	assert_int_equal(bytes_used(), before);
}

static void copies_arrive_as_they_were(void **state)
{
	struct plx_link_attr attr = {.rx_buf_bytes = 65536};
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", &attr);
	uint8_t *bytes = malloc(MIB);

	assert_non_null(bytes);
	fixture_connect(listener, &attr);
	for (unsigned i = 0; i < 300; i++) {
		uint32_t length = 4000 + i * 1001 % 150000;
		uint64_t limit_ns = plx_now_ns() + 5 * PLX_NS_PER_S;
		int rc;

		memset(bytes, (int)i, length);
		while ((rc = plx_link_send(client.link, bytes, length)) == -EAGAIN) {
			assert_true(plx_now_ns() < limit_ns);
			plx_loop_turn();
		}
		assert_int_equal(rc, 0);
		memset(bytes, 0xee, length); /* it is ours again */
		if (i % 3 == 0) {
			assert_true(pump_until(&server.messages, i + 1, 5000));
			assert_int_equal(server.last_len, length);
			for (uint32_t k = 0; k < length; k++)
				assert_int_equal(server.last[k], (uint8_t)i);
		}
	}
	assert_true(pump_until(&server.messages, 300, 5000));
	free(bytes);
}

#define SPARE_TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPARE_TEST(what_was_sent_is_used_again),
		SPARE_TEST(what_is_in_use_is_left_alone),
		SPARE_TEST(longer_ones_take_the_place_of_shorter_ones),
		SPARE_TEST(what_is_kept_is_bounded),
		SPARE_TEST(copies_arrive_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
