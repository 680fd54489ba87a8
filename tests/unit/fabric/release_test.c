/* SPDX-License-Identifier: BSD-3-Clause */
/* Long buffers that become unused are returned to the system in slices, so that no turn is long. */
#include "fixture.h"

#include <malloc.h>
#include <sys/mman.h>

#define BUFS     4
#define LONG     (16u << 20)
#define TURN_MAX (2u << 20)          /* bytes that one turn may return */
#define LEFT_MAX (BUFS * 128u << 10) /* the heap may keep the start of each */
#define PAGE     ((size_t)4096)

/* Whole pages of one buffer's bytes. */
struct range {
	char *start;
	size_t pages;
};

static struct range ranges[BUFS];
static unsigned range_count;

static void note_range(const struct plx_buf *buf)
{
	uintptr_t start = ((uintptr_t)buf->data + PAGE - 1) & ~(PAGE - 1);

	for (unsigned i = 0; i < range_count; i++) {
		if (ranges[i].start == (char *)start)
			return; /* memory of one that was idle for long */
	}
	assert_true(range_count < BUFS);
	ranges[range_count++] = (struct range){(char *)start, LONG / PAGE - 1};
}

/* Bytes of all ranges that are in memory. */
static size_t resident(void)
{
	static unsigned char in_memory[LONG / PAGE];
	size_t pages = 0;

	for (unsigned i = 0; i < range_count; i++) {
		if (mincore(ranges[i].start, ranges[i].pages * PAGE, in_memory) != 0)
			continue; /* unmapped */
		for (size_t page = 0; page < ranges[i].pages; page++)
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

static int start(void **state)
{
	range_count = 0;
	mallopt(M_PERTURB, 0); /* else free() writes what was returned */
	fixture_start("tcp", false);
	fixture_pair(NULL);
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, start, fixture_down)

static void unref_all(struct plx_buf *bufs[BUFS])
{
	for (unsigned i = 0; i < BUFS; i++)
		plx_buf_unref(bufs[i]);
}

static void allocate(struct plx_buf *bufs[BUFS])
{
	for (unsigned i = 0; i < BUFS; i++) {
		bufs[i] = plx_buf_alloc(LONG);
		assert_non_null(bufs[i]);
		memset(plx_buf_append(bufs[i], LONG), 1, LONG);
		note_range(bufs[i]);
	}
}

TEST(dropping_the_last_reference_returns_a_long_buffer_in_slices)
{
	struct plx_buf *bufs[BUFS];

	allocate(bufs);
	unref_all(bufs);
	assert_true(resident() > (BUFS - 1) * LONG);
	assert_true(plx_loop_turn() > 0); /* work: the lcore does not sleep */
	expect_slices();
}

static void quit(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

TEST(nothing_is_left_to_return_when_the_loop_returns)
{
	struct plx_buf *bufs[BUFS];
	struct plx_timer timer;

	allocate(bufs);
	unref_all(bufs);
	plx_timer_init(&timer, quit, NULL);
	assert_int_equal(plx_timer_start(&timer, 0), 0);
	assert_int_equal(plx_loop_run(), 0);
	assert_in_range(resident(), 0, LEFT_MAX);
}

TEST(long_buffers_may_be_dropped_right_before_the_end)
{
	struct plx_buf *bufs[BUFS];

	allocate(bufs);
	unref_all(bufs); /* fixture_down follows; a sanitizer build finds leaks */
}

static unsigned accepted, arrived;

PLX_COUNTS(accept_one, accepted, struct plx_link *link, void *user)

/* The fixture's sides copy messages, perhaps to memory that was just returned. */
static void note_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	arrived++;
	note_range(message);
}

static const struct plx_link_events receivers = {.on_open = accept_one, .on_message = note_message};

TEST(idle_memory_of_messages_in_parts_is_returned_in_slices)
{
	struct plx_listen_attr attr = {.link.events = &receivers};
	struct plx_link_attr connect = {.events = &side_events, .user = &client};
	struct plx_buf *message = plx_buf_alloc(LONG);
	struct plx_listener *listener;
	struct plx_link *links[BUFS];

	plx_buf_append(message, LONG);
	accepted = arrived = 0;
	assert_int_equal(plx_link_listen(here("0"), &attr, &listener), 0);
	for (unsigned i = 0; i < BUFS; i++)
		assert_int_equal(
			plx_link_connect(plx_listener_address(listener), &connect, &links[i]), 0);
	expect_soon(accepted == BUFS && client.opened == 1 + BUFS);
	for (unsigned i = 0; i < BUFS; i++)
		assert_int_equal(plx_link_send_buf(links[i], plx_buf_ref(message), NULL, NULL), 0);
	expect_soon(arrived == BUFS);
	expect_slices();
	plx_buf_unref(message);
}

PLX_TEST_MAIN()
