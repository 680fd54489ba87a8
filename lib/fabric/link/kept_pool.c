/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive pools of ended links whose messages the user still has, on this lcore or another one.
 * They are freed when all their buffers are back. */
#include "fabric_link.h"

#include <stdlib.h>

/* Keep the pool of an ended link until the user has returned its buffers. Return: 0; -ENOMEM. */
int kept_pool_add(struct plx_fabric_lcore *home, struct plx_pool *pool)
{
	if (home->kept_pool_count == home->kept_pool_room) {
		uint32_t room = home->kept_pool_room ? 2 * home->kept_pool_room : 8;
		struct plx_pool **more = realloc(home->kept_pools, room * sizeof(*more));

		if (!more)
			return plx_fail(ENOMEM, "out of memory");
		home->kept_pools = more;
		home->kept_pool_room = room;
	}
	home->kept_pools[home->kept_pool_count++] = pool;
	return 0;
}

/* Whether all objects are back. Takes each of them: a count may run ahead of an object that another
 * thread is still putting. */
static bool pool_is_whole(const struct plx_fabric_lcore *home, struct plx_pool *pool)
{
	void *objects[LINK_RX_BUF_COUNT_MAX + LINK_RX_CONTROL_MAX];
	struct plx_pool_stats stats;
	uint32_t count = 0;

	plx_pool_stats(pool, &stats);
	if (stats.available < stats.object_count)
		return false;
	if (plx_lcore_id() != home->id) /* plx_fabric_fini, when no lcore runs */
		return true;
	while (count < stats.object_count && (objects[count] = plx_pool_get(pool)) != NULL)
		count++;
	for (uint32_t i = count; i > 0; i--)
		plx_pool_put(pool, objects[i - 1]);
	return count == stats.object_count;
}

/* Check one pool per turn, so the cost of a turn does not grow. A complete pool is freed within
 * kept_pool_count turns. */
void kept_pool_reap(struct plx_fabric_lcore *home)
{
	uint32_t at = home->kept_pool_next;

	if (at >= home->kept_pool_count)
		at = 0;
	if (at == home->kept_pool_count)
		return;
	if (pool_is_whole(home, home->kept_pools[at])) {
		plx_pool_destroy(home->kept_pools[at]);
		home->kept_pools[at] = home->kept_pools[--home->kept_pool_count]; /* is next */
	} else {
		at++;
	}
	home->kept_pool_next = at;
}

/* Check all pools. Called when no loop runs. */
void kept_pool_reap_all(struct plx_fabric_lcore *home)
{
	for (uint32_t left = home->kept_pool_count; left > 0; left--)
		kept_pool_reap(home);
}
