/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests in flight when their listener closes or the process ends. */
#include "handover_fixture.h"

#include <sched.h>

static uint32_t close_it(struct plx_listener *at, const struct sockaddr *peer, void *arg)
{
	plx_listener_close(at);
	return 0;
}

HANDOVER_TEST(a_listener_may_be_closed_where_it_places_a_link)
{
	listen_placed(close_it, 0);
	connect_only();
	expect_end(&client, PLX_LINK_REFUSED);
	assert_int_equal(plx_fabric_open_count(), 0);
}

HANDOVER_TEST(a_closed_listener_waits_for_its_requests)
{
	struct plx_fabric_lcore *home;

	send_request(0);
	home = listener->set->home;
	plx_listener_close(listener);
	assert_false(LIST_EMPTY(&home->listeners));
	worker_start();
	expect_open(); /* it arrived before the close */
	assert_true(LIST_EMPTY(&home->listeners));
	close_in_order();
	worker_stop();
}

HANDOVER_TEST(a_closed_listener_gives_its_port_back_in_time)
{
	struct plx_listen_attr again = {.link = {.events = &side_events, .user = &server}};
	struct plx_fabric_lcore *home;
	char address[PLX_ADDRESS_MAX];

	send_request(50 * PLX_NS_PER_MS);
	home = listener->set->home;
	strcpy(address, plx_listener_address(listener));
	plx_listener_close(listener);
	assert_int_equal(plx_link_listen(address, &again, &listener), -EADDRINUSE);
	expect_end(&client, PLX_LINK_REFUSED);
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
PLX_TEST_WITH(a_closed_listener_answers_while_it_waits_for_its_requests, start_net, fixture_down)
{
	if (is_provider_given() || FI_VERSION_GE(fi_version(), FI_VERSION(1, 18)))
		skip(); /* it needs two providers that connect */

	struct side late = {.name = "late"};
	struct plx_link_attr attr = {.events = &side_events, .user = &late, .provider = "fi:tcp"};
	char address[PLX_ADDRESS_MAX];

	listen_placed(place_on_lcore_1, PLX_NS_PER_S);
	strcpy(address, plx_listener_address(listener));
	client_connect(address, &attr);
	expect_soon(on_its_way());
	plx_listener_close(listener);
	assert_int_equal(plx_link_connect(address, &attr, &late.link), 0);
	assert_true(pump_until(&late.closed, 1, 500));
	assert_int_equal(late.reason, PLX_LINK_REFUSED);
	assert_int_equal(client.closed, 0);
	expect_end(&client, PLX_LINK_REFUSED);
}

HANDOVER_TEST(a_closed_listener_counts_once_and_until_it_is_gone)
{
	if (is_provider_given())
		skip(); /* an abort may take as long as the request */
	send_request(50 * PLX_NS_PER_MS);
	plx_listener_close(listener);
	plx_link_abort(client.link);
	assert_int_equal(plx_fabric_drain(PLX_NS_PER_S), 0);
	assert_int_equal(plx_fabric_open_count(), 1);
	expect_soon(plx_fabric_open_count() == 0);
}
HANDOVER_TEST_AUTO(a_closed_listener_counts_once_and_until_it_is_gone)

HANDOVER_TEST(a_request_that_waits_hears_of_the_close)
{
	send_request_to_full_lane(0);
	plx_listener_close(listener);
	expect_end(&client, PLX_LINK_REFUSED);
}
HANDOVER_TEST_AUTO(a_request_that_waits_hears_of_the_close)

/* At the end the fixture checks memory and descriptors. */
HANDOVER_TEST(the_process_may_end_with_requests_on_their_way)
{
	send_request(0);
}
HANDOVER_TEST_AUTO(the_process_may_end_with_requests_on_their_way)

HANDOVER_TEST(the_process_may_end_with_requests_that_were_given_up)
{
	listen_placed(place_on_lcore_1, 20 * PLX_NS_PER_MS);
	connect_only();
	expect_refused();
	plx_listener_close(listener);
}

HANDOVER_TEST(the_process_may_end_with_requests_that_wait)
{
	send_request_to_full_lane(0);
}
HANDOVER_TEST_AUTO(the_process_may_end_with_requests_that_wait)

HANDOVER_TEST(the_process_may_end_with_answers_on_their_way)
{
	send_request(0);
	assert_int_equal(plx_lcore_launch(1, block_then_run, NULL), 0);
	for (int i = 0; i < 3000 && !plx_loop_is_running(1); i++)
		sched_yield();
	worker_stop();
	assert_true(on_its_way());
}
HANDOVER_TEST_AUTO(the_process_may_end_with_answers_on_their_way)

/* As on a host with RDMA devices, where a listener has one for shared memory and one for RDMA: each
 * close frees other list entries. */
HANDOVER_TEST(a_listener_with_two_others_drains)
{
	const struct plx_listen_attr attr = {.link = {.events = &side_events, .user = &server}};
	struct plx_listener *three[3];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(plx_link_listen(here("0"), &attr, &three[i]), 0);
		if (i == 0)
			continue;
		three[i]->front = three[0];
		LIST_INSERT_HEAD(&three[0]->also, three[i], of_front);
	}
	assert_int_equal(plx_fabric_open_count(), 1);
	assert_int_equal(plx_fabric_drain(PLX_NS_PER_S), 0);
	assert_int_equal(plx_fabric_open_count(), 0);
}

PLX_TEST_MAIN()
