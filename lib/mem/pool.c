/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of equal objects: creation and inspection. One allocation holds the pool, the stack (owned)
 * or the ring, the cache table and the spare links (shared), and the objects. Lcores allocate their
 * own caches. */
#include "mem_internal.h"
#include "mem_priv.h"

#include <pthread.h>
#include <stdio.h>

#define CACHE_DEFAULT 256                          /* objects */
#define ALIGN         (2 * (size_t)PLX_CACHE_LINE) /* of the pool and of a ring */

/* All pools, to name those left at the end. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(pools, pool) pools;

static int check_attr(const struct plx_pool_attr *attr)
{
	bool is_shared = attr->owner == PLX_LCORE_NONE;
	uint32_t count_max = is_shared ? PLX_RING_CAPACITY_MAX : INT32_MAX;

	if (!attr->name || !attr->name[0])
		return plx_fail(EINVAL, "plx_pool_create: give the pool a name");
	if (attr->object_count == 0 || attr->object_count > count_max)
		return plx_fail(EINVAL, "pool %s: object_count %u: give 1 to %u", attr->name,
				attr->object_count, count_max);
	if (attr->object_bytes == 0 || attr->object_bytes > UINT32_MAX)
		return plx_fail(EINVAL, "pool %s: object_bytes %zu: give 1 to %u", attr->name,
				attr->object_bytes, UINT32_MAX);
	if (is_shared && attr->cache_count > PLX_POOL_CACHE_MAX && attr->cache_count != PLX_NONE)
		return plx_fail(EINVAL,
				"pool %s: cache_count %u: give 1 to %d, 0 for the default, or "
				"PLX_NONE",
				attr->name, attr->cache_count, PLX_POOL_CACHE_MAX);
	return 0;
}

static uint32_t cache_count_of(const struct plx_pool_attr *attr)
{
	uint32_t quarter = attr->object_count / 4;

	if (attr->owner != PLX_LCORE_NONE || attr->cache_count == PLX_NONE)
		return 0;
	if (attr->cache_count > 0)
		return attr->cache_count;
	return quarter < CACHE_DEFAULT ? quarter : CACHE_DEFAULT;
}

/* Set the pointers to the parts of a pool that starts at `memory`. Return: its size. */
static size_t lay_out(struct pool *pool, const struct plx_pool_attr *attr, char *memory)
{
	bool is_shared = attr->owner == PLX_LCORE_NONE;
	struct plx_ring_attr ring = {.kind = PLX_RING_MPMC, .capacity = attr->object_count};
	size_t count = attr->object_count, ring_bytes = 0;
	size_t at = mem_round_up(sizeof(*pool), ALIGN);

	if (is_shared)
		plx_ring_size(&ring, &ring_bytes); /* cannot fail: see check_attr */
	pool->cache_count = cache_count_of(attr);
	/* At most 2^31 objects of 2^32 bytes: no overflow. */
	pool->stride_bytes = mem_round_up(attr->object_bytes + POOL_CANARY_BYTES, PLX_CACHE_LINE);
	pool->own = is_shared ? NULL : (struct pool_cache *)(memory + at);
	at += is_shared ? 0 : pool_cache_bytes(attr->object_count);
	pool->ring = is_shared ? (struct plx_ring *)(memory + at) : NULL;
	at += ring_bytes;
	pool->lcore_count = !is_shared ? 1 : pool->cache_count ? PLX_LCORE_MAX : 0;
	pool->pub.caches = (struct plx_pool_cache **)(memory + at);
	at += pool->lcore_count * sizeof(*pool->pub.caches);
	pool->spare_links = (_Atomic uint32_t *)(memory + at);
	at += is_shared ? count * sizeof(*pool->spare_links) : 0;
	pool->marks = POOL_CHECKED ? (_Atomic uint8_t *)(memory + at) : NULL;
	at = mem_round_up(at + (POOL_CHECKED ? count : 0), PLX_CACHE_LINE);
	pool->objects = memory + at;
	return at + count * pool->stride_bytes;
}

