/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of long copies: reused once it was sent, never while in use; bounded. */
#include "fabric_link.h"
#include "fixture.h"

#define MIB (UINT32_C(1) << 20)

static struct plx_fabric_lcore *home;

static int start(void **state)
{
	fixture_start("tcp", false);
	assert_int_equal(fabric_here("start", &home), 0);
	return 0;
}

static struct plx_buf *get(uint32_t length)
{
	struct plx_buf *buf = link_buf_get(home, length, false);

	assert_non_null(buf);
	assert_int_equal(buf->len, 0);
	assert_null(buf->next);
	assert_true(plx_buf_tailroom(buf) >= length);
	assert_true(plx_buf_headroom(buf) >= FRAME_HEADER_BYTES);
	return buf;
}

/* Use that many at once. */
static void use(unsigned count, uint32_t length)
{
	struct plx_buf *bufs[2 * LINK_BUF_COUNT];

	for (unsigned i = 0; i < count; i++)
		bufs[i] = get(length);
	for (unsigned i = 0; i < count; i++)
		plx_buf_unref(bufs[i]);
}

static bool is_kept(const struct plx_buf *buf)
{
	for (unsigned i = 0; i < LINK_BUF_COUNT; i++) {
		if (home->link_bufs[i] == buf)
			return true;
	}
	return false;
}

#define LINK_BUF_TEST(name) PLX_TEST_WITH(name, start, fixture_down)

LINK_BUF_TEST(a_sent_buffer_is_reused)
{
	struct plx_buf *first = get(20000), *second = get(20000);

	assert_ptr_not_equal(first, second);
	plx_buf_append(second, 20000);
	plx_buf_prepend(second, 8);
	plx_buf_unref(second);
	assert_ptr_equal(get(17000), second);
	plx_buf_unref(second);
	plx_buf_unref(first);
	for (unsigned i = 0; i < 1000; i++)
		plx_buf_unref(get(5000 + 12 * i));
	assert_int_equal(home->link_buf_bytes, 2 * (16384 + 4096)); /* they were long enough */
}

/* A remaining reference prevents reuse. */
LINK_BUF_TEST(a_buffer_in_use_is_not_reused)
{
	struct plx_buf *bufs[LINK_BUF_COUNT + 4];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++) {
		bufs[i] = get(9000);
		memset(plx_buf_append(bufs[i], 9000), (int)i, 9000);
		assert_int_equal(is_kept(bufs[i]), i < LINK_BUF_COUNT);
	}
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++) {
		for (unsigned k = 0; k < 9000; k++)
			assert_int_equal(bufs[i]->data[k], i);
		plx_buf_unref(bufs[i]);
	}
}

LINK_BUF_TEST(longer_buffers_replace_shorter_ones)
{
	struct plx_buf *buf;

	use(LINK_BUF_COUNT, 6000);
	assert_int_equal(home->link_buf_bytes, LINK_BUF_COUNT * (8192 + 4096));
	buf = get(MIB + 16); /* with NetIO's header */
	plx_buf_unref(buf);
	assert_int_equal(home->link_buf_bytes, (LINK_BUF_COUNT - 1) * (8192 + 4096) + MIB + 4096);
	assert_ptr_equal(get(MIB - 5), buf);
	plx_buf_unref(buf);

	/* The same at the limit of total bytes. */
	link_buf_free_all(home);
	use(LINK_BUF_COUNT, 500 << 10);
	assert_int_equal(home->link_buf_bytes, LINK_BUF_BYTES_MAX);
	for (uint32_t length = 2 * MIB; length <= 8 * MIB; length *= 2) {
		buf = get(length);
		assert_true(is_kept(buf));
		assert_in_range(home->link_buf_bytes, length, LINK_BUF_BYTES_MAX);
		plx_buf_unref(buf);
	}
	assert_ptr_equal(get(5000), buf); /* a longer one is good enough */
	plx_buf_unref(buf);
}

LINK_BUF_TEST(the_number_of_cached_buffers_is_bounded)
{
	struct plx_buf *bufs[20], *longer;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++) {
		bufs[i] = get(MIB);
		assert_in_range(home->link_buf_bytes, MIB, LINK_BUF_BYTES_MAX);
		assert_int_equal(is_kept(bufs[i]), i < 8);
		memset(plx_buf_append(bufs[i], MIB), 1, MIB);
	}
	for (unsigned i = 4; i < PLX_ARRAY_LEN(bufs); i++)
		plx_buf_unref(bufs[i]);
	longer = get(5 * MIB); /* buffers in use leave no room for it, so nothing is freed */
	assert_false(is_kept(longer));
	assert_int_equal(home->link_buf_bytes, 8 * (MIB + 4096));
	plx_buf_unref(longer);
	for (unsigned i = 0; i < 4; i++)
		plx_buf_unref(bufs[i]);
	longer = get(LINK_BUF_BYTES_MAX + 1);
	assert_false(is_kept(longer));
	plx_buf_unref(longer);
	assert_int_equal(home->link_buf_bytes, 8 * (MIB + 4096));
	link_buf_free_all(home);
	assert_int_equal(home->link_buf_bytes, 0);
}

PLX_TEST_MAIN()
