/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of links and listeners return values, over each provider. Both ends are on one lcore. */
#include "fixture.h"

#include <arpa/inet.h>
#include <stdio.h>

#define TEST(name) PLX_TEST_WITH(name, fixture_up, fixture_down)

TEST(a_listener_reports_its_port)
{
	const char *const addresses[] = {"127.0.0.1:0", "*:0", "localhost:0"};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(addresses); i++) {
		struct plx_listener *listener = fixture_listen(addresses[i], NULL);

		assert_int_not_equal(plx_listener_port(listener), 0);
		assert_int_equal(plx_listener_port(listener),
				 atoi(strrchr(plx_listener_address(listener), ':') + 1));
	}
	assert_int_equal(plx_listener_port(NULL), 0);
}

/* The text must agree. */
static void expect_peer(const struct plx_link *link)
{
	struct sockaddr_storage peer;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&peer;
	char text[64], host[INET_ADDRSTRLEN];

	assert_int_equal(plx_link_peer_sockaddr(link, &peer), 0);
	assert_int_equal(peer.ss_family, AF_INET);
	inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
	snprintf(text, sizeof(text), "%s:%u", host, ntohs(in->sin_port));
	assert_string_equal(text, plx_link_peer(link));
}

TEST(a_link_reports_its_peer_and_its_driver)
{
	fixture_pair(NULL);
	expect_peer(client.link);
	expect_peer(server.link);
	assert_string_equal(plx_link_driver(client.link), fixture_provider);
	assert_string_equal(plx_link_driver(server.link), fixture_provider);
}

TEST(an_ipv6_peer_has_an_ipv6_address)
{
	struct plx_listener *listener = fixture_listen("[::1]:0", NULL);
	struct sockaddr_storage peer;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&peer;

	fixture_connect(listener, NULL);
	assert_int_equal(plx_link_peer_sockaddr(client.link, &peer), 0);
	assert_int_equal(peer.ss_family, AF_INET6);
	assert_int_equal(ntohs(in6->sin6_port), plx_listener_port(listener));
	assert_true(IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr));
}

TEST(a_link_reports_its_reason_as_soon_as_it_ended)
{
	client_connect(plx_listener_address(fixture_listen("127.0.0.1:0", NULL)), NULL);
	assert_int_equal(plx_link_reason(client.link), PLX_LINK_REASON_NONE);
	assert_true(pump_until(&client.opened, 1, 3000));
	assert_int_equal(plx_link_reason(client.link), PLX_LINK_REASON_NONE);
	plx_link_abort(client.link);
	assert_int_equal(plx_link_send(client.link, "", 0), -ENOTCONN);
	assert_int_equal(plx_link_reason(client.link), PLX_LINK_ABORTED);
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason_asked, PLX_LINK_ABORTED);
}

static unsigned count_links(void)
{
	unsigned count = 0;

	PLX_LINK_FOREACH(link)
	count++;
	return count;
}

static bool is_listed(const struct plx_link *wanted)
{
	PLX_LINK_FOREACH(link)
	{
		if (link == wanted)
			return true;
	}
	return false;
}

PLX_TEST_WITH(the_links_of_an_lcore_can_be_walked, NULL, fixture_down)
{
	assert_int_equal(count_links(), 0);
	fixture_up(state);
	assert_int_equal(count_links(), 0);
	fixture_pair(NULL);
	assert_int_equal(count_links(), 2);
	assert_true(is_listed(client.link) && is_listed(server.link));
	PLX_LINK_FOREACH(link)
	plx_link_close(link);
	expect_both_end();
	assert_int_equal(count_links(), 0);
}

static void expect_unlisted(struct plx_link *link, enum plx_link_reason reason, const char *text,
			    void *user)
{
	assert_false(is_listed(link));
	side_events.on_close(link, reason, text, user);
}

TEST(links_may_close_and_connect_during_a_walk)
{
	static struct plx_link_events expecting;
	struct plx_link_attr attr = {.events = &expecting, .user = &client};
	struct plx_listener *listener = fixture_pair(NULL);
	struct plx_link *more = NULL;

	expecting = side_events;
	expecting.on_close = expect_unlisted;
	client.link = NULL;
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &more), 0);
	PLX_LINK_FOREACH(link)
	{
		struct plx_link *one;

		if (link != more)
			plx_link_abort(link);
		assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &one), 0);
		plx_link_abort(one);
	}
	assert_true(is_listed(more));
}

static void *count_elsewhere(void *count_out)
{
	*(unsigned *)count_out = count_links();
	return NULL;
}

TEST(a_thread_outside_lcores_has_no_links)
{
	unsigned count = 1;

	fixture_pair(NULL);
	run_in_thread(count_elsewhere, &count);
	assert_int_equal(count, 0);
}

FIXTURE_MAIN("tcp", "shm", "foreign")
