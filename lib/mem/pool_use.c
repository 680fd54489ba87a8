/* SPDX-License-Identifier: BSD-3-Clause */
/* Slow path of the inline get and put of plx_mem.h: the cache does not suffice, or each object is
 * checked. Debug builds find objects put twice, foreign objects, and writes past an object. */
#include "mem_priv.h"
#include "owner.h"

#include <assert.h>

#define CANARY UINT64_C(0x5afec0deca5cade5)

enum { MARK_FREE, MARK_USED };

void pool_put_canary(const struct pool *pool, void *object)
{
	uint64_t canary = CANARY;

	memcpy((char *)object + pool->object_bytes, &canary, POOL_CANARY_BYTES);
}

static void check_put(struct pool *pool, const void *object)
{
	const char *end = (const char *)object + pool->object_bytes;
	uint64_t canary = CANARY;
	size_t offset = (uintptr_t)object - (uintptr_t)pool->objects;
	bool is_ours = offset < pool->stride_bytes * pool->object_count &&
		       offset % pool->stride_bytes == 0;
	bool is_whole = is_ours && memcmp(end, &canary, sizeof(canary)) == 0;

	assert(is_ours && "an object put into a pool it is not of");
	assert(is_whole && "written past the end of an object");

	/* Relaxed: only the exchange matters; the second of two puts must see the first. */
	uint8_t mark = atomic_exchange_explicit(&pool->marks[pool_number(pool, object)], MARK_FREE,
						memory_order_relaxed);
	assert(mark == MARK_USED && "an object put twice");
	(void)is_whole;
	(void)mark;
}

/* Checks and poisoning of every object that leaves a pool, and of every one that returns. */
static void hand_out(struct pool *pool, void *const *objects, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		/* Relaxed: the list or ring orders an object's put before its next get. */
		if (POOL_CHECKED)
			atomic_store_explicit(&pool->marks[pool_number(pool, objects[i])],
					      MARK_USED, memory_order_relaxed);
		mem_unpoison(objects[i], pool->object_bytes);
	}
}

static void take_back(struct pool *pool, void *const *objects, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (POOL_CHECKED)
			check_put(pool, objects[i]);
		pool_poison(pool, objects[i]);
	}
}

/* plx_pool_my_cache, but never NULL. */
static struct pool_cache *my_cache(const struct pool *pool)
{
	uint32_t i = plx_lcore_id() - pool->pub.lcore_first;

	if (i >= pool->lcore_count)
		return &pool_no_cache;
	return plx_container_of(pool->pub.caches[i], struct pool_cache, pub);
}

uint32_t plx_pool_get_bulk_slowly(struct plx_pool *pool, void **objects, uint32_t count)
{
	struct pool *priv = pool_of(pool);
	struct pool_cache *cache = my_cache(priv);
	bool is_allowed = pool_is_shared(priv) || cache == priv->own;

	/* The main thread stands in for an lcore in plx_eal_fini: it gets nothing. */
	ASSERT_OWNER_IF(is_allowed || owner_is_here(priv->owner), "plx_pool_get", priv->owner);
	if (!is_allowed || count == 0)
		return 0;
	/* If objects are checked, the inline path was skipped, so try the cache here. */
	if (!POOL_WATCHED || !plx_pool_cache_take(&cache->pub, objects, count))
		count = pool_is_shared(priv) ? pool_shared_get(priv, cache, objects, count)
					     : pool_owned_get(priv, objects, count);
	hand_out(priv, objects, count);
	return count;
}

void *plx_pool_get_slowly(struct plx_pool *pool)
{
	void *object;

	return plx_pool_get_bulk_slowly(pool, &object, 1) ? object : NULL;
}

void plx_pool_put_bulk_slowly(struct plx_pool *pool, void *const *objects, uint32_t count)
{
	struct pool *priv = pool_of(pool);
	struct pool_cache *cache = my_cache(priv);

	if (count == 0)
		return;
	take_back(priv, objects, count);
	if (POOL_WATCHED && plx_pool_cache_give(&cache->pub, objects, count))
		return;
	if (pool_is_shared(priv))
		pool_shared_put(priv, cache, objects, count);
	else
		pool_list_push(priv, objects, count);
}

void plx_pool_put_slowly(struct plx_pool *pool, void *object)
{
	plx_pool_put_bulk_slowly(pool, &object, 1);
}
