/* SPDX-License-Identifier: BSD-3-Clause */
#include "block.h"

#include <stddef.h>
#include <stdlib.h>

#define FREE_MAX 16 /* kept blocks; more go back to malloc(3) */

struct block *block_get(struct block_pool *pool)
{
	struct block *block = pool->free;

	if (block) {
		pool->free = block->next;
		pool->count--;
	} else {
		block = aligned_alloc(64, sizeof(*block) + BLOCK_BYTES);
	}
	if (block)
		block->begin = block->end = 0;
	return block;
}

void block_put(struct block_pool *pool, struct block *block)
{
	if (!block)
		return;
	if (pool->count >= FREE_MAX) {
		free(block);
		return;
	}
	block->next = pool->free;
	pool->free = block;
	pool->count++;
}

void block_pool_fini(struct block_pool *pool)
{
	while (pool->free) {
		struct block *next = pool->free->next;

		free(pool->free);
		pool->free = next;
	}
}
