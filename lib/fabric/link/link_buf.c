/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers for copies that are too long for the lcore's pool. Fresh heap memory costs a page fault
 * per 4 KiB, more than the copy, so buffers are kept and reused. */
#include "fabric_link.h"

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

/* Return: an empty place, or NULL; *in_use_out: bytes of buffers in use. */
static struct plx_buf **look_at_all(struct plx_fabric_lcore *home, uint32_t *in_use_out)
{
	struct plx_buf **empty = NULL;

	*in_use_out = 0;
	for (unsigned i = 0; i < LINK_BUF_COUNT; i++) {
		struct plx_buf **at = &home->link_bufs[i];

		if (!*at)
			empty = at;
		else if (!plx_buf_unshared(*at))
			*in_use_out += room_of(*at);
	}
	return empty;
}

static void give_up(struct plx_fabric_lcore *home, struct plx_buf **at)
{
	home->link_buf_bytes -= room_of(*at);
	plx_buf_unref(*at);
	*at = NULL;
}

/* Find a place for a new buffer. Unused buffers, which are all shorter, are freed to make room.
 * Return: NULL: those in use leave no room. */
static struct plx_buf **place_for(struct plx_fabric_lcore *home, uint32_t room)
{
	uint32_t in_use;
	struct plx_buf **place = look_at_all(home, &in_use);

	if (in_use + (uint64_t)room > LINK_BUF_BYTES_MAX)
		return NULL;
	while (!place || home->link_buf_bytes + room > LINK_BUF_BYTES_MAX) {
		place = shortest(home, 0, room, false);
		if (!place)
			return NULL;
		give_up(home, place);
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
