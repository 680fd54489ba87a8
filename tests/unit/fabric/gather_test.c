/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that wait for the next poll of their set, to be sent together. The poll comes with the
 * next turn; without a next turn none stays unsent. The receiver is on another lcore. */
#include "fabric_link.h"
#include "fixture.h"

#include <time.h>

#define BURST 5

/* Heartbeats would warm the set. */
static int start(void **state)
{
	struct plx_listen_attr attr = {.spread = PLX_SPREAD_CALLBACK, .place = place_on_lcore_1};

	fixture_start_beating(UINT64_MAX, UINT64_MAX, true);
	worker_start();
	fixture_connect(fixture_listen_as(here("0"), attr), NULL);
	return 0;
}

static void send_burst(void)
{
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(plx_link_send(client.link, &i, sizeof(i)), 0);
}

/* Without a turn of this lcore. */
static void expect_burst(void)
{
	const struct timespec nap = {.tv_nsec = (long)PLX_NS_PER_MS};

	for (int i = 0; i < 5000 && server.messages < BURST; i++)
		nanosleep(&nap, NULL);
	assert_int_equal(server.messages, BURST);
}

/* The last turn polled it, and the next ones do not. */
static void let_it_get_cold(void)
{
	struct plx_set *set = client.link->set;

	for (int i = 0; i < 5000 && (int64_t)(set->emptied_ns - set->last_work_ns) <=
					    (int64_t)(2 * COLD_AFTER_NS);
	     i++)
		pump_ms(1);
	assert_true((int64_t)(set->emptied_ns - set->last_work_ns) > (int64_t)(2 * COLD_AFTER_NS));
	while (set->home->turn % COLD_TURNS)
		plx_loop_turn();
}

#define TEST(name) PLX_TEST_WITH(name, start, fixture_down_with_worker)

TEST(a_burst_on_a_cold_link_leaves_with_the_next_turn)
{
	let_it_get_cold();
	send_burst();
	plx_loop_turn();
	expect_burst();
}

TEST(a_set_that_has_sent_nothing_is_polled_seldom)
{
	struct plx_set *set = client.link->set;
	uint64_t emptied_ns;

	let_it_get_cold();
	emptied_ns = set->emptied_ns;
	for (unsigned i = 1; i < COLD_TURNS; i++)
		plx_loop_turn();
	assert_int_equal(set->emptied_ns, emptied_ns);
	plx_loop_turn();
	assert_true(set->emptied_ns > emptied_ns);
}

static void burst_and_quit(struct plx_timer *timer, void *arg)
{
	send_burst();
	plx_loop_quit();
}

/* Timers run after the last poll of a turn. */
TEST(a_loop_that_returns_keeps_nothing_back)
{
	struct plx_timer timer;

	plx_timer_init(&timer, burst_and_quit, NULL);
	assert_int_equal(plx_timer_start(&timer, 5 * PLX_NS_PER_MS), 0);
	assert_int_equal(plx_loop_run(), 0);
	expect_burst();
}

TEST(a_link_that_is_aborted_sends_what_it_had_taken)
{
	send_burst();
	plx_link_abort(client.link);
	assert_true(pump_until(&client.closed, 1, 3000));
	expect_burst();
}

TEST(a_link_that_is_closed_sends_what_it_had_taken)
{
	send_burst();
	assert_int_equal(plx_link_close(client.link), 0);
	expect_end(&client, PLX_LINK_CLOSED);
	assert_int_equal(server.messages, BURST);
}

TEST(the_links_of_an_lcore_that_is_drained_send_what_they_had_taken)
{
	send_burst();
	assert_int_equal(plx_fabric_drain(5 * PLX_NS_PER_S), 0);
	assert_int_equal(client.reason, PLX_LINK_CLOSED);
	assert_int_equal(server.messages, BURST);
}

PLX_TEST_MAIN()
