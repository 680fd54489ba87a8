/* SPDX-License-Identifier: BSD-3-Clause */
/* Create and inspect rings of every kind. One block of memory holds the header, the slots and, for
 * kinds that use them, the marks. */
#include "ring_priv.h"

#include <stdlib.h>

/* In elements; doc/design/rings.md has the measurements for both. */
#define PUSH_AHEAD  256
#define POP_AHEAD   128

#define BLOCK_BYTES (2 * (size_t)PLX_CACHE_LINE)

_Static_assert(offsetof(struct plx_ring, tail) % BLOCK_BYTES == 0, "producers write elsewhere");
_Static_assert(offsetof(struct plx_ring, tail) == BLOCK_BYTES, "the constants are one block");
_Static_assert(offsetof(struct plx_ring, head) == 2 * BLOCK_BYTES, "consumers write elsewhere");
_Static_assert(sizeof(struct plx_ring) == 3 * BLOCK_BYTES, "the slots begin at a block");

static int check(const struct plx_ring_attr *attr)
{
	if ((unsigned)attr->kind > PLX_RING_MPMC)
		return plx_fail(EINVAL, "a ring of kind %d: give one of enum plx_ring_kind",
				(int)attr->kind);
	if (attr->capacity == 0 || attr->capacity > PLX_RING_CAPACITY_MAX)
		return plx_fail(EINVAL, "a ring of %u elements: give 1 to %u", attr->capacity,
				PLX_RING_CAPACITY_MAX);
	if (attr->element_bytes % 8 != 0 || attr->element_bytes > PLX_RING_ELEMENT_MAX)
		return plx_fail(EINVAL,
				"a ring of elements of %u bytes: give a multiple of 8, up to %u",
				attr->element_bytes, PLX_RING_ELEMENT_MAX);
	return 0;
}

static size_t round_up(size_t size, size_t unit)
{
	return (size + unit - 1) / unit * unit;
}

static uint32_t words_of(const struct plx_ring_attr *attr)
{
	return attr->element_bytes ? attr->element_bytes / 8 : 1;
}

/* The smallest power of two that holds the capacity. */
static uint32_t slots_of(const struct plx_ring_attr *attr)
{
	uint32_t slots = 1;

	while (slots < attr->capacity)
		slots *= 2;
	return slots;
}

/* Whole blocks, since other data may follow the slots. At most 2^30 * 264 bytes. */
static size_t slots_bytes(const struct plx_ring_attr *attr)
{
	return round_up((size_t)slots_of(attr) * words_of(attr) * 8, BLOCK_BYTES);
}

int plx_ring_size(const struct plx_ring_attr *attr, size_t *size_bytes_out)
{
	int err = check(attr);

	if (err)
		return err;
	*size_bytes_out = sizeof(struct plx_ring) + slots_bytes(attr);
	if (attr->kind != PLX_RING_SPSC) /* marks */
		*size_bytes_out += round_up(slots_of(attr) * sizeof(uint64_t), BLOCK_BYTES);
	return 0;
}

/* In a small ring, a long prefetch distance would fetch what was just written. */
static uint32_t ahead(const struct plx_ring_attr *attr, uint32_t wanted)
{
	return wanted < attr->capacity / 4 ? wanted : attr->capacity / 4;
}

int ring_init_at(void *memory, const struct plx_ring_attr *attr, uint64_t start,
		 struct plx_ring **ring_out)
{
	struct plx_ring *ring = memory;
	int err = check(attr);

	if (err)
		return err;
	if (!memory || (uintptr_t)memory % BLOCK_BYTES)
		return plx_fail(EINVAL, "a ring at %p: give memory that is aligned to %zu bytes",
				memory, BLOCK_BYTES);
	memset(ring, 0, sizeof(*ring));
	ring->mask = slots_of(attr) - 1;
	ring->capacity = attr->capacity;
	ring->words = words_of(attr);
	ring->kind = (uint8_t)attr->kind;
	ring->is_plain = attr->kind == PLX_RING_SPSC && ring->words == 1;
	ring->push_ahead = ahead(attr, PUSH_AHEAD);
	ring->pop_ahead = ahead(attr, POP_AHEAD);
	ring->slots = (uint64_t *)(ring + 1);
	ring->limit = (uint32_t)start + attr->capacity;
	ring->tail_seen = (uint32_t)start;
	atomic_init(&ring->tail, (uint32_t)start);
	atomic_init(&ring->head, (uint32_t)start);
	if (attr->kind != PLX_RING_SPSC) {
		ring->marks = (_Atomic uint64_t *)((char *)ring->slots + slots_bytes(attr));
		multi_init(ring, start);
	}
	*ring_out = ring;
	return 0;
}

int plx_ring_init(void *memory, const struct plx_ring_attr *attr, struct plx_ring **ring_out)
{
	return ring_init_at(memory, attr, 0, ring_out);
}

int plx_ring_create(const struct plx_ring_attr *attr, struct plx_ring **ring_out)
{
	size_t size_bytes;
	void *memory;
	int err = plx_ring_size(attr, &size_bytes);

	if (err)
		return err;
	memory = aligned_alloc(BLOCK_BYTES, size_bytes);
	if (!memory)
		return plx_fail(ENOMEM, "no heap memory for a ring of %u elements (%zu bytes)",
				attr->capacity, size_bytes);
	err = plx_ring_init(memory, attr, ring_out);
	if (!err)
		(*ring_out)->heap = memory;
	return err;
}

void plx_ring_destroy(struct plx_ring *ring)
{
	if (ring)
		free(ring->heap);
}

/* Push and pop ----------------------------------------------------------------------------- */

uint32_t plx_ring_spsc_push(struct plx_ring *ring, const void *elements, uint32_t count, bool bulk)
{
	return plx_ring_push_words(ring, ring->words, elements, count, bulk);
}

uint32_t plx_ring_spsc_push_part(struct plx_ring *ring, const void *elements, uint32_t room,
				 bool bulk)
{
	counter_add(&ring->full, 1);
	return bulk || room == 0 ? 0 : plx_ring_spsc_push(ring, elements, room, true);
}

uint32_t plx_ring_spsc_pop(struct plx_ring *ring, void *elements, uint32_t count, bool bulk)
{
	return plx_ring_pop_words(ring, ring->words, elements, count, bulk);
}

uint32_t plx_ring_spsc_pop_part(struct plx_ring *ring, void *elements, uint32_t filled, bool bulk)
{
	return bulk || filled == 0 ? 0 : plx_ring_spsc_pop(ring, elements, filled, true);
}

/* Looking ---------------------------------------------------------------------------------- */

uint32_t plx_ring_depth(const struct plx_ring *ring)
{
	uint32_t depth;

	if (ring->kind != PLX_RING_SPSC)
		return multi_depth(ring);
	depth = counter_get(&ring->tail) - counter_get(&ring->head);
	/* The tail may predate a push whose pop the head already includes. */
	return depth <= ring->capacity ? depth : 0;
}

void plx_ring_stats_read(const struct plx_ring *ring, struct plx_ring_stats *stats_out)
{
	*stats_out = (struct plx_ring_stats){
		.capacity = ring->capacity,
		.depth = plx_ring_depth(ring),
		.full = counter_get(&ring->full),
	};
}
