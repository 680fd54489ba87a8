/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_priv.h"

#define SLAB_OBJECTS 64

static PLX_NOINLINE bool grow(struct rpc_slabs *slabs, size_t object_bytes)
{
	char *slab = plx_mem_alloc(PLX_CACHE_LINE + SLAB_OBJECTS * object_bytes, 0,
				   plx_lcore_node(plx_lcore_id()), NULL);

	if (!slab)
		return false;
	*(void **)slab = slabs->all;
	slabs->all = slab;
	for (unsigned i = 0; i < SLAB_OBJECTS; i++)
		rpc_slab_put(slabs, slab + PLX_CACHE_LINE + i * object_bytes);
	return true;
}

void *rpc_slab_take(struct rpc_slabs *slabs, size_t object_bytes)
{
	void **object;

	if (plx_unlikely(!slabs->unused) && !grow(slabs, object_bytes))
		return NULL;
	object = slabs->unused;
	slabs->unused = *object;
	return object;
}

void rpc_slab_free(struct rpc_slabs *slabs)
{
	void *slab = slabs->all;

	while (slab) {
		void *next = *(void **)slab;

		plx_mem_free(slab);
		slab = next;
	}
}
