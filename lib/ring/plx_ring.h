/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Rings: bounded first-in-first-out queues of fixed-size elements between threads, without locks.
 *
 *     kind   producers  consumers  for
 *     SPSC   one        one        a stream between two lcores: the fastest, and zero-copy
 *     MPSC   many       one        an inbox
 *     MPMC   many       many       a work queue, a free list
 *
 * Nothing waits: what does not fit, or is not there, is not pushed or popped, and the count that is
 * returned says so. A thread that is taken off its CPU in the middle of a push or a pop holds up
 * only what comes behind its own elements; all others go on until the ring is full, or empty.
 *
 * SPSC works on indices that each side publishes, and on a private copy of the other side's, which
 * is refreshed only when the ring looks full or empty by it. For elements of 8 bytes its functions
 * are inline. The other kinds are in multi.c, which tells how they work.
 */
#ifndef PLX_RING_H
#define PLX_RING_H

#include "plx_base.h"

#include <string.h>

PLX_BEGIN_DECLS

enum plx_ring_kind { PLX_RING_SPSC, PLX_RING_MPSC, PLX_RING_MPMC };

#define PLX_RING_CAPACITY_MAX (UINT32_C(1) << 30) /**< elements */
#define PLX_RING_ELEMENT_MAX  256                 /**< bytes of one */
/** Elements that one push or pop of an MPSC or MPMC ring moves at most: a burst stops there, and
 * a longer bulk is never done. An SPSC ring has no such limit. */
#define PLX_RING_BURST_MAX UINT32_C(32768)

struct plx_ring_attr {
	enum plx_ring_kind kind;
	uint32_t capacity;      /**< elements it holds, exactly: 1 to PLX_RING_CAPACITY_MAX */
	uint32_t element_bytes; /**< a multiple of 8, up to PLX_RING_ELEMENT_MAX; 0 means 8 */
};

/* Two lines for each writer: the processor's adjacent-line prefetcher fetches them in pairs. */
#define PLX_RING_BLOCK PLX_ALIGNED(2 * PLX_CACHE_LINE)

/** Private: here for the inline functions alone. Each block of lines has one writer, or one kind of
 * writer. */
struct plx_ring {
	/* Constant. */
	PLX_RING_BLOCK uint32_t mask; /* of the slots: a power of two, at least the capacity */
	uint32_t capacity;
	uint32_t words; /* of 8 bytes, of each element */
	uint8_t kind;
	bool is_plain;       /* SPSC, elements of 8 bytes: the inline functions are for it alone */
	uint32_t push_ahead; /* SPSC: how many elements ahead of the tail lines are made ours */
	uint32_t pop_ahead;  /* SPSC: how many elements ahead of the head lines are fetched */
	uint64_t *slots;
	PLX_ATOMIC(uint64_t) * marks; /* MPSC and MPMC: one a slot */
	void *heap;                   /* what plx_ring_destroy frees */

	/* Producers. SPSC: tail and limit; the others: push_claim. */
	PLX_RING_BLOCK PLX_ATOMIC(uint32_t) tail; /* free-running */
	uint32_t limit; /* of the tail: the head, when last looked at, and the capacity */
	PLX_ATOMIC(uint64_t) push_claim;
	PLX_ATOMIC(uint64_t) full;       /* pushes that did not get all in */
	PLX_ATOMIC(uint32_t) push_depth; /* the greatest that a producer saw */

	/* Consumers: the same. */
	PLX_RING_BLOCK PLX_ATOMIC(uint32_t) head;
	uint32_t tail_seen;
	PLX_ATOMIC(uint64_t) pop_claim;
	PLX_ATOMIC(uint32_t) pop_depth;
};

/* Making one ------------------------------------------------------------------------------- */

/** How many bytes plx_ring_init needs. Return: 0; -EINVAL. Thread: any. */
int plx_ring_size(const struct plx_ring_attr *attr, size_t *size_bytes_out);

/** Make a ring in memory of plx_ring_size bytes, aligned to 128: from plx_mem_alloc, say, on the
 * node of the lcore that pops. Ownership: the memory stays the caller's and is the ring until it is
 * used for something else; there is no fini. Thread: any, in memory that nobody else uses; the
 * others get to know the ring by what orders it before their use of it: the start of their thread,
 * a message, a join. Return: 0; -EINVAL. */
