/* SPDX-License-Identifier: BSD-3-Clause */
/* A listener's limits for unknown peers, and refusals counted by cause. */
#include "fixture.h"
#include "log_capture.h"
#include "rogue.h"

#include <unistd.h>

#define CLIENTS 40

static struct side clients[CLIENTS];
static struct plx_listener *listener;

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
	const char *address = plx_listener_address(listener);

	for (unsigned i = first; i < end; i++) {
		struct plx_link_attr attr = {.events = &side_events, .user = &clients[i]};

		clients[i] = (struct side){.name = "client"};
		assert_works(plx_link_connect(address, &attr, &clients[i].link));
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

#define TEST(name) PLX_TEST_WITH(name, NULL, fixture_down)

static void links_have_a_bound_over(const char *provider)
{
	start(provider, &(struct plx_admission){.links_max = 5});
	connect_and_settle(0, 8);
	assert_int_equal(open_clients(), 5);
	assert_int_equal(listener_stats_of(listener).refused_links, 3);
	assert_int_equal(log_count("as many as it may (--links-max)"), 1); /* per second */
	/* When one ends, another one fits. */
	for (unsigned i = 0; i < 8; i++) {
		if (!clients[i].closed) {
			plx_link_abort(clients[i].link);
			break;
		}
	}
	pump_ms(50);
	connect_and_settle(8, 9);
	assert_int_equal(clients[8].opened, 1);
}

TEST(links_have_a_bound)
{
	links_have_a_bound_over("tcp");
	fixture_stop();
	links_have_a_bound_over("shm");
}

TEST(an_address_has_a_bound)
{
	start("tcp", &(struct plx_admission){.links_per_host_max = 3});
	connect_and_settle(0, 5);
	assert_int_equal(open_clients(), 3);
	assert_int_equal(listener_stats_of(listener).refused_host, 2);
	assert_int_equal(log_count("as many as it may (--links-per-host)"), 1);
}

/* Over shm the user counts, whatever address it connects to. */
TEST(a_user_has_a_bound)
{
	start("shm", &(struct plx_admission){.links_per_host_max = 3});
	connect_and_settle(0, 5);
	assert_int_equal(open_clients(), 3);
	assert_int_equal(listener_stats_of(listener).refused_host, 2);
}

TEST(connections_beyond_a_rate_wait)
{
	uint64_t begin_ns;

	start("tcp", &(struct plx_admission){.accepts_per_s = 40}); /* 10 at once */
	begin_ns = plx_now_ns();
	connect_and_settle(0, 30);
	assert_int_equal(open_clients(), 30);
	/* 20 of them, 25 ms apart. */
	assert_true(plx_now_ns() - begin_ns >= 400 * PLX_NS_PER_MS);
}

/* Connections that would wait longer than the open timeout are refused. */
TEST(connections_far_beyond_a_rate_are_refused)
{
	start("tcp", &(struct plx_admission){.accepts_per_s = 4}); /* 1 at once */
	connect_clients(0, 30);
	pump_ms(300);
	assert_in_range(listener_stats_of(listener).refused_rate, 1,
			10); /* 20 wait, for at most 5 s */
	assert_int_equal(log_count("more than 4 connections a second come"), 1);
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
	assert_in_range(log_count("a connection is ended before it is open"), 1, 3);
	assert_int_equal(log_count("dropped: as many"), 0);
}

TEST(the_oldest_handshake_makes_room)
{
	the_oldest_handshake_makes_room_on(false);
}

TEST(the_oldest_handshake_of_another_lcore_makes_room)
{
	the_oldest_handshake_makes_room_on(true);
}

/* They never become requests: the provider closes the oldest one. */
TEST(the_oldest_silent_connection_makes_room)
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
	assert_in_range(
		log_count(" did not complete the handshake: too many have said nothing yet"), 1, 3);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	pump_ms(50);
	assert_int_equal(listener_stats_of(listener).no_handshake,
			 6 - listener_stats_of(listener).evicted);
}

TEST(none_is_none)
{
	start("tcp", &(struct plx_admission){
			     .links_max = PLX_NO_LIMIT,
			     .links_per_host_max = PLX_NO_LIMIT,
			     .accepts_per_s = PLX_NO_LIMIT,
			     .handshakes_max = PLX_NO_LIMIT,
		     });
	connect_and_settle(0, CLIENTS);
	assert_int_equal(open_clients(), CLIENTS);
	assert_int_equal(listener_stats_of(listener).refused, 0);
}

TEST(none_is_none_for_silent_connections)
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

PLX_TEST_MAIN()
