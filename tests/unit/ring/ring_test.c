/* SPDX-License-Identifier: BSD-3-Clause */
/* Creating rings, and their depth. */
#include "rings.h"

#define OTHER ((struct plx_ring *)&other)

static char other;

static void refused(const struct plx_ring_attr *attr, const char *given)
{
	static PLX_RING_BLOCK char memory[65536];
	struct plx_ring *ring = OTHER;
	size_t size_bytes = 7;

	assert_fails(plx_ring_size(attr, &size_bytes), -EINVAL, given);
	assert_int_equal(size_bytes, 7);
	assert_fails(plx_ring_init(memory, attr, &ring), -EINVAL, given);
	assert_fails(plx_ring_create(attr, &ring), -EINVAL, given);
	assert_ptr_equal(ring, OTHER);
}

PLX_TEST(invalid_rings_are_refused_with_the_allowed_values)
{
	refused(&(struct plx_ring_attr){(enum plx_ring_kind)3, 8, 8}, "kind 3: give one of");
	refused(&(struct plx_ring_attr){(enum plx_ring_kind) - 1, 8, 8}, "kind -1: give one of");
	refused(&(struct plx_ring_attr){PLX_RING_SPSC, 0, 8}, "0 elements: give 1 to 1073741824");
	refused(&(struct plx_ring_attr){PLX_RING_MPMC, PLX_RING_CAPACITY_MAX + 1, 8},
		"1073741825 elements: give 1 to");
	refused(&(struct plx_ring_attr){PLX_RING_MPSC, UINT32_MAX, 8}, "4294967295 elements");
	refused(&(struct plx_ring_attr){PLX_RING_SPSC, 8, 4}, "4 bytes: give a multiple of 8");
	refused(&(struct plx_ring_attr){PLX_RING_MPSC, 8, 12}, "12 bytes: give a multiple of 8");
	refused(&(struct plx_ring_attr){PLX_RING_MPMC, 8, 264}, "264 bytes: give a multiple of 8");
}

PLX_TEST(the_memory_of_a_ring_must_be_aligned)
{
	static PLX_RING_BLOCK char memory[4096];
	const struct plx_ring_attr attr = {PLX_RING_MPMC, 8, 8};
	struct plx_ring *ring = OTHER;

	assert_fails(plx_ring_init(memory + 64, &attr, &ring), -EINVAL, "aligned to 128 bytes");
	assert_int_equal(plx_ring_init(NULL, &attr, &ring), -EINVAL);
	assert_ptr_equal(ring, OTHER);
	assert_int_equal(plx_ring_init(memory + 128, &attr, &ring), 0);
	assert_ptr_equal(ring, memory + 128);
}

static void pops_nothing(struct rings *rings)
{
	assert_ring(rings, plx_ring_depth(rings->ring) == 0);
	assert_ring(rings, rings_pop(rings, 1, RINGS_ONE) == 0);
	assert_ring(rings, rings_pop(rings, 3, RINGS_BURST) == 0);
	assert_ring(rings, rings_pop(rings, 1, RINGS_BULK) == 0);
}

RINGS_TEST(a_new_ring_is_empty_whatever_its_memory_contained)
{
	pops_nothing(rings);
	rings_push(rings, rings->attr.capacity, RINGS_BURST);
	rings_pop(rings, rings->attr.capacity / 2, RINGS_BURST);
	assert_ring(rings, plx_ring_init(rings->ring, &rings->attr, &rings->ring) == 0);
	rings->pushed = rings->popped = 0;
	pops_nothing(rings);
	assert_ring(rings,
		    rings_push(rings, rings->attr.capacity, RINGS_BURST) == rings->attr.capacity);
	assert_ring(rings,
		    rings_pop(rings, rings->attr.capacity, RINGS_BULK) == rings->attr.capacity);
}

/* As seen by a thread that reads the push count, is preempted, and then reads the pop count; or,
 * with marks, vice versa. */
RINGS_TEST(the_depth_is_always_between_0_and_the_capacity)
{
	struct plx_ring *ring = rings->ring;
	uint32_t tail = atomic_load(&ring->tail);
	uint64_t push_claim = atomic_load(&ring->push_claim);
	uint64_t pop_claim = atomic_load(&ring->pop_claim);

	for (uint32_t i = 0; i <= rings->attr.capacity; i++) {
		rings_push(rings, 1, RINGS_ONE);
		rings_pop(rings, 1, RINGS_ONE);
	}
	if (rings->attr.kind != PLX_RING_SPSC) {
		atomic_store(&ring->pop_claim, pop_claim);
		assert_ring(rings, plx_ring_depth(ring) == rings->attr.capacity);
		atomic_store(&ring->pop_claim, atomic_load(&ring->push_claim));
	}
	atomic_store(&ring->tail, tail);
	atomic_store(&ring->push_claim, push_claim);
	assert_ring(rings, plx_ring_depth(ring) == 0);
}

PLX_TEST_MAIN()
