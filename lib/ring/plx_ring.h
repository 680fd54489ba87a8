/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Rings: bounded lockless FIFO queues of fixed-size elements between threads.
 *
 *     kind   producers  consumers  for
 *     SPSC   one        one        a stream between two lcores: the fastest, and zero-copy
 *     MPSC   many       one        an inbox
 *     MPMC   many       many       a work queue, a free list
 *
 * No call waits. Calls return how many elements they pushed or popped. A thread that loses its CPU
 * in a push or pop delays only the elements after its own. Other threads continue until the ring is
 * full or empty.
 *
 * In an SPSC ring each side publishes its index and keeps a private copy of the other side's, which
 * it refreshes only when the ring looks full or empty. Its functions are inline for 8-byte
 * elements. The other kinds are explained in multi.c.
 */
#ifndef PLX_RING_H
#define PLX_RING_H

#include "plx_base.h"

#include <string.h>

PLX_BEGIN_DECLS

enum plx_ring_kind { PLX_RING_SPSC, PLX_RING_MPSC, PLX_RING_MPMC };

#define PLX_RING_CAPACITY_MAX (UINT32_C(1) << 30) /**< elements */
#define PLX_RING_ELEMENT_MAX  256                 /**< bytes per element */
/** Most elements that one push or pop of an MPSC or MPMC ring moves: a burst stops there, a longer
 * bulk always returns 0. SPSC rings have no such limit. */
#define PLX_RING_BURST_MAX UINT32_C(32768)

struct plx_ring_attr {
	enum plx_ring_kind kind;
	uint32_t capacity;      /**< exact capacity in elements: 1 to PLX_RING_CAPACITY_MAX */
	uint32_t element_bytes; /**< a multiple of 8, up to PLX_RING_ELEMENT_MAX; 0 means 8 */
};

/* Two lines per writer, because the CPU's adjacent-line prefetcher fetches pairs. */
#define PLX_RING_BLOCK PLX_ALIGNED(2 * PLX_CACHE_LINE)

/** Private: for the inline functions only. Each block of lines has one writer, or one class of
 * writers. */
struct plx_ring {
	/* Constant. */
	PLX_RING_BLOCK uint32_t mask; /* slots - 1; slots: a power of two, at least the
					   capacity */
	uint32_t capacity;
	uint32_t words; /* 8-byte words per element */
	uint8_t kind;
	bool is_plain;       /* SPSC with 8-byte elements: the inline functions handle only
				  this */
	uint32_t push_ahead; /* SPSC: elements ahead of the tail to prefetch for writing */
	uint32_t pop_ahead;  /* SPSC: elements ahead of the head to prefetch */
	uint64_t *slots;
	PLX_ATOMIC(uint64_t) * marks; /* MPSC and MPMC: one per slot */
	void *heap;                   /* memory that plx_ring_destroy frees */

	/* Producers. SPSC: tail and limit; other kinds: push_claim. */
	PLX_RING_BLOCK PLX_ATOMIC(uint32_t) tail; /* free-running */
	uint32_t limit; /* of the tail: the head, as last read, plus the capacity */
	PLX_ATOMIC(uint64_t) push_claim;
	PLX_ATOMIC(uint64_t) full; /* pushes that did not push everything */

	/* Consumers: the same. */
	PLX_RING_BLOCK PLX_ATOMIC(uint32_t) head;
	uint32_t tail_seen;
	PLX_ATOMIC(uint64_t) pop_claim;
};

/* Create ----------------------------------------------------------------------------------- */

/** Bytes of memory for plx_ring_init.
 * Thread: any.
 * Return: 0; -EINVAL. */
int plx_ring_size(const struct plx_ring_attr *attr, size_t *size_bytes_out);

/** Initialize a ring in memory of plx_ring_size bytes, aligned to 128: for example from
 * plx_mem_alloc, on the node of the popping lcore. There is no fini.
 * Ownership: the caller keeps the memory, which is the ring until it is reused.
 * Thread: any, while no other thread uses the memory. Order it before the others' use: by the
 * start of their thread, a message, or a join.
 * Return: 0; -EINVAL. */
int plx_ring_init(void *memory, const struct plx_ring_attr *attr, struct plx_ring **ring_out);

/** Create a ring on the heap.
 * Ownership: destroy with plx_ring_destroy.
 * Thread: any, as plx_ring_init; malloc may lock, so on an lcore only at set-up.
 * Return: 0; -EINVAL; -ENOMEM. */
int plx_ring_create(const struct plx_ring_attr *attr, struct plx_ring **ring_out);

/** Destroy a ring; elements in it are lost. Accepts NULL.
 * Thread: any, after the last use by others (a join, a message). */