int plx_ring_init(void *memory, const struct plx_ring_attr *attr, struct plx_ring **ring_out);

/** The same in memory from the heap. Ownership: destroy with plx_ring_destroy. Thread: any, as
 * plx_ring_init; but malloc may lock: set-up work on an lcore. Return: 0; -EINVAL; -ENOMEM. */
int plx_ring_create(const struct plx_ring_attr *attr, struct plx_ring **ring_out);

/** Elements that are in it are lost. Nobody may use it any more. Accepts NULL. Thread: any, after
 * the last use by others (a join, a message). */
void plx_ring_destroy(struct plx_ring *ring);

/* Looking ---------------------------------------------------------------------------------- */

struct plx_ring_stats {
	uint32_t capacity;
	uint32_t depth; /**< elements in it just now */
	/** The greatest depth that was seen, a lower bound: an SPSC ring's producer looks when the
	 * ring seems full, its consumer when it gets fewer than it asked for or has more than 128
	 * (or a quarter of the capacity) left; the others look once in 256 elements, and when full
	 * (then what is just being popped counts as in it). */
	uint32_t high_water;
	uint64_t full; /**< pushes and reserves that did not get room for all of their elements */
};

/** Elements in the ring: exact where nobody pushes or pops, else of a moment ago. Thread: any. */
uint32_t plx_ring_depth(const struct plx_ring *ring);

void plx_ring_stats(const struct plx_ring *ring, struct plx_ring_stats *stats_out);

/* SPSC ------------------------------------------------------------------------------------- */

/** Private: any SPSC ring. bulk: all or nothing. */
uint32_t plx_ring_spsc_push(struct plx_ring *ring, const void *elements, uint32_t count, bool bulk);
uint32_t plx_ring_spsc_pop(struct plx_ring *ring, void *elements, uint32_t count, bool bulk);

/** Private: what is done where only `room` slots are free, or `filled` elements there. */
uint32_t plx_ring_spsc_push_part(struct plx_ring *ring, const void *elements, uint32_t room,
				 bool bulk);
uint32_t plx_ring_spsc_pop_part(struct plx_ring *ring, void *elements, uint32_t filled, bool bulk);

/* A direct call instead of one through the linkage table: 4 cycles each. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define PLX_RING_NOPLT __attribute__((noplt))
#endif
#endif
#ifndef PLX_RING_NOPLT
#define PLX_RING_NOPLT
#endif

/** Private: the same for MPSC and MPMC rings. */
PLX_RING_NOPLT uint32_t plx_ring_multi_push(struct plx_ring *ring, const void *elements,
					    uint32_t count, bool bulk);
PLX_RING_NOPLT uint32_t plx_ring_multi_pop(struct plx_ring *ring, void *elements, uint32_t count,
					   bool bulk);

/** Private: the same for one element. */
PLX_RING_NOPLT uint32_t plx_ring_multi_push_one(struct plx_ring *ring, const void *element);
PLX_RING_NOPLT uint32_t plx_ring_multi_pop_one(struct plx_ring *ring, void *element);

/* Private. Where the inline functions take `words`, those for elements of 8 bytes say 1, so that
 * the compiler knows. */

/** Private. Whether the compiler knows that the count is 1. */
#define plx_ring_is_one(count) (__builtin_constant_p(count) && (count) == 1)

/** Private. Copy elements of 8 bytes. By hand, as what the compiler makes of a plain loop is a call
 * of memmove, which costs as much as a burst of 8. */
static inline void plx_ring_copy_words(uint64_t *to, const uint64_t *from, uint32_t count)
{
	if (count == 1) {
		memcpy(to, from, 8); /* whatever type the caller's elements are of */
		return;
	}
	for (; count >= 4; count -= 4, to += 4, from += 4)
		memcpy(to, from, 32);
	if (count & 2) {
		memcpy(to, from, 16);
		to += 2;
		from += 2;
	}
	if (count & 1)
		memcpy(to, from, 8);
}

