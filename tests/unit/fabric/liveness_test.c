/* SPDX-License-Identifier: BSD-3-Clause */
/* Detecting dead peers: rogues talk or stay silent as a test needs. Those with one incarnation are
 * one process. */
#include "fixture.h"
#include "rogue.h"

#include <unistd.h>

#define PERIOD_MS 100
#define DEAD_MS   500
#define QUICK_MS  300
#define MANY      40 /* more than are asked, or ended, in a turn */
/* Hosts are late; how much lateness a test allows that waits for a dead peer. */
#define LATE_MS 1500
/* Lateness of this process, also in earlier tests, extends its patience with peers. */
#define BORNE_MS 1500

static struct plx_listener *listener;
static struct rogue *rogue, *others[MANY];
static struct side sides[MANY]; /* of the others */
static unsigned other_count;

static int start(uint64_t heartbeat_ns, uint64_t dead_after_ns, bool two_lcores)
{
	other_count = 0;
	fixture_start_beating(heartbeat_ns, dead_after_ns, two_lcores);
	listener = fixture_listen(here("0"), NULL);
	if (two_lcores)
		worker_start();
	return 0;
}

static struct rogue *open_rogue_like(struct frame_hello hello)
{
	return rogue_open(listener, &hello);
}

static struct rogue *open_rogue(void)
{
	return open_rogue_like(rogue_beating_hello(PERIOD_MS, DEAD_MS));
}

/* The next rogue's side is `server` again. */
static struct side *open_other(struct frame_hello hello)
{
	struct side *side = &sides[other_count];

	others[other_count++] = open_rogue_like(hello);
	server_set_aside(side);
	return side;
}

PLX_FIXTURE(alone, start(0, 0, false), (void)0)
PLX_FIXTURE(alone_without_heartbeats, start(PLX_NEVER, 0, false), (void)0)
PLX_FIXTURE(alone_and_quick, start(10 * PLX_NS_PER_MS, 0, false), (void)0)
PLX_FIXTURE(two, start(0, 0, true), (void)0)
PLX_FIXTURE(two_quick, start(10 * PLX_NS_PER_MS, QUICK_MS *PLX_NS_PER_MS, true), (void)0)
PLX_FIXTURE(with_rogue, 0, (alone(state), rogue = open_rogue()))

#define ALONE(test)      PLX_TEST_WITH(test, alone, fixture_down)
#define WITH_ROGUE(test) PLX_TEST_WITH(test, with_rogue, fixture_down)

/* Send heartbeats for that long, every 50 ms. */
static void beat_ms(struct rogue *from, unsigned ms)
{
	for (unsigned i = 0; i < ms / 50; i++) {
		rogue_beat(from);
		pump_ms(50);
	}
}

static void turn_and_expect_open(void)
{
	for (unsigned i = 0; i < 100; i++)
		plx_loop_turn();
	assert_int_equal(server.closed, 0);
}

static uint64_t heartbeats_to(const struct side *side)
{
	return stats_of(side->link).heartbeats_sent;
}

/* Wait for the verdict, at most that long and a bit. Return: ms. */
static unsigned expect_silent(struct side *side, unsigned limit_ms)
{
	uint64_t begin_ns = plx_now_ns();

	assert_true(pump_until(&side->closed, 1, limit_ms + LATE_MS + BORNE_MS));
	assert_int_equal(side->reason, PLX_LINK_SILENT);
	return (unsigned)((plx_now_ns() - begin_ns) / PLX_NS_PER_MS);
}

static unsigned pump_until_suspect(const struct side *side, bool suspect)
{
	uint64_t begin_ns = plx_now_ns();

	expect_soon(side->closed || plx_link_is_suspect(side->link) == suspect);
	assert_int_equal(side->closed, 0);
	return (unsigned)((plx_now_ns() - begin_ns) / PLX_NS_PER_MS);
}

/* What is sent ------------------------------------------------------------------------------- */

ALONE(many_links_to_a_process_share_one_heartbeat_per_period)
{
	uint64_t begin_ns, periods, sent = 0;

	for (unsigned i = 0; i < MANY; i++)
		open_other(rogue_beating_hello(PERIOD_MS, DEAD_MS));
	beat_ms(others[0], 2 * PERIOD_MS);
	begin_ns = plx_now_ns();
	for (unsigned i = 0; i < MANY; i++)
		sent -= heartbeats_to(&sides[i]);
	beat_ms(others[0], 10 * PERIOD_MS);
	for (unsigned i = 0; i < MANY; i++)
		sent += heartbeats_to(&sides[i]);
	/* One more at the ends. A host that is short of CPUs skips some. */
	periods = (plx_now_ns() - begin_ns) / (PERIOD_MS * PLX_NS_PER_MS);
	assert_in_range(sent, periods / 3, periods + 1);
}

