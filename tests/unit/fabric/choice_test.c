/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider of a link when the library chooses, and listeners that offer several providers and
 * still act as one. */
#include "../foreign_socket.h"
#include "fixture.h"

#include "shm.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

static const struct plx_link_attr on_tcp = {.provider = "tcp"};
static const struct plx_link_attr on_shm = {.provider = "shm"};

static int start(void **state)
{
	fixture_start("auto", false);
	return 0;
}

static int stop(void **state)
{
	fixture_stop();
	return 0;
}

/* Reset the sides, for another connection. */
static void fresh_sides(void)
{
	struct side *sides[] = {&client, &server};

	for (size_t i = 0; i < PLX_ARRAY_LEN(sides); i++) {
		if (sides[i]->link)
			plx_link_abort(sides[i]->link);
		pump_ms(1);
		free(sides[i]->last);
		memset(sides[i], 0, sizeof(*sides[i]));
	}
}

static bool is_by(const struct plx_link *link, const char *driver)
{
	return strcmp(plx_link_driver(link), driver) == 0;
}

/* Both sides must use that driver, and messages pass. */
static void expect_driver(const char *driver)
{
	assert_true(is_by(client.link, driver));
	assert_true(is_by(server.link, driver));
	assert_int_equal(plx_link_send(client.link, "ping", 4), 0);
	assert_true(pump_until(&server.messages, 1, 2000));
	assert_int_equal(server.last_len, 4);
}

static void expect_choice(const char *part)
{
	if (!strstr(plx_link_choice(client.link), part))
		fail_msg("'%s' lacks '%s'", plx_link_choice(client.link), part);
}

/* Connect to the listener's port on another name of this host. */
static void connect_as(const char *host, const struct plx_listener *listener)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};
	char address[PLX_ADDRESS_MAX];

	snprintf(address, sizeof(address), "%s%s", host,
		 strrchr(plx_listener_address(listener), ':'));
	if (plx_link_connect(address, &attr, &client.link) != 0)
		fail_msg("%s: %s", address, plx_error());
	if (!pump_until(&client.opened, 1, 3000) || !pump_until(&server.opened, 1, 3000))
		fail_msg("%s: client %s, server %s", address, client.text, server.text);
}

static int start_with_worker(void **state)
{
	fixture_start(NULL, true); /* same as auto */
	worker_start();
	return 0;
}

static int stop_with_worker(void **state)
{
	worker_stop();
	fixture_stop();
	return 0;
}

#define TEST(test)        PLX_TEST_WITH(test, start, stop)
#define WITH_WORKER(test) PLX_TEST_WITH(test, start_with_worker, stop_with_worker)

/* Choosing ------------------------------------------------------------------------------------- */

TEST(a_listener_of_this_host_is_met_in_memory)
{
	fixture_connect(fixture_listen("127.0.0.1:0", NULL), NULL);
	expect_driver("shm");
	expect_choice("on this host and offers it");
	assert_string_equal(plx_link_choice(server.link), "the peer chose it");
}

TEST(a_listener_on_tcp_alone_is_met_there)
{
	fixture_connect(fixture_listen("127.0.0.1:0", &on_tcp), NULL);
	expect_driver("tcp");
	expect_choice("on this host, but offers nothing quicker");
}

TEST(what_is_asked_for_is_taken)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	fixture_connect(listener, &on_tcp);
	expect_driver("tcp");
	expect_choice("asked for");
	fresh_sides();
	fixture_connect(listener, &on_shm);
	expect_driver("shm");
	expect_choice("asked for");
}

TEST(what_is_asked_for_and_not_offered_is_refused)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", &on_tcp);
	struct plx_link_attr attr = on_shm;

	attr.events = &side_events;
	attr.user = &client;
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &client.link), 0);
	assert_int_equal(client.closed, 0); /* from the loop, not from the call */
	assert_true(pump_until(&client.closed, 1, 2000));
	assert_int_equal(client.reason, PLX_LINK_REFUSED);
	assert_non_null(strstr(client.text, plx_listener_address(listener)));
	assert_int_equal(client.opened, 0);
}

TEST(nobody_there_is_refused_by_the_last_choice)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);
	struct plx_link_attr attr = {.events = &side_events, .user = &client};
	char address[PLX_ADDRESS_MAX];

	strcpy(address, plx_listener_address(listener));
	plx_listener_close(listener);
	assert_int_equal(plx_link_connect(address, &attr, &client.link), 0);
	assert_true(is_by(client.link, "tcp"));
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_REFUSED);
	assert_int_equal(client.closed, 1);
}

