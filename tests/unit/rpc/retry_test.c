/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are retried: their link ended before the reply, or the service was full. */
#include "rpc_fixture.h"

#include "rpc_client.h"

static const struct plx_rpc_client_attr quick = {.reconnect_min_ns = PLX_NS_PER_MS};

PLX_FIXTURE(start, 0, rpc_start("tcp", NULL, &quick))
#define RETRY_TEST(name) PLX_TEST_WITH(name, start, rpc_down)

static void call_retry(uint32_t method, uint64_t key, uint64_t deadline_ns, struct outcome *it)
{
	struct plx_rpc_call call = {
		.method = method, .key = key, .retry = true, .deadline_ns = deadline_ns};

	call_as(call, "again", 5, it);
}

/* As if the network failed. */
static void cut_link(void)
{
	plx_link_abort(caller->channels[0].session.link);
}

/* Of a call that its handler has kept. */
static void lose_link_of_call(uint64_t key, uint64_t deadline_ns)
{
	call_retry(LATER, key, deadline_ns, &outcome);
	is_kept(1);
	cut_link();
}

RETRY_TEST(a_call_without_a_key_runs_again)
{
	lose_link_of_call(0, 0);
	is_kept(2);
	assert_int_equal(gone_count, 1);
	reply_to(0, "first");
	reply_to(1, "second");
	expect_reply(&outcome, "second");
	assert_int_equal(client_stats().retried, 1);
	assert_int_equal(client_stats().open, 0);
}

RETRY_TEST(a_lost_reply_is_sent_again)
{
	call_retry(LATER, 7, 0, &outcome);
	is_kept(1);
	reply_to(0, "once");
	cut_link();
	expect_reply(&outcome, "once");
	pump_ms(20);
	assert_int_equal(handled_count, 1);
	assert_int_equal(service_stats().repeated, 1);
}

/* If the client does not return: at its deadline, so that the handler does not work in vain; or
 * when its key may be forgotten, if that is earlier: a motor must not run until the deadline. */
TEST_BARE(a_handler_is_notified_of_a_lost_client)
{
	static const struct {
		uint64_t deadline_ns, earliest_ns;
	} rows[] = {{300 * PLX_NS_PER_MS, 300 * PLX_NS_PER_MS}, {PLX_NEVER, PLX_NS_PER_S}};
	const struct plx_rpc_service_attr forgetful = {.key_ns = PLX_NS_PER_S};
	uint64_t began_ns;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		if (i > 0)
			rpc_stop();
		rpc_start("tcp", &forgetful, &quick);
		gone_refuses = true;
		began_ns = plx_now_ns();
		call_as((struct plx_rpc_call){.method = LATER,
					      .key = 7,
					      .deadline_ns = rows[i].deadline_ns},
			NULL, 0, &outcome);
		is_kept(1);
		cut_link();
		expect_status(&outcome, PLX_RPC_PEER_DOWN);
		assert_int_equal(gone_count, 0);
		PUMP_UNTIL(gone_count == 1);
		assert_in_range(plx_now_ns() - began_ns, rows[i].earliest_ns, 10 * PLX_NS_PER_S);
		assert_int_equal(service_stats().open, 0);
		kept[0] = NULL;
	}
}

RETRY_TEST(a_retry_waits_for_a_running_handler)
{
	call_retry(LATER, 7, 60 * PLX_NS_PER_S, &outcome);
	is_kept(1);
	for (int i = 0; i < 3; i++) {
		cut_link();
		pump_ms(50);
		wait_up(caller);
		pump_ms(10);
	}
	assert_int_equal(outcome.count, 0);
	assert_int_equal(service_stats().open, 2); /* it, and the one that waits for it */
	assert_int_equal(gone_count, 0);
	reply_to(0, "late");
	expect_reply(&outcome, "late");
	assert_int_equal(handled_count, 1);
	assert_int_equal(client_stats().retried, 3);
}

