/* SPDX-License-Identifier: BSD-3-Clause */
/* Pollux's rings and pools in the loops of bench.h. One push and one pop serve all kinds of rings.
 */
#include "bench.h"

BENCH_INLINE uint32_t push(void *ring, uint64_t *elements, uint32_t count)
{
	return plx_ring_push_burst(ring, elements, count);
}

BENCH_INLINE uint32_t pop(void *ring, uint64_t *elements, uint32_t count)
{
	return plx_ring_pop_burst(ring, elements, count);
}

DEFINE_RING_LOOPS(plx, push, pop)

static int size(enum plx_ring_kind kind, uint32_t capacity, size_t *bytes_out)
{
	struct plx_ring_attr attr = {.kind = kind, .capacity = capacity};

	return plx_ring_size(&attr, bytes_out);
}

static int init(void *memory, enum plx_ring_kind kind, uint32_t capacity, void **ring_out)
{
	struct plx_ring_attr attr = {.kind = kind, .capacity = capacity};

	return plx_ring_init(memory, &attr, (struct plx_ring **)ring_out);
}

const struct ring_maker ring_plx[PERF_KINDS] = {
	[PLX_RING_SPSC] = {.name = "spsc", .size = size, .init = init, RING_LOOPS(plx)},
	[PLX_RING_MPSC] = {.name = "mpsc", .size = size, .init = init, RING_LOOPS(plx)},
	[PLX_RING_MPMC] = {.name = "mpmc", .size = size, .init = init, RING_LOOPS(plx)},
};

BENCH_INLINE bool get(void *pool, void **objects, uint32_t count)
{
	if (count > 1)
		return plx_pool_get_bulk(pool, objects, count);
	objects[0] = plx_pool_get(pool);
	return objects[0] != NULL;
}

BENCH_INLINE void put(void *pool, void **objects, uint32_t count)
{
	if (count > 1)
		plx_pool_put_bulk(pool, objects, count);
	else
		plx_pool_put(pool, objects[0]);
}

DEFINE_POOL_LOOPS(plx, get, put)

static int create(bool is_owned, void **pool_out)
{
	struct plx_pool_attr attr = {
		.name = "plx-perf",
		.object_bytes = POOL_OBJECT_BYTES,
		.object_count = POOL_OBJECTS,
		.node = plx_lcore_node(plx_lcore_main()),
		.owner = is_owned ? plx_lcore_main() : PLX_LCORE_NONE,
	};

	return plx_pool_create(&attr, (struct plx_pool **)pool_out);
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

const struct pool_maker pool_plx = {create, destroy, cache_bytes, POOL_LOOPS(plx)};
