/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define ROOM 1000

static struct plx_pool *pool;

static int setup_pool(void **state)
{
	const struct plx_pool_attr attr = {.name = "bufs", .object_count = 8, .owner = OWNER};

	return setup(state) ? -1 : plx_buf_pool_create(&attr, ROOM, &pool);
}

static uint32_t available(void)
{
	return stats_of(pool).available;
}

/* Every test returns all of its buffers. */
static int teardown_pool(void **state)
{
	int leaked = available() != 8;

	if (!leaked)
		plx_pool_destroy(pool);
	teardown(state);
	return leaked;
}

static struct plx_buf *text_buf(const char *text)
{
	struct plx_buf *buf = plx_buf_get(pool);

	memcpy(plx_buf_append(buf, (uint32_t)strlen(text)), text, strlen(text));
	return buf;
}

#undef TEST
#define TEST(name) PLX_TEST_WITH(name, setup_pool, teardown_pool)

TEST(a_pooled_buffer_starts_empty_after_its_headroom)
{
	struct plx_buf *buf = plx_buf_get(pool);

	assert_int_equal(buf->len, 0);
	assert_null(buf->next);
	assert_int_equal(plx_buf_headroom(buf), PLX_BUF_HEADROOM);
	assert_int_equal(plx_buf_tailroom(buf), ROOM);
	assert_int_equal(buf->room, PLX_BUF_HEADROOM + ROOM);
	assert_int_equal((uintptr_t)buf->data % PLX_CACHE_LINE, 0);
	assert_int_equal(buf->owner, OWNER);
	assert_int_equal(buf->zone_index, plx_pool_zone(pool)->index);
	assert_true(plx_buf_unshared(buf));

	/* The whole room may be written: debug builds check the bytes after it on return. */
	memset(buf->base, 0xff, buf->room);
	plx_buf_unref(buf);
}

TEST(append_and_prepend_stay_inside)
{
	struct plx_buf *buf = plx_buf_get(pool);

	assert_null(plx_buf_append(buf, ROOM + 1));
	assert_null(plx_buf_append(buf, UINT32_MAX));
	assert_null(plx_buf_prepend(buf, PLX_BUF_HEADROOM + 1));
	assert_int_equal(buf->len, 0);
	assert_ptr_equal(plx_buf_append(buf, ROOM - 1), buf->data);
	assert_ptr_equal(plx_buf_append(buf, 1), buf->data + ROOM - 1);
	assert_null(plx_buf_append(buf, 1));
	assert_non_null(plx_buf_append(buf, 0));
	assert_ptr_equal(plx_buf_prepend(buf, PLX_BUF_HEADROOM), buf->base);
	assert_ptr_equal(buf->data, buf->base);
	assert_null(plx_buf_prepend(buf, 1));
	assert_int_equal(buf->len, buf->room);
	plx_buf_chain(buf, text_buf("tail"));
	plx_buf_reset(buf);
	assert_int_equal(buf->len, 0);
	assert_null(buf->next);
	assert_int_equal(plx_buf_headroom(buf), PLX_BUF_HEADROOM);
	plx_buf_unref(buf);
}

TEST(references_keep_a_buffer_alive)
{
	struct plx_buf *buf = text_buf("kept");

	assert_ptr_equal(plx_buf_ref(buf), buf);
	plx_buf_ref(buf);
	assert_false(plx_buf_unshared(buf));
	plx_buf_unref(buf);
	plx_buf_unref(buf);
	assert_true(plx_buf_unshared(buf));
	assert_memory_equal(buf->data, "kept", 4);
	assert_int_equal(available(), 7);
	plx_buf_unref(buf);
	assert_int_equal(available(), 8);
	plx_buf_unref(NULL);
}

TEST(a_chain_is_one_message)
{
	struct plx_buf *head = text_buf("one ");
	static const char whole[] = "one two three";
	char out[32];

	plx_buf_chain(head, text_buf("two "));
	plx_buf_chain(head, plx_buf_get(pool)); /* an empty one */
	plx_buf_chain(head, text_buf("three"));
	assert_int_equal(plx_buf_total(head), 13);
	assert_int_equal(plx_buf_total(NULL), 0);

	assert_int_equal(plx_buf_copy_out(head, 0, out, sizeof(out)), 13);
	for (size_t offset = 0; offset <= 13; offset++) {
		for (size_t size = 0; size <= 13 - offset; size++) {
			memset(out, '#', sizeof(out));
			assert_int_equal(plx_buf_copy_out(head, offset, out, size), size);
			assert_memory_equal(out, whole + offset, size);
			assert_int_equal(out[size], '#');
		}
	}
	assert_int_equal(plx_buf_copy_out(head, 14, out, 1), 0);
	plx_buf_unref(head);
	assert_int_equal(available(), 8);
}

TEST(a_shared_tail_outlives_its_head)
{
	struct plx_buf *head = text_buf("head");
	struct plx_buf *tail = text_buf("tail");

	plx_buf_ref(tail);
	plx_buf_chain(head, tail);
	plx_buf_unref(head);
	assert_int_equal(available(), 7);
	assert_int_equal(plx_buf_total(tail), 4);
	plx_buf_unref(tail);
}

static unsigned freed;

PLX_COUNTS(note_free, freed, void *memory, void *arg)

