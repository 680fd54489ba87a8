/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test service of a process, at listeners that are there for something else. */
#include "rpc_fixture.h"

static struct plx_listener *listener;

static const struct plx_rpc_client_attr wants_self_test = {.link = {.self_test = true},
							   .reconnect_min_ns = 10 * PLX_NS_PER_MS};

static void start_at(const char *provider, uint32_t rate)
{
	fixture_start(provider, false);
	if (rate)
		assert_int_equal(plx_rpc_self_test_start(rate), 0);
	listener = fixture_listen(here("0"), NULL);
}

static void connect_caller(void)
{
	caller = make_client((const char *const[]){plx_listener_address(listener), NULL},
			     &wants_self_test);
}

static int stop(void **state)
{
	if (client.link)
		plx_link_abort(client.link);
	if (server.link)
		plx_link_abort(server.link);
	plx_rpc_client_destroy(caller);
	caller = NULL;
	plx_rpc_self_test_stop();
	plx_listener_close(listener);
	for (int i = 0; i < 3000 && plx_fabric_open_count(); i++)
		pump_ms(1);
	fixture_stop();
	return 0;
}

static void the_application_does_not_notice(const char *provider)
{
	struct outcome outcome;

	start_at(provider, 1000000);
	connect_caller();
	wait_up(caller);
	assert_int_equal(server.opened, 0);
	call_it(PLX_RPC_ECHO, "hello", 5, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_memory_equal(outcome.data, "hello", 5);
	fixture_connect(listener, NULL);
	assert_int_equal(server.opened, 1);
	assert_int_equal(plx_link_send(client.link, "x", 1), 0);
	assert_true(pump_until(&server.messages, 1, 3000));
	call_it(PLX_RPC_DESCRIBE, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	call_it(ECHO, NULL, 0, &outcome); /* methods of others it has none */
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_UNKNOWN);
	plx_rpc_client_destroy(caller);
	caller = NULL;
	pump_ms(50);
	assert_int_equal(server.messages, 1);
	assert_int_equal(server.closed, 0);
	assert_true(plx_link_is_open(client.link));
}

static void the_application_does_not_notice_tcp(void **state)
{
	the_application_does_not_notice("tcp");
}

static void the_application_does_not_notice_shm(void **state)
{
	the_application_does_not_notice("shm");
}

static void where_it_is_off_that_is_said(void **state)
{
	start_at("tcp", 0);
	connect_caller();
	for (int i = 0; i < 3000 && !plx_rpc_client_trouble(caller)[0]; i++)
		pump_ms(1);
	assert_non_null(strstr(plx_rpc_client_trouble(caller), "has no self-test service"));
	assert_false(plx_rpc_client_is_up(caller));
	assert_int_equal(server.opened, 0);
	fixture_connect(listener, NULL); /* others are welcome */
}

/* A service of its own has these methods, and either may answer. */
static void a_service_may_be_asked_too(void **state)
{
	struct outcome outcome;

	start_at("tcp", 1000000);
	kept_count = gone_count = handled_count = 0;
	service = make_service(here("0"), NULL);
	caller = make_client((const char *const[]){plx_rpc_service_address(service, 0), NULL},
			     &wants_self_test);
	wait_up(caller);
	call_it(PLX_RPC_ECHO, "hello", 5, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_int_equal(service_stats().requests, 0);
	destroy_service(&service);
	call_it(PLX_RPC_ECHO, "hello", 5, &outcome); /* the process is still there */
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
}

static void it_has_a_rate(void **state)
{
	static struct outcome outcomes[100];
	unsigned busy = 0;

	start_at("tcp", 10);
	connect_caller();
	wait_up(caller);
	for (int i = 0; i < 100; i++)
		call_it(PLX_RPC_ECHO, NULL, 0, &outcomes[i]);
	for (int i = 0; i < 100; i++) {
		wait_done(&outcomes[i]);
		busy += outcomes[i].status == PLX_RPC_BUSY;
	}
	assert_in_range(busy, 80, 99);
}

static void its_clients_are_few(void **state)
{
	struct plx_rpc_client *all[20];
	unsigned up = 0;

	start_at("tcp", 1000000);
	for (int i = 0; i < 20; i++)
		all[i] = make_client((const char *const[]){plx_listener_address(listener), NULL},
				     &wants_self_test);
	for (int i = 0; i < 3000 && up < 16; i++) {
		pump_ms(1);
		up = 0;
		for (int j = 0; j < 20; j++)
			up += plx_rpc_client_is_up(all[j]);
	}
	assert_int_equal(up, 16);
	for (int i = 0; i < 20; i++)
		plx_rpc_client_destroy(all[i]);
}

static void it_may_end_under_its_clients(void **state)
{
	struct outcome outcome;

	start_at("tcp", 1000000);
	assert_int_equal(plx_rpc_self_test_start(1), -EALREADY);
	connect_caller();
	wait_up(caller);
	call_it(PLX_RPC_ECHO, NULL, 0, &outcome);
	plx_rpc_self_test_stop();
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_PEER_DOWN);
	pump_ms(50);
	assert_false(plx_rpc_client_is_up(caller));
	assert_int_equal(plx_rpc_self_test_start(1), 0);
	wait_up(caller);
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_application_does_not_notice_tcp),
		TEST(the_application_does_not_notice_shm),
		TEST(where_it_is_off_that_is_said),
		TEST(a_service_may_be_asked_too),
		TEST(it_has_a_rate),
		TEST(its_clients_are_few),
		TEST(it_may_end_under_its_clients),
	};

	return cmocka_run_group_tests_name("rpc_process", tests, NULL, NULL);
}
