/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test, as clients on other hosts see it. */
#include "rpc_fixture.h"
#include "rpc_service.h"

bool __real_plx_link_is_same_host(const struct plx_link *link);
bool __wrap_plx_link_is_same_host(const struct plx_link *link);

bool __wrap_plx_link_is_same_host(const struct plx_link *link)
{
	return false;
}

static int stop(void **state)
{
	rpc_stop();
	selftest_stop();
	return 0;
}

static enum plx_rpc_status status_of(uint32_t method)
{
	call_it(method, NULL, 0, &outcome);
	wait_done(&outcome);
	return outcome.status;
}

#define WITH_SERVICE(name) PLX_TEST_WITH(name, NULL, stop)

WITH_SERVICE(a_service_denies_the_self_test_to_other_hosts)
{
	rpc_start("tcp", NULL, NULL);
	assert_int_equal(status_of(PLX_RPC_ECHO), PLX_RPC_DENIED);
	assert_int_equal(status_of(PLX_RPC_DISCARD), PLX_RPC_DENIED);
	assert_int_equal(status_of(PLX_RPC_DESCRIBE), PLX_RPC_DENIED);
	assert_int_equal(status_of(ECHO), PLX_RPC_OK); /* its own methods are available to all */
}

WITH_SERVICE(a_service_with_a_rate_allows_the_self_test_to_other_hosts)
{
	rpc_start("tcp", &(struct plx_rpc_service_attr){.self_test_rate = 1000}, NULL);
	assert_int_equal(status_of(PLX_RPC_ECHO), PLX_RPC_OK);
	assert_int_equal(status_of(PLX_RPC_DESCRIBE), PLX_RPC_OK);
}

static void expect_of_process(bool remote, unsigned opened)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client, .self_test = true};

	fixture_start("tcp", false);
	rpc_say(&attr, RPC_CLIENT);
	assert_int_equal(selftest_start(1000, remote), 0);
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &client.link), 0);
	assert_true(pump_until(opened ? &client.opened : &client.closed, 1, 3000));
	assert_int_equal(client.opened, opened);
	if (opened)
		plx_link_abort(client.link);
	else
		assert_non_null(strstr(client.text, "to its own host alone"));
	plx_listener_close(listener);
	plx_fabric_drain(PLX_NS_PER_S);
	selftest_stop();
	fixture_stop();
}

PLX_TEST(a_process_answers_self_tests_only_of_its_own_host)
{
	expect_of_process(false, 0);
}

PLX_TEST(a_process_answers_self_tests_of_other_hosts_if_configured)
{
	expect_of_process(true, 1);
}

PLX_TEST_MAIN()
