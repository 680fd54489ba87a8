/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring for tests, with guard bytes around its memory, and an endless stream of elements pushed
 * through it. Element n is generated from n, so that results can be checked. */
#ifndef RINGS_H
#define RINGS_H

#include "plx_test.h"
#include "ring_priv.h"

#include <stdlib.h>

/* AddressSanitizer guards malloc's memory better than bytes can. */
#define RINGS_GUARD (PLX_TEST_SANITIZED ? 0 : 128)
#define RINGS_FILL  0xa5
#define RINGS_WORDS (1 << 18) /* of the longest burst */

static const uint32_t rings_element_bytes[] = {8, 16, 24, 64, 256};
static const uint32_t rings_capacities[] = {1, 2, 3, 4, 5, 1000, 4096};

enum rings_how { RINGS_ONE, RINGS_BURST, RINGS_BULK, RINGS_IN_PLACE };

struct rings {
	struct plx_ring *ring;
	struct plx_ring_attr attr;
	uint32_t words;
	size_t size_bytes;
	unsigned char *memory;
	uint64_t pushed, popped; /* elements so far */
};

static uint64_t rings_scratch[RINGS_WORDS];

/* Fail, naming the ring. */
#define assert_ring(rings, condition)                                                        \
	do {                                                                                 \
		if (!(condition))                                                            \
			fail_msg("kind %d, capacity %u, elements of %u bytes, %llu pushed, " \
				 "%llu popped: not %s",                                      \
				 (int)(rings)->attr.kind, (rings)->attr.capacity,            \
				 (rings)->words * 8, (unsigned long long)(rings)->pushed,    \
				 (unsigned long long)(rings)->popped, #condition);           \
	} while (0)

static inline uint64_t rings_word(uint64_t element, uint32_t word)
{
	return element * UINT64_C(0x9e3779b97f4a7c15) + word;
}

static inline void rings_make(const struct rings *rings, uint64_t first, uint32_t count, void *out)
{
	uint64_t *to = (uint64_t *)out;

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t word = 0; word < rings->words; word++)
			*to++ = rings_word(first + i, word);
	}
}

static inline void rings_check(const struct rings *rings, uint64_t first, uint32_t count,
			       const void *elements)
{
	const uint64_t *from = (const uint64_t *)elements;

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t word = 0; word < rings->words; word++)
			assert_ring(rings, *from++ == rings_word(first + i, word));
	}
}

/* An empty ring that has moved `start` elements. */
static inline void rings_open(struct rings *rings, const struct plx_ring_attr *attr, uint64_t start)
{
	*rings = (struct rings){.attr = *attr};
	rings->words = attr->element_bytes ? attr->element_bytes / 8 : 1;
	assert_int_equal(plx_ring_size(attr, &rings->size_bytes), 0);
	rings->memory = aligned_alloc(128, rings->size_bytes + 2 * RINGS_GUARD);
	assert_non_null(rings->memory);
	memset(rings->memory, RINGS_FILL, rings->size_bytes + 2 * RINGS_GUARD);
	assert_int_equal(ring_init_at(rings->memory + RINGS_GUARD, attr, start, &rings->ring), 0);
}

static inline void rings_close(struct rings *rings)
{
	const unsigned char *after = rings->memory + RINGS_GUARD + rings->size_bytes;

	for (unsigned i = 0; i < RINGS_GUARD; i++)
		assert_ring(rings, rings->memory[i] == RINGS_FILL && after[i] == RINGS_FILL);
	free(rings->memory);
}

/* Push the next `count` elements of the stream; RINGS_ONE: one at a time. */
static inline uint32_t rings_push(struct rings *rings, uint32_t count, enum rings_how how)
{
	uint32_t done = 0;

	assert_ring(rings, (size_t)count * rings->words <= RINGS_WORDS);
	rings_make(rings, rings->pushed, count, rings_scratch);
	if (how == RINGS_BULK)
		done = plx_ring_push_bulk(rings->ring, rings_scratch, count);
	else if (how == RINGS_BURST)
		done = plx_ring_push_burst(rings->ring, rings_scratch, count);
	else
		while (done < count &&
		       plx_ring_push(rings->ring, rings_scratch + (size_t)done * rings->words))
			done++;
	rings->pushed += done;
	return done;
}

static inline uint32_t rings_take(struct rings *rings, uint32_t count, enum rings_how how)
{
	uint32_t done = 0;

	if (how == RINGS_BULK)
		return plx_ring_pop_bulk(rings->ring, rings_scratch, count);
	if (how == RINGS_BURST)
		return plx_ring_pop_burst(rings->ring, rings_scratch, count);
	while (done < count &&
	       plx_ring_pop(rings->ring, rings_scratch + (size_t)done * rings->words))
		done++;
	return done;
}

/* Pop up to `count` elements; check that they are the next of the stream, and that nothing is
 * written past them. */
static inline uint32_t rings_pop(struct rings *rings, uint32_t count, enum rings_how how)
{
	size_t words = (size_t)count * rings->words;

	assert_ring(rings, words < RINGS_WORDS);
	memset(rings_scratch, RINGS_FILL, (words + 1) * 8);
	uint32_t done = rings_take(rings, count, how);
	rings_check(rings, rings->popped, done, rings_scratch);
	for (size_t i = (size_t)done * rings->words; i <= words; i++)
		assert_ring(rings, rings_scratch[i] == UINT64_C(0x0101010101010101) * RINGS_FILL);
	rings->popped += done;
	return done;
}

/* Run a case on a ring of every kind, capacity and element size. */
static inline void rings_each(void (*run)(struct rings *rings), uint64_t start)
{
	struct plx_ring_attr attr;
	struct rings rings;

	for (attr.kind = PLX_RING_SPSC; attr.kind <= PLX_RING_MPMC; attr.kind++) {
		for (unsigned i = 0; i < PLX_ARRAY_LEN(rings_capacities); i++) {
			for (unsigned j = 0; j < PLX_ARRAY_LEN(rings_element_bytes); j++) {
				attr.capacity = rings_capacities[i];
				attr.element_bytes = rings_element_bytes[j];
				rings_open(&rings, &attr, start);
				run(&rings);
				rings_close(&rings);
			}
		}
	}
}

/** A test whose body runs on each such ring, `rings`, new and empty. */
#define RINGS_TEST(name)                            \
	static void name##_in(struct rings *rings); \
	PLX_TEST(name)                              \
	{                                           \
		rings_each(name##_in, 0);           \
	}                                           \
	static void name##_in(struct rings *rings)

#endif