void plx_ring_destroy(struct plx_ring *ring);

/* Inspect ---------------------------------------------------------------------------------- */

struct plx_ring_stats {
	uint32_t capacity;
	uint32_t depth; /**< elements in it now */
	uint64_t full;  /**< pushes and reserves without room for all of their elements */
};

/** Elements in the ring: exact while no thread pushes or pops, else slightly old. Thread: any. */
uint32_t plx_ring_depth(const struct plx_ring *ring);

void plx_ring_stats_read(const struct plx_ring *ring, struct plx_ring_stats *stats_out);

/* SPSC ------------------------------------------------------------------------------------- */

/** Private: any SPSC ring. bulk: all or nothing. */
uint32_t plx_ring_spsc_push(struct plx_ring *ring, const void *elements, uint32_t count, bool bulk);
uint32_t plx_ring_spsc_pop(struct plx_ring *ring, void *elements, uint32_t count, bool bulk);

/** Private: the case that only `room` slots are free, or only `filled` elements available. */
uint32_t plx_ring_spsc_push_part(struct plx_ring *ring, const void *elements, uint32_t room,
				 bool bulk);
uint32_t plx_ring_spsc_pop_part(struct plx_ring *ring, void *elements, uint32_t filled, bool bulk);

/* A direct call instead of one through the linkage table saves 4 cycles. */
#if __has_attribute(noplt)
#define PLX_RING_NOPLT __attribute__((noplt))
#else
#define PLX_RING_NOPLT
#endif

/** Private: push and pop of MPSC and MPMC rings. */
PLX_RING_NOPLT uint32_t plx_ring_multi_push(struct plx_ring *ring, const void *elements,
					    uint32_t count, bool bulk);
PLX_RING_NOPLT uint32_t plx_ring_multi_pop(struct plx_ring *ring, void *elements, uint32_t count,
					   bool bulk);

/** Private: the same for one element. */
PLX_RING_NOPLT uint32_t plx_ring_multi_push_one(struct plx_ring *ring, const void *element);
PLX_RING_NOPLT uint32_t plx_ring_multi_pop_one(struct plx_ring *ring, void *element);

/* Private. Functions for 8-byte elements pass 1 as `words`, so that it is a constant. */

/** Private. Whether the count is 1 at compile time. */
#define plx_ring_is_one(count) (__builtin_constant_p(count) && (count) == 1)

/** Private. Copy 8-byte elements by hand: for a plain loop the compiler calls memmove, which costs
 * as much as a burst of 8. */
