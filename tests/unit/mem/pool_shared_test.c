/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared pools on one thread, which acts as several lcores. Ring, caches and spare objects are
 * private copies, so a test can act in the middle of a push or a pop, and deny memory for a
 * cache. */
#include "log_capture.h"
#include "pools.h"

static void step(const char *where);
#define RING_STEP(where) step(#where)
#include "multi.c"

static int alloc_or_refuse(size_t size_bytes, size_t align_bytes, int node, void **memory_out);
#define mem_alloc        alloc_or_refuse
#define POOL_STEP(where) step(#where)
#include "pool_shared.c"
#undef mem_alloc

/* Runs once, at the next step with that name. */
static const char *stop_at;
static void (*at_stop)(void);

static void step(const char *where)
{
	if (!stop_at || strcmp(stop_at, where))
		return;
	stop_at = NULL;
	at_stop();
}

static bool refuses;
static unsigned asked;

static int alloc_or_refuse(size_t size_bytes, size_t align_bytes, int node, void **memory_out)
{
	asked++;
	if (refuses)
		return plx_fail(ENOMEM, "as the test wants");
	return mem_alloc(size_bytes, align_bytes, node, memory_out);
}

static uint32_t depth_of(struct plx_pool *pool)
{
	return plx_ring_depth(pool_of(pool)->ring);
}

static uint32_t listed_in(struct plx_pool *pool)
{
	return atomic_load(&pool_of(pool)->listed_count);
}

/* Caches ----------------------------------------------------------------------------------- */

TEST(a_pool_without_memory_for_a_cache_works)
{
	struct plx_pool *pool = make_shared(8, 4);
	void *objects[8];

	refuses = true;
	asked = 0;
	log_capture();
	for (int round = 0; round < 10; round++) {
		get_each_as(OWNER, pool, objects, 8);
		assert_null(plx_pool_get(pool));
		put_each_as(OWNER, pool, objects, 4);
		plx_pool_put_bulk(pool, objects + 4, 4);
		assert_int_equal(depth_of(pool), 8);
		assert_int_equal(plx_pool_get_bulk(pool, objects, 8), 8);
		plx_pool_put_bulk(pool, objects, 8);
	}
	plx_log_set_sink(NULL, NULL);
	refuses = false;
	assert_int_equal(asked, 1);
	assert_int_equal(
		log_count("pool test: lcore 3 works without a cache, slower: as the test wants"),
		1);
	assert_int_equal(stats_of(pool).empty, 10);
	plx_pool_destroy(pool);
}

TEST(bulks_are_bounded_by_the_ring_only_when_taken)
{
	enum { COUNT = 40000 };
	static void *objects[COUNT];
	struct plx_pool *pool = make_shared(COUNT, 0);

	assert_int_equal(plx_pool_get_bulk(pool, objects, COUNT), 0);
	assert_int_equal(plx_pool_get_bulk(pool, objects, COUNT / 2), COUNT / 2);
	assert_int_equal(plx_pool_get_bulk(pool, objects + COUNT / 2, COUNT / 2), COUNT / 2);
	plx_pool_put_bulk(pool, objects, COUNT);
	assert_int_equal(depth_of(pool), COUNT);
	plx_pool_destroy(pool);
}

/* A stopped pop ---------------------------------------------------------------------------- */

static struct plx_pool *stopped;

/* The ring has a place that is claimed and not yet free. */
static void use_the_others(void)
{
	void *objects[8];

	for (int round = 0; round < 5; round++) {
		get_each_as(PLX_LCORE_NONE, stopped, objects, 7);
		assert_null(get_as(PLX_LCORE_NONE, stopped));
		put_each_as(PLX_LCORE_NONE, stopped, objects, 5);
		plx_pool_put_bulk(stopped, objects + 5, 2);
		assert_int_equal(listed_in(stopped), 7);
		assert_int_equal(stats_of(stopped).available, 7);

		/* Part of the list, one fewer than too many, all of it. */
		assert_int_equal(plx_pool_get_bulk(stopped, objects, 3), 3);
		assert_int_equal(plx_pool_get_bulk(stopped, objects + 3, 5), 0);
		assert_int_equal(stats_of(stopped).available, 4);
		assert_int_equal(plx_pool_get_bulk(stopped, objects + 3, 4), 4);
		plx_pool_put_bulk(stopped, objects, 7);
	}
}

TEST(puts_after_a_stopped_pop_work)
{
	void *objects[8];

	stopped = make_shared(8, PLX_NONE);
	at_stop = use_the_others;
	stop_at = "claimed";
	objects[0] = plx_pool_get(stopped);
	assert_null(stop_at);
	get_each_as(OWNER, stopped, objects + 1, 7);
	assert_null(plx_pool_get(stopped));
	assert_int_equal(listed_in(stopped), 0);
	put_each_as(OWNER, stopped, objects, 8);
	assert_int_equal(depth_of(stopped), 8);
	plx_pool_destroy(stopped);
}

