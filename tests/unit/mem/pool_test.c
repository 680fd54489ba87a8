/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

TEST(bad_attributes_are_refused)
{
	struct plx_pool_attr attr = {
		.object_bytes = 64, .object_count = 4, .node = PLX_NODE_ANY, .owner = OWNER};
	struct plx_pool *pool;

	assert_fails(plx_pool_create(&attr, &pool), -EINVAL, "give the pool a name");
	attr.name = "odd";
	attr.object_count = 0;
	assert_fails(plx_pool_create(&attr, &pool), -EINVAL,
		     "pool odd: object_count 0: give 1 to ");
	attr.object_count = 1;
	attr.object_bytes = 0;
	assert_fails(plx_pool_create(&attr, &pool), -EINVAL, "pool odd: object_bytes 0");
	attr.object_bytes = 64;
	attr.node = 999;
	assert_fails(plx_pool_create(&attr, &pool), -EINVAL,
		     "pool odd, 1 objects of 64 bytes: NUMA node 999");
	attr.node = 0;
	attr.object_bytes = UINT32_MAX;
	attr.object_count = 1u << 20;
	assert_fails(plx_pool_create(&attr, &pool), -ENOMEM, "not enough memory on node 0: ");
	plx_mem_fini();
	assert_fails(plx_pool_create(&attr, &pool), -EINVAL,
		     "Pollux is not up; call plx_eal_init or plx_app_start first");
	plx_pool_destroy(NULL);
}

TEST(objects_are_aligned_and_apart_and_in_the_zone)
{
	static const size_t sizes[] = {1, 8, 63, 64, 65, 4096};

	for (size_t s = 0; s < PLX_ARRAY_LEN(sizes); s++) {
		struct plx_pool *pool = make(OWNER, 100, sizes[s]);
		const struct plx_zone *zone = plx_pool_zone(pool);
		uint8_t *objects[100];

		for (unsigned i = 0; i < 100; i++) {
			objects[i] = plx_pool_get(pool);
			assert_non_null(objects[i]);
			assert_int_equal((uintptr_t)objects[i] % PLX_CACHE_LINE, 0);
			assert_in_range((uintptr_t)objects[i], (uintptr_t)zone->base,
					(uintptr_t)zone->base + zone->size_bytes - sizes[s]);
			memset(objects[i], (int)i, sizes[s]);
		}
		for (unsigned i = 0; i < 100; i++) {
			assert_int_equal(objects[i][0], i);
			assert_int_equal(objects[i][sizes[s] - 1], i);
			plx_pool_put(pool, objects[i]);
		}
		plx_pool_destroy(pool);
	}
}

TEST(the_last_object_put_is_the_first_got)
{
	struct plx_pool *pool = make(OWNER, 4, 64);
	void *a = plx_pool_get(pool);
	void *b = plx_pool_get(pool);

	assert_ptr_equal((char *)b - (char *)a, CHECKED ? 128 : 64);
	plx_pool_put(pool, b);
	plx_pool_put(pool, a);
	assert_ptr_equal(plx_pool_get(pool), a);
	assert_ptr_equal(plx_pool_get(pool), b);
	plx_pool_put(pool, a);
	plx_pool_put(pool, b);
	plx_pool_destroy(pool);
}

TEST(an_empty_pool_returns_null_and_counts_it)
{
	struct plx_pool *pool = make(OWNER, 2, 64);
	void *a = plx_pool_get(pool);
	void *b = plx_pool_get(pool);

	assert_null(plx_pool_get(pool));
	assert_null(plx_pool_get(pool));
	assert_int_equal(stats_of(pool).empty, 2);
	assert_int_equal(stats_of(pool).available, 0);
	assert_int_equal(stats_of(pool).low_water, 0);
	plx_pool_put(pool, a);
	assert_ptr_equal(plx_pool_get(pool), a);
	plx_pool_put(pool, a);
	plx_pool_put(pool, b);
	plx_pool_destroy(pool);
}

