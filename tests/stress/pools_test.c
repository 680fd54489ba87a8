/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools under more threads than CPUs, lcores and others, which yield inside gets and puts. No
 * object may have two holders or be lost, the last holder's writes must be visible, and all figures
 * must be right at the end. */
#include "stress.h"

#include "mem_priv.h"

static void ring_step(const char *where);
#define RING_STEP(where) ring_step(#where)
#include "multi.c" /* private copies, with the steps */
#define POOL_STEP(where) yield_at_times()
#include "pool_shared.c"

#define THREADS     9
#define LCORES      5 /* of the threads */
#define BULK_MAX    6
#define BOXES       4
#define OBJECTS_MAX 64
#define OWNER       40

struct object {
	void *link; /* the pool's while the object is free */
	_Atomic uint32_t holder;
	uint64_t number, inverse;
};

struct mix {
	const char *name;
	uint32_t object_count, cache_count;
	bool owned; /* only the first thread gets; all put */
};

struct user {
	PLX_ALIGNED_LINE const struct mix *mix;
	uint32_t id; /* starts at 1 */
	uint64_t missed, got;
};

static struct plx_pool *pool;
/* Where objects change hands: different threads get and put an object. */
static _Atomic(struct object *) boxes[BOXES];

/* Called during this thread's next ring pop or push. */
static __thread void (*in_the_middle)(void);

static void ring_step(const char *where)
{
	void (*fn)(void) = in_the_middle;

	if (fn && !strcmp(where, "claimed")) {
		in_the_middle = NULL;
		fn();
	} else {
		yield_at_times();
	}
}

/* It has no holder, and the last holder's writes are complete. Relaxed: the pool orders it. */
static void hold(struct user *me, struct object *object)
{
	assert_int_equal(atomic_exchange_explicit(&object->holder, me->id, memory_order_relaxed),
			 0);
	assert_int_equal(object->number, ~object->inverse);
	object->number = (uint64_t)me->id << 56 | me->got;
	object->inverse = ~object->number;
	me->got++;
}

static void let_go(struct user *me, struct object *object)
{
	assert_int_equal(object->number, ~object->inverse);
	assert_int_equal(atomic_exchange_explicit(&object->holder, 0, memory_order_relaxed),
			 me->id);
}

/* Leave an object for others, and take one. Returns it, or NULL. */
static struct object *swap(struct user *me, struct object *object)
{
	/* X1 -> X2, both: the thread that takes it sees the writes of the one that left it. */
	struct object *other = atomic_exchange_explicit(&boxes[dice(BOXES)], object,
							memory_order_acq_rel);

	if (other)
		atomic_store_explicit(&other->holder, me->id, memory_order_relaxed);
	return other;
}

static uint32_t get_some(struct user *me, void **objects)
{
	uint32_t wanted = dice(3) ? 1 : 1 + dice(BULK_MAX);
	uint32_t got;

	if (me->mix->owned && me->id != 1)
		return 0;
	if (wanted == 1) {
		objects[0] = plx_pool_get(pool);
		got = objects[0] != NULL;
	} else {
		got = plx_pool_get_bulk(pool, objects, wanted);
	}
	if (got == 0)
		me->missed++;
	for (uint32_t i = 0; i < got; i++)
		hold(me, objects[i]);
	return got;
}

static void put_some(struct user *me, void **objects, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		let_go(me, objects[i]);
	if (count == 1 || dice(2)) {
		for (uint32_t i = 0; i < count; i++)
			plx_pool_put(pool, objects[i]);
	} else {
		plx_pool_put_bulk(pool, objects, count);
	}
}

/* Figures may lag, but never be impossible. */
static void look(struct user *me)
{
	struct plx_pool_stats stats;

	plx_pool_stats_read(pool, &stats);
	assert_in_range(stats.available, 0, me->mix->object_count);
	assert_in_range(stats.low_water, 0, me->mix->object_count);
}

static void *use(void *arg)
{
	struct user *me = arg;

	stress_dice = me->id;
	if (me->mix->owned)
		plx_lcore_id_tls = me->id == 1 ? OWNER : PLX_LCORE_NONE;
	else
		plx_lcore_id_tls = me->id <= LCORES ? me->id * 11 : PLX_LCORE_NONE;
	for (uint32_t turn = 0; turn < stress_amount; turn++) {
		void *objects[BULK_MAX + 1];
		uint32_t count = get_some(me, objects);

		yield_at_times();
		if (count == 0 || dice(2)) {
			struct object *other = swap(me, count ? objects[--count] : NULL);

			if (other)
				objects[count++] = other;
		}
		put_some(me, objects, count);
		if (dice(64) == 0)
			look(me);
	}
	return NULL;
}

