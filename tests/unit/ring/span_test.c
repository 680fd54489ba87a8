/* SPDX-License-Identifier: BSD-3-Clause */
/* Building and reading elements in place, in SPSC rings. */
#include "rings.h"

/* Write the next elements of the stream into the first `count` slots of a span. */
static void build(struct rings *rings, const struct plx_ring_span *span, uint32_t count)
{
	uint32_t first = count < span->parts[0].count ? count : span->parts[0].count;

	assert_ring(rings, count - first <= span->parts[1].count);
	rings_make(rings, rings->pushed, first, span->parts[0].elements);
	rings_make(rings, rings->pushed + first, count - first, span->parts[1].elements);
}

static void compare(struct rings *rings, const struct plx_ring_span *span)
{
	uint32_t first = span->parts[0].count;

	rings_check(rings, rings->popped, first, span->parts[0].elements);
	rings_check(rings, rings->popped + first, span->parts[1].count, span->parts[1].elements);
}

static void commit(struct rings *rings, uint32_t count)
{
	plx_ring_commit(rings->ring, count);
	rings->pushed += count;
}

static void release(struct rings *rings, uint32_t count)
{
	plx_ring_release(rings->ring, count);
	rings->popped += count;
}

static uint32_t reserve(struct rings *rings, uint32_t count, struct plx_ring_span *span)
{
	uint32_t got = plx_ring_reserve(rings->ring, count, span);

	assert_ring(rings, span->parts[0].count + span->parts[1].count == got);
	return got;
}

static uint32_t peek(struct rings *rings, uint32_t count, struct plx_ring_span *span)
{
	uint32_t got = plx_ring_peek(rings->ring, count, span);

	assert_ring(rings, span->parts[0].count + span->parts[1].count == got);
	compare(rings, span);
	return got;
}

/* Start at every position of the ring, so that spans are split at each. */
SPANS_TEST(a_span_covers_the_free_slots_split_at_the_end)
{
	uint32_t capacity = rings->attr.capacity;
	uint32_t step = 1 + capacity / 30;
	struct plx_ring_span span;

	for (uint32_t i = 0; i < 2 * capacity; i += step) {
		assert_ring(rings, reserve(rings, capacity + 1, &span) == capacity);
		build(rings, &span, capacity);
		assert_ring(rings, plx_ring_depth(rings->ring) == 0);
		commit(rings, capacity);
		assert_ring(rings, reserve(rings, 1, &span) == 0);
		assert_ring(rings, peek(rings, capacity + 1, &span) == capacity);
		release(rings, capacity);
		assert_ring(rings, peek(rings, 1, &span) == 0);
		rings_push(rings, step, RINGS_BURST);
		rings_pop(rings, step, RINGS_BURST);
	}
}

PLX_TEST(a_span_is_split_only_at_the_end_of_the_ring)
{
	const struct plx_ring_attr attr = {PLX_RING_SPSC, 6, 16}; /* of 8 slots */
	struct plx_ring_span span;
	struct rings rings;

	rings_open(&rings, &attr, 0);
	assert_int_equal(reserve(&rings, 6, &span), 6);
	char *slots = span.parts[0].elements;
	assert_int_equal(span.parts[1].count, 0);
	build(&rings, &span, 5);
	commit(&rings, 5);
	assert_int_equal(peek(&rings, 5, &span), 5);
	assert_ptr_equal(span.parts[0].elements, slots);
	release(&rings, 5);
	assert_int_equal(reserve(&rings, 6, &span), 6);
	assert_ptr_equal(span.parts[0].elements, slots + 5 * 16);
	assert_int_equal(span.parts[0].count, 3);
	assert_ptr_equal(span.parts[1].elements, slots);
	assert_int_equal(span.parts[1].count, 3);
	rings_close(&rings);
}

SPANS_TEST(less_may_be_committed_than_was_reserved)
{
	uint32_t capacity = rings->attr.capacity;
	struct plx_ring_span span;
	struct plx_ring_span again;

	for (uint32_t i = 0; i < 40; i++) {
		uint32_t part = (capacity + 1) / 2;

		assert_ring(rings, reserve(rings, capacity, &span) == capacity);
		assert_ring(rings, reserve(rings, capacity, &again) == capacity);
		assert_ring(rings, again.parts[0].elements == span.parts[0].elements);
		build(rings, &span, part);
		commit(rings, part);
		assert_ring(rings, plx_ring_depth(rings->ring) == part);
		assert_ring(rings, reserve(rings, capacity, &span) == capacity - part);
		commit(rings, 0);
		assert_ring(rings, rings_pop(rings, capacity, RINGS_BURST) == part);
	}
}

SPANS_TEST(less_may_be_released_than_was_peeked_at)
{
	uint32_t capacity = rings->attr.capacity;
	struct plx_ring_span span;

	for (uint32_t i = 0; i < 40; i++) {
		assert_ring(rings, rings_push(rings, capacity, RINGS_BURST) == capacity);
		assert_ring(rings, peek(rings, capacity, &span) == capacity);
		release(rings, 1);
		assert_ring(rings, peek(rings, capacity, &span) == capacity - 1);
		assert_ring(rings, peek(rings, capacity, &span) == capacity - 1);
		release(rings, 0);
		assert_ring(rings, rings_push(rings, 2, RINGS_BURST) == 1);
		assert_ring(rings, rings_pop(rings, capacity, RINGS_BULK) == capacity);
	}
}

SPANS_TEST(spans_of_an_empty_or_full_ring_are_empty)
{
	struct plx_ring_span span;

	assert_ring(rings, reserve(rings, 0, &span) == 0);
	assert_ring(rings, peek(rings, 0, &span) == 0);
	assert_ring(rings, peek(rings, 1, &span) == 0);
	rings_push(rings, rings->attr.capacity, RINGS_BURST);
	assert_ring(rings, reserve(rings, 1, &span) == 0);
	assert_ring(rings, peek(rings, 0, &span) == 0);
	assert_ring(rings, rings->ring->full == 1); /* the one that found no room */
}

PLX_TEST(rings_of_other_kinds_have_no_spans)
{
	struct plx_ring_attr attr = {.kind = PLX_RING_MPMC, .capacity = 4};
	struct plx_ring_span span;
	struct plx_ring *ring;
	uint64_t element = 1;

	assert_int_equal(plx_ring_create(&attr, &ring), 0);
	assert_true(plx_ring_push(ring, &element));
	assert_int_equal(plx_ring_reserve(ring, 2, &span), 0);
	assert_int_equal(span.parts[0].count + span.parts[1].count, 0);
	assert_int_equal(plx_ring_peek(ring, 1, &span), 0);
	assert_int_equal(plx_ring_depth(ring), 1);
	plx_ring_destroy(ring);
}

PLX_TEST_MAIN()