static void *spares[8];

/* All of its objects are spare, the last one on top. */
static void make_spare(void)
{
	stopped = make_shared(8, PLX_NONE);
	assert_int_equal(plx_pool_get_bulk(stopped, spares, 8), 8);
	for (int i = 7; i >= 0; i--)
		spare_push(pool_of(stopped), &spares[i], 1);
}

static void destroy_spare(void)
{
	plx_pool_put_bulk(stopped, spares, 8);
	plx_pool_destroy(stopped);
}

/* Meanwhile the top one is taken, the next one too, and the top one put back. */
static void turn_the_top_round(void)
{
	void *two[2];

	assert_int_equal(spare_pop(pool_of(stopped), two, 2), 2);
	spare_push(pool_of(stopped), two, 1);
	assert_ptr_equal(two[1], spares[1]);
}

TEST(a_pop_takes_nothing_that_was_taken_meanwhile)
{
	void *popped[8];

	make_spare();
	at_stop = turn_the_top_round;
	stop_at = "popping";
	assert_int_equal(spare_pop(pool_of(stopped), popped, 3), 3);
	assert_null(stop_at);
	assert_ptr_equal(popped[0], spares[0]);
	assert_ptr_equal(popped[1], spares[2]);
	assert_ptr_equal(popped[2], spares[3]);
	assert_int_equal(listed_in(stopped), 4);
	assert_int_equal(spare_pop(pool_of(stopped), popped, 8), 4);
	assert_int_equal(spare_pop(pool_of(stopped), popped, 8), 0);
	destroy_spare();
}

enum { COUNT = 60, IDS = 5, BULK = 12 };
static const uint32_t ids[IDS] = {0, 3, 9, 200, PLX_LCORE_NONE};

/* Objects that this lcore can get: those in its cache, and in the ring. */
static uint32_t reachable(struct plx_pool *pool)
{
	uint32_t id = plx_lcore_id(), count = depth_of(pool);

	if (id < pool_of(pool)->lcore_count)
		count += atomic_load(&pool_of(pool)->pub.caches[id]->count);
	return count;
}

static void run_model(uint32_t cache_count)
{
	struct model model = {
		.pool = make_shared(COUNT, cache_count), .count = COUNT, .low = COUNT};

	for (int turn = 0; turn < 50000; turn++) {
		uint32_t count = dice_roll(&model.dice, 2) ? 1 : model_bulk(&model, BULK);

		plx_lcore_id_tls = ids[dice_roll(&model.dice, IDS)];
		if (model_gets_next(&model, turn))
			model_get(&model, count, reachable(model.pool) >= count);
		else
			model_put(&model, count);

		struct plx_pool_stats stats = stats_of(model.pool);
		assert_int_equal(stats.available, COUNT - model.out_count);
		assert_int_equal(stats.empty, model.empty);
		assert_true(stats.low_water >= model.low);
		assert_int_equal(stats.in_caches,
				 stats.available - depth_of(model.pool) - listed_in(model.pool));
	}
	assert_true(model.empty > 0);
	/* Approximate: caches are only counted at refills. */
	uint32_t most = (cache_count == PLX_NONE ? 0 : cache_count) * (IDS - 1);
	assert_true(stats_of(model.pool).low_water <= model.low + most);
	plx_lcore_id_tls = OWNER;
	model_put(&model, model.out_count);
	plx_pool_destroy(model.pool);
	assert_int_equal(mem_stats().bytes_used, 0);
}

TEST(figures_agree_with_a_model)
{
	static const uint32_t cache_counts[] = {1, 3, 8, 60, PLX_NONE};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cache_counts); i++)
		run_model(cache_counts[i]);
}

static struct plx_pool *make_eight(void)
{
	return make_shared(8, 4);
}

static void put_twice_in_a_bulk(struct plx_pool *pool, char *object)
{
	void *objects[] = {object, plx_pool_get(pool), object};

	plx_pool_put_bulk(pool, objects, 3);
}

static void put_a_foreign_one_in_a_bulk(struct plx_pool *pool, char *object)
{
	void *objects[] = {object, plx_pool_get(make_eight()), plx_pool_get(pool)};

	plx_pool_put_bulk(pool, objects, 3);
}

TEST(misuse_is_caught_in_debug_builds)
{
	static const struct misuse_case cases[] = {
		{put_twice, "an object put twice"},
		{put_twice_in_a_bulk, "an object put twice"},
		{put_a_foreign_one_in_a_bulk, "a pool it is not of"},
	};

	assert_misuse_fatal(make_eight, cases, PLX_ARRAY_LEN(cases));
}

TEST(a_pool_with_objects_in_use_is_not_freed)
{
	assert_one_out_stays(make_eight, "pool test stays: 1 of its 8 objects are out");
}

TEST(use_after_put_is_caught_by_asan)
{
	assert_poisoned(make_eight, write_after_put);
}

PLX_TEST_MAIN()
