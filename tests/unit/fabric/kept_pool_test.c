/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that outlive their link, dropped on the lcore that received them or on another: their
 * pool is freed when the last is returned, and not before. */
#include "fabric_link.h"
#include "fabric_listen.h"
#include "fixture.h"
#include "rogue.h"

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

static int start(void **state)
{
	fixture_start(NULL, true);
	listener = fixture_listen(here("0"), NULL);
	return 0;
}

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

TEST(a_turn_checks_only_one_kept_pool)
{
	struct plx_fabric_lcore *home = make_many();

	plx_buf_unref(held[MANY - 1]);
	for (int i = 0; i < MANY - 1; i++)
		kept_pool_reap(home);
	assert_int_equal(home->kept_pool_count, MANY);
	kept_pool_reap(home);
	assert_int_equal(home->kept_pool_count, MANY - 1);
	for (int i = 0; i < MANY - 1; i++)
		plx_buf_unref(held[i]);
	kept_pool_reap(home);
	assert_int_equal(home->kept_pool_count, MANY - 2);
	for (int i = 0; i < MANY - 2; i++)
		kept_pool_reap(home);
	assert_int_equal(home->kept_pool_count, 0);
	kept_pool_reap(home);
	assert_int_equal(home->kept_pool_count, 0);
}

/* Wherever the scan is, and whatever replaced the freed ones. */
TEST(a_free_pool_is_found_within_one_turn_per_kept_pool)
{
	struct plx_fabric_lcore *home = make_many();

	for (uint32_t left = MANY; left > 0; left--) {
		plx_buf_unref(held[(MANY - left) * 7 % MANY]); /* 7: each of 20 once */
		for (uint32_t i = 0; i < left; i++)
			kept_pool_reap(home);
		assert_int_equal(home->kept_pool_count, left - 1);
	}
}

TEST(all_released_pools_are_freed_at_the_end)
{
	make_many();
	kept_pool_reap(listener->set->home);
	for (int i = 0; i < MANY; i++)
		plx_buf_unref(held[i]);
}

/* Long messages that arrive in parts: memory that is returned, and messages that stall --------- */

#define LONG (1 << 20)

static int start_partial(void **state)
{
	struct plx_fabric_conf conf = {.provider = provider_to_test(),
				       .partial_bytes = PLX_PARTIAL_BYTES_MIN};

	fixture_start_as(&conf, false);
	listener = fixture_listen(here("0"), NULL);
	return 0;
}

static void await(struct rogue *rogue, const struct side *side, uint32_t bytes)
{
	uint64_t end_ns = plx_now_ns() + 5 * PLX_NS_PER_S;

	while (!side->closed && plx_now_ns() < end_ns &&
	       (!side->link->partial.buf || side->link->partial.buf->len < bytes)) {
		rogue_progress(rogue);
		plx_loop_turn();
	}
}

/* A peer that has sent that much of a message of LONG bytes; `side` gets the link. */
static struct rogue *open_partial(struct side *side, uint32_t bytes)
{
	struct rogue *rogue;
	uint32_t sent = 1000;

	rogue = rogue_open(listener, NULL);
	server_set_aside(side);
	rogue_send_first(rogue, LONG, sent);
	await(rogue, side, sent);
	for (; sent + 4000 <= bytes && !side->closed; sent += 4000) {
		rogue_send_frame(rogue, (struct frame_header){FRAME_DATA_NEXT, 0, 4000, 8});
		await(rogue, side, sent + 4000); /* no more than was granted */
	}
	return rogue;
}

#define PARTIAL(name) PLX_TEST_WITH(name, start_partial, fixture_down)

PARTIAL(a_message_that_stalls_ends_its_link)
{
	static struct side still;
	struct rogue *rogue = open_partial(&still, 9000);

	pump_ms(200);
	assert_int_equal(still.closed, 0);
	still.link->partial.moved_ns -= 31 * PLX_NS_PER_S;
	expect_end(&still, PLX_LINK_PROTOCOL);
	assert_has(still.text, "a message of 1048576 bytes stopped after 9000");
	rogue_close(rogue);
}

/* Messages that stalled for a second make room; otherwise new ones find none. */
PARTIAL(the_memory_of_partial_messages_is_bounded)
{
	static struct side first, second, third;
	struct rogue *rogues[3];
	uint32_t received;

	rogues[0] = open_partial(&first, 600000);
	/* Meanwhile the first peer may not send, which is not a stall, however long it takes. */
	received = first.link->rx_frames;
	first.link->rx_frames = first.link->rx_frames_granted;
	rogues[1] = open_partial(&second, 600000);
	assert_int_equal(first.closed, 0);
	expect_end(&second, PLX_LINK_LOCAL);
	assert_has(second.text, "--partial-mem");
	first.link->rx_frames = received;
	first.link->partial.moved_ns -= 2 * PLX_NS_PER_S;
	rogues[2] = open_partial(&third, 600000);
	assert_true(pump_until(&first.closed, 1, 2000));
	assert_has(first.text, "stood still");
	assert_int_equal(third.closed, 0);
	plx_link_abort(third.link);
	assert_true(pump_until(&third.closed, 1, 2000));
	for (int i = 0; i < 3; i++)
		rogue_close(rogues[i]);
}

PARTIAL(the_memory_of_a_delivered_message_is_freed_soon)
{
	uint8_t *message = calloc(1, LONG - 1000);
	struct plx_fabric_lcore *home;

	fixture_connect(listener, NULL);
	home = server.link->home;
	for (int i = 1; i < 4; i++) {
		assert_int_equal(plx_link_send(client.link, message, LONG - 1000), 0);
		assert_true(pump_until(&server.messages, i, 5000));
		assert_int_equal(server.last_len, LONG - 1000);
	}
	assert_int_not_equal(home->assembly_bytes, 0); /* for the next one */
	pump_ms(300);
	assert_int_equal(home->assembly_bytes, 0);
	assert_null(server.link->partial.buf);
	/* A message that the user keeps belongs to the user. */
	server.keep = 1;
	assert_int_equal(plx_link_send(client.link, message, LONG - 1000), 0);
	assert_true(pump_until(&server.messages, 4, 5000));
	assert_int_equal(home->assembly_bytes, 0);
	side_release(&server, 1);
	free(message);
}

PLX_TEST_MAIN()
