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

PLX_TEST(services_answer_self_tests_of_other_hosts_only_with_a_rate)
{
	static const uint32_t self_tests[] = {PLX_RPC_ECHO, PLX_RPC_DISCARD, PLX_RPC_DESCRIBE};

	for (uint32_t rate = 0; rate <= 1000; rate += 1000) {
		rpc_start("tcp", &(struct plx_rpc_service_attr){.self_test_rate = rate}, NULL);
		for (unsigned i = 0; i < PLX_ARRAY_LEN(self_tests); i++)
			call_expecting(rate ? PLX_RPC_OK : PLX_RPC_DENIED, self_tests[i], NULL, 0,
				       &outcome);
		/* Its own methods are available to all. */
		call_expecting(PLX_RPC_OK, ECHO, NULL, 0, &outcome);
		rpc_stop();
	}
}

PLX_TEST(a_process_answers_self_tests_of_other_hosts_only_if_configured)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client, .self_test = true};

	for (int allows = 0; allows < 2; allows++) {
		fixture_start("tcp", false);
		rpc_say(&attr, RPC_CLIENT);
		assert_works(selftest_start(1000, allows));
		struct plx_listener *listener = fixture_listen(here("0"), NULL);
		assert_works(plx_link_connect(plx_listener_address(listener), &attr, &client.link));
		if (allows) {
			PUMP_UNTIL(client.opened);
			plx_link_abort(client.link);
		} else {
			PUMP_UNTIL(client.closed);
			assert_has(client.text, "to its own host alone");
		}
		plx_listener_close(listener);
		plx_fabric_drain(PLX_NS_PER_S);
		selftest_stop();
		fixture_stop();
	}
}

PLX_TEST_MAIN()
