/* SPDX-License-Identifier: BSD-3-Clause */
/* Pollux's pools in the loops of pool_bench.h. */
#include "pool_bench.h"

static inline PLX_ALWAYS_INLINE bool get(void *pool, void **objects, uint32_t count)
{
	if (count > 1)
		return plx_pool_get_bulk(pool, objects, count);
	objects[0] = plx_pool_get(pool);
	return objects[0] != NULL;
}

static inline PLX_ALWAYS_INLINE void put(void *pool, void **objects, uint32_t count)
{
	if (count > 1)
		plx_pool_put_bulk(pool, objects, count);
	else
		plx_pool_put(pool, objects[0]);
}

DEFINE_POOL_LOOPS(plx, get, put)

static int create(uint32_t owner, void **pool_out)
{
	struct plx_pool_attr attr = {
		.name = "plx-perf",
		.object_bytes = POOL_OBJECT_BYTES,
		.object_count = POOL_OBJECTS,
		.node = plx_lcore_node(plx_lcore_main()),
		.owner = owner,
	};
	struct plx_pool *pool;
	int rc = plx_pool_create(&attr, &pool);

	if (rc == 0)
		*pool_out = pool;
	return rc;
}

static int create_shared(void **pool_out)
{
	return create(PLX_LCORE_NONE, pool_out);
}

static int create_owned(void **pool_out)
{
	return create(plx_lcore_main(), pool_out);
}

static void destroy(void *pool)
{
	plx_pool_destroy(pool);
}

/* An lcore's cache is created at its first use of the pool. */
static int use_once(void *pool)
{
	void *object = plx_pool_get(pool);

	if (!object)
		return -ENOMEM;
	plx_pool_put(pool, object);
	return 0;
}

static int cache_bytes(void *pool, size_t *bytes_out)
{
	struct plx_pool_stats stats;
	int rc = use_once(pool), result = 0;

	PLX_LCORE_FOREACH_WORKER (id) {
		if (rc == 0)
			rc = plx_lcore_launch(id, use_once, pool);
		if (rc == 0)
			rc = plx_lcore_join(id, PLX_NEVER, &result);
		if (rc == 0 && result)
			rc = plx_fail(ENOMEM, "lcore %u got nothing from a pool of %d objects", id,
				      POOL_OBJECTS);
	}
	plx_pool_stats_read(pool, &stats);
	*bytes_out = stats.cache_bytes;
	return rc;
}

const struct pool_maker pool_plx_shared = {
	.name = "shared",
	.create = create_shared,
	.destroy = destroy,
	.cache_bytes = cache_bytes,
	POOL_LOOPS(plx),
};

const struct pool_maker pool_plx_owned = {
	.name = "owned",
	.create = create_owned,
	.destroy = destroy,
	POOL_LOOPS(plx),
};