static void init_owned(struct pool *pool)
{
	void **stack = plx_pool_stack(&pool->own->pub);
	uint32_t count = pool->object_count;

	pool->pub.caches[0] = &pool->own->pub;
	pool->pub.lcore_first = pool->owner;
	pool->own->pub.size = pool->own->pub.floor = count;
	counter_set(&pool->own->pub.count, count);
	/* Downwards, so that the first get returns the first object. */
	for (uint32_t i = 0; i < count; i++)
		stack[count - 1 - i] = mem_pool_object(&pool->pub, i);
}

static void init_shared(struct pool *pool)
{
	struct plx_ring_attr ring = {.kind = PLX_RING_MPMC, .capacity = pool->object_count};

	plx_ring_init(pool->ring, &ring, &pool->ring); /* cannot fail: aligned as well */
	for (uint32_t id = 0; id < pool->lcore_count; id++)
		pool->pub.caches[id] = &pool_no_cache.pub;
	for (uint32_t i = 0; i < pool->object_count; i++) {
		void *object = mem_pool_object(&pool->pub, i);

		plx_ring_push(pool->ring, &object);
	}
}

static void init(struct pool *pool, const struct plx_pool_attr *attr)
{
	pool->owner = attr->owner;
	/* A free object holds a link. */
	pool->object_bytes = attr->object_bytes < sizeof(struct pool_returned)
				   ? sizeof(struct pool_returned)
				   : attr->object_bytes;
	pool->object_count = attr->object_count;
	atomic_init(&pool->low_water, attr->object_count);
	snprintf(pool->name, sizeof(pool->name), "%s", attr->name);
	for (uint32_t i = 0; i < pool->object_count; i++) {
		pool_put_canary(pool, mem_pool_object(&pool->pub, i));
		pool_poison(pool, mem_pool_object(&pool->pub, i));
	}
	if (pool_is_shared(pool))
		init_shared(pool);
	else
		init_owned(pool);
	pool->pub.lcore_count = POOL_WATCHED ? 0 : pool->lcore_count;
}

int plx_pool_create(const struct plx_pool_attr *attr, struct plx_pool **pool_out)
{
	struct pool sizing = {0};
	void *memory;
	int err = check_attr(attr);

	if (err)
		return err;
	err = mem_alloc(lay_out(&sizing, attr, (char *)&sizing), ALIGN, attr->node, &memory);
	if (err)
		return plx_fail_in(err, "pool %s, %u objects of %zu bytes: ", attr->name,
				   attr->object_count, attr->object_bytes);

	struct pool *pool = memory;
	lay_out(pool, attr, memory);
	init(pool, attr);
	pthread_mutex_lock(&list_lock);
	LIST_INSERT_HEAD(&pools, pool, all);
	pthread_mutex_unlock(&list_lock);
	*pool_out = &pool->pub;
	return 0;
}

/* The caches of a shared pool, linked by `next`. */
static struct pool_cache *first_cache(const struct pool *pool)
{
	/* C2 <- C1: a cache is filled in before it is published. */
	return atomic_load_explicit(&pool->first_cache, memory_order_acquire);
}

static uint32_t in_caches(const struct pool *pool)
{
	uint32_t sum = 0;

	for (struct pool_cache *cache = first_cache(pool); cache; cache = cache->next)
		sum += counter_get(&cache->pub.count);
	return sum;
}

