/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test service of a process, at listeners that have another purpose. */
#include "rpc_fixture.h"
#include "rpc_service.h"
#include "rpc_wire.h"

static struct plx_listener *listener;

static const struct plx_rpc_client_attr wants_self_test = {.link = {.self_test = true},
							   .reconnect_min_ns = 10 * PLX_NS_PER_MS};

static int start_at(uint32_t rate)
{
	fixture_start("tcp", false);
	if (rate)
		assert_int_equal(selftest_start(rate, false), 0);
	listener = fixture_listen(here("0"), NULL);
	return 0;
}

static struct plx_rpc_client *make_guest(void)
{
	return make_client((const char *const[]){plx_listener_address(listener), NULL},
			   &wants_self_test);
}

static void connect_caller(void)
{
	caller = make_guest();
	wait_up(caller);
}

static int stop(void **state)
{
	if (client.link)
		plx_link_abort(client.link);
	if (server.link)
		plx_link_abort(server.link);
	destroy_caller();
	selftest_stop();
	plx_listener_close(listener);
	PUMP_UNTIL(!plx_fabric_open_count());
	fixture_stop();
	return 0;
}

PLX_FIXTURE(start, start_at(1000000))
#define PROCESS_TEST(name)      PLX_TEST_WITH(name, start, stop)
#define PROCESS_TEST_BARE(name) PLX_TEST_WITH(name, NULL, stop)

PROCESS_TEST(the_application_does_not_see_self_test_clients)
{
	assert_fails(selftest_start(1, false), -EALREADY, "was started already");
	connect_caller();
	assert_int_equal(server.opened, 0);
	call_expecting(PLX_RPC_OK, PLX_RPC_ECHO, "hello", 5, &outcome);
	assert_memory_equal(outcome.data, "hello", 5);
	fixture_connect(listener, NULL);
	assert_int_equal(server.opened, 1);
	assert_int_equal(plx_link_send(client.link, "x", 1), 0);
	PUMP_UNTIL(server.messages >= 1);
	call_expecting(PLX_RPC_OK, PLX_RPC_DESCRIBE, NULL, 0, &outcome);
	call_expecting(PLX_RPC_UNKNOWN, ECHO, NULL, 0, &outcome); /* not its method */
	destroy_caller();
	pump_ms(50);
	assert_int_equal(server.messages, 1);
	assert_int_equal(server.closed, 0);
	assert_true(plx_link_is_open(client.link));
}

PROCESS_TEST_BARE(a_disabled_self_test_is_reported)
{
	start_at(0);
	caller = make_guest();
	PUMP_UNTIL(plx_rpc_client_trouble(caller)[0]);
	assert_non_null(strstr(plx_rpc_client_trouble(caller), "has no self-test service"));
	assert_false(plx_rpc_client_is_up(caller));
	assert_int_equal(server.opened, 0);
	fixture_connect(listener, NULL); /* others may connect */
}

/* A listener's longest message may be shorter than a batch: NetIO's publishers take 4016 bytes. */
PROCESS_TEST_BARE(a_self_test_works_with_short_messages)
{
	static const uint64_t longest[] = {512, 515, 4016};
	static struct outcome outcomes[170];
	static const char data[480];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(longest); i++) {
		struct plx_link_attr attr = {.events = &side_events,
					     .message_max_bytes = longest[i],
					     .rx_buf_bytes = 4096};

		fixture_start("tcp", false);
		assert_int_equal(selftest_start(1000000, false), 0);
		listener = fixture_listen(here("0"), &attr);
		connect_caller();
		for (unsigned j = 0; j < PLX_ARRAY_LEN(outcomes); j++)
			call_it(PLX_RPC_ECHO, data, j % 3 ? 0 : sizeof(data), &outcomes[j]);
		for (unsigned j = 0; j < PLX_ARRAY_LEN(outcomes); j++)
			expect_status(&outcomes[j], PLX_RPC_OK);
		if (i + 1 < PLX_ARRAY_LEN(longest))
			stop(NULL);
	}
}

/* Refusals cost time too: a client that continues anyway is handled later. */
PROCESS_TEST_BARE(the_rate_of_refusals_is_limited)
{
	enum { MANY = 40000 };
	static struct outcome outcomes[MANY];
	unsigned unknown = 0;

	start_at(10);
	connect_caller();
	uint64_t began_ns = plx_now_ns();
	for (unsigned i = 0; i < MANY; i++)
		call_within(ECHO, 60 * PLX_NS_PER_S, &outcomes[i]);
	for (int i = 0; i < 300; i++)
		pump_ms(1);
	for (unsigned i = 0; i < MANY; i++)
		unknown += outcomes[i].status == PLX_RPC_UNKNOWN && outcomes[i].count;
	assert_in_range(unknown, 100, 10020 * (plx_now_ns() - began_ns) / PLX_NS_PER_S + 200);
	assert_true(plx_rpc_client_is_up(caller));
	destroy_caller();
	fixture_connect(listener, NULL); /* and the host listener still works */
	assert_int_equal(plx_link_send(client.link, "x", 1), 0);
	PUMP_UNTIL(server.messages >= 1);
}

/* The listener takes 16 MiB; a guest announces 64 KiB. */
PROCESS_TEST(a_request_too_long_for_a_self_test_client_is_refused)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client, .self_test = true};
	struct rpc_header header = {.kind = RPC_REQUEST, .method = PLX_RPC_DISCARD};
	static uint64_t bytes[10000];

	rpc_say(&attr, RPC_CLIENT);
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &client.link), 0);
	PUMP_UNTIL(client.opened >= 1);
	header.length = sizeof(bytes) - RPC_RECORD_BYTES;
	rpc_header_write(bytes, &header);
	assert_int_equal(plx_link_send(client.link, bytes, sizeof(bytes)), 0);
	PUMP_UNTIL(client.closed >= 1);
	assert_int_equal(client.messages, 0); /* no answer */
	client.link = NULL;
}

PROCESS_TEST(the_number_of_clients_is_bounded)
{
	struct plx_rpc_client *all[16];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(all); i++) {
		all[i] = make_guest();
		wait_up(all[i]);
	}
	caller = make_guest();
	PUMP_UNTIL(strstr(plx_rpc_client_trouble(caller), "as many clients as it takes"));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(all); i++)
		plx_rpc_client_destroy(all[i]);
}

PLX_TEST_MAIN()
