/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings under more threads than CPUs, which yield between and inside pushes and pops. Every element
 * must come out once, intact, in its producer's order, and bulks in one piece. */
#include "dice.h"
#include "plx_test.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static void yield_at_times(void);
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
	PLX_ALIGNED_LINE pthread_t thread;
	uint32_t id;
	uint64_t refused;        /* producers: pushes that were incomplete */
	uint64_t wrong;          /* consumers */
	uint64_t next[SIDE_MAX]; /* consumers: the lowest number expected from each producer */
	uint64_t last;           /* consumers: word 0 of the previous element, or 0 */
};

static const struct mix *mix;
static struct plx_ring *ring;
static uint32_t words;
static uint64_t items; /* per mix, approximately */
static uint64_t items_each;
static uint8_t *seen; /* per producer, by number */
static _Atomic uint64_t popped;

static __thread uint64_t dice_state;

static uint32_t dice(uint32_t sides)
{
	return dice_roll(&dice_state, sides);
}

static void yield_at_times(void)
{
	if (dice(32) == 0)
		sched_yield();
}

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

	if (PRODUCER(word) >= mix->producers || NUMBER(word) >= items_each) {
		me->wrong++;
		return;
	}
	build(expected, (uint32_t)PRODUCER(word), NUMBER(word), LEFT(word));
	me->wrong += memcmp(element, expected, words * sizeof(uint64_t)) != 0;
	me->wrong += NUMBER(word) < me->next[PRODUCER(word)];
	me->wrong += LEFT(me->last) != 0 && !goes_on(me->last, word);
	me->wrong += seen[PRODUCER(word) * items_each + NUMBER(word)]++ != 0;
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

	dice_state = 1 + me->id;
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

	dice_state = 100 + me->id;
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

static void start(struct side *sides, uint32_t count, void *(*run)(void *))
{
	for (uint32_t i = 0; i < count; i++) {
		sides[i] = (struct side){.id = i};
		assert_int_equal(pthread_create(&sides[i].thread, NULL, run, &sides[i]), 0);
	}
}

/* Returns the sum of refused and wrong counts. */
static uint64_t join(struct side *sides, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(pthread_join(sides[i].thread, NULL), 0);
		sum += sides[i].refused + sides[i].wrong;
	}
	return sum;
}

static void run_mix(const struct mix *what)
{
	struct side producers[SIDE_MAX];
	struct side consumers[SIDE_MAX];
	struct plx_ring_stats stats;

	mix = what;
	words = mix->attr.element_bytes / 8;
	items_each = items / mix->producers;
	seen = calloc(mix->producers, items_each);
	assert_non_null(seen);
	atomic_store(&popped, 0);
	assert_int_equal(plx_ring_create(&mix->attr, &ring), 0);
	start(consumers, mix->consumers, consume);
	start(producers, mix->producers, produce);

	uint64_t refused = join(producers, mix->producers);
	uint64_t wrong = join(consumers, mix->consumers);

	for (uint64_t i = 0; i < items_each * mix->producers; i++)
		wrong += seen[i] != 1;
	plx_ring_stats_read(ring, &stats);
	if (wrong || stats.depth || stats.full != refused)
		fail_msg("kind %d, capacity %u, %u words, %u producers, %u consumers: %llu wrong, "
			 "%u left, %llu full, %llu refused",
			 (int)mix->attr.kind, stats.capacity, words, mix->producers, mix->consumers,
			 (unsigned long long)wrong, stats.depth, (unsigned long long)stats.full,
			 (unsigned long long)refused);
	plx_ring_destroy(ring);
	free(seen);
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

PLX_TEST(all_elements_go_from_four_threads_to_one)
{
	run_mixes(PLX_RING_MPSC, 4, 1, false);
	run_mixes(PLX_RING_MPMC, 4, 1, false);
}

PLX_TEST(all_elements_go_from_one_thread_to_four)
{
	run_mixes(PLX_RING_MPMC, 1, 4, false);
}

PLX_TEST(all_elements_go_from_four_threads_to_four)
{
	run_mixes(PLX_RING_MPMC, 4, 4, false);
}

int main(int argc, char **argv)
{
	items = argc > 1 ? strtoull(argv[1], NULL, 10) : PLX_TEST_SANITIZED ? 10000 : 60000;
	alarm(argc > 2 ? (unsigned)atoi(argv[2]) : 100); /* a lost element would block forever */
	return plx_test_run("tests", NULL, NULL);
}
