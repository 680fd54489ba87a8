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
static int asked_node;

static int alloc_or_refuse(size_t size_bytes, size_t align_bytes, int node, void **memory_out)
{
	asked++;
	asked_node = node;
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

/* Bytes that a pool's first use allocates for its cache. */
static uint32_t size_of_cache(uint32_t object_count, uint32_t cache_count)
{
	struct plx_pool *pool = make_shared(object_count, cache_count);

	plx_pool_put(pool, plx_pool_get(pool));
	struct pool_cache *cache = atomic_load(&pool_of(pool)->first_cache);
	uint32_t size = cache ? cache->pub.size : 0;
	plx_pool_destroy(pool);
	return size;
}

TEST(a_cache_is_a_quarter_of_the_objects_or_as_requested)
{
	assert_int_equal(size_of_cache(3, 0), 0);
	assert_int_equal(size_of_cache(40, 0), 10);
	assert_int_equal(size_of_cache(1024, 0), 256);
	assert_int_equal(size_of_cache(100000, 0), 256);
	assert_int_equal(size_of_cache(100000, PLX_POOL_CACHE_MAX), 512);
	assert_int_equal(size_of_cache(8, 1), 1);
	assert_int_equal(size_of_cache(8, PLX_NONE), 0);
}

TEST(each_lcore_gets_one_cache_on_first_use)
{
	struct plx_pool *pool = make_shared(8192, 0);
	size_t table_bytes = stats_of(pool).cache_bytes;

	put_as_stranger(pool, get_as(PLX_LCORE_NONE, pool));
	assert_int_equal(stats_of(pool).cache_bytes, table_bytes);
	for (int round = 0; round < 3; round++) {
		for (uint32_t id = 0; id < 4; id++)
			put_as(id, pool, get_as(id, pool));
	}
	assert_int_equal(stats_of(pool).cache_bytes, table_bytes + 4 * pool_cache_bytes(256));
	assert_true(stats_of(pool).cache_bytes < 24 << 10);
	put_as(PLX_LCORE_MAX - 1, pool, get_as(PLX_LCORE_MAX - 1, pool));
	assert_int_equal(stats_of(pool).cache_bytes, table_bytes + 5 * pool_cache_bytes(256));
	plx_pool_destroy(pool);
}

TEST(a_cache_is_allocated_on_the_node_of_the_cpu)
{
	struct plx_pool *pool = make_shared(64, 0);
	unsigned node;

	assert_int_equal(getcpu(NULL, &node), 0);
	asked = 0;
	plx_pool_put(pool, plx_pool_get(pool));
	assert_int_equal(asked, 1);
	assert_int_equal(asked_node, node);
	plx_pool_destroy(pool);
}

TEST(half_a_cache_is_fetched_at_once)
{
	struct plx_pool *pool = make_shared(32, 8);
	void *objects[5];

	get_each_as(OWNER, pool, objects, 4);
	assert_int_equal(stats_of(pool).refills, 1);
	assert_int_equal(depth_of(pool), 28);
	objects[4] = plx_pool_get(pool);
	assert_int_equal(stats_of(pool).refills, 2);
	assert_int_equal(stats_of(pool).in_caches, 3);
	assert_int_equal(stats_of(pool).available, 27);
	assert_int_equal(stats_of(pool).low_water, 27);
	plx_pool_put_bulk(pool, objects, 5);
	assert_int_equal(stats_of(pool).spills, 0);
	assert_int_equal(stats_of(pool).in_caches, 8);
	plx_pool_destroy(pool);
}

TEST(the_least_recently_used_half_is_returned)
{
	struct plx_pool *pool = make_shared(32, 8);
	void *objects[32];

	get_each_as(PLX_LCORE_NONE, pool, objects, 32);
	put_each_as(OWNER, pool, objects, 8);
	assert_int_equal(stats_of(pool).spills, 0);
	plx_pool_put(pool, objects[8]);
	assert_int_equal(stats_of(pool).spills, 1);
	assert_int_equal(depth_of(pool), 4);

	/* From the cache: the last ones, newest first. From the ring: the others. */
	for (int i = 8; i >= 4; i--)
		assert_ptr_equal(plx_pool_get(pool), objects[i]);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(get_as(PLX_LCORE_NONE, pool), objects[i]);
	assert_null(plx_pool_get(pool));
	plx_pool_put_bulk(pool, objects, 32);
	plx_pool_destroy(pool);
}

static void *use_as_seven(void *arg)
{
	plx_lcore_id_tls = 7;
	for (int i = 0; i < 1000; i++)
		plx_pool_put(arg, plx_pool_get(arg));
	return NULL;
}

TEST(a_thread_that_takes_over_an_id_takes_over_its_cache)
{
	struct plx_pool *pool = make_shared(64, 8);

	for (int i = 0; i < 3; i++) {
		run_in_thread(use_as_seven, pool);
		assert_int_equal(stats_of(pool).refills, 1);
	}
	assert_int_equal(stats_of(pool).in_caches, 4);
	plx_pool_destroy(pool);
}

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
	assert_all_differ(objects, 8);
	put_each_as(OWNER, stopped, objects, 8);
	assert_int_equal(depth_of(stopped), 8);
	plx_pool_destroy(stopped);
}

