/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of links. */
#include "fabric_link.h"

#include <inttypes.h>
#include <stdlib.h>

/* Receive windows ------------------------------------------------------------------------------ */

/* All receive buffers of an lcore's links come from one budget, which many links share:
 * doc/design/receives.md. */
#define SHARES      16   /* once half is used, a link gets at most 1 / SHARES of the rest, */
#define LEAST_BYTES 1024 /* but at least its minimum of buffers of this size */

static uint64_t bytes_max; /* per lcore */

int window_init(uint64_t receive_bytes)
{
	bytes_max = receive_bytes ? receive_bytes : PLX_RECEIVE_BYTES_DEFAULT;
	return check_range("receive_bytes", bytes_max, PLX_RECEIVE_BYTES_MIN,
			   PLX_RECEIVE_BYTES_MAX);
}

static uint64_t bytes_of(const struct plx_link *link)
{
	return (uint64_t)link_receives(link) * link->rx_buf_bytes;
}

/* Reduce the number of buffers first: messages that fit into one frame still do. */
static void fit(struct plx_link *link, uint64_t share)
{
	uint64_t count = greater(share / link->rx_buf_bytes,
				 LINK_RX_BUF_COUNT_MIN + link->rx_control);
	uint64_t bytes;

	link->rx_buf_count = (uint32_t)lesser(link->rx_buf_count, count - link->rx_control);
	bytes = greater(share / link_receives(link), LEAST_BYTES);
	link->rx_buf_bytes = (uint32_t)lesser(link->rx_buf_bytes, bytes);
}

/* Fit the window of a new link: rx_buf_bytes and rx_buf_count are the requested values. */
void window_take(struct plx_link *link)
{
	struct plx_fabric_lcore *home = link->home;
	uint64_t left = bytes_max - lesser(home->rx_bytes, bytes_max);

	if (left <= bytes_max / 2 && bytes_of(link) > left / SHARES) {
		if (!home->windows_logged)
			log_notice(
				"lcore %u: its links have %" PRIu64 " KiB of receive buffers, of "
				"%" PRIu64 " KiB that they may have (--receive-mem): from here on "
				"new links get fewer and shorter ones",
				home->id, home->rx_bytes >> 10, bytes_max >> 10);
		home->windows_logged = true;
		fit(link, left / SHARES);
	}
	home->rx_bytes += bytes_of(link);
}

void window_give(struct plx_link *link)
{
	link->home->rx_bytes -= bytes_of(link);
}

/* Buffers for copies -------------------------------------------------------------------------- */

/* For copies that are too long for the lcore's pool. Fresh heap memory costs a page fault per 4
 * KiB, more than the copy, so buffers are kept and reused. */
#define ROOM_LEAST (2 * TX_BUF_BYTES)
#define ROOM_MORE  4096 /* for a header with a message of 2^n bytes */

static uint32_t room_of(const struct plx_buf *buf)
{
	return buf->room - buf->start;
}

/* Round up to a power of two, so that messages of similar length share buffers. */
static uint32_t rounded(uint32_t length)
{
	if (length <= ROOM_LEAST + ROOM_MORE)
		return ROOM_LEAST + ROOM_MORE;
	return (UINT32_C(1) << (32 - __builtin_clz(length - ROOM_MORE - 1))) + ROOM_MORE;
}

/* The shortest unused buffer with room for `least` or more, but less than `below`. in_zone: in
 * memory that can be registered. Return: NULL: none. */
static struct plx_buf **shortest(struct plx_fabric_lcore *home, uint32_t least, uint32_t below,
				 bool in_zone)
{
	struct plx_buf **found = NULL;

	for (unsigned i = 0; i < LINK_BUF_COUNT; i++) {
		struct plx_buf **at = &home->link_bufs[i];

		if (*at && plx_buf_unshared(*at) && room_of(*at) >= least && room_of(*at) < below &&
		    !(in_zone && (*at)->zone_index == PLX_ZONE_NONE)) {
			found = at;
			below = room_of(*at);
		}
	}
	return found;
}

/* Find a place for a new buffer. Unused buffers, which are all shorter, are freed to make room.
 * Return: NULL: those in use leave no room. */
static struct plx_buf **place_for(struct plx_fabric_lcore *home, uint32_t room)
{
	struct plx_buf **place = NULL;
	uint64_t in_use = 0;