TEST(wrapped_memory_is_released_once)
{
	char memory[] = "....hello";
	struct plx_buf *buf = plx_buf_wrap(memory, 4, 5, note_free, NULL);

	assert_non_null(buf);
	assert_memory_equal(buf->data, "hello", 5);
	assert_int_equal(plx_buf_tailroom(buf), 0);
	assert_int_equal(buf->zone_index, PLX_ZONE_NONE);
	assert_int_equal(buf->owner, PLX_LCORE_NONE);
	plx_buf_prepend(buf, 4);
	plx_buf_reset(buf);
	assert_int_equal(plx_buf_headroom(buf), 4);
	assert_int_equal(plx_buf_tailroom(buf), 5);
	plx_buf_ref(buf);
	plx_buf_unref(buf);
	assert_int_equal(freed, 0);
	plx_buf_unref(buf);
	assert_int_equal(freed, 1);

	/* Without a function there is nothing to call. */
	plx_buf_unref(plx_buf_wrap(memory, 0, 4, NULL, NULL));
	assert_null(plx_buf_wrap(NULL, 0, 4, note_free, NULL));
	assert_error_has("plx_buf_wrap: 0 + 4 bytes at (nil)");
	assert_null(plx_buf_wrap(memory, UINT32_MAX, 1, note_free, NULL));
	assert_error_has("together at most 4294967295");
	assert_int_equal(freed, 1);
}

TEST(wrapped_memory_knows_its_zone)
{
	const struct plx_zone *zone;
	char *memory = plx_mem_alloc(MEM_2M, 0, 0, &zone);
	char *end = (char *)zone->base + zone->size_bytes;
	struct plx_buf *in = plx_buf_wrap(end - 64, 0, 64, NULL, NULL);
	struct plx_buf *partly_out = plx_buf_wrap(end - 64, 0, 65, NULL, NULL);

	assert_int_equal(in->zone_index, zone->index);
	assert_int_equal(partly_out->zone_index, PLX_ZONE_NONE);
	plx_buf_unref(in);
	plx_buf_unref(partly_out);
	plx_mem_free(memory);
}

/* The memory is not written, and a used header serves other memory too. */
TEST(a_view_refers_to_memory_elsewhere)
{
	const struct plx_pool_attr attr = {.name = "views", .object_count = 1, .owner = OWNER};
	static const char text[] = "hello";
	const struct plx_zone *zone;
	char *memory = plx_mem_alloc(MEM_2M, 0, 0, &zone);
	struct plx_pool *views;

	assert_int_equal(plx_buf_pool_create(&attr, 0, &views), 0);
	struct plx_buf *view = plx_buf_view(views, memory + 8, 100);
	assert_non_null(view);
	assert_ptr_equal(view->data, memory + 8);
	assert_int_equal(view->len, 100);
	assert_int_equal(plx_buf_headroom(view), 0);
	assert_int_equal(plx_buf_tailroom(view), 0);
	assert_int_equal(view->zone_index, zone->index);
	assert_null(plx_buf_view(views, text, 1));
	plx_buf_unref(view);

	view = plx_buf_view(views, text, 5);
	assert_non_null(view);
	assert_int_equal(view->zone_index, PLX_ZONE_NONE);
	assert_int_equal(plx_buf_total(view), 5);
	plx_buf_unref(view);
	plx_pool_destroy(views);
	plx_mem_free(memory);
}

TEST(heap_buffers_work_without_a_pool)
{
	struct plx_buf *buf = plx_buf_alloc(100000);

	assert_non_null(buf);
	assert_int_equal(plx_buf_tailroom(buf), 100000);
	memset(buf->base, 1, buf->room);
	plx_buf_chain(buf, text_buf("pooled"));
	plx_buf_unref(buf);
	assert_int_equal(available(), 8);

	plx_buf_unref(plx_buf_alloc(0));
	assert_null(plx_buf_alloc(UINT32_MAX));
	assert_error_has("a buffer of 4294967295 bytes: give at most");
}

TEST(bad_pools_are_refused)
{
	struct plx_pool_attr attr = {.name = "large", .object_count = 1, .owner = OWNER};
	struct plx_pool *large;

	assert_fails(plx_buf_pool_create(&attr, UINT32_MAX, &large), -EINVAL,
		     "buffers of 4294967295 bytes: give at most");
	attr.object_count = 0;
	assert_fails(plx_buf_pool_create(&attr, 64, &large), -EINVAL, "pool large: object_count 0");
}

/* Two threads each write half of a buffer and release it; the owner then reuses it. Sometimes one
 * holder waits until it is the only one, and then also writes the other's half. */

#ifdef __SANITIZE_THREAD__
#define ROUNDS 50000u
#else
#define ROUNDS 500000u
#endif

static _Atomic(struct plx_buf *) handed;

static void *hold_elsewhere(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct plx_buf *buf;

		/* H1 -> H2: the buffer is set up before it is handed over. */
		while (!(buf = atomic_exchange_explicit(&handed, NULL, memory_order_acquire)))
			sched_yield();
		buf->data[1] = (uint8_t)i;
		plx_buf_unref(buf);
	}
	return NULL;
}

TEST(the_last_of_two_threads_returns_the_buffer)
{
	pthread_t thread;
	unsigned wrong = 0;

	assert_int_equal(pthread_create(&thread, NULL, hold_elsewhere, NULL), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct plx_buf *buf;

		while (!(buf = plx_buf_get(pool)))
			sched_yield();
		plx_buf_append(buf, 2);
		wrong += !plx_buf_unshared(buf);
		plx_buf_ref(buf);
		/* Relaxed: only checks whether the last one was fetched; nothing is read by it. */
		while (atomic_load_explicit(&handed, memory_order_relaxed))
			sched_yield();
		/* H2: see hold_elsewhere. */
		atomic_store_explicit(&handed, buf, memory_order_release);
		buf->data[0] = (uint8_t)i;
		if (i % 64 == 0) {
			while (!plx_buf_unshared(buf))
				sched_yield();
			buf->data[1] = 0;
		}
		plx_buf_unref(buf);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(wrong, 0);
	assert_int_equal(available(), 8);
}

PLX_TEST_MAIN()
