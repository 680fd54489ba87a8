/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that outlive their link, dropped on the lcore that received them or on another: their
 * pool is freed when the last is returned, and not before. */
#include "fabric_link.h"
#include "fabric_listen.h"
#include "fixture.h"

#define KEPT 3

static struct plx_listener *listener;

/* Messages of a closed link are in server.kept. Return: where their pool is kept. */
static struct plx_fabric_lcore *outlive_a_link(void)
{
	struct plx_fabric_lcore *home;

	fixture_renew_sides();
	server.keep = KEPT;
	fixture_connect(listener, NULL);
	home = server.link->set->home;
	for (unsigned i = 0; i < KEPT; i++)
		expect_arrival("keep me", 7);
	plx_link_abort(client.link);
	expect_both_end();
	expect_soon(LIST_EMPTY(&home->links));
	return home;
}

static bool reaped_within(const struct plx_fabric_lcore *home, unsigned limit_ms)
{
	for (unsigned i = 0; i < limit_ms && home->kept_pool_count; i++)
		pump_ms(1);
	return home->kept_pool_count == 0;
}

static void drop_one(void *arg)
{
	side_release(&server, 1);
}

PLX_FIXTURE(start, 0, (fixture_start(NULL, true), listener = fixture_listen(here("0"), NULL)))

#define TEST(test) PLX_TEST_WITH(test, start, fixture_down)

TEST(a_kept_pool_is_freed_with_its_last_buffer)
{
	struct plx_fabric_lcore *home = outlive_a_link();
	size_t before;

	assert_int_equal(home->kept_pool_count, 1);
	before = zone_bytes_used();
	for (unsigned i = 0; i < KEPT; i++) {
		assert_false(reaped_within(home, 3));
		assert_int_equal(zone_bytes_used(), before);
		assert_memory_equal(server.kept[0]->data, "keep me", 7);
		drop_one(NULL);
	}
	assert_true(reaped_within(home, 1000));
	assert_true(zone_bytes_used() + KEPT * 4096 < before);
}

static void nothing(void *arg)
{
}

TEST(another_lcore_may_release_buffers_of_a_kept_pool)
{
	struct plx_fabric_lcore *home;
	size_t before;

	worker_start();
	worker_call(nothing, NULL); /* creates the lanes */
	home = outlive_a_link();
	before = zone_bytes_used();
	for (unsigned i = 0; i < KEPT; i++) {
		assert_int_equal(home->kept_pool_count, 1);
		assert_memory_equal(server.kept[0]->data, "keep me", 7);
		worker_call(drop_one, NULL);
	}
	assert_true(reaped_within(home, 1000));
	assert_true(zone_bytes_used() + KEPT * 4096 < before);
	worker_stop();
}

/* The last one is dropped while the owner checks for it. */
TEST(a_kept_pool_is_not_freed_while_another_lcore_releases_its_buffer)
{
	worker_start();
	for (int round = 0; round < 200; round++) {
		struct plx_fabric_lcore *home = outlive_a_link();

		for (unsigned i = 0; i < KEPT; i++)
			assert_int_equal(plx_lcore_send(1, drop_one, NULL), 0);
		assert_true(reaped_within(home, 2000));
	}
	worker_stop();
}

/* No loop turns again: plx_fabric_fini finds them. The fixture checks memory. */
TEST(buffers_of_a_kept_pool_may_be_released_after_the_last_turn)
{
	struct plx_fabric_lcore *home = outlive_a_link();

	assert_int_equal(home->kept_pool_count, 1);
	side_release(&server, KEPT);
}

/* Many ---------------------------------------------------------------------------------------- */

#define MANY 20

static struct plx_pool *pools[MANY];
static struct plx_buf *held[MANY]; /* one of each */

/* Only kept pools of lcore 0: this does by hand what a turn does. */
static struct plx_fabric_lcore *make_many(void)
{
	struct plx_fabric_lcore *home = listener->set->home;
	struct plx_pool_attr attr = {.name = "kept", .object_count = 4, .node = PLX_NODE_ANY};

	for (int i = 0; i < MANY; i++) {
		assert_int_equal(plx_buf_pool_create(&attr, 64, &pools[i]), 0);
		held[i] = plx_buf_get(pools[i]);
		assert_int_equal(kept_pool_add(home, pools[i]), 0);
	}
	return home;
}

TEST(a_turn_checks_one_kept_pool_and_finds_a_free_one_within_a_turn_per_pool)
{
	struct plx_fabric_lcore *home = make_many();

	plx_buf_unref(held[MANY - 1]);
	for (int i = 0; i < MANY - 1; i++)
		kept_pool_reap(home);
	assert_int_equal(home->kept_pool_count, MANY);
	kept_pool_reap(home);
	assert_int_equal(home->kept_pool_count, MANY - 1);
	/* Wherever the scan is, and whatever replaced the freed ones. */
	for (uint32_t left = MANY - 1; left > 0; left--) {
		plx_buf_unref(held[(MANY - 1 - left) * 7 % (MANY - 1)]); /* each of 19 once */
		for (uint32_t i = 0; i < left; i++)
			kept_pool_reap(home);
		assert_int_equal(home->kept_pool_count, left - 1);
	}
	kept_pool_reap(home);
	assert_int_equal(home->kept_pool_count, 0);
}

TEST(all_released_pools_are_freed_at_the_end)
{
	make_many();
	kept_pool_reap(listener->set->home);
	for (int i = 0; i < MANY; i++)
		plx_buf_unref(held[i]);
}

PLX_TEST_MAIN()
