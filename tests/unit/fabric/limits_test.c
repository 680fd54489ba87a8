/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a listener for peers that it does not know, over links; admission_test.c has the
 * rules. */
#include "count.h"
#include "fixture.h"
#include "log_capture.h"
#include "rogue.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

static struct plx_listener *listener;

#define TEST(name) PLX_TEST_WITH(name, NULL, fixture_down)

#define CLIENTS    40

static struct side clients[CLIENTS];

static void start_on(const char *provider, const struct plx_admission *limits, bool on_worker)
{
	struct plx_listen_attr attr = {
		.link.hello_timeout_ns = 60 * PLX_NS_PER_S,
		.admission = *limits,
		.spread = on_worker ? PLX_SPREAD_CALLBACK : PLX_SPREAD_NONE,
		.place = place_on_lcore_1,
	};

	memset(clients, 0, sizeof(clients));
	fixture_start(provider, on_worker);
	log_capture();
	if (on_worker)
		worker_start();
	listener = fixture_listen_as(here("0"), attr);
}

static void start(const char *provider, const struct plx_admission *limits)
{
	start_on(provider, limits, false);
}

static void connect_clients(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++) {
		clients[i] = (struct side){.name = "client"};
		side_connect(&clients[i], plx_listener_address(listener), NULL);
	}
}

/* Until each is open or has ended. */
static void connect_and_settle(unsigned first, unsigned end)
{
	connect_clients(first, end);
	for (unsigned i = first; i < end; i++)
		expect_soon(clients[i].opened || clients[i].closed);
	pump_ms(20);
}

static unsigned open_clients(void)
{
	unsigned open = 0;

	for (unsigned i = 0; i < CLIENTS; i++)
		open += clients[i].opened && !clients[i].closed;
	return open;
}

/* admission_test.c has the rules. */
PLX_TEST(the_links_of_a_listener_and_of_an_address_or_user_are_bounded)
{
	static const struct plx_admission in_all = {.links_max = 5,
						    .links_per_host_max = PLX_NO_LIMIT},
					  per_host = {.links_per_host_max = 3};
	static const char *const providers[] = {"tcp", "shm"};

	for (unsigned k = 0; k < 4; k++) {
		const struct plx_admission *limits = k % 2 ? &per_host : &in_all;
		unsigned may_open = k % 2 ? 3 : 5, i = 0;

		start(providers[k / 2], limits);
		connect_and_settle(0, 8);
		assert_int_equal(open_clients(), may_open);
		assert_int_equal(listener_stats_of(listener).refused_links, k % 2 ? 0 : 3);
		assert_int_equal(listener_stats_of(listener).refused_host, k % 2 ? 5 : 0);
		assert_true(log_count(k % 2 ? "as many as it may (--links-per-host 3; "
					    : "as many as it may (--links-max 5); ") > 0);
		/* When one ends, another one fits. */
		while (clients[i].closed)
			i++;
		plx_link_abort(clients[i].link);
		pump_ms(50);
		connect_and_settle(8, 9);
		assert_int_equal(clients[8].opened, 1);
		fixture_stop();
	}
}

/* At most as many wait as have their turn within half of the open timeout. */
TEST(connections_far_above_the_rate_are_refused)
{
	start("tcp", &(struct plx_admission){.accepts_per_s = 4}); /* 1 at once */
	connect_clients(0, 30);
	pump_ms(300);
	assert_in_range(listener_stats_of(listener).refused_rate, 15, 18); /* 11 wait */
	assert_int_equal(log_count("connections wait for their turn already (--accepts-per-s 4); "
				   "127.0.0.1 has most of them"),
			 1);
}

/* Raw peers that never send a HELLO make room for others, on the listener's lcore or another. */
PLX_TEST(a_new_connection_evicts_the_oldest_handshake)
{
	for (int on_worker = 0; on_worker < 2; on_worker++) {
		start_on("tcp", &(struct plx_admission){.handshakes_max = 4}, on_worker);
		for (int i = 0; i < 6; i++)
			rogue_connect(plx_listener_address(listener));
		connect_and_settle(0, 1);
		assert_int_equal(clients[0].opened, 1);
		assert_in_range(listener_stats_of(listener).evicted, 2, 3);
		if (on_worker)
			worker_stop(); /* it logs too */
		assert_in_range(log_count("127.0.0.1 closed before it was open"), 1, 3);
		assert_int_equal(log_count("dropped: as many"), 0);
		fixture_stop();
	}
}

/* They never become requests: the provider closes the oldest one. */
TEST(a_new_connection_evicts_the_oldest_silent_one)
{
	int fds[6];

	skip_if_provider_given();
	start("tcp", &(struct plx_admission){.handshakes_max = 4});
	for (int i = 0; i < 6; i++) {
		fds[i] = rogue_socket(plx_listener_address(listener));
		pump_ms(5);
	}
	connect_and_settle(0, 1);
	assert_int_equal(clients[0].opened, 1);
	assert_in_range(listener_stats_of(listener).evicted, 2, 3);
	assert_int_equal(listener_stats_of(listener).no_handshake, 0);
	assert_int_equal(listener_stats_of(listener).requests, 1);
	assert_in_range(log_count("127.0.0.1 closed before it was open: 4 connections are "
				  "being opened"),
			1, 3);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	pump_ms(50);
	assert_int_equal(listener_stats_of(listener).no_handshake,
			 6 - listener_stats_of(listener).evicted);
}

