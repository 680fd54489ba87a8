/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds and fairness: full methods, clients and services, clients that send more than their share,
 * that take no replies, or that vanish with open calls. */
#include "rpc_fixture.h"

TEST(a_full_method_answers_busy)
{
	struct outcome first;

	call_it(ONE, NULL, 0, &first);
	call_expecting(PLX_RPC_BUSY, ONE, NULL, 0, &outcome);
	assert_true(outcome.retry_after_ns > 0);
	assert_false(outcome.may_have_run);
	assert_int_equal(kept_count, 1);
	reply_to(0, "done");
	expect_status(&first, PLX_RPC_OK);
	assert_int_equal(service_stats().busy, 1);
}

TEST_BARE(open_calls_of_a_client_are_bounded)
{
	struct outcome outcomes[5];

	rpc_start("tcp", &(struct plx_rpc_service_attr){.open_max = 3}, NULL);
	for (int i = 0; i < 5; i++)
		call_it(LATER, NULL, 0, &outcomes[i]);
	is_kept(3);
	pump_ms(20);
	assert_int_equal(kept_count, 3); /* the client knows, and queues the rest */
	assert_int_equal(client_stats().waiting, 2);
	reply_to(0, "done");
	wait_done(&outcomes[0]);
	is_kept(4);
	for (unsigned i = 1; i < 4; i++)
		reply_to(i, "done");
	is_kept(5);
	reply_to(4, "done");
	for (int i = 0; i < 5; i++)
		expect_status(&outcomes[i], PLX_RPC_OK);
	assert_int_equal(service_stats().busy, 0);
}

/* Giving requests up does not make room until they are replied to. */
TEST_BARE(cancelled_requests_count_as_open_until_answered)
{
	rpc_start("tcp", &(struct plx_rpc_service_attr){.open_max = 4, .open_total = 32}, NULL);
	for (unsigned i = 0; i < 40; i++) {
		plx_rpc_call_id id = call_it(LATER, NULL, 0, &outcome);

		pump_ms(1);
		plx_rpc_cancel(caller, id);
		wait_done(&outcome);
	}
	pump_ms(20);
	assert_int_equal(kept_count, 4);
	assert_int_equal(gone_count, 4);
	assert_int_equal(service_stats().open, 4);
	for (unsigned i = 0; i < 4; i++)
		reply_to(i, "done");
	call_it(LATER, NULL, 0, &outcome);
	is_kept(5);
	reply_to(4, "done");
	wait_done(&outcome);
}

TEST_BARE(a_full_service_answers_overloaded)
{
	static struct outcome outcomes[3]; /* two are open to the end */

	rpc_start("tcp", &(struct plx_rpc_service_attr){.open_total = 2}, NULL);
	for (int i = 0; i < 3; i++)
		call_it(LATER, NULL, 0, &outcomes[i]);
	expect_status(&outcomes[2], PLX_RPC_OVERLOADED);
	assert_int_equal(service_stats().overloaded, 1);
}

TEST_BARE(open_calls_and_the_bytes_of_waiting_ones_are_bounded)
{
	struct plx_rpc_client_attr attr = {.waiting_max = 1000, .calls_max = 4};
	struct plx_rpc_call call = {.method = LATER};
	char data[400] = {0};

	rpc_start("tcp", &(struct plx_rpc_service_attr){.open_max = 1}, &attr);
	for (int i = 0; i < 3; i++)
		assert_int_equal(plx_rpc_call_start(caller, &call, data, sizeof(data), NULL), 0);
	assert_int_equal(plx_rpc_call_start(caller, &call, data, sizeof(data), NULL), -EAGAIN);
	assert_int_equal(plx_rpc_call_start(caller, &call, data, 200, NULL), 0);
	assert_int_equal(client_stats().waiting, 3);
	assert_int_equal(plx_rpc_call_start(caller, &call, NULL, 0, NULL), -EAGAIN);
	is_kept(1);
	reply_to(0, "done");
	PUMP_UNTIL(client_stats().open == 3);
	assert_works(plx_rpc_call_start(caller, &call, NULL, 0, NULL));
}