TEST(another_host_is_met_on_tcp)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};

	if (plx_link_connect("192.0.2.1:7000", &attr, &client.link) != 0) {
		print_message("skipped: no route to another host (%s)\n", plx_error());
		skip();
	}
	assert_true(is_by(client.link, "tcp"));
	expect_choice("on another host");
	plx_link_abort(client.link);
	assert_true(pump_until(&client.closed, 1, 2000));
}

/* Addresses ------------------------------------------------------------------------------------ */

TEST(every_address_of_a_wildcard_is_met_in_memory)
{
	static const char *const hosts[] = {"127.0.0.1", "[::1]", "localhost", "127.1.2.3"};
	struct plx_listener *listener = fixture_listen("*:0", NULL);

	for (size_t i = 0; i < PLX_ARRAY_LEN(hosts); i++) {
		connect_as(hosts[i], listener);
		expect_driver("shm");
		fresh_sides();
	}
}

TEST(ipv6_is_met_in_memory)
{
	struct plx_listener *listener = fixture_listen("[::1]:0", NULL);

	fixture_connect(listener, NULL);
	expect_driver("shm");
	fresh_sides();
	fixture_connect(listener, &on_tcp);
	expect_driver("tcp");
}

TEST(a_host_name_is_met_in_memory)
{
	struct plx_listener *listener = fixture_listen("localhost:0", NULL);

	connect_as("localhost", listener);
	expect_driver("shm");
}

/* One listener --------------------------------------------------------------------------------- */

TEST(both_ways_in_count)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);
	struct plx_listener_stats stats;

	fixture_connect(listener, NULL);
	expect_driver("shm");
	fresh_sides();
	fixture_connect(listener, &on_tcp);
	expect_driver("tcp");
	plx_listener_stats(listener, &stats);
	assert_int_equal(stats.requests, 2);
	assert_int_equal(stats.opened, 2);
	assert_int_equal(stats.refused, 0);
	assert_int_equal(stats.failed, 0);
}

TEST(it_counts_as_one)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	assert_int_equal(plx_fabric_open_count(), 1);
	fixture_connect(listener, NULL);
	assert_int_equal(plx_fabric_open_count(), 3);
	plx_listener_close(listener);
	assert_int_equal(plx_fabric_open_count(), 2);
	plx_link_abort(client.link);
	assert_true(pump_until(&server.closed, 1, 2000));
	for (int i = 0; i < 2000 && plx_fabric_open_count(); i++)
		pump_ms(1);
	assert_int_equal(plx_fabric_open_count(), 0);
}

TEST(a_port_can_be_listened_on_again)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL), *second;
	struct plx_listen_attr attr = {.link = {.events = &side_events}};
	char address[PLX_ADDRESS_MAX];

	strcpy(address, plx_listener_address(listener));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(plx_link_listen(address, &attr, &second), -EADDRINUSE);
		fixture_connect(listener, NULL);
		expect_driver("shm");
		fresh_sides();
		plx_listener_close(listener);
		listener = fixture_listen(address, NULL);
	}
}

/* A process that holds the socket's name blocks shared memory at that address, and nothing else. */
TEST(a_name_that_is_taken_leaves_tcp)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", &on_tcp);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct plx_unix_name names[3];
	char address[PLX_ADDRESS_MAX];

	strcpy(address, plx_listener_address(listener));
	in.sin_port = htons((uint16_t)plx_listener_port(listener));
	plx_listener_close(listener);
	shm_address_names((struct sockaddr *)&in, names);
	assert_int_equal(bind(fd, (struct sockaddr *)&names[0].address, names[0].length), 0);
	listener = fixture_listen(address, NULL);
	fixture_connect(listener, NULL);
	expect_driver("tcp");
	expect_choice("offers nothing quicker");
	assert_int_equal(plx_fabric_open_count(), 3);
	close(fd);
}

/* Names held by other users, listening, full or not listening, do not separate processes of this
 * user. */