/** Private. Copy `count` elements from an array into the slots from `at` on, round the end. */
static inline void plx_ring_copy_in(const struct plx_ring *ring, uint32_t words, uint32_t at,
				    const void *elements, uint32_t count)
{
	const uint64_t *from = PLX_CAST(const uint64_t *, elements);
	uint32_t start = at & ring->mask;

	if (words == 1 && (plx_ring_is_one(count) || plx_likely(count <= ring->mask + 1 - start))) {
		plx_ring_copy_words(ring->slots + start, from, count);
		return;
	}

	uint32_t part = ring->mask + 1 - start;

	if (part > count)
		part = count;
	memcpy(ring->slots + PLX_CAST(size_t, start) * words, from,
	       PLX_CAST(size_t, part) * words * 8);
	memcpy(ring->slots, from + PLX_CAST(size_t, part) * words,
	       PLX_CAST(size_t, count - part) * words * 8);
}

/** Private. The same out of the slots. */
static inline void plx_ring_copy_out(const struct plx_ring *ring, uint32_t words, uint32_t at,
				     void *elements, uint32_t count)
{
	uint64_t *to = PLX_CAST(uint64_t *, elements);
	uint32_t start = at & ring->mask;

	if (words == 1 && (plx_ring_is_one(count) || plx_likely(count <= ring->mask + 1 - start))) {
		plx_ring_copy_words(to, ring->slots + start, count);
		return;
	}

	uint32_t part = ring->mask + 1 - start;

	if (part > count)
		part = count;
	memcpy(to, ring->slots + PLX_CAST(size_t, start) * words,
	       PLX_CAST(size_t, part) * words * 8);
	memcpy(to + PLX_CAST(size_t, part) * words, ring->slots,
	       PLX_CAST(size_t, count - part) * words * 8);
}

/** Private. Slots that are free from `tail` on, at least `count` where there are as many. */
static inline uint32_t plx_ring_room(struct plx_ring *ring, uint32_t tail, uint32_t count)
{
	uint32_t room = ring->limit - tail;

	if (plx_likely(room >= count))
		return room;
	/* H2 <- H1: the slots were read before they are written again. */
	ring->limit = plx_atomic_load(&ring->head, PLX_ACQUIRE) + ring->capacity;
	room = ring->limit - tail;

	uint32_t depth = ring->capacity - room;
	/* Relaxed: statistics, and the producer's own. */
	if (depth > plx_atomic_load(&ring->push_depth, PLX_RELAXED))
		plx_atomic_store(&ring->push_depth, depth, PLX_RELAXED);
	return room;
}

/** Private. Elements that are there from `head` on, at least `count` where there are as many. */
static inline uint32_t plx_ring_filled(struct plx_ring *ring, uint32_t head, uint32_t count)
{
	uint32_t filled = ring->tail_seen - head;

	if (plx_likely(filled >= count))
		return filled;
	/* T2 <- T1: the elements are visible before the tail that covers them. */
	ring->tail_seen = plx_atomic_load(&ring->tail, PLX_ACQUIRE);
	return ring->tail_seen - head;
}

/** Private. Make the lines that will be written soon the producer's own, as far as it knows them to
 * be free: else each first store to a line waits for the consumer's cache. One line is prefetched
 * for each line that is filled. */
static inline void plx_ring_push_prefetch(const struct plx_ring *ring, uint32_t words,
					  uint32_t tail, uint32_t count, uint32_t room)
{
	if (plx_likely(words == 1 && (tail + count) % 8 >= count) ||
	    room <= ring->push_ahead + count)
		return;

	uint32_t start = (tail + ring->push_ahead) & ring->mask;

	if (plx_unlikely(start + count > ring->mask))
		return;
	for (uint32_t word = 0; word < count * words; word += 8)
		plx_prefetch_write(ring->slots + PLX_CAST(size_t, start) * words + word);
}

/** Private. Fetch the lines that will be read soon, as far as they are known to be written; and
 * note how many elements those are, as this is a place that is seldom come to. */
static inline void plx_ring_pop_prefetch(struct plx_ring *ring, uint32_t words, uint32_t head,
					 uint32_t count, uint32_t filled)
{
	if (plx_likely(words == 1 && (head + count) % 8 >= count) ||
	    filled <= ring->pop_ahead + count)
		return;
	/* Relaxed: statistics, and the consumer's own. */
	if (filled > plx_atomic_load(&ring->pop_depth, PLX_RELAXED))
		plx_atomic_store(&ring->pop_depth, filled, PLX_RELAXED);

	uint32_t start = (head + ring->pop_ahead) & ring->mask;

	if (plx_unlikely(start + count > ring->mask))
		return;
	for (uint32_t word = 0; word < count * words; word += 8)
		plx_prefetch_read(ring->slots + PLX_CAST(size_t, start) * words + word);
}

