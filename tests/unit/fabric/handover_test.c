/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests on their way to another lcore and back: those that arrive, and those that
 * find a lane full, an lcore that sleeps, a listener that is closed, or the end of the process. */
#include "fabric_priv.h"
#include "fixture.h"

#include <sched.h>

static struct plx_listener *listener;

static uint32_t on_lcore_1(struct plx_listener *at, const char *peer, void *arg)
{
	return 1;
}

static uint32_t on_no_lcore(struct plx_listener *at, const char *peer, void *arg)
{
	return 200;
}

static void listen_placed(uint32_t (*place)(struct plx_listener *, const char *, void *),
			  uint64_t timeout_ns)
{
	struct plx_listen_attr attr = {
		.link = {.events = &side_events, .user = &server, .connect_timeout_ns = timeout_ns},
		.spread = PLX_SPREAD_CALLBACK,
		.place = place};

	assert_int_equal(plx_link_listen("127.0.0.1:0", &attr, &listener), 0);
}

static void connect_only(void)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};

	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &client.link), 0);
}

static void expect_refused(void)
{
	struct plx_listener_stats stats;

	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_REFUSED);
	plx_listener_stats(listener, &stats);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.opened, 0);
}

static void close_in_order(void)
{
	assert_int_equal(plx_link_close(client.link), 0);
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_CLOSED);
	assert_true(pump_until(&server.closed, 1, 3000));
}

static bool on_its_way(void)
{
	return listener->requests || (listener->also && listener->also->requests);
}

static void pump_until_on_its_way(void)
{
	for (int i = 0; i < 3000 && !on_its_way(); i++)
		pump_ms(1);
	assert_true(on_its_way());
}

static void nothing(void *arg)
{
}

static void fill_lane_to(uint32_t id)
{
	while (plx_lcore_send(id, nothing, NULL) == 0)
		;
}

/* Arriving ------------------------------------------------------------------------------------ */

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

static uint32_t note_peer(struct plx_listener *at, const char *peer, void *arg)
{
	strcpy(peer_seen, peer);
	return 0;
}

static void the_callback_that_places_is_told_the_peer(void **state)
{
	listen_placed(note_peer, 0);
	fixture_connect(listener, NULL);
	assert_string_equal(peer_seen, plx_link_peer(server.link));
	assert_non_null(strstr(peer_seen, "127.0.0.1:"));
}

static void a_full_lane_delays_a_request(void **state)
{
	listen_placed(on_lcore_1, 0);
	fill_lane_to(1);
	connect_only();
	pump_until_on_its_way();
	pump_ms(20);
	assert_true(on_its_way());
	assert_int_equal(client.closed, 0);
	worker_start();
	assert_true(pump_until(&client.opened, 1, 3000));
	assert_true(pump_until(&server.opened, 1, 3000));
	close_in_order();
	worker_stop();
}

static int block_then_run(void *arg)
{
	fill_lane_to(0);
	return plx_loop_run();
}

/* The answer finds the lane back full, and nobody looks into it for a while. */
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
	assert_true(pump_until(&server.opened, 1, 3000));
	assert_true(pump_until(&client.opened, 1, 3000));
	close_in_order();
	worker_stop();
}

/* Not arriving -------------------------------------------------------------------------------- */

static void a_link_placed_on_no_lcore_is_refused(void **state)
{
	listen_placed(on_no_lcore, 0);
	connect_only();
	expect_refused();
}

static void a_lane_that_stays_full_refuses_in_the_end(void **state)
{
	uint64_t start_ns = plx_now_ns();

	listen_placed(on_lcore_1, 50 * PLX_NS_PER_MS);
	fill_lane_to(1);
	connect_only();
	expect_refused();
	assert_true(plx_now_ns() - start_ns >= 50 * PLX_NS_PER_MS);
}

static void an_lcore_that_never_comes_does_not_keep_the_peer_waiting(void **state)
{
	uint64_t start_ns = plx_now_ns();

	listen_placed(on_lcore_1, 50 * PLX_NS_PER_MS);
	connect_only();
	expect_refused();
	assert_true(plx_now_ns() - start_ns >= 50 * PLX_NS_PER_MS);
	assert_false(on_its_way());
}

