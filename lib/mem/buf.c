/* SPDX-License-Identifier: BSD-3-Clause */
/* Message buffers: a header that points at bytes. In a pool and on the heap, the header precedes
 * the bytes, in separate cache lines:
 *
 *     struct plx_buf | pad | headroom | data ...        headroom and data start at a cache line */
#include "mem_internal.h"
#include "mem_priv.h"

#include <assert.h>
#include <stdlib.h>

#define HEADER_BYTES ((size_t)(2 * PLX_CACHE_LINE))
#define ROOM_MAX     (UINT32_MAX - HEADER_BYTES - PLX_BUF_HEADROOM - PLX_CACHE_LINE)

_Static_assert(sizeof(struct plx_buf) <= HEADER_BYTES, "a buffer's header is two lines");
_Static_assert(offsetof(struct plx_buf, free_arg) <= PLX_CACHE_LINE,
	       "a pooled buffer is used through the first line alone");
_Static_assert(PLX_BUF_HEADROOM % PLX_CACHE_LINE == 0, "data begins at a line");

/* Set the fields that stay the same each time the buffer is used. */
static void set_up(struct plx_buf *buf, uint8_t *base, uint32_t start, uint32_t room)
{
	*buf = (struct plx_buf){
		.base = base,
		.data = base + start,
		.start = start,
		.room = room,
		.zone_index = PLX_ZONE_NONE,
		.owner = PLX_LCORE_NONE,
	};
	/* Relaxed: no other thread knows the buffer yet. */
	atomic_store_explicit(&buf->refs, 1, memory_order_relaxed);
}

int plx_buf_pool_create(const struct plx_pool_attr *attr, size_t room_bytes,
			struct plx_pool **pool_out)
{
	struct plx_pool_attr object = *attr;
	struct plx_pool *pool;

	if (room_bytes > ROOM_MAX)
		return plx_fail(EINVAL, "buffers of %zu bytes: give at most %zu", room_bytes,
				(size_t)ROOM_MAX);
	object.object_bytes = HEADER_BYTES + PLX_BUF_HEADROOM + room_bytes;

	int err = plx_pool_create(&object, &pool);
	if (err)
		return err;
	uint32_t zone_index = mem_zone_index(pool, 1);
	for (uint32_t i = 0; i < attr->object_count; i++) {
		struct plx_buf *buf = mem_pool_object(pool, i);

		mem_unpoison(buf, sizeof(*buf));
		set_up(buf, (uint8_t *)buf + HEADER_BYTES, PLX_BUF_HEADROOM,
		       (uint32_t)(PLX_BUF_HEADROOM + room_bytes));
		buf->zone_index = zone_index;
		buf->owner = attr->owner;
		buf->pool = pool;
		mem_poison((char *)buf + sizeof(buf->data), sizeof(*buf) - sizeof(buf->data));
	}
	*pool_out = pool;
	return 0;
}

struct plx_buf *plx_buf_get(struct plx_pool *pool)
{
	struct plx_buf *buf = plx_pool_get(pool);

	if (!buf)
		return NULL;
	assert(buf->pool == pool && "not a pool of plx_buf_pool_create");
	buf->data = buf->base + PLX_BUF_HEADROOM; /* the free list's link overwrote it */
	buf->len = 0;
	buf->next = NULL;
	/* Relaxed: no other thread knows the buffer yet. */
	atomic_store_explicit(&buf->refs, 1, memory_order_relaxed);
	return buf;
}

struct plx_buf *plx_buf_wrap(void *memory, uint32_t headroom, uint32_t len, plx_buf_free_fn free_fn,
			     void *arg)
{
	if (!memory || headroom > UINT32_MAX - len) {
		plx_fail(EINVAL,
			 "plx_buf_wrap: %u + %u bytes at %p: give memory, and together at most %u",
			 headroom, len, memory, UINT32_MAX);
		return NULL;
	}

	struct plx_buf *buf = malloc(sizeof(*buf));
	if (!buf) {
		plx_fail(ENOMEM, "no heap memory for a buffer's header");
		return NULL;
	}
	set_up(buf, memory, headroom, headroom + len);
	buf->len = len;
	buf->zone_index = mem_zone_index(memory, buf->room);
	buf->free_fn = free_fn;
	buf->free_arg = free_fn ? arg : NULL;
	return buf;
}

struct plx_buf *plx_buf_view(struct plx_pool *pool, const void *memory, uint32_t len)
{
	struct plx_buf *buf = plx_pool_get(pool);