/** Private: push to an SPSC ring of 8-byte elements. What it does not do, as the ring looks full,
 * is left to the other function: so `count` stays a constant here where the caller gave one. */
static inline uint32_t plx_ring_plain_push(struct plx_ring *ring, const void *elements,
					   uint32_t count, bool bulk)
{
	/* Relaxed: the producer's own. */
	uint32_t tail = plx_atomic_load(&ring->tail, PLX_RELAXED);
	uint32_t room = plx_ring_room(ring, tail, count);

	if (plx_unlikely(room < count))
		return plx_ring_spsc_push_part(ring, elements, room, bulk);
	plx_ring_copy_in(ring, 1, tail, elements, count);
	/* T1 -> T2 */
	plx_atomic_store(&ring->tail, tail + count, PLX_RELEASE);
	plx_ring_push_prefetch(ring, 1, tail, count, room);
	return count;
}

/** Private: pop from such a ring. */
static inline uint32_t plx_ring_plain_pop(struct plx_ring *ring, void *elements, uint32_t count,
					  bool bulk)
{
	/* Relaxed: the consumer's own. */
	uint32_t head = plx_atomic_load(&ring->head, PLX_RELAXED);
	uint32_t filled = plx_ring_filled(ring, head, count);

	if (plx_unlikely(filled < count))
		return plx_ring_spsc_pop_part(ring, elements, filled, bulk);
	plx_ring_copy_out(ring, 1, head, elements, count);
	/* H1 -> H2 */
	plx_atomic_store(&ring->head, head + count, PLX_RELEASE);
	plx_ring_pop_prefetch(ring, 1, head, count, filled);
	return count;
}

/** Private: push to a ring of any kind. bulk: all or nothing. */
static inline uint32_t plx_ring_push_some(struct plx_ring *ring, const void *elements,
					  uint32_t count, bool bulk)
{
	if (plx_likely(ring->is_plain))
		return plx_ring_plain_push(ring, elements, count, bulk);
	if (ring->kind == PLX_RING_SPSC)
		return plx_ring_spsc_push(ring, elements, count, bulk);
	if (plx_ring_is_one(count))
		return plx_ring_multi_push_one(ring, elements);
	return plx_ring_multi_push(ring, elements, count, bulk);
}

/** Private: pop from a ring of any kind. bulk: all or nothing. */
static inline uint32_t plx_ring_pop_some(struct plx_ring *ring, void *elements, uint32_t count,
					 bool bulk)
{
	if (plx_likely(ring->is_plain))
		return plx_ring_plain_pop(ring, elements, count, bulk);
	if (ring->kind == PLX_RING_SPSC)
		return plx_ring_spsc_pop(ring, elements, count, bulk);
	if (plx_ring_is_one(count))
		return plx_ring_multi_pop_one(ring, elements);
	return plx_ring_multi_pop(ring, elements, count, bulk);
}

/* Push and pop ----------------------------------------------------------------------------- */

/** Push up to `count` elements, as many as fit. Thread: a producer.
 * Return: how many were pushed: the first ones. */
static inline uint32_t plx_ring_push_burst(struct plx_ring *ring, const void *elements,
					   uint32_t count)
{
	return plx_ring_push_some(ring, elements, count, false);
}

/** Push all of `count` elements, next to each other, or none. Thread: a producer.
 * Return: count; 0 where they do not all fit. */
static inline uint32_t plx_ring_push_bulk(struct plx_ring *ring, const void *elements,
					  uint32_t count)
{
	return plx_ring_push_some(ring, elements, count, true);
}

/** Push one element. Thread: a producer. Return: false where the ring is full. */
static inline bool plx_ring_push(struct plx_ring *ring, const void *element)
{
	return plx_ring_push_burst(ring, element, 1) == 1;
}

/** Pop up to `count` elements, as many as there are. Thread: a consumer. Return: how many. */
static inline uint32_t plx_ring_pop_burst(struct plx_ring *ring, void *elements, uint32_t count)
{
	return plx_ring_pop_some(ring, elements, count, false);
}

/** Pop `count` elements that stand next to each other, or none. Thread: a consumer.
 * Return: count; 0 where there are not as many. */
