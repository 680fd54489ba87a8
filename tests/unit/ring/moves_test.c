/* SPDX-License-Identifier: BSD-3-Clause */
/* How many elements go into a ring and come out, and in which order. */
#include "rings.h"

#include "dice.h"

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* How many of `wanted` a move gets, where `there` are available. */
static uint32_t expected(uint32_t wanted, uint32_t there, enum rings_how how)
{
	return how == RINGS_BULK && wanted > there ? 0 : least(wanted, there);
}

/* Write the next elements of the stream into the first `count` slots of a span. */
static void build(struct rings *rings, const struct plx_ring_span *span, uint32_t count)
{
	uint32_t first = least(count, span->parts[0].count);

	rings_make(rings, rings->pushed, first, span->parts[0].elements);
	rings_make(rings, rings->pushed + first, count - first, span->parts[1].elements);
}

/* Reserve `count` elements, `got` of them available, and commit a part of those. */
static void push_in_place(struct rings *rings, uint32_t count, uint32_t got, uint64_t *dice)
{
	uint32_t part = dice_roll(dice, got + 1);
	struct plx_ring_span span;

	assert_ring(rings, plx_ring_reserve(rings->ring, count, &span) == got);
	assert_ring(rings, span.parts[0].count + span.parts[1].count == got);
	build(rings, &span, part);
	plx_ring_commit(rings->ring, part);
	rings->pushed += part;
}

static void pop_in_place(struct rings *rings, uint32_t count, uint32_t got, uint64_t *dice)
{
	uint32_t part = dice_roll(dice, got + 1);
	struct plx_ring_span span;

	assert_ring(rings, plx_ring_peek(rings->ring, count, &span) == got);
	assert_ring(rings, span.parts[0].count + span.parts[1].count == got);
	rings_check(rings, rings->popped, span.parts[0].count, span.parts[0].elements);
	rings_check(rings, rings->popped + span.parts[0].count, span.parts[1].count,
		    span.parts[1].elements);
	plx_ring_release(rings->ring, part);
	rings->popped += part;
}

PLX_READS(struct plx_ring_stats, stats_of, (const struct rings *rings),
	  plx_ring_stats_read(rings->ring, &it))

/* Moves of all lengths, from none to more than fit, at all positions. */
static void move_at_random(struct rings *rings, unsigned moves)
{
	const uint32_t capacity = rings->attr.capacity, longest = least(capacity + 3, 40);
	const enum rings_how hows = rings->attr.kind == PLX_RING_SPSC ? RINGS_IN_PLACE : RINGS_BULK;
	static uint64_t dice;
	uint64_t full = 0;

	while (moves-- > 0) {
		uint32_t depth = (uint32_t)(rings->pushed - rings->popped), room = capacity - depth;
		uint32_t count = dice_roll(&dice, 64) ? dice_roll(&dice, longest) : capacity;
		enum rings_how how = (enum rings_how)dice_roll(&dice, hows + 1);
		bool pushes = dice_roll(&dice, 2);
		uint32_t got = expected(count, pushes ? room : depth, how);

		full += pushes && count > room;
		if (how == RINGS_IN_PLACE && pushes)
			push_in_place(rings, count, got, &dice);
		else if (how == RINGS_IN_PLACE)
			pop_in_place(rings, count, got, &dice);
		else if (pushes)
			assert_ring(rings, rings_push(rings, count, how) == got);
		else
			assert_ring(rings, rings_pop(rings, count, how) == got);
		assert_ring(rings, stats_of(rings).depth == rings->pushed - rings->popped);
		assert_ring(rings, stats_of(rings).full == full);
	}
	assert_ring(rings, stats_of(rings).capacity == capacity);
}

RINGS_TEST(any_mix_of_moves_gets_what_is_available_in_order)
{
	move_at_random(rings, 3000);
}

static void move_a_little(struct rings *rings)
{
	move_at_random(rings, 300);
}

/* Free-running indices overflow at 2^32 in SPSC rings, and at 2^47 in the others, whose slots are
 * also found with 32 bits: at a single element, in the middle of a burst, and in a full ring. */
PLX_TEST(a_ring_continues_when_its_indices_wrap)
{
	static const uint64_t ends[] = {UINT64_C(1) << 32, UINT64_C(1) << 47};
	static const uint32_t before[] = {0, 1, 3, 500, 6000};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(ends); i++) {
		for (unsigned j = 0; j < PLX_ARRAY_LEN(before); j++)
			rings_each(move_a_little, ends[i] - before[j]);
	}
}

static void long_moves(enum plx_ring_kind kind, uint32_t burst)
{
	const uint32_t count = PLX_RING_BURST_MAX + 1;
	const uint32_t bulk = burst == count ? count : 0;
	struct rings rings;

	rings_open(&rings, &(struct plx_ring_attr){kind, 3 * PLX_RING_BURST_MAX + 5, 8}, 0);
	for (unsigned lap = 0; lap < 5; lap++) {
		assert_ring(&rings, rings_push(&rings, count, RINGS_BURST) == burst);
		assert_ring(&rings, rings_push(&rings, 9, RINGS_BULK) == 9);
		assert_ring(&rings, rings_pop(&rings, count, RINGS_BULK) == bulk);
		assert_ring(&rings, rings_push(&rings, count, RINGS_BULK) == bulk);
		assert_ring(&rings, rings_push(&rings, PLX_RING_BURST_MAX, RINGS_BULK) ==
					    PLX_RING_BURST_MAX);
		while (rings_pop(&rings, count, RINGS_BURST))
			;
		assert_ring(&rings, rings.popped == rings.pushed);
	}
	assert_ring(&rings, stats_of(&rings).full == 0);
	rings_close(&rings);
}

PLX_TEST(many_producers_shorten_long_bursts_and_refuse_long_bulks)
{
	long_moves(PLX_RING_SPSC, PLX_RING_BURST_MAX + 1);
	long_moves(PLX_RING_MPSC, PLX_RING_BURST_MAX);
	long_moves(PLX_RING_MPMC, PLX_RING_BURST_MAX);
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
