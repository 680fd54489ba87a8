/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings under more threads than CPUs, which yield between and inside pushes and pops. Every element
 * must come out once, intact, in its producer's order, and bulks in one piece. */
#include "stress.h"

#define RING_STEP(where) yield_at_times()
#include "multi.c" /* a private copy, with the steps above */

#define SIDE_MAX  4 /* producers, or consumers */
#define MOVE_MAX  8 /* elements per push or pop */
#define WORDS_MAX 4

/* Word 0 of an element: producer, remaining elements of its bulk, number. */
#define PRODUCER(word) ((word) >> 56)
#define LEFT(word)     ((uint32_t)((word) >> 48) & 0xff)
#define NUMBER(word)   ((word) & UINT64_C(0xffffffffffff))

struct mix {
	struct plx_ring_attr attr;
	uint32_t producers, consumers;
	bool in_place;
};

struct side {
	PLX_ALIGNED_LINE uint32_t id;
	uint64_t refused;        /* producers: pushes that were incomplete */
	uint64_t next[SIDE_MAX]; /* consumers: the lowest number expected from each producer */
	uint64_t last;           /* consumers: word 0 of the previous element, or 0 */
};

static const struct mix *mix;
static struct plx_ring *ring;
static uint32_t words;
static uint64_t items_each;
static uint8_t *seen; /* per producer, by number */
static _Atomic uint64_t popped;

static void build(uint64_t *to, uint32_t producer, uint64_t number, uint32_t left)
{
	to[0] = (uint64_t)producer << 56 | (uint64_t)left << 48 | number;
	for (uint32_t i = 1; i < words; i++)
		to[i] = to[0] * UINT64_C(0x9e3779b97f4a7c15) + i;
}

/* Whether it must follow the previous element, which was part of a bulk. */
static bool goes_on(uint64_t last, uint64_t word)
{
	return PRODUCER(word) == PRODUCER(last) && NUMBER(word) == NUMBER(last) + 1 &&
	       LEFT(word) == LEFT(last) - 1;
}

static void check(struct side *me, const uint64_t *element)
{
	uint64_t word = element[0];
	uint64_t expected[WORDS_MAX];

	assert_true(PRODUCER(word) < mix->producers && NUMBER(word) < items_each);
	build(expected, (uint32_t)PRODUCER(word), NUMBER(word), LEFT(word));
	assert_memory_equal(element, expected, words * sizeof(uint64_t));
	assert_true(NUMBER(word) >= me->next[PRODUCER(word)]);
	assert_true(LEFT(me->last) == 0 || goes_on(me->last, word));
	assert_int_equal(seen[PRODUCER(word) * items_each + NUMBER(word)]++, 0);
	me->next[PRODUCER(word)] = NUMBER(word) + 1;
	me->last = word;
}

/* One push of up to `count`: returns how many were pushed. */
static uint32_t push_some(struct side *me, uint64_t number, uint32_t count)
{
	uint64_t elements[MOVE_MAX * WORDS_MAX];
	bool bulk = count <= mix->attr.capacity && dice(2);
	uint32_t done;

	for (uint32_t i = 0; i < count; i++)
		build(elements + i * words, me->id, number + i, bulk ? count - 1 - i : 0);
	if (count == 1)
		done = plx_ring_push(ring, elements);
	else
		done = bulk ? plx_ring_push_bulk(ring, elements, count)
			    : plx_ring_push_burst(ring, elements, count);
	me->refused += done < count;
	return done;
}

static uint64_t *slot_of(const struct plx_ring_span *span, uint32_t i)
{
	uint32_t first = span->parts[0].count;

	if (i < first)
		return (uint64_t *)span->parts[0].elements + i * words;
	return (uint64_t *)span->parts[1].elements + (i - first) * words;
}

static uint32_t build_some(struct side *me, uint64_t number, uint32_t count)
{
	struct plx_ring_span span;
	uint32_t room = plx_ring_reserve(ring, count, &span);
	uint32_t done = room ? 1 + dice(room) : 0;

	me->refused += room < count;
	for (uint32_t i = 0; i < done; i++) {
		build(slot_of(&span, i), me->id, number + i, 0);
		yield_at_times();
	}
	plx_ring_commit(ring, done);
	return done;
}

static void *produce(void *arg)
{
	struct side *me = arg;
	uint64_t number = 0;

	stress_dice = 1 + me->id;
	while (number < items_each) {
		uint64_t left = items_each - number;
		uint32_t count = 1 + dice(left < MOVE_MAX ? (uint32_t)left : MOVE_MAX);
		uint32_t done = mix->in_place ? build_some(me, number, count)
					      : push_some(me, number, count);

		number += done;
		if (done == 0 || dice(8) == 0)
			sched_yield();
	}
	return NULL;
}

