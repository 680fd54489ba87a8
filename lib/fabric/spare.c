/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of copies that are too long for the lcore's pool. Fresh memory of the heap costs a page
 * fault for each 4 KiB, more than copying into it; so what was sent is kept, and used again. */
#include "fabric_priv.h"

#define ROOM_LEAST (2 * TX_BUF_BYTES)

static uint32_t room_of(const struct plx_buf *buf)
{
	return buf->room - buf->start;
}

/* The next power of two: messages of about one length have the same buffers. */
static uint32_t rounded(uint32_t length)
{
	return length <= ROOM_LEAST ? ROOM_LEAST : UINT32_C(1) << (32 - __builtin_clz(length - 1));
}

static void free_memory(void *memory, void *arg)
{
	plx_mem_free(memory);
}

/* In a zone, from which every provider can send. Return: NULL where there is no room. */
static struct plx_buf *make(uint32_t lcore, uint32_t room)
{
	uint8_t *memory = plx_mem_alloc(PLX_BUF_HEADROOM + (size_t)room, 0, plx_lcore_node(lcore),
					NULL);
	struct plx_buf *buf = memory ? plx_buf_wrap(memory, PLX_BUF_HEADROOM, room, free_memory,
						    NULL)
				     : NULL;

	if (!buf)
		plx_mem_free(memory);
	return buf;
}

/* In that place; what is there is not in use. Return: NULL where it cannot be kept. */
static struct plx_buf *replace(struct plx_fabric_lcore *home, struct plx_buf **place, uint32_t room)
{
	struct plx_buf *buf = NULL;

	if (*place)
		home->spare_bytes -= room_of(*place);
	plx_buf_unref(*place);
	if (home->spare_bytes + room <= SPARE_BYTES_MAX)
		buf = make(home->id, room);
	if (buf)
		home->spare_bytes += room;
	return *place = buf;
}

struct plx_buf *spare_get(struct plx_fabric_lcore *home, uint32_t length)
{
	uint32_t room = rounded(length);
	struct plx_buf **place = NULL; /* an empty one, or that of the shortest */
	struct plx_buf *buf = NULL;    /* the shortest that is long enough */

	if (room > SPARE_BYTES_MAX)
		return plx_buf_alloc(length);
	for (unsigned i = 0; i < SPARE_COUNT && !(buf && room_of(buf) == room); i++) {
		struct plx_buf **at = &home->spares[i];

		if (*at && !plx_buf_unshared(*at))
			continue;
		if (*at && room_of(*at) >= room)
			buf = !buf || room_of(*at) < room_of(buf) ? *at : buf;
		else if (!place || (*place && (!*at || room_of(*at) < room_of(*place))))
			place = at;
	}
	if (!buf && place)
		buf = replace(home, place, room);
	if (!buf)
		return plx_buf_alloc(length);
	plx_buf_reset(buf);
	return plx_buf_ref(buf);
}

void spare_free_all(struct plx_fabric_lcore *home)
{
	for (unsigned i = 0; i < SPARE_COUNT; i++) {
		plx_buf_unref(home->spares[i]);
		home->spares[i] = NULL;
	}
	home->spare_bytes = 0;
}
