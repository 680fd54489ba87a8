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

/* Append text and return buf. */
static struct plx_buf *with_text(struct plx_buf *buf, const char *text)
{
	memcpy(plx_buf_append(buf, (uint32_t)strlen(text)), text, strlen(text));
	return buf;
}

static struct plx_buf *text_buf(const char *text)
{
	return with_text(plx_buf_get(pool), text);
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

TEST(a_reused_buffer_is_like_new)
{
	struct plx_buf *buf = text_buf("used");

	plx_buf_prepend(buf, 10);
	plx_buf_chain(buf, text_buf("tail"));
	plx_buf_unref(buf);
	for (int i = 0; i < 8; i++) {
		struct plx_buf *again = plx_buf_get(pool);

		assert_int_equal(again->len, 0);
		assert_null(again->next);
		assert_int_equal(plx_buf_headroom(again), PLX_BUF_HEADROOM);
		assert_true(plx_buf_unshared(again));
		plx_buf_unref(again);
	}
}

TEST(an_empty_pool_returns_null)
{
	struct plx_buf *bufs[8];

	for (int i = 0; i < 8; i++)
		bufs[i] = plx_buf_get(pool);
	assert_null(plx_buf_get(pool));
	for (int i = 0; i < 8; i++)
		plx_buf_unref(bufs[i]);
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
	plx_buf_reset(buf);
	assert_int_equal(buf->len, 0);
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
	assert_memory_equal(out, "one two three", 13);
	for (size_t offset = 0; offset <= 14; offset++) {
		for (size_t size = 0; size <= 14; size++) {
			size_t left = offset < 13 ? 13 - offset : 0;
			size_t expected = size < left ? size : left;

			memset(out, '#', sizeof(out));
			assert_int_equal(plx_buf_copy_out(head, offset, out, size), expected);
			assert_memory_equal(out, &whole[expected ? offset : 0], expected);
			assert_int_equal(out[expected], '#');
		}
	}
	plx_buf_ref(head);
	plx_buf_unref(head);
	assert_int_equal(available(), 4);
	plx_buf_unref(head);
	assert_int_equal(available(), 8);
}

TEST(a_shared_tail_outlives_its_head)
{
	struct plx_buf *head = text_buf("head");
	struct plx_buf *tail = text_buf("tail");

	plx_buf_chain(tail, text_buf("end"));
	plx_buf_ref(tail);
	plx_buf_chain(head, tail);
	plx_buf_unref(head);
	assert_int_equal(available(), 6);
	assert_int_equal(plx_buf_total(tail), 7);
	plx_buf_unref(tail);
}

TEST(reset_drops_the_rest_of_the_chain)
{
	struct plx_buf *head = text_buf("head");

	plx_buf_chain(head, text_buf("tail"));
	plx_buf_reset(head);
	assert_null(head->next);
	assert_int_equal(available(), 7);
	plx_buf_unref(head);
}

struct freed {
	int count;
	void *memory;
};

static void note_free(void *memory, void *arg)
{
	struct freed *freed = arg;

	freed->count++;
	freed->memory = memory;
}

TEST(wrapped_memory_is_released_once)
{
	struct freed freed = {0};
	char memory[] = "....hello";
	struct plx_buf *buf = plx_buf_wrap(memory, 4, 5, note_free, &freed);

	assert_non_null(buf);
	assert_memory_equal(buf->data, "hello", 5);
	assert_int_equal(plx_buf_headroom(buf), 4);
	assert_int_equal(plx_buf_tailroom(buf), 0);
	assert_int_equal(buf->zone_index, PLX_ZONE_NONE);
	assert_int_equal(buf->owner, PLX_LCORE_NONE);
	plx_buf_prepend(buf, 4);
	plx_buf_reset(buf);
	assert_int_equal(plx_buf_headroom(buf), 4);
	assert_int_equal(plx_buf_tailroom(buf), 5);
	plx_buf_ref(buf);
	plx_buf_unref(buf);
	assert_int_equal(freed.count, 0);
	plx_buf_unref(buf);
	assert_int_equal(freed.count, 1);
	assert_ptr_equal(freed.memory, memory);

	/* Without a function there is nothing to call. */
	plx_buf_unref(plx_buf_wrap(memory, 0, 4, NULL, NULL));
	assert_null(plx_buf_wrap(NULL, 0, 4, note_free, &freed));
	assert_error_has("plx_buf_wrap: 0 + 4 bytes at (nil)");
	assert_null(plx_buf_wrap(memory, UINT32_MAX, 1, note_free, &freed));
	assert_error_has("together at most 4294967295");
	assert_int_equal(freed.count, 1);
}

TEST(wrapped_memory_of_a_zone_knows_its_zone)
{
	const struct plx_zone *zone;
	char *memory = plx_mem_alloc(MEM_2M, 0, 0, &zone);
	struct plx_buf *buf = plx_buf_wrap(memory + 100, 0, 100, NULL, NULL);

	assert_int_equal(zone->index, 1);
	assert_int_equal(buf->zone_index, zone->index);
	plx_buf_unref(buf);

	/* Partly outside counts as outside. */
	char *end = (char *)zone->base + zone->size_bytes;
	assert_int_equal(mem_zone_index(end - 64, 64), zone->index);
	assert_int_equal(mem_zone_index(end - 64, 65), PLX_ZONE_NONE);
	assert_int_equal(mem_zone_index((char *)zone->base - 1, 2), PLX_ZONE_NONE);
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
	assert_true(plx_buf_unshared(view));
	assert_null(plx_buf_view(views, text, 1));
	plx_buf_ref(view);
	plx_buf_unref(view);
	assert_null(plx_buf_view(views, text, 1));
	plx_buf_unref(view);

	view = plx_buf_view(views, text, 5);
	assert_non_null(view);
	assert_int_equal(view->zone_index, PLX_ZONE_NONE);
	assert_int_equal(plx_buf_total(view), 5);
	assert_null(view->next);
	plx_buf_unref(view);
	assert_int_equal(stats_of(views).available, 1);
	plx_pool_destroy(views);
	plx_mem_free(memory);
}

TEST(heap_buffers_work_without_a_pool)
{
	struct plx_buf *buf = plx_buf_alloc(100000);

	assert_non_null(buf);
	assert_int_equal(plx_buf_tailroom(buf), 100000);
	assert_int_equal(plx_buf_headroom(buf), PLX_BUF_HEADROOM);
	assert_int_equal((uintptr_t)buf->data % PLX_CACHE_LINE, 0);
	assert_int_equal(buf->zone_index, PLX_ZONE_NONE);
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

/* With a count of one the caller is the only holder: a load alone drops it, without a store. */
TEST(the_only_reference_is_dropped_without_an_atomic_operation)
{
	struct plx_buf *buf = plx_buf_get(pool);

	plx_buf_unref(buf);
	mem_unpoison(buf, sizeof(*buf));
	assert_int_equal(atomic_load(&buf->refs), 1);
	buf = plx_buf_get(pool);
	plx_buf_unref(plx_buf_ref(buf));
	assert_int_equal(atomic_load(&buf->refs), 1);
	plx_buf_unref(buf);
}

TEST(buffers_freed_by_another_lcore_return_to_the_owner)
{
	struct plx_buf *bufs[8];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 8; i++)
			assert_non_null(bufs[i] = text_buf("far"));
		assert_null(plx_buf_get(pool));
		plx_lcore_id_tls = OWNER + 1;
		for (int i = 0; i < 8; i++)
			plx_buf_unref(bufs[i]);
		plx_lcore_id_tls = OWNER;
		assert_int_equal(available(), 8);
	}
}