static inline void plx_ring_copy_words(uint64_t *to, const uint64_t *from, uint32_t count)
{
	if (count == 1) {
		memcpy(to, from, 8); /* the caller's elements may have any type */
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

/** Private. How many of `count` slots from `start` on precede the end of the ring. */
static inline uint32_t plx_ring_part(const struct plx_ring *ring, uint32_t start, uint32_t count)
{
	uint32_t part = ring->mask + 1 - start;

	return part < count ? part : count;
}

/** Private. Copy `count` elements from an array into the slots from `at` on, wrapping around. */
static inline void plx_ring_copy_in(const struct plx_ring *ring, uint32_t words, uint32_t at,
				    const void *elements, uint32_t count)
{
	const uint64_t *from = PLX_CAST(const uint64_t *, elements);
	uint32_t start = at & ring->mask;

	if (words == 1 && (plx_ring_is_one(count) || plx_likely(count <= ring->mask + 1 - start))) {
		plx_ring_copy_words(ring->slots + start, from, count);
		return;
	}

	size_t all = PLX_CAST(size_t, count) * words;
	size_t part = PLX_CAST(size_t, plx_ring_part(ring, start, count)) * words;

	memcpy(ring->slots + PLX_CAST(size_t, start) * words, from, part * 8);
	memcpy(ring->slots, from + part, (all - part) * 8);
}

/** Private. Copy `count` elements out of the slots. */
static inline void plx_ring_copy_out(const struct plx_ring *ring, uint32_t words, uint32_t at,
				     void *elements, uint32_t count)
{
	uint64_t *to = PLX_CAST(uint64_t *, elements);
	uint32_t start = at & ring->mask;

	if (words == 1 && (plx_ring_is_one(count) || plx_likely(count <= ring->mask + 1 - start))) {
		plx_ring_copy_words(to, ring->slots + start, count);
		return;
	}

	size_t all = PLX_CAST(size_t, count) * words;
	size_t part = PLX_CAST(size_t, plx_ring_part(ring, start, count)) * words;

	memcpy(to, ring->slots + PLX_CAST(size_t, start) * words, part * 8);
	memcpy(to + part, ring->slots, (all - part) * 8);
}

/** Private. Free slots from `tail` on; at least `count` if available. */
static inline uint32_t plx_ring_room(struct plx_ring *ring, uint32_t tail, uint32_t count)
{
	uint32_t room = ring->limit - tail;

	if (plx_likely(room >= count))
		return room;
	/* H2 <- H1: the slots were read before they are written again. */
	ring->limit = plx_atomic_load(&ring->head, PLX_ACQUIRE) + ring->capacity;
	return ring->limit - tail;
}

/** Private. Filled slots from `head` on; at least `count` if available. */
static inline uint32_t plx_ring_filled(struct plx_ring *ring, uint32_t head, uint32_t count)
{
	uint32_t filled = ring->tail_seen - head;

	if (plx_likely(filled >= count))
		return filled;
	/* T2 <- T1: the elements are visible before the tail that covers them. */
	ring->tail_seen = plx_atomic_load(&ring->tail, PLX_ACQUIRE);
	return ring->tail_seen - head;
}

/** Private. Prefetch lines for writing, as far as they are known to be free: otherwise each first
 * store to a line waits for the consumer's cache. Prefetches one line per line filled. */
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

/** Private. Prefetch lines for reading, as far as they are known to be filled. */
static inline void plx_ring_pop_prefetch(const struct plx_ring *ring, uint32_t words, uint32_t head,
					 uint32_t count, uint32_t filled)
{
	if (plx_likely(words == 1 && (head + count) % 8 >= count) ||
	    filled <= ring->pop_ahead + count)
		return;

	uint32_t start = (head + ring->pop_ahead) & ring->mask;

	if (plx_unlikely(start + count > ring->mask))
		return;
	for (uint32_t word = 0; word < count * words; word += 8)
		plx_prefetch_read(ring->slots + PLX_CAST(size_t, start) * words + word);
}

/** Private: push to an SPSC ring. plx_ring_spsc_push_part handles a full ring, so that a constant
 * `count` stays constant here. */
static inline uint32_t plx_ring_push_words(struct plx_ring *ring, uint32_t words,
					   const void *elements, uint32_t count, bool bulk)
{
	/* Relaxed: written by the producer only. */
	uint32_t tail = plx_atomic_load(&ring->tail, PLX_RELAXED);
	uint32_t room = plx_ring_room(ring, tail, count);

	if (plx_unlikely(room < count))
		return plx_ring_spsc_push_part(ring, elements, room, bulk);
	plx_ring_copy_in(ring, words, tail, elements, count);
	/* T1 -> T2 */
	plx_atomic_store(&ring->tail, tail + count, PLX_RELEASE);
	plx_ring_push_prefetch(ring, words, tail, count, room);
	return count;
}

/** Private: pop from an SPSC ring. */
static inline uint32_t plx_ring_pop_words(struct plx_ring *ring, uint32_t words, void *elements,
					  uint32_t count, bool bulk)
{
	/* Relaxed: written by the consumer only. */
	uint32_t head = plx_atomic_load(&ring->head, PLX_RELAXED);
	uint32_t filled = plx_ring_filled(ring, head, count);

	if (plx_unlikely(filled < count))
		return plx_ring_spsc_pop_part(ring, elements, filled, bulk);
	plx_ring_copy_out(ring, words, head, elements, count);
	/* H1 -> H2 */
	plx_atomic_store(&ring->head, head + count, PLX_RELEASE);
	plx_ring_pop_prefetch(ring, words, head, count, filled);
	return count;
}

/** Private: push to a ring of any kind. bulk: all or nothing. */
static inline uint32_t plx_ring_push_some(struct plx_ring *ring, const void *elements,
					  uint32_t count, bool bulk)
{
	if (plx_likely(ring->is_plain))
		return plx_ring_push_words(ring, 1, elements, count, bulk);
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
		return plx_ring_pop_words(ring, 1, elements, count, bulk);
	if (ring->kind == PLX_RING_SPSC)
		return plx_ring_spsc_pop(ring, elements, count, bulk);
	if (plx_ring_is_one(count))
		return plx_ring_multi_pop_one(ring, elements);
	return plx_ring_multi_pop(ring, elements, count, bulk);
}

/* Push and pop ----------------------------------------------------------------------------- */

/** Push up to `count` elements.
 * Thread: a producer.
 * Return: how many were pushed, from the first. */
static inline uint32_t plx_ring_push_burst(struct plx_ring *ring, const void *elements,
					   uint32_t count)
{
	return plx_ring_push_some(ring, elements, count, false);
}

/** Push all of `count` elements, adjacent in the ring, or none.
 * Thread: a producer.
 * Return: count; 0 if they do not all fit. */
static inline uint32_t plx_ring_push_bulk(struct plx_ring *ring, const void *elements,
					  uint32_t count)
{
	return plx_ring_push_some(ring, elements, count, true);
}

/** Push one element. Thread: a producer. Return: false if the ring is full. */
static inline bool plx_ring_push(struct plx_ring *ring, const void *element)
{
	return plx_ring_push_burst(ring, element, 1) == 1;
}

/** Pop up to `count` elements. Thread: a consumer. Return: how many. */
static inline uint32_t plx_ring_pop_burst(struct plx_ring *ring, void *elements, uint32_t count)
{
	return plx_ring_pop_some(ring, elements, count, false);
}

/** Pop `count` adjacent elements, or none.
 * Thread: a consumer.
 * Return: count; 0 if there are fewer. */
static inline uint32_t plx_ring_pop_bulk(struct plx_ring *ring, void *elements, uint32_t count)
{
	return plx_ring_pop_some(ring, elements, count, true);
}

/** Pop one element. Thread: a consumer. Return: false if the ring is empty. */
static inline bool plx_ring_pop(struct plx_ring *ring, void *element)
{
	return plx_ring_pop_burst(ring, element, 1) == 1;
}

/* In place: SPSC rings only ---------------------------------------------------------------- */

/** Slots of a ring in order: parts[0], then parts[1], which is empty unless the slots wrap around
 * the end of the ring. Slots start at 128-byte alignment and have no gaps. So an element is aligned
 * to the largest power of two that divides element_bytes, at most 128: 8 for 24 bytes, 32 for 96
 * bytes. A type with greater alignment needs an element size that is a multiple of it. */
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

	span_out->parts[0].elements = ring->slots + PLX_CAST(size_t, start) * ring->words;
	span_out->parts[0].count = plx_ring_part(ring, start, count);
	span_out->parts[1].elements = ring->slots;
	span_out->parts[1].count = count - span_out->parts[0].count;
}

/** Find up to `count` free slots to build elements in. plx_ring_commit pushes them; a second
 * reserve finds the same slots.
 * Thread: the producer.
 * Return: number of slots; 0 on other kinds of ring. */
static inline uint32_t plx_ring_reserve(struct plx_ring *ring, uint32_t count,
					struct plx_ring_span *span_out)
{
	/* Relaxed: written by the producer only. */
	uint32_t tail = plx_atomic_load(&ring->tail, PLX_RELAXED);
	bool is_ours = ring->kind == PLX_RING_SPSC;
	uint32_t room = is_ours ? plx_ring_room(ring, tail, count) : 0;

	if (plx_unlikely(count > room && is_ours))
		plx_ring_spsc_push_part(ring, NULL, room, true); /* counts it */
	if (count > room)
		count = room;
	plx_ring_span_set(ring, tail, count, span_out);
	plx_ring_push_prefetch(ring, ring->words, tail, count, room);
	return count;
}

/** Push the first `count` reserved slots. Unchecked: at most as many as were reserved. Thread: the
 * producer. */
static inline void plx_ring_commit(struct plx_ring *ring, uint32_t count)
{
	/* Relaxed: written by the producer only. T1 -> T2 */
	plx_atomic_store(&ring->tail, plx_atomic_load(&ring->tail, PLX_RELAXED) + count,
			 PLX_RELEASE);
}

/** Find up to `count` elements and leave them in the ring until plx_ring_release.
 * Thread: the consumer.
 * Return: number of elements; 0 on other kinds of ring. */
static inline uint32_t plx_ring_peek(struct plx_ring *ring, uint32_t count,
				     struct plx_ring_span *span_out)
{
	/* Relaxed: written by the consumer only. */
	uint32_t head = plx_atomic_load(&ring->head, PLX_RELAXED);
	uint32_t filled = ring->kind == PLX_RING_SPSC ? plx_ring_filled(ring, head, count) : 0;

	if (count > filled)
		count = filled;
	plx_ring_span_set(ring, head, count, span_out);
	plx_ring_pop_prefetch(ring, ring->words, head, count, filled);
	return count;
}

/** Pop the first `count` peeked elements, at most as many as were peeked. Thread: the consumer. */
static inline void plx_ring_release(struct plx_ring *ring, uint32_t count)
{
	/* Relaxed: written by the consumer only. H1 -> H2 */
	plx_atomic_store(&ring->head, plx_atomic_load(&ring->head, PLX_RELAXED) + count,
			 PLX_RELEASE);
}

PLX_END_DECLS

#endif
