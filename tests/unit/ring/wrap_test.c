/* SPDX-License-Identifier: BSD-3-Clause */
/* Free-running indices that overflow: at 2^32 in SPSC rings, at 2^47 in the others, whose slots are
 * also found with 32 bits. */
#include "rings.h"

static const uint64_t ends[] = {UINT64_C(1) << 32, UINT64_C(1) << 47};

/* Bursts of that length, until three times the capacity has passed through. */
static void pass(struct rings *rings, uint32_t count, enum rings_how how)
{
	for (uint64_t until = rings->pushed + 3 * rings->attr.capacity; rings->pushed < until;) {
		uint32_t depth = (uint32_t)(rings->pushed - rings->popped);

		assert_ring(rings, rings_push(rings, count, how) == count);
		assert_ring(rings, plx_ring_depth(rings->ring) == depth + count);
		assert_ring(rings, rings_pop(rings, count, how) == count);
		assert_ring(rings, plx_ring_depth(rings->ring) == depth);
	}
}

static void passes(struct rings *rings)
{
	uint32_t capacity = rings->attr.capacity;

	pass(rings, 1, RINGS_ONE);
	pass(rings, (capacity + 1) / 2, RINGS_BURST);
	pass(rings, capacity, RINGS_BULK);
	assert_ring(rings, rings_pop(rings, 1, RINGS_BURST) == 0);
	assert_ring(rings, rings_push(rings, capacity + 1, RINGS_BURST) == capacity);
	assert_ring(rings, rings_push(rings, 1, RINGS_BURST) == 0);
	assert_ring(rings, rings_pop(rings, capacity + 1, RINGS_BURST) == capacity);
	assert_ring(rings, rings->ring->full == 2);
}

/* The overflow happens at a single element, in the middle of a burst, and in a full ring. */
PLX_TEST(a_ring_continues_when_its_indices_wrap)
{
	static const uint32_t before[] = {0, 1, 3, 500, 4096, 6000};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(ends); i++) {
		for (unsigned j = 0; j < PLX_ARRAY_LEN(before); j++)
			rings_each(passes, PLX_RING_MPMC, ends[i] - before[j]);
	}
}

static void stays_full(struct rings *rings)
{
	uint32_t capacity = rings->attr.capacity;

	assert_ring(rings, rings_push(rings, capacity, RINGS_BURST) == capacity);
	for (uint32_t i = 0; i < 2 * capacity; i++) {
		assert_ring(rings, rings_push(rings, 1, RINGS_ONE) == 0);
		assert_ring(rings, rings_pop(rings, 1, RINGS_ONE) == 1);
		assert_ring(rings, rings_push(rings, 2, RINGS_BURST) == 1);
		assert_ring(rings, plx_ring_depth(rings->ring) == capacity);
	}
}

PLX_TEST(a_full_ring_stays_full_when_its_indices_wrap)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(ends); i++)
		rings_each(stays_full, PLX_RING_MPMC, ends[i] - 3);
}

static void in_place(struct rings *rings)
{
	uint32_t capacity = rings->attr.capacity;
	struct plx_ring_span span;

	for (uint32_t i = 0; i < capacity + 8; i++) {
		assert_ring(rings, plx_ring_reserve(rings->ring, capacity, &span) == capacity);
		assert_ring(rings, span.parts[0].count + span.parts[1].count == capacity);
		plx_ring_commit(rings->ring, 1);
		assert_ring(rings, plx_ring_peek(rings->ring, capacity, &span) == 1);
		plx_ring_release(rings->ring, 1);
	}
}

PLX_TEST(spans_continue_when_the_indices_wrap)
{
	rings_each(in_place, PLX_RING_SPSC, ends[0] - 4);
}

PLX_TEST_MAIN()