	for (unsigned i = 0; i < LINK_BUF_COUNT; i++) {
		struct plx_buf **at = &home->link_bufs[i];

		if (!*at)
			place = at;
		else if (!plx_buf_unshared(*at))
			in_use += room_of(*at);
	}
	if (in_use + room > LINK_BUF_BYTES_MAX)
		return NULL;
	while (!place || home->link_buf_bytes + room > LINK_BUF_BYTES_MAX) {
		place = shortest(home, 0, room, false);
		if (!place)
			return NULL;
		home->link_buf_bytes -= room_of(*place);
		plx_buf_unref(*place);
		*place = NULL;
	}
	return place;
}

static void free_memory(void *memory, void *arg)
{
	plx_mem_free(memory);
}

static struct plx_buf *make(const struct plx_fabric_lcore *home, uint32_t room, bool in_zone)
{
	struct plx_buf *buf;
	uint8_t *memory;

	if (!in_zone)
		return plx_buf_alloc(room);
	memory = plx_mem_alloc((size_t)PLX_BUF_HEADROOM + room, 0, plx_lcore_node(home->id), NULL);
	if (!memory)
		return NULL;
	buf = plx_buf_wrap(memory, PLX_BUF_HEADROOM, room, free_memory, NULL);
	if (buf)
		plx_buf_reset(buf);
	else
		plx_mem_free(memory);
	return buf;
}

/* The lcore keeps a reference, so headers do not go into the buffer's headroom, and a buffer that
 * the provider never returns keeps its place. */
struct plx_buf *link_buf_get(struct plx_fabric_lcore *home, uint32_t length, bool in_zone)
{
	uint32_t room = length <= LINK_BUF_BYTES_MAX ? rounded(length) : UINT32_MAX;
	struct plx_buf **place = shortest(home, room, UINT32_MAX, in_zone), *buf;

	if (place) {
		plx_buf_reset(*place);
		return plx_buf_ref(*place);
	}
	place = place_for(home, room);
	buf = make(home, place ? room : length, in_zone);
	if (!buf || !place)
		return buf;
	*place = buf;
	home->link_buf_bytes += room;
	return plx_buf_ref(buf);
}

void link_buf_free_all(struct plx_fabric_lcore *home)
{
	for (unsigned i = 0; i < LINK_BUF_COUNT; i++) {
		plx_buf_unref(home->link_bufs[i]);
		home->link_bufs[i] = NULL;
	}
	home->link_buf_bytes = 0;
}

struct plx_buf *plx_link_buf(struct plx_link *link, uint32_t room_bytes)
{
	ASSERT_OWNER(link->home->id);
	if (room_bytes <= TX_BUF_BYTES)
		return plx_buf_get(link->home->tx_pool);
	if (link->driver->needs_mr)
		return link_buf_get(link->home, room_bytes, true);
	return plx_buf_alloc(room_bytes);
}

/* Receive pools of ended links ---------------------------------------------------------------- */

struct kept_pool {
	struct plx_pool *pool;
	TAILQ_ENTRY(kept_pool) of_home;
};

/* Keep the pool of an ended link until the user, on this lcore or another one, has returned its
 * buffers. Return: 0; -ENOMEM. */
int kept_pool_add(struct plx_fabric_lcore *home, struct plx_pool *pool)
{
	struct kept_pool *kept = malloc(sizeof(*kept));

	if (!kept)
		return plx_fail(ENOMEM, "out of memory");
	kept->pool = pool;
	TAILQ_INSERT_TAIL(&home->kept_pools, kept, of_home);
	home->kept_pool_count++;
	home->chores = true;
	return 0;
}

/* Whether all objects are back. Takes each of them: a count may run ahead of an object that another
 * thread is still putting. */
static bool pool_is_whole(const struct plx_fabric_lcore *home, struct plx_pool *pool)
{
	void *objects[LINK_RX_BUF_COUNT_MAX + LINK_RX_CONTROL_MAX];
	struct plx_pool_stats stats;
	uint32_t count = 0;

	plx_pool_stats_read(pool, &stats);
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
	struct kept_pool *kept = TAILQ_FIRST(&home->kept_pools);

	if (!kept)
		return;
	TAILQ_REMOVE(&home->kept_pools, kept, of_home);
	if (!pool_is_whole(home, kept->pool)) {
		TAILQ_INSERT_TAIL(&home->kept_pools, kept, of_home);
		return;
	}
	home->kept_pool_count--;
	plx_pool_destroy(kept->pool);
	free(kept);
}
