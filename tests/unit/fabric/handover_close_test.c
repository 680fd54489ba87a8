/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests in flight when their listener closes or the process ends. */
#include "handover_fixture.h"

#include <sched.h>

static uint32_t close_it(struct plx_listener *at, const struct sockaddr *peer, void *arg)
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
	assert_false(LIST_EMPTY(&home->listeners));
	worker_start();
	expect_open(); /* it arrived before the close */
	assert_true(LIST_EMPTY(&home->listeners));
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
	assert_true(LIST_EMPTY(&home->listeners));
	assert_int_equal(plx_link_listen(address, &again, &listener), 0);
	fixture_connect(listener, NULL);
}

static int start_net(void **state)
{
	fixture_start(is_provider_given() ? "tcp" : "fi:net", true);
	return 0;
}

/* The other end uses a separate provider: on this one only the listener is open. */
static void a_closed_listener_answers_while_it_waits_for_its_requests(void **state)
{
	if (is_provider_given() || FI_VERSION_GE(fi_version(), FI_VERSION(1, 18)))
		skip(); /* it needs two providers that connect */

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
	if (is_provider_given())
		skip(); /* an abort may take as long as the request */
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

/* At the end the fixture checks memory and descriptors. */
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

/* As on a host with RDMA devices, where a listener has one for shared memory and one for RDMA: each
 * close frees other list entries. */
static void a_listener_with_two_others_drains(void **state)
{
	const struct plx_listen_attr attr = {.link = {.events = &side_events, .user = &server}};
	struct plx_listener *three[3];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(plx_link_listen(here("0"), &attr, &three[i]), 0);
		if (i == 0)
			continue;
		three[i]->front = three[0];
		three[i]->also = three[0]->also;
		three[0]->also = three[i];
	}
	assert_int_equal(plx_fabric_open_count(), 1);
	assert_int_equal(plx_fabric_drain(PLX_NS_PER_S), 0);
	assert_int_equal(plx_fabric_open_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		handover_test(a_listener_with_two_others_drains),
		handover_test(a_listener_may_be_closed_where_it_places_a_link),
		handover_test(a_closed_listener_waits_for_its_requests),
		handover_test(a_closed_listener_gives_its_port_back_in_time),
		cmocka_unit_test_setup_teardown(
			a_closed_listener_answers_while_it_waits_for_its_requests, start_net,
			handover_stop),
		handover_test(a_closed_listener_counts_once_and_until_it_is_gone),
		handover_test(a_request_that_waits_hears_of_the_close),
		handover_test(the_process_may_end_with_requests_on_their_way),
		handover_test(the_process_may_end_with_requests_that_were_given_up),
		handover_test(the_process_may_end_with_requests_that_wait),
		handover_test(the_process_may_end_with_answers_on_their_way),
		handover_test_auto(a_closed_listener_counts_once_and_until_it_is_gone),
		handover_test_auto(a_request_that_waits_hears_of_the_close),
		handover_test_auto(the_process_may_end_with_requests_on_their_way),
		handover_test_auto(the_process_may_end_with_requests_that_wait),
		handover_test_auto(the_process_may_end_with_answers_on_their_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