/* Another service does not know the key. */
RETRY_TEST(a_call_with_a_key_is_not_retried_on_a_new_service)
{
	call_retry(LATER, 7, 5 * PLX_NS_PER_S, &outcome);
	is_kept(1);
	end_service();
	service = make_service(service_address, NULL);
	expect_status(&outcome, PLX_RPC_PEER_DOWN);
	assert_true(outcome.may_have_run);
	assert_int_equal(handled_count, 1);
	call_retry(ECHO, 7, 0, &outcome);
	expect_status(&outcome, PLX_RPC_OK);
}

/* A draining service answers what it has run, even on another link; its refusal of the rest does
 * not let another service run it. */
RETRY_TEST(a_draining_service_answers_a_repeated_request)
{
	lose_link_of_call(7, 2 * PLX_NS_PER_S);
	wait_up(caller);
	pump_ms(10);
	plx_rpc_service_drain(service);
	pump_ms(20);
	assert_int_equal(outcome.count, 0);
	assert_int_equal(gone_count, 0);
	reply_to(0, "late");
	expect_status(&outcome, PLX_RPC_OK);
	assert_int_equal(handled_count, 1);
}

RETRY_TEST(a_retried_call_keeps_its_deadline)
{
	struct outcome with_key, without;

	call_retry(LATER, 7, 200 * PLX_NS_PER_MS, &with_key);
	call_retry(LATER, 0, 200 * PLX_NS_PER_MS, &without);
	is_kept(2);
	destroy_service(&service);
	expect_status(&with_key, PLX_RPC_PEER_DOWN);
	expect_status(&without, PLX_RPC_PEER_DOWN);
	assert_true(with_key.may_have_run && without.may_have_run);
	assert_int_equal(client_stats().waiting, 0);
}

/* Past half of the time that keys are remembered, nothing is certain. */
TEST_BARE(a_retry_past_the_key_time_is_not_made)
{
	struct plx_rpc_service_attr service_attr = {.key_ns = 100 * PLX_NS_PER_MS};
	struct plx_rpc_client_attr client_attr = {.reconnect_min_ns = PLX_NS_PER_MS};

	rpc_start("tcp", &service_attr, &client_attr);
	call_retry(LATER, 7, 5 * PLX_NS_PER_S, &outcome);
	is_kept(1);
	pump_ms(80);
	cut_link();
	expect_status(&outcome, PLX_RPC_PEER_DOWN);
	assert_true(outcome.may_have_run);
}

/* Full services ------------------------------------------------------------------------------- */

RETRY_TEST(a_refused_call_waits_for_room_and_can_be_cancelled)
{
	struct outcome first, cancelled;
	plx_rpc_call_id id;

	call_it(ONE, NULL, 0, &first);
	id = call_as((struct plx_rpc_call){.method = ONE, .retry = true}, NULL, 0, &cancelled);
	PUMP_UNTIL(client_stats().waiting == 1);
	assert_works(plx_rpc_cancel(caller, id));
	expect_status(&cancelled, PLX_RPC_CANCELLED);
	assert_false(cancelled.may_have_run);
	call_retry(ONE, 0, 0, &outcome);
	PUMP_UNTIL(client_stats().retried >= 3);
	assert_int_equal(client_stats().open, 2);
	assert_int_equal(kept_count, 1);
	reply_to(0, "first");
	expect_reply(&first, "first");
	is_kept(2);
	reply_to(1, "second");
	expect_reply(&outcome, "second");
	assert_int_equal(client_stats().waiting, 0);
}

/* BUSY says more than DEADLINE would. */
RETRY_TEST(a_refused_call_ends_when_it_cannot_be_repeated_in_time)
{
	struct outcome first;

	call_it(ONE, NULL, 0, &first);
	call_retry(ONE, 0, 200 * PLX_NS_PER_MS, &outcome);
	expect_status(&outcome, PLX_RPC_BUSY);
	assert_false(outcome.may_have_run);
	assert_true(client_stats().retried > 0);
	reply_to(0, "first");
	expect_reply(&first, "first");
}

PLX_TEST_MAIN()
