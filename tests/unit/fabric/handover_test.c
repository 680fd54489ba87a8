/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests handed to another lcore, stopped anywhere on their way: those that arrive,
 * those that do not in time, and those in flight when their listener closes or the process ends. */
#include "fixture.h"
#include "log_capture.h"

static struct plx_listener *listener; /* created by listen_placed */

/* Listen on a free port; `place` selects the lcore of a link, `server` is its end there. With
 * place_on_lcore_1 the request goes to lcore 1, which runs no loop before worker_start.
 * timeout_ns: of a request; 0 is the default. */
static void listen_placed(uint32_t (*place)(struct plx_listener *, const struct sockaddr *, void *),
			  uint64_t timeout_ns)
{
	struct plx_listen_attr attr = {.link.connect_timeout_ns = timeout_ns,
				       .spread = PLX_SPREAD_CALLBACK,
				       .place = place};

	listener = fixture_listen_as(here("0"), attr);
}

/* Connect `client` to the listener without waiting for it. */
static void connect_only(void)
{
	client_connect(plx_listener_address(listener), NULL);
}

static bool on_its_way(void)
{
	return has_request_on_its_way(listener);
}

/* Connect to a listener on lcore 1 until the request is on its way there. */
static void send_request(uint64_t timeout_ns)
{
	listen_placed(place_on_lcore_1, timeout_ns);
	connect_only();
	expect_soon(on_its_way());
}

/* Turn the loop for a while; the request may not arrive. */
static void expect_still_on_its_way(void)
{
	pump_ms(20);
	assert_true(on_its_way());
	assert_int_equal(client.closed, 0);
}

/* The client must be refused, and the listener count one such request. */
static void expect_refused(void)
{
	expect_end(&client, PLX_LINK_REFUSED);
	assert_int_equal(listener_stats_of(listener).refused, 1);
	assert_int_equal(listener_stats_of(listener).opened, 0);
}

/* Close the client's end; both ends must close. */
static void close_in_order(void)
{
	assert_int_equal(plx_link_close(client.link), 0);
	expect_end(&client, PLX_LINK_CLOSED);
	expect_both_end();
}

/* Lcore 1 finally runs: the link opens there, and closes in order. */
static void serve_and_close(void)
{
	worker_start();
	expect_open();
	close_in_order();
	worker_stop();
}

static void nothing(void *arg)
{
}

/* Fill the lane from this lcore to another one. */
static void fill_lane_to(uint32_t id)
{
	while (plx_lcore_send(id, nothing, NULL) == 0)
		;
}

static void send_request_to_full_lane(uint64_t timeout_ns)
{
	fill_lane_to(1);
	send_request(timeout_ns);
}

/* For plx_lcore_launch: fill the lane back to lcore 0, and run the loop. */
static int block_then_run(void *arg)
{
	fill_lane_to(0);
	return plx_loop_run();
}

PLX_FIXTURE(start_tcp, 0, fixture_start("tcp", true))
PLX_FIXTURE(start_auto, 0, fixture_start("auto", true))
PLX_FIXTURE(start_foreign, 0, fixture_start("foreign", true))

#define TEST(test) PLX_TEST_WITH(test, start_tcp, fixture_down)

/* Again with provider auto: the request arrives over shm, at the listener that belongs to the
 * user's. */
#define TEST_AUTO(test) PLX_TEST_AGAIN(test, start_auto, fixture_down)

/* Again with a provider of libfabric's: rejections go back to the listener's lcore. */
#define TEST_FOREIGN(test) PLX_TEST_AGAIN(test, start_foreign, fixture_down)

/* Requests that arrive ------------------------------------------------------------------------- */

TEST(a_link_runs_on_the_lcore_where_it_is_placed)
{
	listen_placed(place_on_lcore_1, 0);
	server.echo = true;
	worker_start();
	fixture_connect(listener, NULL);
	expect_echo("where?", 6);
	assert_int_equal(server.lcore, 1);
	assert_int_equal(listener_stats_of(listener).requests, 1);
	assert_int_equal(listener_stats_of(listener).opened, 1);
	assert_false(on_its_way());
	close_in_order();
	worker_stop();
}
TEST_FOREIGN(a_link_runs_on_the_lcore_where_it_is_placed)

TEST(a_request_waits_for_a_full_lane)
{
	send_request_to_full_lane(0);
	expect_still_on_its_way();
	serve_and_close();
}

TEST(a_request_is_accepted_although_the_lane_back_is_full)
{
	send_request(0);
	assert_int_equal(plx_lcore_launch(1, block_then_run, NULL), 0);
	expect_open();
	close_in_order();
	worker_stop();
}

static uint32_t on_no_lcore(struct plx_listener *at, const struct sockaddr *peer, void *arg)
{
	return 200;
}

TEST(a_link_placed_on_an_unknown_lcore_is_refused)
{
	listen_placed(on_no_lcore, 0);
	connect_only();
	expect_refused();
}
TEST_FOREIGN(a_link_placed_on_an_unknown_lcore_is_refused)

/* Requests that do not arrive in time ---------------------------------------------------------- */

static void is_refused_after_a_timeout(bool full_lane)
{
	uint64_t start_ns = plx_now_ns();

	listen_placed(place_on_lcore_1, 50 * PLX_NS_PER_MS);
	if (full_lane)
		fill_lane_to(1);
	connect_only();
	expect_refused();
	assert_true(plx_now_ns() - start_ns >= 50 * PLX_NS_PER_MS);
	worker_start();
	worker_call(nothing, NULL); /* follows it in the lane */
	expect_refused();           /* once: it makes no link when its lcore resumes */
	assert_int_equal(server.opened, 0);
	worker_stop();
}