static void expect_no_heartbeats(struct frame_hello hello)
{
	rogue = open_rogue_like(hello);
	pump_ms(3 * DEAD_MS);
	assert_int_equal(server.closed, 0);
	assert_int_equal(heartbeats_to(&server), 0);
	assert_false(plx_link_is_suspect(server.link));
}

ALONE(a_peer_that_requests_no_heartbeats_gets_none)
{
	expect_no_heartbeats(rogue_beating_hello(0, 0));
	assert_int_equal(rogue_answer(rogue).heartbeat_ms, PERIOD_MS);
	assert_int_equal(rogue_answer(rogue).dead_after_ms, DEAD_MS);
}

PLX_TEST_WITH(a_side_that_sends_no_heartbeats_gets_none, alone_without_heartbeats, fixture_down)
{
	expect_no_heartbeats(rogue_beating_hello(PERIOD_MS, DEAD_MS));
	assert_int_equal(rogue_answer(rogue).heartbeat_ms, 0);
	assert_int_equal(rogue_answer(rogue).dead_after_ms, 0);
}

/* Verdicts ----------------------------------------------------------------------------------- */

ALONE(a_silent_peer_is_suspect_and_then_declared_dead_on_all_links)
{
	unsigned suspect_ms, dead_ms;

	for (unsigned i = 0; i < MANY; i++)
		open_other(rogue_beating_hello(PERIOD_MS, DEAD_MS));
	beat_ms(others[0], 3 * PERIOD_MS);
	assert_false(plx_link_is_suspect(sides[0].link));
	suspect_ms = pump_until_suspect(&sides[3], true);
	/* Its last message may be a period older. */
	assert_in_range(suspect_ms, DEAD_MS / 2 - PERIOD_MS - 50, DEAD_MS / 2 + LATE_MS);
	dead_ms = suspect_ms + expect_silent(&sides[0], DEAD_MS);
	assert_in_range(dead_ms, DEAD_MS - PERIOD_MS - 50, DEAD_MS + LATE_MS);
	for (unsigned i = 0; i < MANY; i++) {
		expect_silent(&sides[i], PERIOD_MS);
		assert_has(sides[i].text, "has said nothing for ");
		assert_int_equal(sides[i].suspect, 1);
		assert_int_equal(sides[i].heard, 0);
	}
}

WITH_ROGUE(a_peer_that_is_heard_in_time_is_no_longer_suspect)
{
	beat_ms(rogue, 2 * PERIOD_MS);
	pump_until_suspect(&server, true);
	rogue_beat(rogue);
	pump_until_suspect(&server, false);
	beat_ms(rogue, 2 * DEAD_MS);
	assert_int_equal(server.closed, 0);
	assert_int_equal(server.suspect, server.heard);
	assert_in_range(server.suspect, 1, 10); /* on a host that stalls it may be suspect again */
}

/* A peer that dies before answering a close: 500 ms, where close_timeout_ns is 2 s. */
WITH_ROGUE(a_closing_link_whose_peer_dies_ends)
{
	plx_link_close(server.link);
	expect_end(&server, PLX_LINK_SILENT);
}

static int alone_and_limited(void **state)
{
	fixture_start_as(&(struct plx_fabric_conf){.provider = provider_to_test(),
						   .dead_after_max_ns = DEAD_MS * PLX_NS_PER_MS},
			 false);
	listener = fixture_listen(here("0"), NULL);
	return 0;
}

PLX_TEST_WITH(a_listener_limits_the_silence_that_a_peer_asks_for, alone_and_limited, fixture_down)
{
	rogue = open_rogue_like(rogue_beating_hello(PERIOD_MS, 100 * DEAD_MS));
	beat_ms(rogue, 2 * PERIOD_MS);
	assert_int_equal(server.closed, 0);
	expect_silent(&server, DEAD_MS);
}

