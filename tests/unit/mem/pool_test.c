/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of one lcore, and what all pools have in common. */
#include "pools.h"

TEST(bad_attributes_are_refused)
{
	const int any = PLX_NODE_ANY;
	const uint32_t none = PLX_LCORE_NONE;
	const struct {
		struct plx_pool_attr attr; /* bytes, count, node, owner and cache */
		int rc;
		const char *error;
	} cases[] = {
		{POOL_ATTR(NULL, 64, 4, any, OWNER, 0), -EINVAL, "give the pool a name"},
		{POOL_ATTR("odd", 64, 0, any, OWNER, 0), -EINVAL,
		 "pool odd: object_count 0: give 1 to "},
		{POOL_ATTR("odd", 0, 1, any, OWNER, 0), -EINVAL, "pool odd: object_bytes 0"},
		{POOL_ATTR("odd", 64, 1, 999, OWNER, 0), -EINVAL,
		 "pool odd, 1 objects of 64 bytes: NUMA node 999"},
		{POOL_ATTR("odd", UINT32_MAX, 1u << 20, 0, OWNER, 0), -ENOMEM,
		 "not enough memory on node 0: "},
		{POOL_ATTR("odd", 8, 8, any, none, PLX_POOL_CACHE_MAX + 1), -EINVAL,
		 "pool odd: cache_count 513: give 1 to 512, 0 for the default"},
		{POOL_ATTR("odd", 8, PLX_RING_CAPACITY_MAX + 1, any, none, 0), -EINVAL,
		 "pool odd: object_count 1073741825: give 1 to 1073741824"},
	};
	struct plx_pool *pool;

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++)
		assert_fails(plx_pool_create(&cases[i].attr, &pool), cases[i].rc, cases[i].error);
	plx_mem_fini();
	assert_fails(plx_pool_create(&POOL_ATTR("odd", 64, 1, any, OWNER, 0), &pool), -EINVAL,
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

/* Gets and puts, singly and in bulks, by the owner and by other threads, in random orders. */

enum { COUNT = 90, BULK = 40 };

static void run_model(uint64_t dice, bool with_bulks)
{
	struct model model = {
		.pool = make(OWNER, COUNT, 32), .count = COUNT, .low = COUNT, .dice = dice};

	for (int turn = 0; turn < 2500; turn++) {
		bool is_bulk = with_bulks && dice_roll(&model.dice, 2);
		uint32_t count = is_bulk ? model_bulk(&model, BULK) : 1;

		if (model_gets_next(&model, turn)) {
			model_get(&model, count, count <= COUNT - model.out_count);
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

/* Often from the start: a mark of 0 tells nothing any longer. */
TEST(figures_agree_with_a_model)
{
	for (uint64_t dice = 1; dice <= 40; dice++)
		run_model(dice * UINT64_C(0x9e3779b97f4a7c15), dice % 2);
}

TEST(a_shared_pool_works_with_and_without_a_cache)
{
	struct plx_pool *pool = make_shared(64, 8);
	void *objects[64];

	get_each_as(OWNER, pool, objects, 64);
	assert_null(plx_pool_get(pool));
	assert_null(get_as(PLX_LCORE_NONE, pool));
	put_each_as(OWNER, pool, objects, 64);
	assert_int_equal(stats_of(pool).available, 64);
	assert_int_equal(stats_of(pool).empty, 2);
	assert_int_equal(plx_pool_get_bulk(pool, objects, 64), 64);
	plx_pool_put_bulk(pool, objects, 64);
	plx_pool_destroy(pool);
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
	return make_pool(&POOL_ATTR(name, 64, 8, PLX_NODE_ANY, owner, 0));
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