static void make(const struct mix *mix)
{
	struct plx_pool_attr attr = {.name = mix->name,
				     .object_bytes = sizeof(struct object),
				     .object_count = mix->object_count,
				     .node = PLX_NODE_ANY,
				     .owner = mix->owned ? OWNER : PLX_LCORE_NONE,
				     .cache_count = mix->cache_count};
	void *objects[OBJECTS_MAX];

	assert_int_equal(plx_pool_create(&attr, &pool), 0);
	plx_lcore_id_tls = attr.owner;
	assert_int_equal(plx_pool_get_bulk(pool, objects, mix->object_count), mix->object_count);
	for (uint32_t i = 0; i < mix->object_count; i++) {
		struct object *object = objects[i];

		*object = (struct object){.inverse = ~UINT64_C(0)};
	}
	plx_pool_put_bulk(pool, objects, mix->object_count);
	plx_lcore_id_tls = PLX_LCORE_NONE;
}

static void empty_boxes(void)
{
	for (uint32_t i = 0; i < BOXES; i++) {
		struct object *object = atomic_exchange(&boxes[i], NULL);

		if (object)
			plx_pool_put(pool, object);
	}
}

static struct user users[THREADS];
static uint64_t missed, got; /* by all of them */

static void run_users(const struct mix *mix, void *(*fn)(void *))
{
	missed = got = 0;
	for (uint32_t i = 0; i < THREADS; i++)
		users[i] = (struct user){.mix = mix, .id = i + 1};
	run_in_threads(THREADS, fn, users, sizeof(*users));
	for (uint32_t i = 0; i < THREADS; i++) {
		missed += users[i].missed;
		got += users[i].got;
	}
}

/* All are back. */
static void finish(const struct mix *mix)
{
	struct plx_pool_stats stats;

	plx_pool_stats_read(pool, &stats);
	assert_int_equal(stats.available, mix->object_count);
	assert_int_equal(stats.empty, missed);
	plx_pool_destroy(pool);
	stress_went_on();
}

static void run(const struct mix *mix)
{
	make(mix);
	run_users(mix, use);
	assert_true(got > stress_amount / 16);
	empty_boxes();
	finish(mix);
}

PLX_TEST(no_object_has_two_holders_or_is_lost)
{
	static const struct mix mixes[] = {
		{"tiny", 8, 2, false},
		{"least caches", 3, 1, false},
		{"no caches", 8, PLX_NONE, false},
		{"one object", 1, PLX_NONE, false},
		{"larger than all holds", 64, 8, false},
		{"caches for all", 64, 64, false},
		{"owned", 8, 0, true},
		{"owned, larger", 64, 0, true},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(mixes); i++)
		run(&mixes[i]);
}

#define HELD_MAX 3

/* As many objects as all threads hold and the caches contain: every get succeeds. */
static void *take_and_give(void *arg)
{
	struct user *me = arg;

	stress_dice = me->id;
	plx_lcore_id_tls = me->id <= LCORES ? me->id * 11 : PLX_LCORE_NONE;
	for (uint32_t turn = 0; turn < stress_amount / 2; turn++) {
		void *objects[HELD_MAX];
		uint32_t wanted = 1 + dice(HELD_MAX);
		uint32_t count = 0;

		while (count < wanted) {
			objects[count] = plx_pool_get(pool);
			if (!objects[count]) {
				me->missed++;
				break;
			}
			hold(me, objects[count++]);
		}
		yield_at_times();
		put_some(me, objects, count);
	}
	return NULL;
}

static struct mix enough = {.name = "enough"};

static void run_takers(void)
{
	run_users(&enough, take_and_give);
}

/* This thread stays in the middle of a pop: the ring takes nothing back, and other threads' puts
 * and gets bypass it. */
PLX_TEST(none_is_missed_beside_a_pop_that_stands_still)
{
	static const uint32_t cache_counts[] = {PLX_NONE, 1, 4};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cache_counts); i++) {
		uint32_t cached = cache_counts[i] == PLX_NONE ? 0 : cache_counts[i];

		enough.object_count = 1 + THREADS * HELD_MAX + LCORES * cached;
		enough.cache_count = cache_counts[i];
		make(&enough);
		in_the_middle = run_takers;
		void *mine = plx_pool_get(pool);
		assert_non_null(mine);
		assert_null(in_the_middle);
		plx_pool_put(pool, mine);
		assert_int_equal(missed, 0);
		finish(&enough);
	}
}

static int start_memory(void **state)
{
	return plx_mem_init(&(struct plx_mem_conf){.huge = PLX_HUGE_NONE});
}

STRESS_MAIN_WITH(PLX_TEST_SANITIZED ? 10000 : 120000, 120000, start_memory)
