/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings with many producers and one or many consumers.
 *
 * Positions increase freely; position p is slot p & mask. A push has three steps:
 *
 *   claim   advance push_claim over the positions to fill, with one compare-and-swap
 *   copy    write the elements
 *   mark    store in the mark of its first position: "n slots from here are filled"
 *
 * A pop does the same with pop_claim, and its mark means "n slots from here are empty". Marks form
 * a chain: the next mark follows the n positions of the previous one. A consumer that knows how far
 * the ring is filled checks only the next mark. Filled positions that it found but did not take are
 * stored as a run next to the position in the claim word, so the next pop, by any consumer, need
 * not search again. Producers follow the consumers' marks one lap later, in the same way.
 *
 * One mark per push instead of one per element makes bursts cheap. Compare Vyukov's bounded queue
 * (1024cores.net), which has a sequence number in each slot. There is no common tail to publish in
 * turn, as in DPDK's rings: a producer preempted between claim and mark delays only consumers that
 * reach its position.
 *
 *   claim word: position << 17 | run                             run < 2^17
 *   mark:       position << 17 | EMPTY or 0 | length             length < 2^16
 *
 * Positions have 47 bits. A stale mark passes for a new one only if exactly 2^47 elements pass
 * while no thread marks that slot: 39 hours at 10^9 elements a second. */
#include "ring_priv.h"

#define POSITION_SHIFT 17
#define POSITION_MASK  (UINT64_MAX >> POSITION_SHIFT)
#define RUN_MASK       ((UINT64_C(1) << POSITION_SHIFT) - 1)
#define MARK_EMPTY     (UINT64_C(1) << 16)
#define MARK_LENGTH    (MARK_EMPTY - 1)

#define MARK_AHEAD     64 /* slots ahead whose mark a consumer prefetches for writing */

/* Tests stop or delay a thread at these steps: looked, claimed, copied. */
#ifndef RING_STEP
#define RING_STEP(where) ((void)0)
#endif

_Static_assert(PLX_RING_BURST_MAX <= MARK_LENGTH, "a mark holds the length of a burst");
_Static_assert(PLX_RING_BURST_MAX + MARK_LENGTH <= RUN_MASK, "a run grows by a mark past a burst");

static inline uint64_t make_word(uint64_t position, uint64_t rest)
{
	return position << POSITION_SHIFT | rest;
}

static inline _Atomic uint64_t *mark_of(const struct plx_ring *ring, uint64_t position)
{
	return &ring->marks[position & ring->mask];
}

void multi_init(struct plx_ring *ring, uint64_t start)
{
	/* No mark yet: slot i never holds position i ^ 1, except in a ring of one slot, whose mark
	 * is set below. */
	for (uint64_t i = 0; i <= ring->mask; i++)
		atomic_init(&ring->marks[i], make_word(i ^ 1, 0));
	/* As if a consumer had just emptied it. */
	for (uint64_t left = ring->capacity; left > 0;) {
		uint64_t length = left < MARK_LENGTH ? left : MARK_LENGTH;
		uint64_t position = start - left;

		atomic_init(mark_of(ring, position), make_word(position, MARK_EMPTY | length));
		left -= length;
	}
	atomic_init(&ring->push_claim, make_word(start, 0));
	atomic_init(&ring->pop_claim, make_word(start, 0));
}

uint32_t multi_depth(const struct plx_ring *ring)
{
	/* The two loads are not atomic together: the difference may exceed the capacity or, if the
	 * processor reorders them, be negative. */
	uint64_t popped = counter_get(&ring->pop_claim), pushed = counter_get(&ring->push_claim);
	uint64_t depth = ((pushed >> POSITION_SHIFT) - (popped >> POSITION_SHIFT)) & POSITION_MASK;

	if (depth > POSITION_MASK / 2)
		return 0;
	return depth <= ring->capacity ? (uint32_t)depth : ring->capacity;
}

/* Follow the marks from position + run until the run is `count` long or the next mark is missing.
 * Return the run. */
static inline uint64_t follow(const struct plx_ring *ring, uint64_t position, uint64_t run,
			      uint32_t count, uint64_t kind)
{
	while (run < count) {
		/* M2 <- M1: the other side's accesses to those slots are visible. */
		uint64_t mark = atomic_load_explicit(mark_of(ring, position + run),
						     memory_order_acquire);

		if ((mark & ~MARK_LENGTH) != make_word(position + run, kind))
			break;
		run += mark & MARK_LENGTH;
	}
	return run;
}

struct claim {
	uint64_t position;
	uint32_t count;
};

/* Claim up to `count` positions (bulk: all or none) whose marks, `distance` positions earlier, are
 * of that kind. sole: no other thread claims from this word. */
