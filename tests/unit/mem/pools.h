/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of memory and pools. */
#ifndef POOLS_H
#define POOLS_H

#include "child.h"
#include "dice.h"
#include "mem_priv.h"

#include <sys/mman.h>

#define CHECKED POOL_CHECKED

#ifdef MEM_ASAN
#define POISONED 1
#else
#define POISONED 0
#endif

#define OWNER 3

static const struct plx_mem_conf ordinary = {.huge = PLX_HUGE_NONE};

PLX_FIXTURE(setup, plx_mem_init(&ordinary), plx_lcore_id_tls = OWNER)

static inline void init_with(enum plx_numa numa)
{
	const struct plx_mem_conf conf = {.huge = PLX_HUGE_NONE, .numa = numa};

	assert_int_equal(plx_mem_init(&conf), 0);
}

static inline int teardown(void **state)
{
	plx_lcore_id_tls = PLX_LCORE_NONE;
	plx_mem_fini();
	return 0;
}

#define TEST(name)             PLX_TEST_WITH(name, setup, teardown)
#define TEST_BEFORE_INIT(name) PLX_TEST_WITH(name, NULL, teardown)

static inline struct plx_pool *make_pool(const struct plx_pool_attr *attr)
{
	struct plx_pool *pool = NULL;

	assert_int_equal(plx_pool_create(attr, &pool), 0);
	return pool;
}

#define POOL_ATTR(name_, bytes, count, node_, owner_, cache) \
	((struct plx_pool_attr){.name = name_,               \
				.object_bytes = bytes,       \
				.object_count = count,       \
				.node = node_,               \
				.owner = owner_,             \
				.cache_count = cache})

static inline struct plx_pool *make(uint32_t owner, uint32_t count, size_t bytes)
{
	return make_pool(&POOL_ATTR("test", bytes, count, PLX_NODE_ANY, owner, 0));
}

static inline struct plx_pool *make_shared(uint32_t count, uint32_t cache_count)
{
	return make_pool(&POOL_ATTR("test", 64, count, PLX_NODE_ANY, PLX_LCORE_NONE, cache_count));
}

PLX_READS(struct plx_mem_stats, mem_stats, (void), plx_mem_stats_read(&it))
PLX_READS(struct plx_pool_stats, stats_of, (struct plx_pool * pool), plx_pool_stats_read(pool, &it))

/** Get and put as another lcore, or (PLX_LCORE_NONE) from a thread that is not an lcore. */
static inline void *get_as(uint32_t id, struct plx_pool *pool)
{
	uint32_t before = plx_lcore_id_tls;

	plx_lcore_id_tls = id;
	void *object = plx_pool_get(pool);
	plx_lcore_id_tls = before;
	return object;
}

static inline void put_as(uint32_t id, struct plx_pool *pool, void *object)
{
	uint32_t before = plx_lcore_id_tls;

	plx_lcore_id_tls = id;
	plx_pool_put(pool, object);
	plx_lcore_id_tls = before;
}

static inline void put_as_stranger(struct plx_pool *pool, void *object)
{
	put_as(PLX_LCORE_NONE, pool, object);
}

/** The same for several objects, one at a time. */
static inline void get_each_as(uint32_t id, struct plx_pool *pool, void **objects, int count)
{
	for (int i = 0; i < count; i++)
		assert_non_null(objects[i] = get_as(id, pool));
}

static inline void put_each_as(uint32_t id, struct plx_pool *pool, void **objects, int count)
{
	for (int i = 0; i < count; i++)
		put_as(id, pool, objects[i]);
}

/* A model that tracks what a pool of `count` objects reports. */
struct model {
	struct plx_pool *pool;
	uint32_t count, out_count, low;
	uint64_t empty, dice;
	void *out[130];
};

static inline void model_get(struct model *model, uint32_t count, bool succeeds)
{
	void **objects = model->out + model->out_count;

	if (count == 1) {
		objects[0] = plx_pool_get(model->pool);
		assert_int_equal(objects[0] != NULL, succeeds);
	} else {
		assert_int_equal(plx_pool_get_bulk(model->pool, objects, count),
				 succeeds ? count : 0);
	}
	model->empty += !succeeds;
	model->out_count += succeeds ? count : 0;
	for (; objects < model->out + model->out_count; objects++)
		for (void **other = model->out; other < objects; other++)
			assert_ptr_not_equal(*objects, *other);
	if (model->count - model->out_count < model->low)
		model->low = model->count - model->out_count;
}

