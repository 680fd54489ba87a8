/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests that reach the selected lcore, and their answers. */
#include "handover_fixture.h"

#include <sched.h>

static _Atomic uint32_t served_by;

static void note_lcore(struct side *side, struct plx_buf *message)
{
	served_by = plx_lcore_id();
}

HANDOVER_TEST(a_link_lives_on_the_lcore_it_is_placed_on)
{
	struct plx_listener_stats stats;

	listen_placed(place_on_lcore_1, 0);
	server.echo = true;
	server.on_message = note_lcore;
	worker_start();
	fixture_connect(listener, NULL);
	expect_echo("where?", 6);
	assert_int_equal(served_by, 1);
	plx_listener_stats(listener, &stats);
	assert_int_equal(stats.requests, 1);
	assert_int_equal(stats.opened, 1);
	assert_false(on_its_way());
	close_in_order();
	worker_stop();
}

HANDOVER_TEST_AUTO(a_link_lives_on_the_lcore_it_is_placed_on)

static char peer_seen[PLX_ADDRESS_MAX];

static uint32_t note_peer(struct plx_listener *at, const struct sockaddr *peer, void *arg)
{
	address_format(peer, peer_seen, sizeof(peer_seen));
	return 0;
}

HANDOVER_TEST(the_callback_that_places_is_told_the_peer)
{
	listen_placed(note_peer, 0);
	fixture_connect(listener, NULL);
	assert_string_equal(peer_seen, plx_link_peer(server.link));
	assert_int_equal(strncmp(peer_seen, here(""), strlen(here(""))), 0);
}

HANDOVER_TEST(a_full_lane_delays_a_request)
{
	send_request_to_full_lane(0);
	expect_still_on_its_way();
	serve_and_close();
}

/* The answer finds the return lane full, and nothing empties it for a while. */
HANDOVER_TEST(an_answer_is_not_lost_in_a_full_lane)
{
	send_request(0);
	assert_int_equal(plx_lcore_launch(1, block_then_run, NULL), 0);
	for (uint64_t end_ns = plx_now_ns() + 50 * PLX_NS_PER_MS; plx_now_ns() < end_ns;)
		sched_yield();
	expect_soon(!on_its_way());
	expect_open();
	close_in_order();
	worker_stop();
}

static uint32_t on_no_lcore(struct plx_listener *at, const struct sockaddr *peer, void *arg)
{
	return 200;
}

HANDOVER_TEST(a_link_placed_on_no_lcore_is_refused)
{
	listen_placed(on_no_lcore, 0);
	connect_only();
	expect_refused();
}

PLX_TEST_MAIN()
