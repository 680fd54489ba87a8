/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads preempted in the middle of a push or a pop. A thread is stopped at a step, on a
 * semaphore, while the others continue. */
#include "stress.h"

#include <semaphore.h>

static void step(const char *where);
#define RING_STEP(where) step(#where)
#include "multi.c" /* a private copy, with the steps above */

#define CAPACITY 8

/* A thread that makes one push or pop. */
struct mover {
	pthread_t thread;
	const char *where; /* it stops there once */
	sem_t stopped, go_on;
	uint32_t (*move)(struct mover *me);
	uint32_t count;
	bool bulk;
	bool begun;
	uint64_t elements[CAPACITY];
	uint32_t done;
};

static struct plx_ring *ring;
static uint64_t next_in, next_out; /* numbers of elements */
static struct mover first, second, third;
static __thread struct mover *self;

static void step(const char *where)
{
	struct mover *me = self;

	if (!me || strcmp(me->where, where))
		return;
	self = NULL;
	sem_post(&me->stopped);
	sem_wait(&me->go_on);
}

static void *run(void *arg)
{
	struct mover *me = arg;

	self = me;
	me->done = me->move(me);
	if (self)
		sem_post(&me->stopped); /* it never got there; an assertion then fails */
	return NULL;
}

static uint32_t move_in(struct mover *me)
{
	return me->bulk ? plx_ring_push_bulk(ring, me->elements, me->count)
			: plx_ring_push_burst(ring, me->elements, me->count);
}

static uint32_t move_out(struct mover *me)
{
	return me->bulk ? plx_ring_pop_bulk(ring, me->elements, me->count)
			: plx_ring_pop_burst(ring, me->elements, me->count);
}

/* Start a move in a new thread, and return when that has stopped. */
static void begin(struct mover *mover, const char *where)
{
	mover->where = where;
	assert_int_equal(sem_init(&mover->stopped, 0, 0), 0);
	assert_int_equal(sem_init(&mover->go_on, 0, 0), 0);
	assert_int_equal(pthread_create(&mover->thread, NULL, run, mover), 0);
	mover->begun = true;
	sem_wait(&mover->stopped);
}

static void let_go(struct mover *mover)
{
	if (!mover->begun)
		return;
	sem_post(&mover->go_on);
	pthread_join(mover->thread, NULL);
	sem_destroy(&mover->stopped);
	sem_destroy(&mover->go_on);
	mover->begun = false;
}

static void finish(struct mover *mover, uint32_t done)
{
	let_go(mover);
	assert_int_equal(mover->done, done);
}

/* Cleans up after a failed test. */
static int let_all_go(void **state)
{
	let_go(&first);
	let_go(&second);
	let_go(&third);
	return 0;
}

static void begin_push(struct mover *mover, uint32_t count, const char *where)
{
	*mover = (struct mover){.move = move_in, .count = count, .bulk = true};
	for (uint32_t i = 0; i < count; i++)
		mover->elements[i] = next_in++;
	begin(mover, where);
}

static void begin_pop(struct mover *mover, uint32_t count, const char *where)
{
	*mover = (struct mover){.move = move_out, .count = count, .bulk = true};
	begin(mover, where);
}

static void expect_out(struct mover *mover, uint64_t from)
{
	for (uint32_t i = 0; i < mover->count; i++)
		assert_int_equal(mover->elements[i], from + i);
}

/* Push until the ring is full: exactly `count`. */
static void push_all(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, next_in++)
		assert_true(plx_ring_push(ring, &next_in));
}

static void push_until_full(uint32_t count)
{
	push_all(count);
	assert_false(plx_ring_push(ring, &next_in));
}

static void pop_all(uint32_t count)
{
	uint64_t out;

	for (uint32_t i = 0; i < count; i++, next_out++) {
		assert_true(plx_ring_pop(ring, &out));
		assert_int_equal(out, next_out);
	}
}

static void pop_until_empty(uint32_t count)
{
	uint64_t out;

	pop_all(count);
	assert_false(plx_ring_pop(ring, &out));
}

static void open_ring(enum plx_ring_kind kind, uint32_t capacity)
{
	const struct plx_ring_attr attr = {.kind = kind, .capacity = capacity};

	assert_int_equal(plx_ring_create(&attr, &ring), 0);
	next_in = next_out = 0;
	stress_went_on();
}

static void stop_producer(enum plx_ring_kind kind, const char *where)
{
	open_ring(kind, CAPACITY);
	push_all(3);
	begin_push(&first, 2, where);
	push_until_full(3); /* other producers continue */
	pop_until_empty(3); /* elements before it come out, none past it */
	push_until_full(3);
	assert_false(plx_ring_pop(ring, &(uint64_t){0}));
	assert_int_equal(plx_ring_depth(ring), CAPACITY);
	finish(&first, 2);
	pop_until_empty(CAPACITY);
	push_until_full(CAPACITY);
	plx_ring_destroy(ring);
}