static inline void model_put(struct model *model, uint32_t count)
{
	if (count > model->out_count)
		count = model->out_count;
	model->out_count -= count;
	if (count == 1)
		plx_pool_put(model->pool, model->out[model->out_count]);
	else
		plx_pool_put_bulk(model->pool, model->out + model->out_count, count);
}

/* How many, rarely none or more than there can be. */
static inline uint32_t model_bulk(struct model *model, uint32_t most)
{
	switch (dice_roll(&model->dice, 64)) {
	case 0:
		return 0;
	case 1:
		return UINT32_MAX;
	default:
		return 1 + dice_roll(&model->dice, most);
	}
}

/* In long phases, so that the pool gets both full and empty. */
static inline bool model_gets_next(struct model *model, int turn)
{
	return dice_roll(&model->dice, 256) < (turn / 500 % 2 ? 160u : 96u);
}

static inline bool is_zero(const void *memory, size_t size)
{
	const char *bytes = memory;

	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static inline uint64_t free_pages(size_t page_bytes)
{
	return mem_hugepages(page_bytes, "free_hugepages") -
	       mem_hugepages(page_bytes, "resv_hugepages");
}

static inline bool is_populated(const struct plx_zone *zone)
{
	unsigned char pages[2 * MEM_2M / MEM_4K] = {0};
	size_t count = zone->size_bytes / MEM_4K;

	if (count > sizeof(pages) || mincore(zone->base, zone->size_bytes, pages))
		return false;
	while (count > 0 && (pages[count - 1] & 1))
		count--;
	return count == 0;
}

/* Cases of misuse, for a child: fn uses an object of a new pool. */
struct misuse_case {
	void (*fn)(struct plx_pool *pool, char *object);
	const char *text;
};

static struct plx_pool *(*misuse_make)(void);
static void (*misuse_fn)(struct plx_pool *pool, char *object);

static inline int misuse_in_child(void)
{
	struct plx_pool *pool = misuse_make();

	misuse_fn(pool, plx_pool_get(pool));
	return 0;
}

static inline void assert_misuse_fatal(struct plx_pool *(*make_one)(void),
				       const struct misuse_case *cases, size_t count)
{
	misuse_make = make_one;
	for (size_t i = 0; i < count; i++) {
		misuse_fn = cases[i].fn;
		assert_fatal(&(struct fatal_case){misuse_in_child, cases[i].text}, 1);
	}
}

static inline void put_twice(struct plx_pool *pool, char *object)
{
	plx_pool_put(pool, object);
	plx_pool_put(pool, object);
}

/* It is not destroyed while an object is in use, and still works. */
static inline void destroy_with_one_out(struct plx_pool *pool, char *object)
{
	if (plx_pool_destroy(pool) != -EBUSY)
		_exit(1);
	memset(object, 1, 61);
	plx_pool_put(pool, object);
	if (!(object = plx_pool_get(pool)))
		_exit(2);
	plx_pool_put(pool, object);
	_exit(plx_pool_destroy(pool) ? 3 : 0);
}

static inline void write_after_put(struct plx_pool *pool, char *object)
{
	plx_pool_put(pool, object);
	object[20] = 1;
}

static inline void assert_one_out_stays(struct plx_pool *(*make_one)(void), const char *text)
{
	misuse_make = make_one;
	misuse_fn = destroy_with_one_out;
	assert_child_says(misuse_in_child, 1, text);
}

/* Fail unless AddressSanitizer ends it. */
static inline void assert_poisoned(struct plx_pool *(*make_one)(void),
				   void (*fn)(struct plx_pool *pool, char *object))
{
	struct child_end end;

	if (!POISONED)
		skip();
	misuse_make = make_one;
	misuse_fn = fn;
	child_run(misuse_in_child, &end);
	assert_int_not_equal(end.status, 0);
	assert_child_said(&end, "use-after-poison");
}

#endif