/* -EAGAIN would repeat forever. */
TEST_BARE(a_request_that_never_fits_is_refused)
{
	struct plx_rpc_call call = {.method = ECHO, .retry = true};
	char data[1001] = {0};

	rpc_start("tcp", NULL, &(struct plx_rpc_client_attr){.waiting_max = 1000});
	assert_fails(plx_rpc_call_start(caller, &call, data, sizeof(data), NULL), -EMSGSIZE,
		     "a request of 1001 bytes");
	call_expecting(PLX_RPC_OK, ECHO, data, sizeof(data), &outcome); /* it need not wait */
	end_service();
	call.retry = false;
	assert_int_equal(plx_rpc_call_start(caller, &call, data, sizeof(data), NULL), -EMSGSIZE);
}

TEST(one_client_does_not_starve_another)
{
	static struct outcome slow[50];
	struct outcome quick;
	struct plx_rpc_client *first = caller;

	caller = make_client_of(service, NULL);
	wait_up(caller);
	for (int i = 0; i < 50; i++) {
		struct plx_rpc_call call = {.method = SLOW,
					    .deadline_ns = 10 * PLX_NS_PER_S,
					    .done = note_outcome,
					    .arg = &slow[i]};

		slow[i] = (struct outcome){0};
		assert_int_equal(plx_rpc_call_start(first, &call, NULL, 0, NULL), 0);
	}
	for (int i = 0; i < 3000 && handled_count == 0; i++)
		plx_loop_turn();
	call_expecting(PLX_RPC_OK, ECHO, NULL, 0, &quick);
	assert_true(handled_count < 30); /* of 51 */
	assert_true(service_stats().deferred > 0);
	for (int i = 0; i < 50; i++)
		wait_done(&slow[i]);
	plx_rpc_client_destroy(first);
}

TEST_BARE(clients_may_disconnect_with_open_calls)
{
	struct plx_rpc_call call = {.method = LATER};

	rpc_start("tcp", &(struct plx_rpc_service_attr){.open_max = KEPT_MAX}, NULL);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(plx_rpc_call_start(caller, &call, NULL, 0, NULL), 0);
	is_kept(2000);
	plx_rpc_client_destroy(caller);
	for (int turn = 0; turn < 1000000 && gone_count < 2000; turn++) {
		unsigned before = gone_count;

		plx_loop_turn();
		assert_in_range(gone_count - before, 0, 64); /* the turn stays short */
	}
	assert_int_equal(gone_count, 2000);
	PUMP_UNTIL(service_stats().clients == 0);
	assert_int_equal(service_stats().open, 2000); /* still to be replied to, in vain */
	for (unsigned i = 0; i < 2000; i++)
		reply_to(i, "done");
	assert_int_equal(service_stats().open, 0);
	caller = make_client_of(service, NULL);
	wait_up(caller);
}

/* A method that takes 2 ms, and a caller with less time: it does not run, except now and then,
 * because it may have become faster. */
TEST(a_request_with_too_little_time_does_not_run)
{
	for (int i = 0; i < 400; i++) {
		call_within(SLOW, 5 * PLX_NS_PER_S, &outcome);
		expect_status(&outcome, PLX_RPC_OK);
	}
	unsigned handled = handled_count;
	for (int i = 0; i < 3; i++) {
		call_within(SLOW, PLX_NS_PER_MS, &outcome);
		expect_status(&outcome, PLX_RPC_DEADLINE);
	}
	pump_ms(20);
	assert_int_equal(handled_count, handled);
	assert_int_equal(service_stats().late, 3);
	call_within(SLOW, 5 * PLX_NS_PER_S, &outcome);
	expect_status(&outcome, PLX_RPC_OK);
	/* However many: they do not change the estimate, and one every 100 ms runs as a test. */
	handled = handled_count;
	uint64_t began_ns = plx_now_ns();
	for (int i = 0; i < 200; i++) {
		call_within(SLOW, PLX_NS_PER_MS, &outcome);
		wait_done(&outcome);
		pump_ms(1);
	}
	assert_in_range(handled_count - handled, 1,
			1 + (plx_now_ns() - began_ns) / (100 * PLX_NS_PER_MS));
}

PLX_TEST_MAIN()