/* Objects put after a stalled put are free, but unreachable until it continues. */
static void put_and_get_after_it(void)
{
	void *objects[4];

	get_each_as(PLX_LCORE_NONE, stopped, objects, 4);
	put_each_as(PLX_LCORE_NONE, stopped, objects, 4);
	get_each_as(PLX_LCORE_NONE, stopped, objects, 3);
	assert_null(get_as(PLX_LCORE_NONE, stopped));
	assert_true(stats_of(stopped).available >= 4);
	put_each_as(PLX_LCORE_NONE, stopped, objects, 3);
}

TEST(objects_put_after_a_stalled_put_are_found_once_it_ends)
{
	void *objects[8];

	stopped = make_shared(8, PLX_NONE);
	objects[0] = plx_pool_get(stopped);
	at_stop = put_and_get_after_it;
	stop_at = "claimed";
	plx_pool_put(stopped, objects[0]);
	assert_null(stop_at);
	assert_int_equal(plx_pool_get_bulk(stopped, objects, 8), 8);
	assert_int_equal(stats_of(stopped).empty, 1);
	plx_pool_put_bulk(stopped, objects, 8);
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

static void take_another(void)
{
	void *object = NULL;

	assert_int_equal(spare_pop(pool_of(stopped), &object, 1), 1);
	assert_ptr_equal(object, spares[0]);
}

/* However many the stalled one was about to take. */
TEST(a_stalled_pop_hides_nothing)
{
	void *popped[8];

	make_spare();
	at_stop = take_another;
	stop_at = "popping";
	assert_int_equal(spare_pop(pool_of(stopped), popped, 8), 7);
	assert_null(stop_at);
	for (int i = 0; i < 7; i++)
		assert_ptr_equal(popped[i], spares[i + 1]);
	destroy_spare();
}

TEST(spare_objects_pushed_at_once_keep_their_order)
{
	void *popped[8];

	make_spare();
	assert_int_equal(spare_pop(pool_of(stopped), popped, 5), 5);
	spare_push(pool_of(stopped), popped, 5);
	assert_int_equal(spare_pop(pool_of(stopped), popped, 8), 8);
	assert_memory_equal(popped, spares, sizeof(spares));
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
}

TEST(figures_agree_with_a_model)
{
	static const uint32_t cache_counts[] = {1, 2, 3, 8, 15, 60, PLX_NONE};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cache_counts); i++)
		run_model(cache_counts[i]);
}

/* The test's setup is the first round. */
TEST(repeated_init_and_fini_leak_nothing)
{
	void *objects[40];

	for (int round = 0; round < 50; round++) {
		struct plx_pool *pool = make_shared(64, 16);
		struct plx_pool *other = make_shared(64, 0);

		for (uint32_t id = 0; id < 8; id++) {
			plx_lcore_id_tls = id;
			assert_int_equal(plx_pool_get_bulk(pool, objects, 3), 3);
			plx_pool_put(other, plx_pool_get(other));
			plx_lcore_id_tls = id ^ 1;
			plx_pool_put_bulk(pool, objects, 3);
		}
		plx_pool_destroy(pool);
		plx_pool_destroy(other);
		assert_int_equal(mem_stats().bytes_used, 0);
		plx_mem_fini();
		assert_int_equal(mem_stats().bytes, 0);
		assert_int_equal(setup(state), 0);
	}
}

static struct plx_pool *make_eight(void)
{
	return make_shared(8, 4);
}

static void put_twice_by_two(struct plx_pool *pool, char *object)
{
	put_as(1, pool, object);
	put_as(2, pool, object);
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

static void write_past_the_end(struct plx_pool *pool, char *object)
{
	object[64] = 1;
	put_as_stranger(pool, object);
}

TEST(misuse_is_caught_in_debug_builds)
{
	static const struct misuse_case cases[] = {
		{put_twice, "an object put twice"},
		{put_twice_by_two, "an object put twice"},
		{put_twice_in_a_bulk, "an object put twice"},
		{put_a_foreign_one_in_a_bulk, "a pool it is not of"},
		{write_past_the_end, "past the end of an object"},
	};

	assert_misuse_fatal(make_eight, cases, PLX_ARRAY_LEN(cases));
}

TEST(a_pool_with_objects_in_use_is_not_freed)
{
	assert_one_out_stays(make_eight, "pool test stays: 1 of its 8 objects are out");
}

static void write_after_bulk_put(struct plx_pool *pool, char *object)
{
	void *objects[8] = {object};

	plx_pool_get_bulk(pool, objects + 1, 7);
	plx_pool_put_bulk(pool, objects, 8);
	((char *)objects[7])[20] = 1;
}

TEST(use_after_put_is_caught_by_asan)
{
	assert_poisoned(make_eight, write_after_put);
	assert_poisoned(make_eight, write_after_bulk_put);
}

PLX_TEST_MAIN()