TEST(low_water_is_the_lowest_count_ever)
{
	struct plx_pool *pool = make(OWNER, 10, 64);
	void *objects[10];

	assert_int_equal(stats_of(pool).low_water, 10);
	get_each_as(OWNER, pool, objects, 7);
	put_each_as(OWNER, pool, objects, 5);
	assert_int_equal(stats_of(pool).low_water, 3);
	assert_int_equal(stats_of(pool).available, 8);
	objects[0] = plx_pool_get(pool);
	assert_int_equal(stats_of(pool).low_water, 3);
	assert_int_equal(stats_of(pool).empty, 0);
	assert_int_equal(stats_of(pool).object_count, 10);
	plx_pool_put(pool, objects[0]);
	plx_pool_put_bulk(pool, objects + 5, 2);
	plx_pool_destroy(pool);
}

TEST(objects_put_by_other_threads_are_reused)
{
	struct plx_pool *pool = make(OWNER, 100, 64);
	void *objects[100];

	get_each_as(OWNER, pool, objects, 100);
	assert_null(plx_pool_get(pool));
	put_each_as(PLX_LCORE_NONE, pool, objects, 100);
	assert_int_equal(stats_of(pool).available, 100);
	get_each_as(OWNER, pool, objects, 100);
	assert_null(plx_pool_get(pool));
	put_each_as(OWNER, pool, objects, 100);
	assert_int_equal(stats_of(pool).available, 100);
	plx_pool_destroy(pool);
}

/* Objects on the foreign-put list are available: a stack that runs low is not low water. */
TEST(low_water_counts_objects_put_by_other_threads)
{
	struct plx_pool *pool = make(OWNER, 200, 64);

	for (int i = 0; i < 1000; i++) {
		void *a = plx_pool_get(pool);
		void *b = plx_pool_get(pool);

		put_as_stranger(pool, a);
		put_as_stranger(pool, b);
	}
	assert_int_equal(stats_of(pool).low_water, 198);
	assert_int_equal(stats_of(pool).empty, 0);
	assert_int_equal(stats_of(pool).available, 200);

	void *objects[150];
	get_each_as(OWNER, pool, objects, 150);
	assert_int_equal(stats_of(pool).low_water, 50);
	put_each_as(PLX_LCORE_NONE, pool, objects, 150);
	assert_int_equal(stats_of(pool).low_water, 50);
	plx_pool_destroy(pool);
}

TEST(a_bulk_is_taken_whole_or_not_at_all)
{
	struct plx_pool *pool = make(OWNER, 100, 64);
	void *objects[101];

	assert_int_equal(plx_pool_get_bulk(pool, objects, 101), 0);
	assert_int_equal(plx_pool_get_bulk(pool, objects, UINT32_MAX), 0);
	assert_int_equal(plx_pool_get_bulk(pool, objects, 0), 0);
	assert_int_equal(stats_of(pool).empty, 2);
	assert_int_equal(stats_of(pool).low_water, 100);
	assert_int_equal(plx_pool_get_bulk(pool, objects, 60), 60);
	assert_int_equal(plx_pool_get_bulk(pool, objects + 60, 40), 40);
	assert_all_differ(objects, 100);
	assert_int_equal(stats_of(pool).low_water, 0);

	/* More than one refill takes, from bulks of others. */
	plx_lcore_id_tls = PLX_LCORE_NONE;
	plx_pool_put_bulk(pool, objects, 0);
	plx_pool_put_bulk(pool, objects, 70);
	plx_pool_put_bulk(pool, objects + 70, 1);
	plx_lcore_id_tls = OWNER;
	plx_pool_put_bulk(pool, objects + 71, 29);
	assert_int_equal(stats_of(pool).available, 100);
	assert_int_equal(plx_pool_get_bulk(pool, objects, 100), 100);
	plx_pool_put_bulk(pool, objects, 100);
	assert_int_equal(stats_of(pool).empty, 2);
	plx_pool_destroy(pool);
}

/* It has taken what others put, so the stack alone shows less than was available. */
TEST(low_water_is_updated_after_a_failed_bulk)
{
	struct plx_pool *pool = make(OWNER, 100, 64);
	void *objects[101];

	get_each_as(OWNER, pool, objects, 50);
	put_each_as(PLX_LCORE_NONE, pool, objects, 50);
	objects[0] = plx_pool_get(pool);
	assert_int_equal(stats_of(pool).low_water, 50);
	assert_int_equal(plx_pool_get_bulk(pool, objects + 1, 100), 0);
	get_each_as(OWNER, pool, objects + 1, 79);
	assert_int_equal(stats_of(pool).low_water, 20);
	plx_pool_put_bulk(pool, objects, 80);
	plx_pool_destroy(pool);
}

