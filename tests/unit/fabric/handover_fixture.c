/* SPDX-License-Identifier: BSD-3-Clause */
#include "handover_fixture.h"

struct plx_listener *listener;

void listen_placed(uint32_t (*place)(struct plx_listener *, const struct sockaddr *, void *),
		   uint64_t timeout_ns)
{
	struct plx_listen_attr attr = {
		.link = {.events = &side_events, .user = &server, .connect_timeout_ns = timeout_ns},
		.spread = PLX_SPREAD_CALLBACK,
		.place = place};

	assert_int_equal(plx_link_listen(here("0"), &attr, &listener), 0);
}

void connect_only(void)
{
	client_connect(plx_listener_address(listener), NULL);
}

bool on_its_way(void)
{
	const struct plx_listener *also = LIST_FIRST(&listener->also);

	return !LIST_EMPTY(&listener->requests) || (also && !LIST_EMPTY(&also->requests));
}

void send_request(uint64_t timeout_ns)
{
	listen_placed(place_on_lcore_1, timeout_ns);
	connect_only();
	expect_soon(on_its_way());
}

void expect_still_on_its_way(void)
{
	pump_ms(20);
	assert_true(on_its_way());
	assert_int_equal(client.closed, 0);
}

void expect_refused(void)
{
	struct plx_listener_stats stats;

	expect_end(&client, PLX_LINK_REFUSED);
	plx_listener_stats(listener, &stats);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.opened, 0);
}

void close_in_order(void)
{
	assert_int_equal(plx_link_close(client.link), 0);
	expect_end(&client, PLX_LINK_CLOSED);
	expect_both_end();
}

void serve_and_close(void)
{
	worker_start();
	expect_open();
	close_in_order();
	worker_stop();
}

void send_request_to_full_lane(uint64_t timeout_ns)
{
	listen_placed(place_on_lcore_1, timeout_ns);
	fill_lane_to(1);
	connect_only();
	expect_soon(on_its_way());
}

static void nothing(void *arg)
{
}

void fill_lane_to(uint32_t id)
{
	while (plx_lcore_send(id, nothing, NULL) == 0)
		;
}

int block_then_run(void *arg)
{
	fill_lane_to(0);
	return plx_loop_run();
}

int handover_start(void **state)
{
	fixture_start("tcp", true);
	return 0;
}

int handover_start_auto(void **state)
{
	fixture_start("auto", true);
	return 0;
}