/* Links that agreed on other times have other timeouts. */
ALONE(a_heartbeat_counts_only_for_links_of_its_process_path_and_times)
{
	static const char *const kinds[] = {"another process", "another path", "other times"};
	struct frame_hello hello = rogue_beating_hello(PERIOD_MS, DEAD_MS), one;
	struct side *same;

	for (size_t i = 0; i < PLX_ARRAY_LEN(kinds); i++) {
		one = hello;
		one.incarnation += i == 0;
		one.path += i == 1;
		one.dead_after_ms += i == 2;
		open_other(one);
	}
	same = open_other(hello);
	rogue = open_rogue();
	beat_ms(rogue, DEAD_MS + LATE_MS);
	for (size_t i = 0; i < PLX_ARRAY_LEN(kinds); i++) {
		if (!sides[i].closed)
			fail_msg("%s is still open", kinds[i]);
		assert_int_equal(sides[i].reason, PLX_LINK_SILENT);
	}
	assert_int_equal(same->closed + server.closed, 0);
	expect_silent(&server, DEAD_MS);
	assert_true(pump_until(&same->closed, 1, PERIOD_MS));
}

/* This process's lost time is not the peer's silence. */
WITH_ROGUE(a_process_that_was_stopped_declares_no_peer_dead)
{
	beat_ms(rogue, 2 * PERIOD_MS);
	usleep((DEAD_MS + 3 * PERIOD_MS) * 1000);
	turn_and_expect_open();
	assert_false(plx_link_is_suspect(server.link));
	beat_ms(rogue, 2 * PERIOD_MS);
	assert_int_equal(server.closed, 0);
	/* The patience is longer now, but bounded. */
	assert_true(expect_silent(&server, 3 * DEAD_MS) > DEAD_MS + PERIOD_MS);
}

/* Both were stopped, longer than an lcore is waited for, as when their host is suspended. Right
 * after it nothing is heard, and the sets, cold by then, are not all polled. */
PLX_TEST_WITH(a_long_stop_of_both_sides_declares_no_peer_dead, alone_and_quick, fixture_down)
{
	rogue = open_rogue_like(rogue_beating_hello(10, QUICK_MS));
	beat_ms(rogue, 100);
	usleep(12 * QUICK_MS * 1000);
	turn_and_expect_open();
	beat_ms(rogue, 200);
	assert_int_equal(server.closed, 0);
}

/* Two lcores --------------------------------------------------------------------------------- */

static void listen_there(void *arg)
{
	listener = fixture_listen(here("0"), NULL);
}

static void close_there(void *arg)
{
	plx_listener_close(listener);
}

static void sleep_there(void *arg)
{
	usleep((DEAD_MS + 5 * PERIOD_MS) * 1000);
}

/* Two links to one process: of the first rogue here, and of `rogue` on lcore 1. */
static struct side *open_here_and_there(uint32_t heartbeat_ms, uint32_t dead_after_ms)
{
	struct frame_hello hello = rogue_beating_hello(heartbeat_ms, dead_after_ms);
	struct side *side = open_other(hello);

	worker_call(listen_there, NULL);
	rogue = open_rogue_like(hello);
	return side;
}

PLX_TEST_WITH(a_verdict_waits_only_a_bounded_time_for_another_lcore, two_quick, fixture_down)
{
	struct side *side = open_here_and_there(10, QUICK_MS);
	uint64_t begin_ns;

	rogue_beat(others[0]);
	begin_ns = plx_now_ns();
	worker_stop(); /* its loop has ended, and its link is still open */
	expect_silent(side, 10 * QUICK_MS + LATE_MS);
	assert_true(plx_now_ns() - begin_ns > 9 * QUICK_MS * PLX_NS_PER_MS);
	assert_int_equal(server.closed, 0);

	/* The verdict also applies to that lcore when it continues. */
	rogue_beat(rogue);
	worker_start();
	assert_true(pump_until(&server.closed, 1, LATE_MS));
	worker_call(close_there, NULL);
	worker_stop();
}

/* A silent link here, and one there on which its process is heard. */
PLX_TEST_WITH(a_verdict_waits_for_a_stalled_lcore_that_may_have_heard_the_peer, two, fixture_down)
{
	struct side *silent = open_here_and_there(PERIOD_MS, DEAD_MS);

	beat_ms(rogue, 2 * DEAD_MS);
	assert_int_equal(silent->closed + server.closed, 0);
	assert_int_equal(plx_lcore_send(1, sleep_there, NULL), 0);
	beat_ms(rogue, DEAD_MS + 4 * PERIOD_MS);
	assert_int_equal(silent->closed, 0);
	beat_ms(rogue, 3 * PERIOD_MS);
	assert_int_equal(silent->closed + server.closed, 0);
	expect_silent(silent, 4 * DEAD_MS);
	expect_silent(&server, 4 * DEAD_MS);
	worker_call(close_there, NULL);
	worker_stop();
}

PLX_TEST_MAIN()