static inline struct claim claim(struct plx_ring *ring, _Atomic uint64_t *word, uint64_t distance,
				 uint64_t kind, uint32_t count, bool bulk, bool sole)
{
	/* C2 <- C1: another thread found the run in this word; acquire what it saw at M2. */
	uint64_t old = atomic_load_explicit(word, memory_order_acquire);

	for (;;) {
		uint64_t position = old >> POSITION_SHIFT;
		uint64_t run = old & RUN_MASK;
		uint32_t taken;

		RING_STEP(looked);
		if (run < count)
			run = follow(ring, position - distance, run, count, kind);
		taken = run < count ? (uint32_t)run : count;
		if (plx_unlikely(taken == 0 || (bulk && taken < count))) {
			/* Other threads may have lapped the ring; then the marks are of another. */
			uint64_t now = atomic_load_explicit(word, memory_order_acquire);

			if (now == old)
				return (struct claim){position, 0};
			old = now;
			continue;
		}

		uint64_t new = make_word(position + taken, run - taken);
		if (sole) {
			/* Relaxed: only one thread writes and reads it. */
			atomic_store_explicit(word, new, memory_order_relaxed);
			return (struct claim){position, taken};
		}
		/* C1 -> C2 */
		if (atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_acq_rel,
							  memory_order_acquire))
			return (struct claim){position, taken};
	}
}

static inline void mark(struct plx_ring *ring, struct claim claim, uint64_t kind)
{
	/* M1 -> M2 */
	atomic_store_explicit(mark_of(ring, claim.position),
			      make_word(claim.position, kind | claim.count), memory_order_release);
}

/* Return whether the claim ends a cache line of marks and of 8-byte slots; per-line work runs
 * then. */
static inline bool ends_line(struct claim claim)
{
	return (claim.position + claim.count) % 8 < claim.count;
}

/* Prefetch the lines to write soon into this CPU's cache: see plx_ring_push_prefetch. */
static inline void prefetch(struct plx_ring *ring, uint32_t words, uint64_t at, uint32_t count)
{
	uint32_t start = (uint32_t)at & ring->mask;

	plx_prefetch_write(&ring->marks[start]);
	if (plx_unlikely(start + count > ring->mask + 1))
		return;
	for (uint32_t word = 0; word < count * words; word += 8)
		plx_prefetch_write(ring->slots + (size_t)start * words + word);
}

static inline uint32_t push(struct plx_ring *ring, uint32_t words, const void *elements,
			    uint32_t count, bool bulk)
{
	struct claim mine = claim(ring, &ring->push_claim, ring->capacity, MARK_EMPTY, count, bulk,
				  false);

	if (plx_unlikely(mine.count < count))
		counter_add_shared(&ring->full, 1);
	if (plx_unlikely(mine.count == 0))
		return 0;
	RING_STEP(claimed);
	plx_ring_copy_in(ring, words, (uint32_t)mine.position, elements, mine.count);
	RING_STEP(copied);
	if (words != 1 || plx_unlikely(ends_line(mine)))
		prefetch(ring, words, mine.position + ring->push_ahead, mine.count);
	mark(ring, mine, 0);
	return mine.count;
}

/* Limit a count to what one claim can hold. Return false if there is nothing to do. */
static inline bool bound(uint32_t *count, bool bulk)
{
	if (plx_likely(*count - 1 < PLX_RING_BURST_MAX))
		return true;
	if (*count == 0 || bulk)
		return false;
	*count = PLX_RING_BURST_MAX;
	return true;
}

uint32_t plx_ring_multi_push(struct plx_ring *ring, const void *elements, uint32_t count, bool bulk)
{
	if (plx_unlikely(!bound(&count, bulk)))
		return 0;
	if (plx_likely(ring->words == 1))
		return push(ring, 1, elements, count, bulk);
	return push(ring, ring->words, elements, count, bulk);
}

uint32_t plx_ring_multi_push_one(struct plx_ring *ring, const void *element)
{
	if (plx_likely(ring->words == 1))
		return push(ring, 1, element, 1, false);
	return plx_ring_multi_push(ring, element, 1, false);
}

static inline uint32_t pop(struct plx_ring *ring, uint32_t words, void *elements, uint32_t count,
			   bool bulk, bool sole)
{
	struct claim mine = claim(ring, &ring->pop_claim, 0, 0, count, bulk, sole);

	if (mine.count == 0)
		return 0;
	RING_STEP(claimed);
	plx_ring_copy_out(ring, words, (uint32_t)mine.position, elements, mine.count);
	RING_STEP(copied);
	if (plx_unlikely(ends_line(mine)))
		plx_prefetch_write(mark_of(ring, mine.position + MARK_AHEAD));
	mark(ring, mine, MARK_EMPTY);
	return mine.count;
}

uint32_t plx_ring_multi_pop(struct plx_ring *ring, void *elements, uint32_t count, bool bulk)
{
	bool sole = ring->kind == PLX_RING_MPSC;

	if (plx_unlikely(!bound(&count, bulk)))
		return 0;
	if (plx_unlikely(ring->words != 1))
		return pop(ring, ring->words, elements, count, bulk, sole);
	return sole ? pop(ring, 1, elements, count, bulk, true)
		    : pop(ring, 1, elements, count, bulk, false);
}

uint32_t plx_ring_multi_pop_one(struct plx_ring *ring, void *element)
{
	if (plx_unlikely(ring->words != 1))
		return plx_ring_multi_pop(ring, element, 1, false);
	return ring->kind == PLX_RING_MPSC ? pop(ring, 1, element, 1, false, true)
					   : pop(ring, 1, element, 1, false, false);
}
