/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of memory. A completion queue receives into one; an endpoint has one while bytes wait to
 * be sent or taken. Idle connections have none. */
#ifndef TCP_BLOCK_H
#define TCP_BLOCK_H

#include <plx_base.h>

#define BLOCK_BYTES (64u << 10)

struct block {
	struct block *next;  /* in the pool */
	uint32_t begin, end; /* the part in use */
	uint8_t bytes[] PLX_ALIGNED(64);
};

/* A domain's few free blocks. */
struct block_pool {
	struct block *free;
	uint32_t count;
};

struct block *block_get(struct block_pool *pool); /* an empty block; NULL: out of memory */
void block_put(struct block_pool *pool, struct block *block); /* accepts NULL */
void block_pool_fini(struct block_pool *pool);

#endif