TEST(a_name_that_another_user_took_does_no_harm)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct plx_unix_name names[3];

	if (geteuid() != 0)
		skip(); /* to be another user */
	for (int listens = 0; listens < 2; listens++) {
		struct plx_listen_attr shm_alone = {
			.link = {.provider = "shm", .events = &side_events}};
		struct plx_listener *listener = fixture_listen("127.0.0.1:0", &on_tcp), *second;
		char address[PLX_ADDRESS_MAX];
		struct foreign other;

		strcpy(address, plx_listener_address(listener));
		in.sin_port = htons((uint16_t)plx_listener_port(listener));
		plx_listener_close(listener);
		shm_address_names((struct sockaddr *)&in, names);
		other = foreign_bind(&names[0].address, names[0].length, SOCK_SEQPACKET, listens);
		listener = fixture_listen(address, NULL);
		fixture_connect(listener, NULL);
		expect_driver("shm");
		fresh_sides();
		foreign_end(&other);
		/* Its name is free now, but the address is still taken. */
		assert_int_equal(plx_link_listen(address, &shm_alone, &second), -EADDRINUSE);
		fixture_connect(listener, NULL);
		expect_driver("shm");
		fresh_sides();
		plx_listener_close(listener);
	}
}

/* Spreading ------------------------------------------------------------------------------------ */

static struct {
	struct plx_listener *listener; /* passed to the callback */
	unsigned calls;
	bool closes;
} placed;

static uint32_t place_here(struct plx_listener *listener, const struct sockaddr *peer, void *arg)
{
	placed.listener = listener;
	placed.calls++;
	assert_ptr_equal(arg, &placed);
	assert_int_equal(((const struct sockaddr_in *)peer)->sin_addr.s_addr,
			 htonl(INADDR_LOOPBACK));
	if (placed.closes)
		plx_listener_close(listener);
	return 0;
}

static struct plx_listener *listen_placed(bool closes)
{
	struct plx_listen_attr attr = {
		.link = {.events = &side_events, .user = &server},
		.spread = PLX_SPREAD_CALLBACK,
		.place = place_here,
		.place_arg = &placed,
	};
	struct plx_listener *listener;

	memset(&placed, 0, sizeof(placed));
	placed.closes = closes;
	assert_int_equal(plx_link_listen("127.0.0.1:0", &attr, &listener), 0);
	return listener;
}

TEST(a_callback_gets_the_listener_that_the_user_has)
{
	static const struct plx_link_attr *const ways[] = {&on_shm, &on_tcp, &on_shm};
	struct plx_listener *listener = listen_placed(false);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(ways); i++) {
		placed.listener = NULL;
		fixture_connect(listener, ways[i]);
		assert_ptr_equal(placed.listener, listener);
		assert_int_equal(placed.calls, i + 1);
		fresh_sides();
	}
}

TEST(a_callback_may_close_it_whichever_way_the_peer_came)
{
	static const struct plx_link_attr *const ways[] = {&on_shm, &on_tcp};

	for (size_t i = 0; i < PLX_ARRAY_LEN(ways); i++) {
		struct plx_listener *listener = listen_placed(true);
		struct plx_link_attr attr = *ways[i];

		attr.events = &side_events;
		attr.user = &client;
		assert_int_equal(
			plx_link_connect(plx_listener_address(listener), &attr, &client.link), 0);
		assert_true(pump_until(&client.closed, 1, 2000));
		assert_int_equal(placed.calls, 1);
		assert_int_equal(server.opened, 0);
		fresh_sides();
		for (int k = 0; k < 2000 && plx_fabric_open_count(); k++)
			pump_ms(1);
		assert_int_equal(plx_fabric_open_count(), 0);
	}
}

#define LINKS 8

static uint32_t opened_on[LINKS]; /* lcores in the order in which links opened */
static _Atomic unsigned opened_count, connected_count;

static void on_server_open(struct plx_link *link, void *user)
{
	opened_on[opened_count] = plx_lcore_id(); /* one link at a time */
	opened_count++;
}

static void on_client_open(struct plx_link *link, void *user)
{
	connected_count++;
}

static const struct plx_link_events server_events = {.on_open = on_server_open};
static const struct plx_link_events client_events = {.on_open = on_client_open};

WITH_WORKER(turns_are_taken_over_both_ways_together)
{
	struct plx_listen_attr listen = {.link.events = &server_events,
					 .spread = PLX_SPREAD_ROUND_ROBIN};
	struct plx_listener *listener;
	struct plx_link *link;

	opened_count = connected_count = 0;
	assert_int_equal(plx_link_listen("127.0.0.1:0", &listen, &listener), 0);
	for (unsigned i = 0; i < LINKS; i++) {
		struct plx_link_attr attr = {.events = &client_events,
					     .provider = i % 2 ? "tcp" : "shm"};

		assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &link), 0);
		assert_true(pump_until(&connected_count, i + 1, 3000));
		assert_true(pump_until(&opened_count, i + 1, 3000));
		assert_int_equal(opened_on[i], i % 2);
	}
}

PLX_TEST_MAIN()
