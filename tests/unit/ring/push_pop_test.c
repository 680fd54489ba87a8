/* SPDX-License-Identifier: BSD-3-Clause */
/* Behaviour common to all kinds of ring: how much goes in and comes out, and in which order. */
#include "rings.h"

#include "dice.h"

RINGS_TEST(a_ring_holds_exactly_its_capacity)
{
	uint32_t capacity = rings->attr.capacity;

	for (enum rings_how how = RINGS_ONE; how < RINGS_HOWS; how++) {
		assert_ring(rings, rings_push(rings, capacity, how) == capacity);
		assert_ring(rings, rings_push(rings, 1, how) == 0);
		assert_ring(rings, rings_pop(rings, capacity, how) == capacity);
		assert_ring(rings, rings_pop(rings, 1, how) == 0);
	}
}

RINGS_TEST(a_burst_moves_as_many_items_as_possible)
{
	uint32_t capacity = rings->attr.capacity;

	for (uint32_t filled = 0; filled <= capacity; filled += 1 + capacity / 7) {
		assert_ring(rings, rings_push(rings, filled, RINGS_BURST) == filled);
		assert_ring(rings,
			    rings_push(rings, capacity + 1, RINGS_BURST) == capacity - filled);
		assert_ring(rings, rings_pop(rings, filled, RINGS_BURST) == filled);
		assert_ring(rings,
			    rings_pop(rings, capacity + 1, RINGS_BURST) == capacity - filled);
	}
}

RINGS_TEST(a_bulk_moves_all_or_nothing)
{
	uint32_t capacity = rings->attr.capacity;

	assert_ring(rings, rings_push(rings, capacity + 1, RINGS_BULK) == 0);
	for (uint32_t filled = 1; filled <= capacity; filled += 1 + capacity / 7) {
		uint32_t room = capacity - filled;

		assert_ring(rings, rings_push(rings, filled, RINGS_BULK) == filled);
		assert_ring(rings, rings_push(rings, room + 1, RINGS_BULK) == 0);
		assert_ring(rings, rings_pop(rings, filled + 1, RINGS_BULK) == 0);
		assert_ring(rings, plx_ring_depth(rings->ring) == filled);
		assert_ring(rings, rings_push(rings, room, RINGS_BULK) == room);
		assert_ring(rings, rings_pop(rings, capacity, RINGS_BULK) == capacity);
	}
	assert_ring(rings, rings_pop(rings, 1, RINGS_BULK) == 0);
}

RINGS_TEST(a_count_of_zero_succeeds)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t depth = plx_ring_depth(rings->ring);

		for (enum rings_how how = RINGS_BURST; how < RINGS_HOWS; how++) {
			assert_ring(rings, rings_push(rings, 0, how) == 0);
			assert_ring(rings, rings_pop(rings, 0, how) == 0);
		}
		assert_ring(rings, plx_ring_depth(rings->ring) == depth);
		assert_ring(rings, rings->ring->full == 0);
		rings_push(rings, rings->attr.capacity, RINGS_BURST); /* and again when full */
	}
}

static uint32_t expected(uint32_t wanted, uint32_t there, enum rings_how how)
{
	if (how == RINGS_BULK)
		return wanted <= there ? wanted : 0;
	return wanted < there ? wanted : there;
}

/* Every length at every position of the ring. */
RINGS_TEST(all_ways_of_pushing_and_popping_can_be_mixed)
{
	uint32_t capacity = rings->attr.capacity;
	uint32_t longest = capacity + 2 < 40 ? capacity + 2 : 40;
	static uint64_t dice;

	for (unsigned i = 0; i < 3000; i++) {
		uint32_t depth = (uint32_t)(rings->pushed - rings->popped);
		uint32_t count = i % 100 == 0 ? capacity : 1 + dice_roll(&dice, longest);
		enum rings_how how = (enum rings_how)dice_roll(&dice, RINGS_HOWS);

		assert_ring(rings, plx_ring_depth(rings->ring) == depth);
		if (dice_roll(&dice, 2))
			assert_ring(rings, rings_push(rings, count, how) ==
						   expected(count, capacity - depth, how));
		else
			assert_ring(rings,
				    rings_pop(rings, count, how) == expected(count, depth, how));
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
	assert_ring(&rings, rings.ring->full == 0);
	rings_close(&rings);
}

PLX_TEST(many_producers_shorten_long_bursts_and_refuse_long_bulks)
{
	long_moves(PLX_RING_SPSC, PLX_RING_BURST_MAX + 1);
	long_moves(PLX_RING_MPSC, PLX_RING_BURST_MAX);
	long_moves(PLX_RING_MPMC, PLX_RING_BURST_MAX);
}

/* Many short pushes make a chain of marks that one long pop follows, and vice versa. */
RINGS_TEST(long_pops_match_short_pushes_and_the_reverse)
{
	uint32_t capacity = rings->attr.capacity;

	for (unsigned lap = 0; lap < 4; lap++) {
		assert_ring(rings, rings_push(rings, capacity, RINGS_ONE) == capacity);
		assert_ring(rings, rings_pop(rings, capacity, RINGS_BULK) == capacity);
		assert_ring(rings, rings_push(rings, capacity, RINGS_BULK) == capacity);
		assert_ring(rings, rings_pop(rings, capacity, RINGS_ONE) == capacity);
	}
}

PLX_TEST_MAIN()
