/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are repeated at a second service when the first is slow. */
#include "rpc_fixture.h"

#include "rpc_client.h"

static const struct plx_rpc_call hedged = {
	.method = LATER, .hedge = true, .deadline_ns = 3 * PLX_NS_PER_S};

/* Two services, and a client that has estimated the duration of calls. */
static void start(void)
{
	struct plx_rpc_call call = {.method = ECHO, .hedge = true};

	rpc_start_two(NULL);
	for (int i = 0; i < 100; i++) {
		assert_true(caller->hedge.delay_ns == UINT64_MAX);
		call_as(call, NULL, 0, &outcome);
		expect_status(&outcome, PLX_RPC_OK);
	}
	assert_in_range(caller->hedge.delay_ns, 1, 2 * PLX_NS_PER_S);
	caller->hedge.delay_ns = 5 * PLX_NS_PER_MS; /* on a busy host */
	assert_int_equal(client_stats().hedged, 0);
}

/* A call that both services have. */
static void start_hedged(void)
{
	start();
	call_as(hedged, NULL, 0, &outcome);
	is_kept(2);
}

static void nothing_is_left(void)
{
	pump_ms(20);
	assert_int_equal(client_stats().open, 0);
	assert_int_equal(caller->channels[0].open, 0);
	assert_int_equal(caller->channels[1].open, 0);
}

TEST_BARE(a_hedged_call_ends_with_the_reply_of_the_second_service)
{
	start_hedged();
	reply_to(1, "second");
	expect_reply(&outcome, "second");
	pump_ms(20);
	assert_int_equal(gone_count, 1); /* the first one is notified */
	assert_true(plx_rpc_request_is_gone(kept[0]));
	assert_int_equal(client_stats().hedged, 1);
	assert_int_equal(client_stats().hedges_won, 1);
	nothing_is_left();
}

TEST_BARE(a_hedged_call_outlasts_one_refusal)
{
	start_hedged();
	refuse(0, PLX_RPC_OVERLOADED);
	pump_ms(20);
	assert_int_equal(outcome.count, 0);
	reply_to(1, "yes");
	expect_status(&outcome, PLX_RPC_OK);
	nothing_is_left();
}

/* Of the one that got it first, or of the other one. */
TEST_BARE(a_hedged_call_survives_the_end_of_a_service)
{
	for (unsigned first = 0; first < 2; first++) {
		start();
		caller->channels[1 - first].open++; /* so that it is not chosen first */
		call_as(hedged, NULL, 0, &outcome);
		caller->channels[1 - first].open--;
		is_kept(2);
		destroy_service(&service);
		PUMP_UNTIL(client_stats().links <= 1);
		pump_ms(20);
		assert_int_equal(outcome.count, 0);
		reply_to(1 - first, "yes");
		expect_status(&outcome, PLX_RPC_OK);
		nothing_is_left();
		if (first == 0)
			rpc_stop();
	}
}

/* Whether the lost one ran is unknown, whatever the other one replies. */
TEST_BARE(a_lost_hedged_call_may_have_run)
{
	start_hedged();
	destroy_service(&service);
	PUMP_UNTIL(client_stats().links <= 1);
	plx_rpc_service_drain(second_service);
	pump_ms(20);
	assert_int_equal(outcome.count, 0);
	refuse(1, PLX_RPC_DENIED);
	expect_status(&outcome, PLX_RPC_DENIED);
	assert_true(outcome.may_have_run);
}

TEST_BARE(deadlines_and_cancellations_reach_both_services)
{
	struct plx_rpc_call call = hedged;
	struct outcome cancelled;

	start();
	call.deadline_ns = 100 * PLX_NS_PER_MS;
	call_as(call, NULL, 0, &outcome);
	plx_rpc_call_id id = call_as(hedged, NULL, 0, &cancelled);
	is_kept(4);
	assert_int_equal(plx_rpc_cancel(caller, id), 0);
	wait_done(&cancelled);
	expect_status(&outcome, PLX_RPC_DEADLINE);
	nothing_is_left();
	assert_int_equal(gone_count, 4);
}

/* If everything is slow at once, requests do not double. */
TEST_BARE(the_number_of_hedges_is_bounded)
{
	static struct outcome outcomes[200];

	start();
	for (int i = 0; i < 200; i++)
		call_as(hedged, NULL, 0, &outcomes[i]);
	pump_ms(100);
	unsigned hedges = (unsigned)client_stats().hedged;
	assert_in_range(hedges, 10, 200 / 10 + 10);
	assert_int_equal(kept_count, 200 + hedges);
	for (unsigned i = 0; i < kept_count; i++)
		reply_to(i, "");
	for (int i = 0; i < 200; i++)
		wait_done(&outcomes[i]);
	nothing_is_left();
}

PLX_TEST_MAIN()