#define STOPS(test) PLX_TEST_WITH(test, NULL, let_all_go)

STOPS(a_producer_taken_off_its_cpu_between_claim_and_mark_delays_only_what_is_behind_it)
{
	stop_producer(PLX_RING_MPSC, "claimed");
	stop_producer(PLX_RING_MPSC, "copied");
	stop_producer(PLX_RING_MPMC, "claimed");
	stop_producer(PLX_RING_MPMC, "copied");
}

static void stop_consumer(const char *where)
{
	open_ring(PLX_RING_MPMC, CAPACITY);
	push_until_full(CAPACITY);
	pop_all(2);
	begin_pop(&first, 2, where);
	next_out += 2;
	pop_until_empty(4); /* other consumers continue */
	push_until_full(2); /* there is room before it, and none past it */
	pop_until_empty(2);
	push_until_full(0);
	finish(&first, 2);
	expect_out(&first, 2);
	push_until_full(CAPACITY);
	pop_until_empty(CAPACITY);
	plx_ring_destroy(ring);
}

STOPS(a_consumer_taken_off_its_cpu_between_claim_and_mark_delays_only_what_is_behind_it)
{
	stop_consumer("claimed");
	stop_consumer("copied");
}

STOPS(several_that_are_stopped_may_go_on_in_any_order)
{
	open_ring(PLX_RING_MPMC, CAPACITY);
	begin_push(&first, 2, "claimed");
	begin_push(&second, 3, "copied");
	begin_push(&third, 1, "claimed");
	push_until_full(2);
	finish(&third, 1);
	pop_until_empty(0);
	finish(&first, 2);
	pop_until_empty(2);
	finish(&second, 3);
	pop_all(1);
	begin_pop(&first, 2, "copied");
	begin_pop(&second, 2, "claimed");
	next_out += 4;
	finish(&second, 2);
	expect_out(&second, 5);
	push_until_full(3); /* those before the first */
	finish(&first, 2);
	expect_out(&first, 3);
	push_until_full(4);
	pop_until_empty(CAPACITY);
	plx_ring_destroy(ring);
}

/* A consumer pops what another one found without checking again: in one bulk. */
STOPS(what_a_stopped_consumer_found_others_take)
{
	uint64_t out[CAPACITY];
	open_ring(PLX_RING_MPMC, CAPACITY);
	next_in = 6;
	assert_int_equal(plx_ring_push_bulk(ring, &(uint64_t[]){0, 1, 2, 3, 4, 5}, 6), 6);
	begin_pop(&first, 1, "claimed");
	assert_int_equal(plx_ring_pop_bulk(ring, out, 5), 5);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(out[i], i + 1);
	finish(&first, 1);
	expect_out(&first, 0);
	plx_ring_destroy(ring);
}

/* A thread that has read the claim and is overtaken by whole laps finds marks of another lap, and
 * must not accept them. */
static void overtake_producer(enum plx_ring_kind kind, uint32_t capacity, uint32_t count)
{
	for (uint32_t passed = 1; passed <= 3 * capacity; passed++) {
		open_ring(kind, capacity);
		begin_push(&first, count, "looked");
		next_in = next_out = 100;
		for (uint32_t i = 0; i < passed; i++) {
			push_all(1);
			pop_all(1);
		}
		finish(&first, count);
		next_out = 0;
		pop_until_empty(count);
		plx_ring_destroy(ring);
	}
}

static void overtake_consumer(uint32_t capacity, uint32_t count)
{
	for (uint32_t passed = 1; passed <= 3 * capacity; passed++) {
		open_ring(PLX_RING_MPMC, capacity);
		push_all(capacity);
		begin_pop(&first, count, "looked");
		for (uint32_t i = 0; i < passed; i++) {
			pop_all(1);
			push_all(1);
		}
		finish(&first, count);
		expect_out(&first, passed);
		next_out += count;
		pop_until_empty(capacity - count);
		plx_ring_destroy(ring);
	}
}

STOPS(one_that_was_overtaken_looks_again)
{
	static const uint32_t capacities[] = {1, 2, 3, 4, 8};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(capacities); i++) {
		for (uint32_t count = 1; count <= capacities[i]; count++) {
			overtake_producer(PLX_RING_MPSC, capacities[i], count);
			overtake_producer(PLX_RING_MPMC, capacities[i], count);
			overtake_consumer(capacities[i], count);
		}
	}
}

STRESS_MAIN(0, 0)