/* Compared over random orders of gets and puts. */

enum { COUNT = 90, BULK = 40 };

TEST(figures_agree_with_a_model)
{
	struct model model = {.pool = make(OWNER, COUNT, 32), .count = COUNT, .low = COUNT};

	for (int turn = 0; turn < 100000; turn++) {
		bool is_bulk = turn / 10000 % 2 && dice_roll(&model.dice, 2);
		uint32_t count = is_bulk ? 1 + dice_roll(&model.dice, BULK) : 1;

		if (model_gets_next(&model, turn)) {
			model_get(&model, count, model.out_count + count <= COUNT);
		} else {
			plx_lcore_id_tls = dice_roll(&model.dice, 2) ? OWNER : PLX_LCORE_NONE;
			model_put(&model, count);
			plx_lcore_id_tls = OWNER;
		}
		assert_int_equal(stats_of(model.pool).available, COUNT - model.out_count);
		assert_int_equal(stats_of(model.pool).low_water, model.low);
		assert_int_equal(stats_of(model.pool).empty, model.empty);
	}
	assert_int_equal(model.low, 0);
	assert_true(model.empty > 0);
	model_put(&model, model.out_count);
	plx_pool_destroy(model.pool);
}

#ifdef __SANITIZE_THREAD__
#define ROUNDS 200000u
#else
#define ROUNDS 2000000u
#endif
#define GIVERS 2u

struct object {
	uint64_t number;
	uint64_t inverse;
};

struct traffic {
	struct plx_pool *pool;
	struct plx_ring *rings[GIVERS]; /* from the owner to each of them */
	_Atomic uint64_t wrong;
};

struct giver {
	struct traffic *traffic;
	uint32_t index;
};

/* Take what the owner sent, check that it is intact, and put it back from here. */
static void *give_back(void *arg)
{
	struct giver *giver = arg;
	struct object *object;

	for (uint64_t number = giver->index; number < ROUNDS; number += GIVERS) {
		while (!plx_ring_pop(giver->traffic->rings[giver->index], &object))
			sched_yield();
		if (object->number != number || object->inverse != ~number)
			atomic_fetch_add(&giver->traffic->wrong, 1);
		memset(object, 0xee, sizeof(*object));
		plx_pool_put(giver->traffic->pool, object);
	}
	return NULL;
}

static void pass_objects_round(uint32_t owner)
{
	const struct plx_ring_attr attr = {.kind = PLX_RING_SPSC, .capacity = 256};
	static struct traffic traffic;
	struct giver givers[GIVERS];
	pthread_t threads[GIVERS];
	uint64_t misses = 0;

	memset(&traffic, 0, sizeof(traffic));
	traffic.pool = make(owner, 100, sizeof(struct object));
	for (uint32_t i = 0; i < GIVERS; i++) {
		givers[i] = (struct giver){&traffic, i};
		assert_works(plx_ring_create(&attr, &traffic.rings[i]));
		assert_int_equal(pthread_create(&threads[i], NULL, give_back, &givers[i]), 0);
	}
	for (uint64_t number = 0; number < ROUNDS; number++) {
		struct object *object;

		while (!(object = plx_pool_get(traffic.pool))) {
			misses++;
			sched_yield();
		}
		*object = (struct object){number, ~number};
		while (!plx_ring_push(traffic.rings[number % GIVERS], &object))
			sched_yield();
		/* The owner puts too, in between. */
		object = number % 3 ? NULL : plx_pool_get(traffic.pool);
		if (object) {
			memset(object, 0xdd, sizeof(*object));
			plx_pool_put(traffic.pool, object);
		} else if (number % 3 == 0) {
			misses++;
		}
	}
	for (uint32_t i = 0; i < GIVERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		plx_ring_destroy(traffic.rings[i]);
	}
	assert_int_equal(traffic.wrong, 0);
	assert_int_equal(stats_of(traffic.pool).available, 100);
	assert_int_equal(stats_of(traffic.pool).empty, misses);

	/* Each object exists once. */
	for (uint64_t i = 0; i < 100; i++) {
		struct object *object = plx_pool_get(traffic.pool);

		assert_non_null(object);
		*object = (struct object){i, ~i};
	}
	assert_null(plx_pool_get(traffic.pool));
	uint64_t sum = 0;
	for (uint32_t i = 0; i < 100; i++) {
		struct object *object = mem_pool_object(traffic.pool, i);

		assert_int_equal(object->inverse, ~object->number);
		sum += object->number;
		plx_pool_put(traffic.pool, object);
	}
	assert_int_equal(sum, 4950);
	plx_pool_destroy(traffic.pool);
}

