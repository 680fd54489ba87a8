/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lcore gets a link: the hash alone, and listeners on two lcores. */
#include "fabric_listen.h"
#include "fixture.h"

#include <arpa/inet.h>

/* The hash ------------------------------------------------------------------------------------ */

static struct sockaddr_in ipv4(uint32_t host, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(host), .sin_port = htons(port)};
}

/* 10.0.0.0 and its neighbours: hosts of one site differ in few bits. */
static uint32_t best_of(uint32_t host_index, uint32_t lcore_count)
{
	struct sockaddr_in in = ipv4((UINT32_C(10) << 24) + host_index, 7000);
	const struct sockaddr *peer = (const struct sockaddr *)&in;
	uint32_t best = 0;

	for (uint32_t id = 1; id < lcore_count; id++) {
		if (spread_weight(peer, id) > spread_weight(peer, best))
			best = id;
	}
	return best;
}

PLX_TEST(hosts_are_spread_evenly_and_an_added_lcore_moves_no_other_host)
{
	unsigned hosts[5] = {0}, moved = 0;

	for (uint32_t i = 0; i < 4000; i++) {
		uint32_t before = best_of(i, 4), after = best_of(i, 5);

		hosts[before]++;
		if (before == after)
			continue;
		assert_int_equal(after, 4);
		moved++;
	}
	for (int i = 0; i < 4; i++)
		assert_in_range(hosts[i], 900, 1100); /* 3.6 standard deviations */
	assert_in_range(moved, 700, 900);             /* one in five is 800 */
}

PLX_TEST(the_hash_of_a_host_ignores_the_port)
{
	struct sockaddr_in a = ipv4(0xc0000201, 7000), b = ipv4(0xc0000201, 40000);
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = 99};
	uint64_t weight = spread_weight((const struct sockaddr *)&a, 3);

	inet_pton(AF_INET6, "::ffff:192.0.2.1", &mapped.sin6_addr);
	assert_true(weight == spread_weight((const struct sockaddr *)&b, 3));
	assert_true(weight == spread_weight((const struct sockaddr *)&mapped, 3));
	assert_true(spread_weight(NULL, 3) != spread_weight(NULL, 4));
}

/* Listeners ----------------------------------------------------------------------------------- */

#define LINKS 6

static uint32_t opened_on[LINKS]; /* lcores in the order in which links opened */

static void open_all(enum plx_spread spread, uint64_t mask)
{
	struct plx_listen_attr attr = {.spread = spread, .lcores = {mask}};
	struct plx_listener *listener = fixture_listen_as(here("0"), attr);

	client.opened = server.opened = 0;
	for (unsigned i = 0; i < LINKS; i++) {
		client_connect(plx_listener_address(listener), NULL);
		assert_true(pump_until(&client.opened, i + 1, 3000));
		assert_true(pump_until(&server.opened, i + 1, 3000));
		opened_on[i] = server.lcore;
	}
}

static void expect_all_on(uint32_t id, enum plx_spread spread, uint64_t mask)
{
	open_all(spread, mask);
	for (int i = 0; i < LINKS; i++)
		assert_int_equal(opened_on[i], id);
}

PLX_FIXTURE(start, 0, fixture_start(NULL, true))

#define ALONE(test)       PLX_TEST_WITH(test, start, fixture_down)
#define WITH_WORKER(test) PLX_TEST_WITH(test, fixture_up_with_worker, fixture_down_with_worker)

WITH_WORKER(round_robin_uses_each_of_the_named_lcores_in_turn)
{
	open_all(PLX_SPREAD_ROUND_ROBIN, 0);
	for (uint32_t i = 0; i < LINKS; i++)
		assert_int_equal(opened_on[i], i % 2);
	expect_all_on(1, PLX_SPREAD_ROUND_ROBIN, 1 << 1);
	expect_all_on(0, PLX_SPREAD_ROUND_ROBIN, 1 << 0);
}

ALONE(lcores_that_do_not_run_get_no_links)
{
	expect_all_on(0, PLX_SPREAD_ROUND_ROBIN, 0);
	expect_all_on(0, PLX_SPREAD_ROUND_ROBIN, 1 << 1);
	expect_all_on(0, PLX_SPREAD_HASH, 1 << 1 | 1 << 0);
}

WITH_WORKER(all_links_of_a_host_run_on_the_lcore_of_its_hash)
{
	struct sockaddr_in in = ipv4(INADDR_LOOPBACK, 0);
	const struct sockaddr *peer = (const struct sockaddr *)&in;

	skip_if_provider_given(); /* from another address */
	/* Otherwise this would not differ from "its own". */
	assert_true(spread_weight(peer, 1) > spread_weight(peer, 0));
	expect_all_on(1, PLX_SPREAD_HASH, 0);
}

ALONE(bad_spread_attributes_are_refused_with_the_reason)
{
	struct plx_listen_attr attr = {.link.events = &side_events,
				       .spread = PLX_SPREAD_ROUND_ROBIN};
	struct plx_listener *listener;

	attr.lcores[1] = 1 << 13;
	assert_fails(plx_link_listen(here("0"), &attr, &listener), -EINVAL, "no lcore 77");
	attr.lcores[1] = 0;
	attr.spread = PLX_SPREAD_CALLBACK;
	assert_fails(plx_link_listen(here("0"), &attr, &listener), -EINVAL, "place");
	attr.spread = (enum plx_spread)9;
	assert_fails(plx_link_listen(here("0"), &attr, &listener), -EINVAL, "spread 9");
}

PLX_TEST_MAIN()