static void a_request_that_was_given_up_makes_no_link_when_its_lcore_comes(void **state)
{
	struct plx_fabric_lcore *home;

	listen_placed(on_lcore_1, 20 * PLX_NS_PER_MS);
	home = listener->set->home;
	connect_only();
	expect_refused();
	assert_non_null(home->given_up);
	worker_start();
	for (int i = 0; i < 3000 && home->given_up; i++)
		pump_ms(1);
	assert_null(home->given_up);
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

/* The listener's lcore is late itself, and cannot give up. */
static void an_lcore_that_comes_too_late_refuses(void **state)
{
	listen_placed(on_lcore_1, 20 * PLX_NS_PER_MS);
	connect_only();
	pump_until_on_its_way();
	stand_still_ms(40);
	assert_int_equal(plx_lcore_launch(1, run, NULL), 0);
	while (!plx_loop_is_running(1))
		sched_yield();
	stand_still_ms(40);
	expect_refused();
	assert_null(listener->set->home->given_up);
	worker_stop();
}

static void a_timeout_may_be_never(void **state)
{
	listen_placed(on_lcore_1, UINT64_MAX);
	connect_only();
	pump_until_on_its_way();
	pump_ms(20);
	assert_true(on_its_way());
	assert_int_equal(client.closed, 0);
	worker_start();
	assert_true(pump_until(&client.opened, 1, 3000));
	assert_true(pump_until(&server.opened, 1, 3000));
	close_in_order();
	worker_stop();
}

static void a_timeout_may_be_never_in_front_of_a_full_lane(void **state)
{
	listen_placed(on_lcore_1, UINT64_MAX);
	fill_lane_to(1);
	connect_only();
	pump_until_on_its_way();
	pump_ms(20);
	assert_true(on_its_way());
	assert_int_equal(client.closed, 0);
}

static void a_connect_may_wait_for_ever(void **state)
{
	struct plx_link_attr attr = {.events = &side_events,
				     .user = &client,
				     .connect_timeout_ns = UINT64_MAX,
				     .hello_timeout_ns = UINT64_MAX,
				     .close_timeout_ns = UINT64_MAX};

	listen_placed(on_lcore_1, 0);
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &client.link), 0);
	pump_until_on_its_way();
	pump_ms(20);
	assert_int_equal(client.closed, 0);
	worker_start();
	assert_true(pump_until(&client.opened, 1, 3000));
	assert_true(pump_until(&server.opened, 1, 3000));
	close_in_order();
	worker_stop();
}

/* Both at the same time ----------------------------------------------------------------------- */

#define RACES           100
#define RACE_TIMEOUT_NS (2 * PLX_NS_PER_MS)

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

/* Lcore 1 comes to the request when it has been busy for a while: before the listener's lcore gives
 * up, after it, or in that moment. */
static void race(uint64_t busy_ns)
{
	struct plx_listener_stats stats;
	uint64_t before = ended(&stats), opened = stats.opened;

	client.closed = client.opened = server.closed = server.opened = 0;
	assert_int_equal(plx_lcore_send(1, be_busy, &busy_ns), 0);
	connect_only();
	for (int i = 0; i < 3000 && ended(&stats) == before; i++)
		pump_ms(1);
	assert_int_equal(ended(&stats), before + 1);
	if (stats.opened > opened) {
		plx_link_abort(client.link);
		assert_true(pump_until(&server.closed, 1, 3000));
	}
	assert_true(pump_until(&client.closed, 1, 3000));
	for (int i = 0; i < 3000 && (on_its_way() || listener->set->home->given_up); i++)
		pump_ms(1);
	assert_false(on_its_way());
	assert_null(listener->set->home->given_up);
}

static void a_request_is_taken_or_given_up_and_never_both(void **state)
{
	struct plx_listener_stats stats;

	listen_placed(on_lcore_1, RACE_TIMEOUT_NS);
	worker_start();
	for (uint64_t i = 0; i < RACES; i++)
		race(2 * RACE_TIMEOUT_NS * i / RACES);
	assert_int_equal(ended(&stats), RACES);
	assert_int_equal(stats.requests, RACES);
	assert_true(stats.opened > 0);
	assert_true(stats.refused > 0);
	worker_stop();
}

/* Closing ------------------------------------------------------------------------------------- */

static uint32_t close_it(struct plx_listener *at, const char *peer, void *arg)
{
	plx_listener_close(at);
	return 0;
}

static void a_listener_may_be_closed_where_it_places_a_link(void **state)
{
	listen_placed(close_it, 0);
	connect_only();
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_REFUSED);
	assert_int_equal(plx_fabric_open_count(), 0);
}

static void a_closed_listener_waits_for_its_requests(void **state)
{
	struct plx_fabric_lcore *home;

	listen_placed(on_lcore_1, 0);
	home = listener->set->home;
	connect_only();
	pump_until_on_its_way();
	plx_listener_close(listener);
	assert_non_null(home->listeners);
	worker_start();
	assert_true(pump_until(&client.opened, 1, 3000)); /* it came before the close */
	assert_true(pump_until(&server.opened, 1, 3000));
	assert_null(home->listeners);
	close_in_order();
	worker_stop();
}

static void a_closed_listener_gives_its_port_back_in_time(void **state)
{
	struct plx_listen_attr again = {.link = {.events = &side_events, .user = &server}};
	struct plx_fabric_lcore *home;
	char address[PLX_ADDRESS_MAX];

	listen_placed(on_lcore_1, 50 * PLX_NS_PER_MS);
	home = listener->set->home;
	strcpy(address, plx_listener_address(listener));
	connect_only();
	pump_until_on_its_way();
	plx_listener_close(listener);
	assert_int_equal(plx_link_listen(address, &again, &listener), -EADDRINUSE);
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_REFUSED);
	assert_null(home->listeners);
	assert_int_equal(plx_link_listen(address, &again, &listener), 0);
	fixture_connect(listener, NULL);
}