TEST(a_request_to_a_lane_that_stays_full_is_refused_after_a_timeout)
{
	is_refused_after_a_timeout(true);
}

TEST(a_request_to_a_stuck_lcore_is_refused_after_a_timeout)
{
	is_refused_after_a_timeout(false);
}
TEST_FOREIGN(a_request_to_a_stuck_lcore_is_refused_after_a_timeout)

/* As after SIGSTOP: the request is older than the peer's patience. */
PLX_TEST_WITH(a_peer_that_gave_up_before_it_was_accepted_is_logged, start_auto, fixture_down)
{
	skip_if_provider_given();
	send_request(0);
	plx_link_abort(client.link);
	expect_end(&client, PLX_LINK_ABORTED);
	log_capture();
	worker_start();
	expect_soon(listener_stats_of(listener).failed == 1);
	worker_stop();
	plx_log_set_sink(NULL, NULL);
	assert_has(log_text, "it gave up before this process accepted it");
}

/* Both lcores are late: the target refuses, since the listener's cannot give up. The timeout is
 * long enough for a busy host to see the request first. */
static void resume_too_late(void)
{
	send_request(500 * PLX_NS_PER_MS);
	stand_still(550 * PLX_NS_PER_MS);
	assert_int_equal(plx_lcore_launch(1, block_then_run, NULL), 0);
	wait_until(plx_loop_is_running(1));
	wait_until(listener_stats_of(listener).refused == 1);
}

TEST(a_refusal_is_not_lost_if_the_lane_back_is_full)
{
	resume_too_late();
	expect_refused();
	worker_stop();
}
TEST_FOREIGN(a_refusal_is_not_lost_if_the_lane_back_is_full)

/* Both at the same time ----------------------------------------------------------------------- */

#define RACES           100
#define RACE_TIMEOUT_NS ((is_provider_given() ? 50 : 2) * PLX_NS_PER_MS)

static void be_busy(const void *ns, size_t size)
{
	stand_still(*(const uint64_t *)ns);
}

static uint64_t ended(struct plx_listener_stats *stats)
{
	plx_listener_stats_read(listener, stats);
	return stats->opened + stats->refused + stats->failed;
}

/* Lcore 1 reads the request after being busy: before the listener's lcore gives up, after it, or at
 * that moment. */
static void race(uint64_t busy_ns)
{
	struct plx_listener_stats stats;
	uint64_t before = ended(&stats), opened = stats.opened;

	client.closed = client.opened = server.closed = server.opened = 0;
	assert_int_equal(PLX_LCORE_SEND_VALUE(1, be_busy, busy_ns), 0);
	connect_only();
	expect_soon(ended(&stats) > before);
	assert_int_equal(ended(&stats), before + 1);
	if (stats.opened > opened) {
		plx_link_abort(client.link);
		assert_true(pump_until(&server.closed, 1, 3000));
	}
	assert_true(pump_until(&client.closed, 1, 3000));
	worker_call(nothing, NULL);
}

TEST(a_request_is_either_taken_or_abandoned_never_both)
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

/* Listeners that close ------------------------------------------------------------------------- */

/* Its port is free at once. */
TEST(a_request_on_its_way_outlives_its_listener)
{
	char address[PLX_ADDRESS_MAX];

	skip_if_provider_given(); /* it may need its listener */
	send_request(0);
	strcpy(address, plx_listener_address(listener));
	plx_listener_close(listener);
	listener = fixture_listen(address, NULL);
	serve_and_close();
	assert_int_equal(listener_stats_of(listener).requests, 0);
}
TEST_AUTO(a_request_on_its_way_outlives_its_listener)

/* At once, if it needs its listener. */
TEST(a_request_to_a_stuck_lcore_is_refused_in_time_after_its_listener_has_closed)
{
	send_request(50 * PLX_NS_PER_MS);
	plx_listener_close(listener);
	expect_end(&client, PLX_LINK_REFUSED);
	worker_start();
	worker_call(nothing, NULL);
	assert_int_equal(server.opened, 0);
	worker_stop();
}
TEST_FOREIGN(a_request_to_a_stuck_lcore_is_refused_in_time_after_its_listener_has_closed)
TEST(the_deadline_of_a_request_may_pass_after_its_link_and_listener)
{
	unsigned limit_ms = is_provider_given() ? 3000 : 100; /* in a guest a packet may be lost */

	send_request(limit_ms * PLX_NS_PER_MS);
	serve_and_close();
	plx_listener_close(listener);
	pump_ms(limit_ms + 20);
}

TEST(closing_a_listener_refuses_the_requests_queued_for_a_full_lane)
{
	send_request_to_full_lane(0);
	plx_listener_close(listener);
	expect_end(&client, PLX_LINK_REFUSED);
}
/* The fixture checks memory and descriptors. */
TEST(the_process_may_end_with_requests_in_flight)
{
	send_request(0);
}
TEST_FOREIGN(the_process_may_end_with_requests_in_flight)
TEST(the_process_may_end_with_refusals_in_flight)
{
	resume_too_late();
	worker_stop();
}
TEST_FOREIGN(the_process_may_end_with_refusals_in_flight)

TEST(the_process_may_end_with_requests_queued_for_a_full_lane)
{
	send_request_to_full_lane(PLX_NEVER);
}
TEST_FOREIGN(the_process_may_end_with_requests_queued_for_a_full_lane)

PLX_TEST_MAIN()
