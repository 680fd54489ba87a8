/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of debug builds: objects put twice, foreign objects, and writes past an object. */
#include "mem_priv.h"

#include <assert.h>

#define CANARY UINT64_C(0x5afec0deca5cade5)

enum { MARK_FREE, MARK_USED };

static bool is_object_of(const struct pool *pool, const void *object)
{
	uintptr_t offset = (uintptr_t)object - (uintptr_t)pool->objects;

	return (uintptr_t)object >= (uintptr_t)pool->objects &&
	       offset < pool->stride_bytes * pool->object_count && offset % pool->stride_bytes == 0;
}

static bool canary_lives(const struct pool *pool, const void *object)
{
	uint64_t canary = CANARY;

	return memcmp((const char *)object + pool->object_bytes, &canary, sizeof(canary)) == 0;
}

void pool_put_canary(const struct pool *pool, void *object)
{
	uint64_t canary = CANARY;

	memcpy((char *)object + pool->object_bytes, &canary, POOL_CANARY_BYTES);
}

void pool_check_get(struct pool *pool, const void *object)
{
	/* Relaxed: the list or ring orders an object's put before its next get. */
	atomic_store_explicit(&pool->marks[pool_number(pool, object)], MARK_USED,
			      memory_order_relaxed);
}

void pool_check_put(struct pool *pool, const void *object)
{
	bool is_ours = is_object_of(pool, object);
	bool is_whole = is_ours && canary_lives(pool, object);

	assert(is_ours && "an object put into a pool it is not of");
	assert(is_whole && "written past the end of an object");

	/* Relaxed: only the exchange matters; the second of two puts must see the first. */
	uint8_t mark = atomic_exchange_explicit(&pool->marks[pool_number(pool, object)], MARK_FREE,
						memory_order_relaxed);
	assert(mark == MARK_USED && "an object put twice");
	(void)is_whole;
	(void)mark;
}