/* The other end is on a provider of its own: but for the listener nothing is open on this one. */
static void a_closed_listener_answers_while_it_waits_for_its_requests(void **state)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client, .provider = "fi:tcp"};
	struct side late = {.name = "late"};
	char address[PLX_ADDRESS_MAX];

	listen_placed(on_lcore_1, PLX_NS_PER_S);
	strcpy(address, plx_listener_address(listener));
	assert_int_equal(plx_link_connect(address, &attr, &client.link), 0);
	pump_until_on_its_way();
	plx_listener_close(listener);
	attr.user = &late;
	assert_int_equal(plx_link_connect(address, &attr, &late.link), 0);
	assert_true(pump_until(&late.closed, 1, 500));
	assert_int_equal(late.reason, PLX_LINK_REFUSED);
	assert_int_equal(client.closed, 0);
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_REFUSED);
}

static void a_closed_listener_counts_once_and_until_it_is_gone(void **state)
{
	listen_placed(on_lcore_1, 50 * PLX_NS_PER_MS);
	connect_only();
	pump_until_on_its_way();
	plx_listener_close(listener);
	plx_link_abort(client.link);
	assert_int_equal(plx_fabric_drain(PLX_NS_PER_S), 0);
	assert_int_equal(plx_fabric_open_count(), 1);
	for (int i = 0; i < 3000 && plx_fabric_open_count(); i++)
		pump_ms(1);
	assert_int_equal(plx_fabric_open_count(), 0);
}

static void a_request_that_waits_hears_of_the_close(void **state)
{
	listen_placed(on_lcore_1, 0);
	fill_lane_to(1);
	connect_only();
	pump_until_on_its_way();
	plx_listener_close(listener);
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_REFUSED);
}

/* At the end the fixture counts memory and descriptors. */
static void the_process_may_end_with_requests_on_their_way(void **state)
{
	listen_placed(on_lcore_1, 0);
	connect_only();
	pump_until_on_its_way();
}

static void the_process_may_end_with_requests_that_were_given_up(void **state)
{
	listen_placed(on_lcore_1, 20 * PLX_NS_PER_MS);
	connect_only();
	expect_refused();
	plx_listener_close(listener);
}

static void the_process_may_end_with_requests_that_wait(void **state)
{
	listen_placed(on_lcore_1, 0);
	fill_lane_to(1);
	connect_only();
	pump_until_on_its_way();
}

static void the_process_may_end_with_answers_on_their_way(void **state)
{
	listen_placed(on_lcore_1, 0);
	connect_only();
	pump_until_on_its_way();
	assert_int_equal(plx_lcore_launch(1, block_then_run, NULL), 0);
	for (int i = 0; i < 3000 && !plx_loop_is_running(1); i++)
		sched_yield();
	worker_stop();
	assert_true(on_its_way());
}

static int start(void **state)
{
	fixture_start("tcp", true);
	return 0;
}

/* The request comes in by shm, at the listener that belongs to the user's. */
static int start_auto(void **state)
{
	fixture_start("auto", true);
	return 0;
}

static int stop(void **state)
{
	fixture_stop();
	return 0;
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
#define TEST_AUTO(test)                                       \
	{                                                     \
#test " (auto)", test, start_auto, stop, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_link_lives_on_the_lcore_it_is_placed_on),
		TEST(the_callback_that_places_is_told_the_peer),
		TEST(a_full_lane_delays_a_request),
		TEST(an_answer_is_not_lost_in_a_full_lane),
		TEST(a_link_placed_on_no_lcore_is_refused),
		TEST(a_lane_that_stays_full_refuses_in_the_end),
		TEST(an_lcore_that_never_comes_does_not_keep_the_peer_waiting),
		TEST(a_request_that_was_given_up_makes_no_link_when_its_lcore_comes),
		TEST(an_lcore_that_comes_too_late_refuses),
		TEST(a_timeout_may_be_never),
		TEST(a_timeout_may_be_never_in_front_of_a_full_lane),
		TEST(a_connect_may_wait_for_ever),
		TEST(a_request_is_taken_or_given_up_and_never_both),
		TEST(a_listener_may_be_closed_where_it_places_a_link),
		TEST(a_closed_listener_waits_for_its_requests),
		TEST(a_closed_listener_gives_its_port_back_in_time),
		TEST(a_closed_listener_answers_while_it_waits_for_its_requests),
		TEST(a_closed_listener_counts_once_and_until_it_is_gone),
		TEST(a_request_that_waits_hears_of_the_close),
		TEST(the_process_may_end_with_requests_on_their_way),
		TEST(the_process_may_end_with_requests_that_were_given_up),
		TEST(the_process_may_end_with_requests_that_wait),
		TEST(the_process_may_end_with_answers_on_their_way),
		TEST_AUTO(a_link_lives_on_the_lcore_it_is_placed_on),
		TEST_AUTO(a_closed_listener_counts_once_and_until_it_is_gone),
		TEST_AUTO(a_request_that_waits_hears_of_the_close),
		TEST_AUTO(the_process_may_end_with_requests_on_their_way),
		TEST_AUTO(the_process_may_end_with_requests_that_wait),
		TEST_AUTO(the_process_may_end_with_answers_on_their_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
