/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests that reach the selected lcore, and their answers. */
#include "handover_fixture.h"

#include <sched.h>

static _Atomic uint32_t served_by;

static void note_lcore(struct side *side, struct plx_buf *message)
{
	served_by = plx_lcore_id();
}

static void a_link_lives_on_the_lcore_it_is_placed_on(void **state)
{
	struct plx_listener_stats stats;

	listen_placed(on_lcore_1, 0);
	server.echo = true;
	server.on_message = note_lcore;
	worker_start();
	fixture_connect(listener, NULL);
	assert_int_equal(plx_link_send(client.link, "where?", 6), 0);
	assert_true(pump_until(&client.messages, 1, 3000));
	assert_int_equal(served_by, 1);
	plx_listener_stats(listener, &stats);
	assert_int_equal(stats.requests, 1);
	assert_int_equal(stats.opened, 1);
	assert_false(on_its_way());
	close_in_order();
	worker_stop();
}

static char peer_seen[PLX_ADDRESS_MAX];

static uint32_t note_peer(struct plx_listener *at, const struct sockaddr *peer, void *arg)
{
	address_format(peer, peer_seen, sizeof(peer_seen));
	return 0;
}

static void the_callback_that_places_is_told_the_peer(void **state)
{
	listen_placed(note_peer, 0);
	fixture_connect(listener, NULL);
	assert_string_equal(peer_seen, plx_link_peer(server.link));
	assert_int_equal(strncmp(peer_seen, here(""), strlen(here(""))), 0);
}

static void a_full_lane_delays_a_request(void **state)
{
	listen_placed(on_lcore_1, 0);
	fill_lane_to(1);
	connect_only();
	pump_until_on_its_way();
	expect_still_on_its_way();
	serve_and_close();
}

/* The answer finds the return lane full, and nothing empties it for a while. */
static void an_answer_is_not_lost_in_a_full_lane(void **state)
{
	listen_placed(on_lcore_1, 0);
	connect_only();
	pump_until_on_its_way();
	assert_int_equal(plx_lcore_launch(1, block_then_run, NULL), 0);
	for (uint64_t end_ns = plx_now_ns() + 50 * PLX_NS_PER_MS; plx_now_ns() < end_ns;)
		sched_yield();
	for (int i = 0; i < 3000 && on_its_way(); i++)
		pump_ms(1);
	assert_false(on_its_way());
	expect_open();
	close_in_order();
	worker_stop();
}

static uint32_t on_no_lcore(struct plx_listener *at, const struct sockaddr *peer, void *arg)
{
	return 200;
}

static void a_link_placed_on_no_lcore_is_refused(void **state)
{
	listen_placed(on_no_lcore, 0);
	connect_only();
	expect_refused();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		handover_test(a_link_lives_on_the_lcore_it_is_placed_on),
		handover_test(the_callback_that_places_is_told_the_peer),
		handover_test(a_full_lane_delays_a_request),
		handover_test(an_answer_is_not_lost_in_a_full_lane),
		handover_test(a_link_placed_on_no_lcore_is_refused),
		handover_test_auto(a_link_lives_on_the_lcore_it_is_placed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