static inline uint32_t plx_ring_pop_bulk(struct plx_ring *ring, void *elements, uint32_t count)
{
	return plx_ring_pop_some(ring, elements, count, true);
}

/** Pop one element. Thread: a consumer. Return: false where the ring is empty. */
static inline bool plx_ring_pop(struct plx_ring *ring, void *element)
{
	return plx_ring_pop_burst(ring, element, 1) == 1;
}

/* In place: SPSC rings alone --------------------------------------------------------------- */

/** Slots of a ring, in order: those of parts[0], then those of parts[1], which is empty unless the
 * stretch goes round the end of the ring. The first slot of a ring is aligned to 128 bytes and they
 * stand without gaps, so each element is aligned to the greatest power of two that divides
 * element_bytes, at most 128: to 8 where that is 24, to 32 where it is 96. A type that wants more
 * (of vectors, or alignas of a cache line) wants an element size that is a multiple of it. */
struct plx_ring_span {
	struct {
		void *elements;
		uint32_t count;
	} parts[2];
};

/** Private. */
static inline void plx_ring_span_set(const struct plx_ring *ring, uint32_t at, uint32_t count,
				     struct plx_ring_span *span_out)
{
	uint32_t start = at & ring->mask;
	uint32_t part = ring->mask + 1 - start;

	if (part > count)
		part = count;
	span_out->parts[0].elements = ring->slots + PLX_CAST(size_t, start) * ring->words;
	span_out->parts[0].count = part;
	span_out->parts[1].elements = ring->slots;
	span_out->parts[1].count = count - part;
}

/** Find up to `count` free slots to build elements in. Nothing is pushed before plx_ring_commit; a
 * second reserve finds the same slots. Thread: the producer. Return: how many there are; 0 on a
 * ring of another kind. */
static inline uint32_t plx_ring_reserve(struct plx_ring *ring, uint32_t count,
					struct plx_ring_span *span_out)
{
	/* Relaxed: the producer's own. */
	uint32_t tail = plx_atomic_load(&ring->tail, PLX_RELAXED);
	bool is_ours = ring->kind == PLX_RING_SPSC;
	uint32_t room = is_ours ? plx_ring_room(ring, tail, count) : 0;

	if (plx_unlikely(count > room && is_ours)) {
		/* Relaxed: statistics, and the producer's own. */
		plx_atomic_store(&ring->full, plx_atomic_load(&ring->full, PLX_RELAXED) + 1,
				 PLX_RELAXED);
	}
	if (count > room)
		count = room;
	plx_ring_span_set(ring, tail, count, span_out);
	plx_ring_push_prefetch(ring, ring->words, tail, count, room);
	return count;
}

/** Push the first `count` of the slots that were reserved, and no more: that is not checked.
 * Thread: the producer. */
static inline void plx_ring_commit(struct plx_ring *ring, uint32_t count)
{
	/* Relaxed: the producer's own. T1 -> T2 */
	plx_atomic_store(&ring->tail, plx_atomic_load(&ring->tail, PLX_RELAXED) + count,
			 PLX_RELEASE);
}

/** Find up to `count` elements and leave them where they are, until plx_ring_release. Thread: the
 * consumer. Return: how many there are; 0 on a ring of another kind. */
static inline uint32_t plx_ring_peek(struct plx_ring *ring, uint32_t count,
				     struct plx_ring_span *span_out)
{
	/* Relaxed: the consumer's own. */
	uint32_t head = plx_atomic_load(&ring->head, PLX_RELAXED);
	uint32_t filled = ring->kind == PLX_RING_SPSC ? plx_ring_filled(ring, head, count) : 0;

	if (count > filled)
		count = filled;
	plx_ring_span_set(ring, head, count, span_out);
	plx_ring_pop_prefetch(ring, ring->words, head, count, filled);
	return count;
}

/** Pop the first `count` elements that were peeked at, and no more: that is not checked.
 * Thread: the consumer. */
static inline void plx_ring_release(struct plx_ring *ring, uint32_t count)
{
	/* Relaxed: the consumer's own. H1 -> H2 */
	plx_atomic_store(&ring->head, plx_atomic_load(&ring->head, PLX_RELAXED) + count,
			 PLX_RELEASE);
}

PLX_END_DECLS

#endif