TEST(all_lcores_allocate_from_a_shared_pool)
{
	const struct plx_pool_attr attr = {
		.name = "shared", .object_count = 8, .owner = PLX_LCORE_NONE, .cache_count = 2};
	struct plx_pool *shared;
	struct plx_buf *bufs[3];

	assert_int_equal(plx_buf_pool_create(&attr, ROOM, &shared), 0);
	for (uint32_t round = 0; round < 30; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			plx_lcore_id_tls = i < 2 ? i : PLX_LCORE_NONE;
			assert_non_null(bufs[i] = plx_buf_get(shared));
			assert_int_equal(bufs[i]->owner, PLX_LCORE_NONE);
			assert_int_equal(bufs[i]->zone_index, plx_pool_zone(shared)->index);
			assert_int_equal(bufs[i]->len, 0);
			assert_int_equal(plx_buf_tailroom(bufs[i]), ROOM);
			with_text(bufs[i], "shared");
		}
		/* Freed by another thread than the one that got it. */
		for (uint32_t i = 0; i < 3; i++) {
			plx_lcore_id_tls = i ? i - 1 : PLX_LCORE_NONE;
			assert_memory_equal(bufs[i]->data, "shared", 6);
			plx_buf_unref(bufs[i]);
		}
	}
	plx_lcore_id_tls = OWNER;
	plx_pool_destroy(shared); /* asserts that all were returned */
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
