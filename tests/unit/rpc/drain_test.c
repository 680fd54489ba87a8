/* SPDX-License-Identifier: BSD-3-Clause */
/* Services that end, in order or not, and clients that move on. */
#include "rpc_client.h"
#include "rpc_fixture.h"

TEST(open_requests_are_answered)
{
	struct outcome open, after;

	call_it(LATER, NULL, 0, &open);
	is_kept(1);
	plx_rpc_service_drain(service);
	pump_ms(50);
	assert_false(plx_rpc_service_is_drained(service));
	assert_int_equal(service_stats().clients, 1);
	call_within(ECHO, 20 * PLX_NS_PER_MS, &after); /* it waits: the client knows */
	expect_status(&after, PLX_RPC_DEADLINE);
	assert_false(after.may_have_run);
	assert_int_equal(open.count, 0);
	assert_fails(plx_rpc_service_finish(service, 20 * PLX_NS_PER_MS), -ETIMEDOUT,
		     "still has 1 clients, and owes 1 replies");
	reply_to(0, "bye");
	assert_works(plx_rpc_service_finish(service, 20 * PLX_NS_PER_S));
	expect_reply(&open, "bye");
	assert_true(plx_rpc_service_is_drained(service));
}

/* One has the fewest open calls, and only takes short requests: long ones go to the other. */
TEST_BARE(a_request_goes_to_a_service_with_room)
{
	static char data[1000];
	static const struct plx_rpc_call calls[] = {{.method = ECHO},
						    {.method = ECHO, .retry = true},
						    {.method = ECHO, .hedge = true},
						    {.method = ECHO, .key = 1}};
	struct plx_rpc_call never = {.method = LATER, .deadline_ns = PLX_NEVER};
	static struct outcome held; /* it ends with the client */

	rpc_start_two(&(struct plx_rpc_service_attr){.request_max = 64});
	for (unsigned i = 0; i < PLX_ARRAY_LEN(calls); i++) {
		call_as(calls[i], data, sizeof(data), &outcome);
		expect_status(&outcome, PLX_RPC_OK);
	}
	call_as(never, data, sizeof(data), &held); /* so that the one that takes it has more open */
	is_kept(1);
	call_as(calls[0], data, sizeof(data), &outcome);
	expect_status(&outcome, PLX_RPC_OK);

	/* If no connected service takes it, the call fails with that reason. */
	plx_rpc_service_drain(second_service);
	PUMP_UNTIL(caller->channels[1].draining != false);
	destroy_service(&second_service);
	PUMP_UNTIL(client_stats().links <= 1);
	call_as(calls[0], data, sizeof(data), &outcome);
	expect_status(&outcome, PLX_RPC_TOO_BIG);
}

/* Both are full: the caller gets that, after one try at each. */
TEST_BARE(a_call_is_refused_once_all_services_are_full)
{
	rpc_start_two(NULL);
	call_it(ONE, NULL, 0, &(struct outcome){0});
	call_it(ONE, NULL, 0, &(struct outcome){0});
	is_kept(2);
	call_expecting(PLX_RPC_BUSY, ONE, NULL, 0, &outcome);
	assert_false(outcome.may_have_run);
	destroy_caller();
}

/* A stream of calls over two services, one of which drains and restarts: no caller notices. */
static struct {
	unsigned running, done, failed, left;
} stream;

static void stream_next(const struct plx_rpc_result *result, void *arg)
{
	struct plx_rpc_call call = {.method = ECHO, .done = stream_next};

	stream.done++;
	stream.failed += result->status != PLX_RPC_OK;
	if (stream.left == 0) {
		stream.running--;
		return;
	}
	stream.left--;
	assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
}

TEST_BARE(clients_move_to_another_service_during_a_drain)
{
	struct plx_rpc_call call = {.method = ECHO, .done = stream_next};
	char address[PLX_ADDRESS_MAX];

	rpc_start_two(NULL);
	strcpy(address, plx_rpc_service_address(service, 0));
	stream.failed = stream.done = 0;
	stream.left = UINT32_MAX;
	stream.running = 32;
	for (int i = 0; i < 32; i++)
		assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
	for (int round = 0; round < 5; round++) {
		pump_ms(20);
		plx_rpc_service_drain(service);
		PUMP_UNTIL(plx_rpc_service_is_drained(service));
		destroy_service(&service);
		pump_ms(5);
		service = make_service(address, NULL);
		PUMP_UNTIL(service_stats().clients == 1);
	}
	stream.left = 0;
	PUMP_UNTIL(!stream.running);
	assert_int_equal(stream.running, 0);
	assert_true(stream.done > 1000);
	assert_int_equal(stream.failed, 0);
}

PLX_TEST_MAIN()