int plx_pool_destroy(struct plx_pool *pool)
{
	if (!pool)
		return 0;

	struct pool *priv = pool_of(pool);
	uint32_t missing = priv->object_count - pool_available(priv);
	if (missing) {
		plx_fail(EBUSY, "pool %s stays: %u of its %u objects are out; put them back first",
			 priv->name, missing, priv->object_count);
		plx_log(mem_log, PLX_LOG_WARNING, "%s", plx_error());
		return -EBUSY;
	}
	pthread_mutex_lock(&list_lock);
	LIST_REMOVE(priv, all);
	pthread_mutex_unlock(&list_lock);
	for (struct pool_cache *cache = first_cache(priv), *next; cache; cache = next) {
		next = cache->next;
		plx_mem_free(cache);
	}
	mem_unpoison(priv->objects, priv->stride_bytes * priv->object_count);
	plx_mem_free(priv);
	return 0;
}

void mem_pools_forget(void)
{
	const struct pool *pool;

	pthread_mutex_lock(&list_lock);
	LIST_FOREACH (pool, &pools, all)
		plx_log(mem_log, PLX_LOG_WARNING,
			"plx_mem_fini: pool %s is left (%u objects, %u of them out)", pool->name,
			pool->object_count, pool->object_count - pool_available(pool));
	LIST_INIT(&pools);
	pthread_mutex_unlock(&list_lock);
}

bool mem_owner_is_missing(uint32_t lcore)
{
	const struct pool *pool;
	bool missing = false;

	pthread_mutex_lock(&list_lock);
	LIST_FOREACH (pool, &pools, all)
		missing |= pool->owner == lcore && pool_available(pool) < pool->object_count;
	pthread_mutex_unlock(&list_lock);
	return missing;
}

/* On the list, taken off it by an owner, spare, or in the ring. */
static uint32_t available_outside(const struct pool *pool)
{
	/* Exact for an owner, or while no thread moves objects; otherwise approximate. */
	uint32_t listed = counter_get(&pool->listed_count);

	if (pool_is_shared(pool))
		return listed + plx_ring_depth(pool->ring);
	return listed - counter_get(&pool->own->collected);
}

uint32_t pool_available(const struct pool *pool)
{
	uint32_t before = available_outside(pool);
	uint32_t sum = pool_is_shared(pool) ? in_caches(pool) : counter_get(&pool->own->pub.count);
	uint32_t after = available_outside(pool);

	/* Half a cache may have moved to or from a cache in between: count it twice rather than not
	 * at all. */
	sum += before > after ? before : after;
	return sum < pool->object_count ? sum : pool->object_count;
}

static void add_cache_stats(const struct pool *pool, struct plx_pool_stats *stats)
{
	stats->in_caches = in_caches(pool);
	stats->cache_bytes = pool->lcore_count * sizeof(*pool->pub.caches);
	for (struct pool_cache *cache = first_cache(pool); cache; cache = cache->next) {
		stats->empty += counter_get(&cache->empty);
		stats->refills += counter_get(&cache->refills);
		stats->spills += counter_get(&cache->spills);
		stats->cache_bytes += pool_cache_bytes(pool->cache_count);
	}
}

void plx_pool_stats_read(struct plx_pool *pool, struct plx_pool_stats *stats_out)
{
	struct pool *priv = pool_of(pool);

	*stats_out = (struct plx_pool_stats){
		.object_count = priv->object_count,
		.available = pool_available(priv),
		.low_water = counter_get(&priv->low_water),
		.empty = counter_get(&priv->empty),
	};
	if (pool_is_shared(priv))
		add_cache_stats(priv, stats_out);
}

const struct plx_zone *plx_pool_zone(const struct plx_pool *pool)
{
	return plx_zone_get(mem_zone_index(pool, 1));
}

size_t pool_cache_bytes(uint32_t object_count)
{
	/* Pairs of lines, because the processor prefetches in pairs. */
	return mem_round_up(PLX_CACHE_LINE + object_count * sizeof(void *),
			    2 * (size_t)PLX_CACHE_LINE);
}

void *mem_pool_object(const struct plx_pool *pool, uint32_t i)
{
	return pool_of(pool)->objects + (size_t)i * pool_of(pool)->stride_bytes;
}