TEST(other_threads_put_while_the_owner_gets)
{
	pass_objects_round(OWNER);
}

TEST(lcores_and_others_share_a_pool)
{
	pass_objects_round(PLX_LCORE_NONE);
}

static struct plx_pool *make_four(void)
{
	return make(OWNER, 4, 61);
}

static void put_twice_elsewhere(struct plx_pool *pool, char *object)
{
	put_as_stranger(pool, object);
	put_as_stranger(pool, object);
}

static void put_into_another_pool(struct plx_pool *pool, char *object)
{
	plx_pool_put(make_four(), object);
}

static void put_the_middle(struct plx_pool *pool, char *object)
{
	plx_pool_put(pool, object + 8);
}

static void write_past_the_end(struct plx_pool *pool, char *object)
{
	object[61] = 1;
	plx_pool_put(pool, object);
}

static void get_from_anothers_pool(struct plx_pool *pool, char *object)
{
	plx_pool_get(make(OWNER + 1, 4, 64));
}

static void free_twice(struct plx_pool *pool, char *object)
{
	void *memory = plx_mem_alloc(64, 0, PLX_NODE_ANY, NULL);

	plx_mem_free(memory);
	plx_mem_free(memory);
}

TEST(misuse_is_caught_in_debug_builds)
{
	static const struct misuse_case cases[] = {
		{put_twice, "an object put twice"},
		{put_twice_elsewhere, "an object put twice"},
		{put_into_another_pool, "a pool it is not of"},
		{put_the_middle, "a pool it is not of"},
		{write_past_the_end, "past the end of an object"},
		{get_from_anothers_pool, "plx_pool_get: called on lcore 3, but lcore 4 owns"},
		{free_twice, "freed twice"},
	};

	assert_misuse_fatal(make_four, cases, PLX_ARRAY_LEN(cases));
}

TEST(a_pool_with_objects_in_use_is_not_freed)
{
	assert_one_out_stays(make_four, "pool test stays: 1 of its 4 objects are out");
}

TEST(use_after_put_is_caught_by_asan)
{
	assert_poisoned(make_four, write_after_put);
}

static struct plx_pool *make_named(const char *name, uint32_t owner)
{
	return make_pool(&(struct plx_pool_attr){.name = name,
						 .object_bytes = 64,
						 .object_count = 8,
						 .node = PLX_NODE_ANY,
						 .owner = owner});
}

static int leave_pools(void)
{
	make_named("receive lcore 3", OWNER);
	struct plx_pool *gone = make_named("gone", OWNER);
	struct plx_pool *send = make_named("send lcore 3", OWNER);
	struct plx_pool *shared = make_named("all lcores", PLX_LCORE_NONE);

	plx_pool_get(send);
	plx_pool_put(shared, plx_pool_get(shared));
	plx_pool_get(shared);
	plx_pool_destroy(gone);
	plx_mem_fini();
	plx_mem_fini(); /* they are logged once */
	return 0;
}

TEST(fini_names_the_pools_that_remain)
{
	assert_child_says(leave_pools, 3,
			  "mem: warning: plx_mem_fini: pool receive lcore 3 is left (8 objects, 0 "
			  "of them out)",
			  "pool send lcore 3 is left (8 objects, 1 of them out)",
			  "pool all lcores is left (8 objects, 1 of them out)");
}

PLX_TEST_MAIN()