/* A peer connects while this process can open no descriptor, until the log says that. */
static void connect_without_descriptors(const char *text)
{
	int fd = rogue_socket(plx_listener_address(listener)), lowest = dup(fd);
	struct rlimit before, none;

	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){(rlim_t)lowest, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect_soon(log_count(text) == 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(fd);
}

TEST(without_descriptors_connections_wait_or_the_oldest_silent_one_is_closed)
{
	int silent, before;

	skip_if_provider_given();
	start("tcp", &(struct plx_admission){0});
	connect_without_descriptors(
		"a connection cannot be accepted, as this process has used up its");
	before = count_descriptors();
	silent = rogue_socket(plx_listener_address(listener));
	expect_soon(count_descriptors() == before + 2);
	connect_without_descriptors("closed before it is open: this process has used up its");
	assert_int_equal(listener_stats_of(listener).evicted, 1);
	close(silent);
}

/* Of requests that go to another lcore ----------------------------------------------------------
 */

PLX_FIXTURE(start_two, 0, fixture_start("tcp", true))
PLX_FIXTURE(start_two_foreign, 0, fixture_start("foreign", true))

#define WITH_TWO(test) PLX_TEST_WITH(test, start_two, fixture_down)

/* A link on lcore 1 makes room. Its listener closes before lcore 1's answer is read. */
WITH_TWO(an_eviction_may_outlive_its_listener_and_links)
{
	struct plx_listen_attr attr = {.link.hello_timeout_ns = PLX_NEVER,
				       .spread = PLX_SPREAD_CALLBACK,
				       .place = place_on_lcore_1,
				       .admission.handshakes_max = 1};
	struct rogue *silent;
	int newcomer;

	skip_if_provider_given(); /* it needs a connection before its request */
	listener = fixture_listen_as(here("0"), attr);
	worker_start();
	silent = rogue_connect(plx_listener_address(listener));
	newcomer = rogue_socket(plx_listener_address(listener));
	while (listener_stats_of(listener).evicted == 0)
		plx_loop_turn();
	wait_until(listener_stats_of(listener).failed == 1);
	worker_end_turn();
	plx_listener_close(listener);
	pump_ms(20);
	close(newcomer);
	rogue_close(silent);
	worker_stop();
}

static struct side first;

/* Two requests for one place: `client` takes that of `first`. Connections of one address give way
 * after 100 ms. */
static void evict_first(struct plx_link_attr link)
{
	struct plx_listen_attr attr = {.link = link,
				       .spread = PLX_SPREAD_CALLBACK,
				       .place = place_on_lcore_1,
				       .admission.handshakes_max = 1};

	first = (struct side){.name = "first"};
	attr.link.user = &server;
	assert_works(plx_link_listen(here("0"), &attr, &listener));
	if (link.events != &side_events)
		worker_start();
	side_connect(&first, plx_listener_address(listener), NULL);
	expect_soon(has_request_on_its_way(listener));
	client_connect(plx_listener_address(listener), NULL);
	expect_end(&first, PLX_LINK_REFUSED);
	assert_has(first.text, "come again in");
}

/* The lcore that it was placed on is stuck. */
WITH_TWO(a_request_in_a_lane_makes_room_for_another_one)
{
	evict_first((struct plx_link_attr){.events = &side_events});
	worker_start();
	expect_open();
	assert_int_equal(listener_stats_of(listener).evicted, 1);
	assert_int_equal(listener_stats_of(listener).refused, 1);
	worker_stop();
}
PLX_TEST_AGAIN(a_request_in_a_lane_makes_room_for_another_one, start_two_foreign, fixture_down)

static bool waits_for_eviction;

/* Takes until the listener's lcore has evicted its request. */
static const char *hear_late(struct plx_link *link, void *user)
{
	while (waits_for_eviction && listener_stats_of(listener).evicted == 0)
		sched_yield();
	waits_for_eviction = false;
	return NULL;
}

/* The lcore that it was placed on has taken it, and opens it at that moment. */
WITH_TWO(a_request_that_is_evicted_while_it_is_taken_may_come_again)
{
	static struct plx_link_events events;

	skip_if_provider_given(); /* its HELLO may come later */
	waits_for_eviction = true;
	events = side_events;
	events.on_hello = hear_late;
	evict_first((struct plx_link_attr){.events = &events});
	expect_open();
	assert_int_equal(listener_stats_of(listener).refused, 1);
	assert_int_equal(listener_stats_of(listener).failed, 0);
	worker_stop();
}

PLX_TEST_MAIN()