	if (!buf)
		return NULL;
	/* The cast drops const: nobody writes to sent memory. */
	set_up(buf, (uint8_t *)memory, 0, len);
	buf->len = len;
	buf->zone_index = mem_zone_index(memory, len);
	buf->pool = pool;
	return buf;
}

static size_t heap_bytes(uint32_t room_bytes)
{
	return mem_round_up(HEADER_BYTES + room_bytes, PLX_CACHE_LINE);
}

struct plx_buf *plx_buf_alloc(uint32_t room_bytes)
{
	if (room_bytes > ROOM_MAX) {
		plx_fail(EINVAL, "a buffer of %u bytes: give at most %zu", room_bytes,
			 (size_t)ROOM_MAX);
		return NULL;
	}

	struct plx_buf *buf = aligned_alloc(PLX_CACHE_LINE,
					    heap_bytes(PLX_BUF_HEADROOM + room_bytes));
	if (!buf) {
		plx_fail(ENOMEM, "no heap memory for a buffer of %u bytes", room_bytes);
		return NULL;
	}
	set_up(buf, (uint8_t *)buf + HEADER_BYTES, PLX_BUF_HEADROOM, PLX_BUF_HEADROOM + room_bytes);
	buf->free_arg = buf; /* one piece of memory with its bytes */
	return buf;
}

struct plx_buf *plx_buf_ref(struct plx_buf *buf)
{
	/* Relaxed: the caller holds a reference, so the buffer stays, and passing the new reference
	 * to another thread orders it. Never a plain store, as drop uses for a count of one: two
	 * threads that share one reference may both add to it. */
	atomic_fetch_add_explicit(&buf->refs, 1, memory_order_relaxed);
	return buf;
}

/* Drop one reference. Return whether it was the last. */
static bool drop(struct plx_buf *buf)
{
	/* B1 -> B2: what a holder did to the buffer precedes its reuse. If all other holders have
	 * let go, B2 is this acquire load, which saves the read-modify-write: a count of one is the
	 * caller's, and no other thread can change it. */
	if (atomic_load_explicit(&buf->refs, memory_order_acquire) == 1)
		return true;
	/* B1, and B2 for the thread that drops the last reference. */
	return atomic_fetch_sub_explicit(&buf->refs, 1, memory_order_acq_rel) == 1;
}

bool (*mem_free_later)(void *memory, size_t size_bytes);

static void free_heap(struct plx_buf *buf)
{
	bool has_bytes = !buf->free_fn && buf->free_arg == buf; /* see plx_buf_alloc */
	size_t size_bytes = has_bytes ? heap_bytes(buf->room) : sizeof(*buf);

	if (buf->free_fn)
		buf->free_fn(buf->base, buf->free_arg);
	if (size_bytes <= MEM_FREE_AT_ONCE_MAX || !mem_free_later ||
	    !mem_free_later(buf, size_bytes))
		free(buf);
}

void plx_buf_unref(struct plx_buf *buf)
{
	while (buf && drop(buf)) {
		struct plx_buf *next = buf->next;

		if (plx_likely(buf->pool != NULL)) {
			plx_pool_put(buf->pool, buf);
		} else {
			free_heap(buf);
		}
		buf = next;
	}
}

void *plx_buf_append(struct plx_buf *buf, uint32_t len)
{
	if (plx_unlikely(len > plx_buf_tailroom(buf)))
		return NULL;

	uint8_t *at = buf->data + buf->len;
	buf->len += len;
	return at;
}

void *plx_buf_prepend(struct plx_buf *buf, uint32_t len)
{
	if (plx_unlikely(len > plx_buf_headroom(buf)))
		return NULL;
	buf->data -= len;
	buf->len += len;
	return buf->data;
}

void plx_buf_chain(struct plx_buf *head, struct plx_buf *tail)
{
	while (head->next)
		head = head->next;
	head->next = tail;
}

size_t plx_buf_total(const struct plx_buf *buf)
{
	size_t total = 0;

	for (; buf; buf = buf->next)
		total += buf->len;
	return total;
}

size_t plx_buf_copy_out(const struct plx_buf *buf, size_t offset, void *to, size_t size)
{
	size_t copied = 0;

	for (; buf && copied < size; buf = buf->next) {
		if (offset >= buf->len) {
			offset -= buf->len;
			continue;
		}
		size_t part = buf->len - offset;

		if (part > size - copied)
			part = size - copied;
		memcpy((char *)to + copied, buf->data + offset, part);
		copied += part;
		offset = 0;
	}
	return copied;
}
