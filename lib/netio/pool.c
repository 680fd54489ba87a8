/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools whose buffers may not all come back. */
#include "netio_priv.h"

void netio_pool_destroy(struct plx_pool *pool)
{
	struct plx_pool_stats stats;

	if (!pool)
		return;
	plx_pool_stats(pool, &stats);
	if (stats.available == stats.object_count)
		plx_pool_destroy(pool);
	else
		plx_log(&netio_log, PLX_LOG_WARNING,
			"%u of %u buffers that a socket sent are still with the provider; their "
			"memory stays taken",
			stats.object_count - stats.available, stats.object_count);
}
