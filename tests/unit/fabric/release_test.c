/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that becomes unused: long buffers are returned to the system in slices, so that no turn is
 * long; memory of long copies is reused once they were sent; the pool of messages that outlive
 * their link is freed when the last is returned. */
#include "fabric_link.h"
#include "fixture.h"

#include <malloc.h>
#include <sys/mman.h>

#define BUFS     4
#define LONG     (16u << 20)
#define TURN_MAX (2u << 20)          /* bytes that one turn may return */
#define LEFT_MAX (BUFS * 128u << 10) /* the heap may keep the start of each */
#define PAGE     ((size_t)4096)

#define PAGES    (LONG / PAGE - 1) /* whole ones of a buffer */

static char *ranges[BUFS]; /* the whole pages of each buffer */
static unsigned range_count;

static void note_range(const struct plx_buf *buf)
{
	uintptr_t start = ((uintptr_t)buf->data + PAGE - 1) & ~(PAGE - 1);

	ranges[range_count++] = (char *)start;
}

/* Bytes of all ranges that are in memory. */
static size_t resident(void)
{
	static unsigned char in_memory[PAGES];
	size_t pages = 0;

	for (unsigned i = 0; i < range_count; i++) {
		if (mincore(ranges[i], PAGES * PAGE, in_memory) != 0)
			continue; /* unmapped */
		for (size_t page = 0; page < PAGES; page++)
			pages += in_memory[page] & 1;
	}
	return pages * PAGE;
}

/* Turn until all is returned, without a turn that returns much. */
static void expect_slices(void)
{
	uint64_t limit_ns = plx_now_ns() + 20 * PLX_NS_PER_S;
	size_t left = resident();

	while (left > LEFT_MAX && plx_now_ns() < limit_ns) {
		size_t before = left;

		plx_loop_turn();
		left = resident();
		if (left + TURN_MAX < before)
			fail_msg("one turn returned %zu bytes", before - left);
	}
	assert_in_range(left, 0, LEFT_MAX);
}

static struct plx_fabric_lcore *home;

static int start_empty(void **state)
{
	fixture_start("tcp", false);
	assert_int_equal(fabric_here("start", &home), 0);
	return 0;
}

PLX_TEST_WITH(dropping_the_last_reference_returns_a_long_buffer_in_slices, start_empty,
	      fixture_down)
{
	struct plx_buf *bufs[BUFS];

	mallopt(M_PERTURB, 0); /* else free() writes what was returned */
	for (unsigned i = 0; i < BUFS; i++) {
		bufs[i] = plx_buf_alloc(LONG);
		memset(plx_buf_append(bufs[i], LONG), 1, LONG);
		note_range(bufs[i]);
	}
	for (unsigned i = 0; i < BUFS; i++)
		plx_buf_unref(bufs[i]);
	assert_true(resident() > (BUFS - 1) * LONG);
	assert_true(plx_loop_turn() > 0); /* work: the lcore does not sleep */
	expect_slices();
}

/* Long copies --------------------------------------------------------------------------------- */

#define MIB (UINT32_C(1) << 20)

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

static bool is_kept(const struct plx_buf *buf)
{
	for (unsigned i = 0; i < LINK_BUF_COUNT; i++) {
		if (home->link_bufs[i] == buf)
			return true;
	}
	return false;
}

#define LINK_BUF_TEST(name) PLX_TEST_WITH(name, start_empty, fixture_down)

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

LINK_BUF_TEST(longer_buffers_replace_shorter_ones_within_the_bound)
{
	struct plx_buf *bufs[20], *buf;

	for (uint32_t length = 2 * MIB; length <= 8 * MIB; length *= 2) {
		buf = get(length);
		assert_true(is_kept(buf));
		assert_in_range(home->link_buf_bytes, length, LINK_BUF_BYTES_MAX);
		plx_buf_unref(buf);
	}
	assert_ptr_equal(get(5000), buf); /* a longer one is good enough */
	plx_buf_unref(buf);

	/* Buffers in use leave no room for it, so nothing is freed. */
	link_buf_free_all(home);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++) {
		bufs[i] = get(MIB);
		assert_int_equal(is_kept(bufs[i]), i < 8);
	}
	buf = get(5 * MIB);
	assert_false(is_kept(buf));
	plx_buf_unref(buf);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bufs); i++)
		plx_buf_unref(bufs[i]);
	buf = get(LINK_BUF_BYTES_MAX + 1);
	assert_false(is_kept(buf));
	plx_buf_unref(buf);
	assert_int_equal(home->link_buf_bytes, 8 * (MIB + 4096));
}

/* Messages that outlive their link ------------------------------------------------------------- */

#define KEPT 3

static struct plx_listener *listener;

/* Messages of a closed link are in server.kept. */
static void outlive_a_link(void)
{
	fixture_renew_sides();
	server.keep = KEPT;
	fixture_connect(listener, NULL);
	home = server.link->set->home;
	for (unsigned i = 0; i < KEPT; i++)
		expect_arrival("keep me", 7);
	plx_link_abort(client.link);
	expect_both_end();
	expect_soon(LIST_EMPTY(&home->links));
}

static bool reaped_within(unsigned limit_ms)
{
	for (unsigned i = 0; i < limit_ms && home->kept_pool_count; i++)
		pump_ms(1);
	return home->kept_pool_count == 0;
}

static void drop_one(void *arg)
{
	side_release(&server, 1);
}

PLX_FIXTURE(start_with_listener, 0,
	    (fixture_start(NULL, true), listener = fixture_listen(here("0"), NULL)))

#define KEPT_TEST(test) PLX_TEST_WITH(test, start_with_listener, fixture_down)

KEPT_TEST(a_kept_pool_is_freed_with_its_last_buffer)
{
	size_t before;

	outlive_a_link();
	assert_int_equal(home->kept_pool_count, 1);
	before = zone_bytes_used();
	for (unsigned i = 0; i < KEPT; i++) {
		assert_false(reaped_within(3));
		assert_int_equal(zone_bytes_used(), before);
		assert_memory_equal(server.kept[0]->data, "keep me", 7);
		drop_one(NULL);
	}
	assert_true(reaped_within(1000));
	assert_true(zone_bytes_used() + KEPT * 4096 < before);
}

/* The last one is dropped while the owner checks for it. */
KEPT_TEST(a_kept_pool_is_not_freed_while_another_lcore_releases_its_buffer)
{
	worker_start();
	for (int round = 0; round < 200; round++) {
		outlive_a_link();
		for (unsigned i = 0; i < KEPT; i++)
			assert_int_equal(plx_lcore_send(1, drop_one, NULL), 0);
		assert_true(reaped_within(2000));
	}
	worker_stop();
}

/* No loop turns again: plx_fabric_fini finds them. The fixture checks memory. */
KEPT_TEST(buffers_of_a_kept_pool_may_be_released_after_the_last_turn)
{
	outlive_a_link();
	assert_int_equal(home->kept_pool_count, 1);
	side_release(&server, KEPT);
}

PLX_TEST_MAIN()
