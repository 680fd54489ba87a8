/* SPDX-License-Identifier: BSD-3-Clause */
/* Per-lcore variables: an offset into a block in each loop's mapping. Nothing else touches the
 * block's pages, so variables are on the NUMA node of the lcore that first writes them. */
#include "lcore_priv.h"

#include <string.h>

__thread char *plx_lcore_vars_tls;

/* Offset 0 means "none". Relaxed: guards no other data. */
static _Atomic uint32_t used = PLX_CACHE_LINE;

int plx_lcore_var_create(size_t size_bytes, size_t align_bytes, struct plx_lcore_var *var_out)
{
	size_t align = align_bytes ? align_bytes : 8;
	uint32_t old = atomic_load_explicit(&used, memory_order_relaxed);
	size_t offset;

	if (align & (align - 1) || align > PLX_CACHE_LINE || size_bytes == 0)
		return plx_fail(EINVAL,
				"plx_lcore_var_create: %zu bytes aligned to %zu: give at least 1, "
				"and a power of two up to %d",
				size_bytes, align, PLX_CACHE_LINE);
	do {
		offset = (old + align - 1) & ~(align - 1);
		if (size_bytes > PLX_LCORE_VAR_BYTES - offset || offset > PLX_LCORE_VAR_BYTES)
			return plx_fail(ENOMEM,
					"plx_lcore_var_create: %zu bytes: %u of %d are taken; keep "
					"a pointer to the larger things instead",
					size_bytes, old, PLX_LCORE_VAR_BYTES);
	} while (
		!atomic_compare_exchange_weak_explicit(&used, &old, (uint32_t)(offset + size_bytes),
						       memory_order_relaxed, memory_order_relaxed));
	var_out->offset = (uint32_t)offset;
	return 0;
}

void *plx_lcore_var_of(struct plx_lcore_var var, uint32_t id)
{
	struct lcore *lcore = lcore_get(id);

	if (!lcore)
		return NULL;
	/* L2 of lcore.c */
	return atomic_load_explicit(&lcore->loop, memory_order_acquire)->vars + var.offset;
}
