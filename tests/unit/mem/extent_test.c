/* SPDX-License-Identifier: BSD-3-Clause */
/* Extents at addresses without memory: the bookkeeping is outside. */
#include "dice.h"
#include "plx_test.h"

#include "mem_priv.h"

#define BASE ((uintptr_t)0x100040)
#define SIZE ((size_t)64 * 1024)

static struct mem_extents extents;

PLX_FIXTURE(setup, mem_extents_init(&extents, (void *)BASE, SIZE))
PLX_FIXTURE(teardown, 0, mem_extents_fini(&extents))

static uintptr_t take(size_t size, size_t align)
{
	return (uintptr_t)mem_extents_take(&extents, size, align);
}

static size_t give(uintptr_t at)
{
	return mem_extents_give(&extents, (void *)at);
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

TEST(nothing_is_allocated_beyond_the_end)
{
	assert_int_equal(take(SIZE + 64, 64), 0);
	assert_int_equal(take(SIZE, 128), 0);
	assert_int_equal(take(SIZE, 64), BASE);
	assert_int_equal(take(64, 64), 0);
}

TEST(freeing_an_unknown_address_is_refused)
{
	uintptr_t at = take(1024, 64);

	assert_int_equal(give(at + 64), 0);
	assert_int_equal(give(BASE + 4096), 0);
	assert_int_equal(give(at), 1024);
	assert_int_equal(give(at), 0);
}

struct piece {
	uintptr_t at;
	size_t size;
};

/* A map of lines in use, which reveals overlaps and losses. */
static void mark(uint8_t *lines, struct piece piece, uint8_t from, uint8_t to)
{
	for (size_t i = (piece.at - BASE) / 64; i < (piece.at - BASE + piece.size) / 64; i++) {
		assert_int_equal(lines[i], from);
		lines[i] = to;
	}
}

TEST(no_byte_is_allocated_twice)
{
	static struct piece pieces[64];
	static uint8_t lines[SIZE / 64];
	uint64_t dice = 7;

	for (int turn = 0; turn < 20000; turn++) {
		struct piece *piece = &pieces[dice_roll(&dice, 64)];

		if (piece->at) {
			assert_int_equal(give(piece->at), piece->size);
			mark(lines, *piece, 1, 0);
			piece->at = 0;
			continue;
		}
		size_t align = (size_t)64 << dice_roll(&dice, 4);
		piece->size = (dice_roll(&dice, 64) + 1) * 64;
		piece->at = take(piece->size, align);
		if (!piece->at)
			continue;
		assert_int_equal(piece->at % align, 0);
		assert_in_range(piece->at, BASE, BASE + SIZE - piece->size);
		mark(lines, *piece, 0, 1);
	}
	for (size_t i = 0; i < PLX_ARRAY_LEN(pieces); i++) {
		if (pieces[i].at)
			assert_int_equal(give(pieces[i].at), pieces[i].size);
	}
	assert_int_equal(take(SIZE, 64), BASE);
}

PLX_TEST_MAIN()
