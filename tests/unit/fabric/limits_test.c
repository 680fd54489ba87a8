/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a listener for peers that it does not know, over links; admission_test.c has the
 * rules. */
#include "fixture.h"
#include "log_capture.h"
#include "rogue.h"

#include <sched.h>
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

static const struct bound {
	const char *provider;
	struct plx_admission limits;
	unsigned connects, opens, over_links, over_host;
	const char *log;
} bounds[] = {
	{"tcp",
	 {.links_max = 5, .links_per_host_max = PLX_NO_LIMIT},
	 8,
	 5,
	 3,
	 0,
	 "as many as it may (--links-max 5); "},
	{"shm",
	 {.links_max = 5, .links_per_host_max = PLX_NO_LIMIT},
	 8,
	 5,
	 3,
	 0,
	 "as many as it may (--links-max 5); "},
	{"tcp",
	 {.links_per_host_max = 3},
	 5,
	 3,
	 0,
	 2,
	 "127.0.0.1 has 3 links here, as many as it may (--links-per-host 3; "},
	{"shm", {.links_per_host_max = 3}, 5, 3, 0, 2, "(--links-per-host 3; "}, /* of one user */
	{"tcp",
	 {.links_max = PLX_NO_LIMIT,
	  .links_per_host_max = PLX_NO_LIMIT,
	  .accepts_per_s = PLX_NO_LIMIT,
	  .handshakes_max = PLX_NO_LIMIT},
	 CLIENTS - 1,
	 CLIENTS - 1,
	 0,
	 0,
	 NULL},
};

PLX_TEST(the_links_of_a_listener_and_of_an_address_or_user_are_bounded)
{
	for (const struct bound *bound = bounds; bound < bounds + PLX_ARRAY_LEN(bounds); bound++) {
		unsigned i = 0;

		start(bound->provider, &bound->limits);
		connect_and_settle(0, bound->connects);
		assert_int_equal(open_clients(), bound->opens);
		assert_int_equal(listener_stats_of(listener).refused_links, bound->over_links);
		assert_int_equal(listener_stats_of(listener).refused_host, bound->over_host);
		assert_int_equal(log_count(bound->log ?: "as many as it may") > 0,
				 bound->log != NULL);
		/* When one ends, another one fits. */
		while (clients[i].closed)
			i++;
		plx_link_abort(clients[i].link);
		pump_ms(50);
		connect_and_settle(bound->connects, bound->connects + 1);
		assert_int_equal(clients[bound->connects].opened, 1);
		fixture_stop();
	}
}

TEST(connections_above_the_rate_wait)
{
	uint64_t begin_ns;

	start("tcp", &(struct plx_admission){.accepts_per_s = 40}); /* 10 at once */
	begin_ns = plx_now_ns();
	connect_and_settle(0, 30);
	assert_int_equal(open_clients(), 30);
	/* 20 of them, 25 ms apart. */
	assert_true(plx_now_ns() - begin_ns >= 400 * PLX_NS_PER_MS);
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

/* Raw peers that never send a HELLO make room for others. */
static void the_oldest_handshake_makes_room_on(bool on_worker)
{
	struct rogue *rogues[6];

	start_on("tcp", &(struct plx_admission){.handshakes_max = 4}, on_worker);
	for (int i = 0; i < 6; i++)
		rogues[i] = rogue_connect(plx_listener_address(listener));
	connect_and_settle(0, 1);
	assert_int_equal(clients[0].opened, 1);
	assert_in_range(listener_stats_of(listener).evicted, 2, 3);
	for (int i = 0; i < 6; i++)
		rogue_close(rogues[i]);
	plx_link_abort(clients[0].link);
	pump_ms(50);
	if (on_worker)
		worker_stop(); /* it logs too */
	assert_in_range(log_count("127.0.0.1 closed before it was open"), 1, 3);
	assert_int_equal(log_count("dropped: as many"), 0);
}

TEST(a_new_connection_evicts_the_oldest_handshake)
{
	the_oldest_handshake_makes_room_on(false);
}

TEST(a_new_connection_evicts_the_oldest_handshake_of_another_lcore)
{
	the_oldest_handshake_makes_room_on(true);
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

static void send_first(struct plx_link *link, void *user)
{
	assert_works(plx_link_send(link, "first", 5));
}

/* The acceptor may send before the connector has read that it is connected: with many connections,
 * its messages are read first. */
static void first_messages_arrive_over(const char *provider)
{
	static const struct plx_link_events events = {.on_open = send_first};

	static const struct plx_listen_attr attr = {.link.events = &events,
						    .admission.accepts_per_s = PLX_NO_LIMIT};

	memset(clients, 0, sizeof(clients));
	fixture_start(provider, false);
	assert_works(plx_link_listen(here("0"), &attr, &listener));
	connect_and_settle(0, CLIENTS);
	assert_int_equal(open_clients(), CLIENTS);
	for (unsigned i = 0; i < CLIENTS; i++) {
		expect_soon(clients[i].messages);
		assert_memory_equal(clients[i].last, "first", 5);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		free(clients[i].last);
	fixture_stop();
}

PLX_TEST(a_message_sent_in_on_open_arrives_at_every_client)
{
	first_messages_arrive_over("tcp");
	first_messages_arrive_over("shm");
}

TEST(plx_no_limit_admits_any_number_of_silent_connections)
{
	enum { SOCKETS = 300 }; /* the default is 256 */
	int fds[SOCKETS];

	skip_if_provider_given();
	start("tcp", &(struct plx_admission){.handshakes_max = PLX_NO_LIMIT});
	for (int i = 0; i < SOCKETS; i++)
		fds[i] = rogue_socket(plx_listener_address(listener));
	connect_and_settle(0, 1); /* after all of them */
	assert_int_equal(clients[0].opened, 1);
	assert_int_equal(listener_stats_of(listener).evicted, 0);
	for (int i = 0; i < SOCKETS; i++)
		close(fds[i]);
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
