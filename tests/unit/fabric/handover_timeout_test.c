/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests that do not arrive in time: a lane is full, or an lcore never runs, runs too
 * late, or at that very moment. */
#include "handover_fixture.h"

#include <sched.h>

HANDOVER_TEST(a_lane_that_stays_full_refuses_in_the_end)
{
	uint64_t start_ns = plx_now_ns();

	listen_placed(place_on_lcore_1, 50 * PLX_NS_PER_MS);
	fill_lane_to(1);
	connect_only();
	expect_refused();
	assert_true(plx_now_ns() - start_ns >= 50 * PLX_NS_PER_MS);
}

HANDOVER_TEST(an_lcore_that_never_comes_does_not_keep_the_peer_waiting)
{
	uint64_t start_ns = plx_now_ns();

	listen_placed(place_on_lcore_1, 50 * PLX_NS_PER_MS);
	connect_only();
	expect_refused();
	assert_true(plx_now_ns() - start_ns >= 50 * PLX_NS_PER_MS);
	assert_false(on_its_way());
}

HANDOVER_TEST(a_request_that_was_given_up_makes_no_link_when_its_lcore_comes)
{
	struct plx_fabric_lcore *home;

	listen_placed(place_on_lcore_1, 20 * PLX_NS_PER_MS);
	home = listener->set->home;
	connect_only();
	expect_refused();
	assert_false(LIST_EMPTY(&home->given_up));
	worker_start();
	expect_soon(LIST_EMPTY(&home->given_up));
	expect_refused(); /* once */
	assert_int_equal(server.opened, 0);
	worker_stop();
}

static void stand_still_ms(unsigned ms)
{
	for (uint64_t end_ns = plx_now_ns() + ms * PLX_NS_PER_MS; plx_now_ns() < end_ns;)
		sched_yield();
}

static int run(void *arg)
{
	return plx_loop_run();
}

/* The listener's lcore is late too, and cannot give up. The timeout is long enough for a busy host
 * to see the request first. */
HANDOVER_TEST(an_lcore_that_comes_too_late_refuses)
{
	send_request(500 * PLX_NS_PER_MS);
	stand_still_ms(550);
	assert_int_equal(plx_lcore_launch(1, run, NULL), 0);
	while (!plx_loop_is_running(1))
		sched_yield();
	stand_still_ms(40);
	expect_refused();
	assert_true(LIST_EMPTY(&listener->set->home->given_up));
	worker_stop();
}

HANDOVER_TEST(a_timeout_may_be_never)
{
	send_request(UINT64_MAX);
	expect_still_on_its_way();
	serve_and_close();
}

HANDOVER_TEST(a_timeout_may_be_never_in_front_of_a_full_lane)
{
	send_request_to_full_lane(UINT64_MAX);
	expect_still_on_its_way();
}

HANDOVER_TEST(a_connect_may_wait_for_ever)
{
	struct plx_link_attr attr = {.connect_timeout_ns = PLX_NEVER,
				     .hello_timeout_ns = PLX_NEVER,
				     .close_timeout_ns = PLX_NEVER};

	listen_placed(place_on_lcore_1, 0);
	client_connect(plx_listener_address(listener), &attr);
	expect_soon(on_its_way());
	expect_still_on_its_way();
	serve_and_close();
}

/* Both at the same time ----------------------------------------------------------------------- */

#define RACES           100
#define RACE_TIMEOUT_NS ((is_provider_given() ? 50 : 2) * PLX_NS_PER_MS)

static void be_busy(void *arg)
{
	uint64_t end_ns = plx_now_ns() + *(const uint64_t *)arg;

	while (plx_now_ns() < end_ns)
		;
}

static uint64_t ended(struct plx_listener_stats *stats)
{
	plx_listener_stats(listener, stats);
	return stats->opened + stats->refused + stats->failed;
}

/* Lcore 1 reads the request after being busy: before the listener's lcore gives up, after it, or at
 * that moment. */
static void race(uint64_t busy_ns)
{
	struct plx_listener_stats stats;
	uint64_t before = ended(&stats), opened = stats.opened;

	client.closed = client.opened = server.closed = server.opened = 0;
	assert_int_equal(plx_lcore_send(1, be_busy, &busy_ns), 0);
	connect_only();
	expect_soon(ended(&stats) > before);
	assert_int_equal(ended(&stats), before + 1);
	if (stats.opened > opened) {
		plx_link_abort(client.link);
		assert_true(pump_until(&server.closed, 1, 3000));
	}
	assert_true(pump_until(&client.closed, 1, 3000));
	expect_soon(!on_its_way() && LIST_EMPTY(&listener->set->home->given_up));
}

HANDOVER_TEST(a_request_is_taken_or_given_up_and_never_both)
{
	struct plx_listener_stats stats;

	listen_placed(place_on_lcore_1, RACE_TIMEOUT_NS);
	worker_start();
	for (uint64_t i = 0; i < RACES; i++)
		race(2 * RACE_TIMEOUT_NS * i / RACES);
	assert_int_equal(ended(&stats), RACES);
	assert_int_equal(stats.requests, RACES);
	assert_true(stats.opened > 0);
	assert_true(stats.refused > 0);
	worker_stop();
}

PLX_TEST_MAIN()