static uint32_t pop_some(struct side *me, uint32_t count)
{
	uint64_t elements[MOVE_MAX * WORDS_MAX];
	bool bulk = count <= mix->attr.capacity && dice(2);
	uint32_t done;

	if (count == 1)
		done = plx_ring_pop(ring, elements);
	else
		done = bulk ? plx_ring_pop_bulk(ring, elements, count)
			    : plx_ring_pop_burst(ring, elements, count);
	for (uint32_t i = 0; i < done; i++)
		check(me, elements + i * words);
	return done;
}

static uint32_t read_some(struct side *me, uint32_t count)
{
	struct plx_ring_span span;
	uint32_t there = plx_ring_peek(ring, count, &span);
	uint32_t done = there ? 1 + dice(there) : 0;

	for (uint32_t i = 0; i < done; i++) {
		check(me, slot_of(&span, i));
		yield_at_times();
	}
	plx_ring_release(ring, done);
	return done;
}

static void *consume(void *arg)
{
	struct side *me = arg;

	stress_dice = 100 + me->id;
	/* Relaxed: only a count; elements are checked after joining the threads. */
	while (atomic_load_explicit(&popped, memory_order_relaxed) < items_each * mix->producers) {
		uint32_t count = 1 + dice(MOVE_MAX);
		uint32_t done = mix->in_place ? read_some(me, count) : pop_some(me, count);

		if (mix->consumers > 1)
			me->last = 0; /* the next element may be of another push */
		atomic_fetch_add_explicit(&popped, done, memory_order_relaxed);
		if (done == 0 || dice(8) == 0)
			sched_yield();
	}
	return NULL;
}

static void run_mix(const struct mix *what)
{
	struct side producers[SIDE_MAX], consumers[SIDE_MAX];
	pthread_t producing[SIDE_MAX], consuming[SIDE_MAX];
	uint64_t refused = 0;

	mix = what;
	words = mix->attr.element_bytes / 8;
	items_each = stress_amount / mix->producers;
	seen = calloc(mix->producers, items_each);
	assert_non_null(seen);
	atomic_store(&popped, 0);
	for (uint32_t i = 0; i < SIDE_MAX; i++)
		producers[i] = consumers[i] = (struct side){.id = i};
	assert_int_equal(plx_ring_create(&mix->attr, &ring), 0);
	threads_start(consuming, mix->consumers, consume, consumers, sizeof(*consumers));
	threads_start(producing, mix->producers, produce, producers, sizeof(*producers));
	threads_join(producing, mix->producers);
	threads_join(consuming, mix->consumers);
	for (uint32_t i = 0; i < mix->producers; i++)
		refused += producers[i].refused;
	for (uint64_t i = 0; i < items_each * mix->producers; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(plx_ring_depth(ring), 0);
	assert_int_equal(ring->full, refused);
	plx_ring_destroy(ring);
	free(seen);
	stress_went_on();
}

static void run_mixes(enum plx_ring_kind kind, uint32_t producers, uint32_t consumers,
		      bool in_place)
{
	static const uint32_t capacities[] = {1, 2, 3, 4, 64};
	struct mix what = {{.kind = kind}, producers, consumers, in_place};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(capacities); i++) {
		for (unsigned count = 1; count <= 3; count += 2) {
			what.attr.capacity = capacities[i];
			what.attr.element_bytes = count * 8;
			run_mix(&what);
		}
	}
}

PLX_TEST(all_elements_go_from_one_thread_to_one)
{
	run_mixes(PLX_RING_SPSC, 1, 1, false);
	run_mixes(PLX_RING_MPSC, 1, 1, false);
	run_mixes(PLX_RING_MPMC, 1, 1, false);
}

PLX_TEST(all_elements_go_in_place_from_one_thread_to_one)
{
	run_mixes(PLX_RING_SPSC, 1, 1, true);
}

PLX_TEST(all_elements_go_from_many_threads_to_one_or_many)
{
	run_mixes(PLX_RING_MPSC, 4, 1, false);
	run_mixes(PLX_RING_MPMC, 4, 1, false);
	run_mixes(PLX_RING_MPMC, 1, 4, false);
	run_mixes(PLX_RING_MPMC, 4, 4, false);
}

STRESS_MAIN(PLX_TEST_SANITIZED ? 10000 : 60000, 60000)
