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

static void hosts_spread_evenly(void **state)
{
	unsigned hosts[4] = {0};

	for (uint32_t i = 0; i < 4000; i++)
		hosts[best_of(i, 4)]++;
	for (int i = 0; i < 4; i++)
		assert_in_range(hosts[i], 900, 1100); /* 3.6 standard deviations */
}

static void one_more_lcore_takes_its_share_and_moves_no_other_host(void **state)
{
	unsigned moved = 0;

	for (uint32_t i = 0; i < 4000; i++) {
		uint32_t before = best_of(i, 4), after = best_of(i, 5);

		if (before == after)
			continue;
		assert_int_equal(after, 4);
		moved++;
	}
	assert_in_range(moved, 700, 900); /* one in five is 800 */
}

static void a_host_is_its_address_alone(void **state)
{
	struct sockaddr_in a = ipv4(0xc0000201, 7000), b = ipv4(0xc0000201, 40000);
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = 99};
	struct sockaddr_in6 first = mapped, second = mapped;
	uint64_t weight = spread_weight((const struct sockaddr *)&a, 3);

	inet_pton(AF_INET6, "::ffff:192.0.2.1", &mapped.sin6_addr);
	inet_pton(AF_INET6, "2001:db8::1", &first.sin6_addr);
	inet_pton(AF_INET6, "2001:db8:0:1::1", &second.sin6_addr);
	assert_true(weight == spread_weight((const struct sockaddr *)&b, 3));
	assert_true(weight == spread_weight((const struct sockaddr *)&mapped, 3));
	assert_true(weight != spread_weight((const struct sockaddr *)&first, 3));
	assert_true(spread_weight((const struct sockaddr *)&first, 3) !=
		    spread_weight((const struct sockaddr *)&second, 3));
	assert_true(spread_weight(NULL, 3) != spread_weight(NULL, 4));
}

/* Listeners ----------------------------------------------------------------------------------- */

#define LINKS 6

static uint32_t opened_on[LINKS]; /* lcores in the order in which links opened */
static _Atomic unsigned opened_count, connected_count;

static void on_server_open(struct plx_link *link, void *user)
{
	opened_on[opened_count] = plx_lcore_id(); /* one link at a time: see connect_all */
	opened_count++;
}

static void on_client_open(struct plx_link *link, void *user)
{
	connected_count++;
}

static const struct plx_link_events server_events = {.on_open = on_server_open};
static const struct plx_link_events client_events = {.on_open = on_client_open};

static struct plx_listener *listen_with(const char *address, enum plx_spread spread, uint64_t mask)
{
	struct plx_listen_attr attr = {
		.link.events = &server_events, .spread = spread, .lcores = {mask}};
	struct plx_listener *listener;

	if (plx_link_listen(address, &attr, &listener) != 0)
		fail_msg("%s", plx_error());
	return listener;
}

static void connect_all(struct plx_listener *listener)
{
	struct plx_link_attr attr = {.events = &client_events};
	struct plx_link *link;

	opened_count = connected_count = 0;
	for (unsigned i = 1; i <= LINKS; i++) {
		assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &link), 0);
		assert_true(pump_until(&connected_count, i, 3000));
		assert_true(pump_until(&opened_count, i, 3000));
	}
}

static void expect_all_on(uint32_t id)
{
	for (int i = 0; i < LINKS; i++)
		assert_int_equal(opened_on[i], id);
}

static int start(void **state)
{
	fixture_start(NULL, true);
	return 0;
}

static int start_with_worker(void **state)
{
	fixture_start(NULL, true);
	worker_start();
	return 0;
}

static int stop(void **state)
{
	fixture_stop();
	return 0;
}

static int stop_with_worker(void **state)
{
	worker_stop();
	fixture_stop();
	return 0;
}

static void no_spread_is_the_listeners_own_lcore(void **state)
{
	connect_all(listen_with(here("0"), PLX_SPREAD_NONE, 0));
	expect_all_on(0);
}

static void round_robin_takes_each_lcore_in_turn(void **state)
{
	connect_all(listen_with(here("0"), PLX_SPREAD_ROUND_ROBIN, 0));
	for (uint32_t i = 0; i < LINKS; i++)
		assert_int_equal(opened_on[i], i % 2);
}

static void only_the_named_lcores_are_taken(void **state)
{
	connect_all(listen_with(here("0"), PLX_SPREAD_ROUND_ROBIN, 1 << 1));
	expect_all_on(1);
	connect_all(listen_with(here("0"), PLX_SPREAD_ROUND_ROBIN, 1 << 0));
	expect_all_on(0);
	connect_all(listen_with(here("0"), PLX_SPREAD_HASH, 1 << 1));
	expect_all_on(1);
}

static void lcores_that_do_not_run_are_left_out(void **state)
{
	connect_all(listen_with(here("0"), PLX_SPREAD_ROUND_ROBIN, 0));
	expect_all_on(0);
	connect_all(listen_with(here("0"), PLX_SPREAD_ROUND_ROBIN, 1 << 1));
	expect_all_on(0);
	connect_all(listen_with(here("0"), PLX_SPREAD_HASH, 1 << 1 | 1 << 0));
	expect_all_on(0);
}

/* As in hosts_spread_evenly, for this host's own address. */
static uint32_t home_of_loopback(void)
{
	struct sockaddr_in in = ipv4(INADDR_LOOPBACK, 0);
	const struct sockaddr *peer = (const struct sockaddr *)&in;

	return spread_weight(peer, 1) > spread_weight(peer, 0) ? 1 : 0;
}

static void all_links_of_a_host_meet_on_the_lcore_of_its_hash(void **state)
{
	if (is_provider_given())
		skip(); /* from another address */
	assert_int_equal(home_of_loopback(),
			 1); /* otherwise this would not differ from "its own" */
	connect_all(listen_with(here("0"), PLX_SPREAD_HASH, 0));
	expect_all_on(1);
}

static void wrong_attributes_are_named(void **state)
{
	struct plx_listen_attr attr = {.link.events = &server_events,
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

#define ALONE(test)       cmocka_unit_test_setup_teardown(test, start, stop)
#define WITH_WORKER(test) cmocka_unit_test_setup_teardown(test, start_with_worker, stop_with_worker)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_spread_evenly),
		cmocka_unit_test(one_more_lcore_takes_its_share_and_moves_no_other_host),
		cmocka_unit_test(a_host_is_its_address_alone),
		WITH_WORKER(no_spread_is_the_listeners_own_lcore),
		WITH_WORKER(round_robin_takes_each_lcore_in_turn),
		WITH_WORKER(only_the_named_lcores_are_taken),
		ALONE(lcores_that_do_not_run_are_left_out),
		WITH_WORKER(all_links_of_a_host_meet_on_the_lcore_of_its_hash),
		ALONE(wrong_attributes_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
