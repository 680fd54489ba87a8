/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests with a key run once; repeats get the same answer. */
#include "rpc_fixture.h"

static void call_key(uint32_t method, uint64_t key, const char *text, struct outcome *it)
{
	struct plx_rpc_call call = {.method = method, .key = key};

	call_as(call, text, strlen(text), it);
}

static enum plx_rpc_status once(uint32_t method, uint64_t key, const char *text, struct outcome *it)
{
	call_key(method, key, text, it);
	wait_done(it);
	return it->status;
}

TEST(a_repeated_request_gets_the_same_answer)
{
	struct outcome first, again;

	assert_int_equal(once(ECHO, 1, "one", &first), PLX_RPC_OK);
	assert_text(&first, "one");
	assert_int_equal(once(ECHO, 1, "another", &again), PLX_RPC_OK);
	assert_text(&again, "one");
	assert_in_range(again.handler_ns, 1, first.handler_ns);
	assert_int_equal(handled_count, 1);
	assert_int_equal(service_stats().repeated, 1);
	assert_int_equal(once(ECHO, 2, "two", &again), PLX_RPC_OK);
	assert_text(&again, "two");
	assert_int_equal(once(ECHO, 0, "none", &again), PLX_RPC_OK);
	assert_int_equal(once(ECHO, 0, "none", &again), PLX_RPC_OK);
	assert_int_equal(handled_count, 4);
}

TEST_BARE(errors_and_refusals_are_answers)
{
	rpc_start("shm", NULL, NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(once(FAIL, 1, "", &outcome), PLX_RPC_ERROR);
		assert_int_equal(outcome.code, 77);
		assert_text(&outcome, "no");
		assert_int_equal(once(DENY, 2, "", &outcome), PLX_RPC_DENIED);
		assert_int_equal(once(BUILD, 3, "12345", &outcome), PLX_RPC_OK);
		assert_text(&outcome, "xxxxx");
	}
	assert_int_equal(handled_count, 3);
}

TEST(refused_requests_may_be_repeated)
{
	assert_int_equal(once(TIRED, 1, "", &outcome), PLX_RPC_BUSY);
	assert_int_equal(once(TIRED, 1, "", &outcome), PLX_RPC_BUSY);
	assert_int_equal(handled_count, 2);
	assert_int_equal(once(SHORT, 2, "longer than its 16 bytes", &outcome), PLX_RPC_TOO_BIG);
	assert_int_equal(once(SHORT, 2, "16 bytes, not 24", &outcome), PLX_RPC_OK);
	assert_int_equal(handled_count, 3);
	assert_int_equal(once(99, 2, "", &outcome), PLX_RPC_UNKNOWN);
}

TEST_BARE(a_key_belongs_to_one_method_and_one_client)
{
	static const struct {
		uint64_t identity;
		const char *reply;
	} rows[] = {{1234, "1"}, {0, "2"}, {1234, "1"}}; /* 0: a random one */

	fixture_start("tcp", false);
	handled_count = 0;
	service = make_service(here("0"), NULL);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		destroy_caller();
		caller = make_client_of(
			service, &(struct plx_rpc_client_attr){.identity = rows[i].identity});
		wait_up(caller);
		assert_int_equal(once(ECHO, 1, i ? "2" : "1", &outcome), PLX_RPC_OK);
		assert_text(&outcome, rows[i].reply);
		assert_int_equal(once(FAIL, 1, "", &outcome), PLX_RPC_DENIED);
		assert_false(outcome.may_have_run);
	}
	assert_int_equal(handled_count, 2);
}

TEST(a_repeat_waits_for_the_first_request)
{
	struct outcome first, again, given_up;

	call_key(LATER, 1, "", &first);
	is_kept(1);
	call_key(LATER, 1, "", &again);
	plx_rpc_call_id id = call_as((struct plx_rpc_call){.method = LATER, .key = 1}, NULL, 0,
				     &given_up);
	pump_ms(20);
	assert_int_equal(service_stats().open, 3);
	assert_int_equal(plx_rpc_cancel(caller, id), 0);
	wait_done(&given_up);
	pump_ms(20);
	assert_int_equal(service_stats().open, 2);
	assert_int_equal(again.count, 0);
	reply_to(0, "now");
	wait_done(&first);
	wait_done(&again);
	assert_text(&again, "now");
	assert_int_equal(kept_count, 1);
	assert_int_equal(gone_count, 0); /* the cancelled one had no handler */
	assert_int_equal(service_stats().open, 0);
}

/* The client and its waiting requests are gone; the first one is still owed its reply. */
TEST(a_waiting_client_may_disconnect)
{
	static struct outcome first, again[100]; /* more than one turn looks at */

	call_key(LATER, 1, "", &first);
	is_kept(1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(again); i++)
		call_key(LATER, 1, "", &again[i]);
	PUMP_UNTIL(service_stats().open == 1 + PLX_ARRAY_LEN(again));
	pump_ms(20);
	destroy_caller();
	assert_int_equal(again[0].status, PLX_RPC_CANCELLED);
	PUMP_UNTIL(service_stats().clients == 0);
	assert_int_equal(service_stats().open, 1);
	assert_int_equal(gone_count, 1);
	reply_to(0, "");
	assert_int_equal(service_stats().open, 0);
}

TEST_BARE(a_request_that_cannot_be_remembered_does_not_run)
{
	struct plx_rpc_service_attr attr = {.keys_max = 32, .key_ns = 200 * PLX_NS_PER_MS};

	rpc_start("tcp", &attr, NULL);
	assert_int_equal(once(ECHO, 1, "", &outcome), PLX_RPC_OK);
	assert_int_equal(once(ECHO, 2, "", &outcome), PLX_RPC_OK);
	assert_int_equal(once(ECHO, 3, "", &outcome), PLX_RPC_BUSY);
	assert_false(outcome.may_have_run);
	assert_in_range(outcome.retry_after_ns, 1, 200 * PLX_NS_PER_MS);
	assert_int_equal(once(ECHO, 1, "", &outcome), PLX_RPC_OK); /* it is still known */
	assert_int_equal(once(ECHO, 0, "", &outcome), PLX_RPC_OK); /* and others need none */
	assert_int_equal(handled_count, 3);
	pump_ms(250);
	assert_int_equal(once(ECHO, 3, "", &outcome), PLX_RPC_OK);
}

TEST_BARE(remembered_replies_are_bounded)
{
	char text[101] = "";

	memset(text, 'a', 100);
	rpc_start("tcp", &(struct plx_rpc_service_attr){.key_bytes_max = 16 * 150}, NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(once(ECHO, 1, text, &outcome), PLX_RPC_OK);
		assert_text(&outcome, text);
	}
	assert_int_equal(once(ECHO, 2, text, &outcome), PLX_RPC_OK); /* as it runs */
	assert_int_equal(once(ECHO, 2, text, &outcome), PLX_RPC_OVERLOADED);
	assert_true(outcome.may_have_run);
	assert_int_equal(handled_count, 2);
}

PLX_TEST_MAIN()
