/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a service: replies, once each, over tcp and shared memory. */
#include "rpc_fixture.h"

static const char *provider;

PLX_FIXTURE(start, 0, rpc_start(provider, NULL, NULL))
#define CALL_TEST(name) PLX_TEST_WITH(name, start, rpc_down)

CALL_TEST(a_reply_arrives)
{
	call_expecting(PLX_RPC_OK, ECHO, "hello", 5, &outcome);
	assert_text(&outcome, "hello");
	assert_true(outcome.may_have_run);
	assert_int_equal(client_stats().done[PLX_RPC_OK], 1);
	assert_int_equal(client_stats().open, 0);
}

static void note_length(const struct plx_rpc_result *result, void *arg)
{
	struct outcome *it = arg;
	const uint8_t *data = result->data;
	unsigned wrong = 0;

	note_outcome(result, arg);
	assert_int_equal((uintptr_t)data % 8, 0);
	for (uint32_t i = 0; i < result->length; i++)
		wrong += data[i] != (uint8_t)(i * 7 + result->length);
	assert_int_equal(wrong, 0);
	assert_int_equal(it->count, 1);
}

CALL_TEST(replies_may_have_any_length)
{
	static const size_t lengths[] = {0,    1,     7,     8,       9,         63,
					 64,   2048,  4055,  4056,    4057,      4080,
					 4096, 10000, 65536, 1 << 20, (16 << 20)};
	uint8_t *data = malloc(16 << 20);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		struct plx_rpc_call call = {.method = ECHO,
					    .done = note_length,
					    .arg = &outcome,
					    .deadline_ns = 20 * PLX_NS_PER_S};

		for (size_t k = 0; k < lengths[i]; k++)
			data[k] = (uint8_t)(k * 7 + lengths[i]);
		outcome.count = 0;
		assert_int_equal(plx_rpc_call_start(caller, &call, data, lengths[i], NULL), 0);
		expect_status(&outcome, PLX_RPC_OK);
		assert_int_equal(outcome.length, lengths[i]);
	}
	free(data);
}

CALL_TEST(replies_may_be_built_in_place)
{
	call_it(BUILD, "12345", 5, &outcome);
	expect_reply(&outcome, "xxxxx");
}

CALL_TEST(each_version_is_a_separate_method)
{
	struct plx_rpc_call call = {.method = TWICE, .done = note_outcome, .arg = &outcome};

	call.version = 1;
	assert_int_equal(plx_rpc_call_start(caller, &call, "a", 1, NULL), 0);
	wait_done(&outcome);
	assert_memory_equal(outcome.data, "1a", 2);

	call.version = 3;
	outcome.count = 0;
	assert_int_equal(plx_rpc_call_start(caller, &call, "a", 1, NULL), 0);
	expect_status(&outcome, PLX_RPC_UNKNOWN);
	assert_false(outcome.may_have_run);
}

CALL_TEST(an_error_carries_its_code_and_its_bytes)
{
	call_expecting(PLX_RPC_ERROR, FAIL, NULL, 0, &outcome);
	assert_int_equal(outcome.code, 77);
	assert_memory_equal(outcome.data, "no", 2);
}

CALL_TEST(refusals_are_reported)
{
	call_expecting(PLX_RPC_UNKNOWN, 4711, NULL, 0, &outcome);
	call_expecting(PLX_RPC_DENIED, DENY, NULL, 0, &outcome);
	call_expecting(PLX_RPC_TOO_BIG, SHORT, "12345678901234567", 17, &outcome);
	call_expecting(PLX_RPC_OK, SHORT, "1234567890123456", 16, &outcome);
	assert_int_equal(service_stats().unknown, 1);
	assert_int_equal(service_stats().too_big, 1);
}

/* A handler that refuses with BUSY states that it did nothing. Otherwise it may have run. */
CALL_TEST(a_handler_may_refuse)
{
	struct outcome busy, denied;

	call_expecting(PLX_RPC_BUSY, TIRED, NULL, 0, &busy);
	assert_false(busy.may_have_run);
	call_expecting(PLX_RPC_DENIED, DENY, NULL, 0, &denied);
	assert_true(denied.may_have_run);
}

static void expect_int(struct outcome *it, int value)
{
	expect_status(it, PLX_RPC_OK);
	assert_memory_equal(it->data, &value, sizeof(value));
}

CALL_TEST(a_reply_may_come_later)
{
	struct outcome outcomes[8];

	for (int i = 0; i < 8; i++)
		call_it(LATER, &i, sizeof(i), &outcomes[i]);
	is_kept(8);
	assert_int_equal(service_stats().open, 8);
	for (int i = 7; i >= 0; i--) { /* in another order */
		assert_int_equal(plx_rpc_reply(kept[i], &i, sizeof(i)), 0);
		kept[i] = NULL;
	}
	for (int i = 0; i < 8; i++)
		expect_int(&outcomes[i], i);
	assert_int_equal(service_stats().open, 0);
}

CALL_TEST(the_handlers_time_is_reported)
{
	struct plx_rpc_method_stats stats;

	call_it(SLOW, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_true(outcome.handler_ns >= 2 * PLX_NS_PER_MS);
	assert_true(outcome.handler_ns < 1000 * PLX_NS_PER_MS);
	assert_int_equal(plx_rpc_method_stats_read(service, 4, &stats), 0);
	assert_string_equal(stats.name, "slow");
	assert_int_equal(stats.slow, 1);
	assert_int_equal(stats.requests, 1);
	assert_int_equal(stats.replies, 1);
	assert_true(stats.handler_ns >= 2 * PLX_NS_PER_MS);
	assert_int_equal(plx_rpc_method_stats_read(service, 16, &stats), -ENOENT);
}

CALL_TEST(calls_of_one_turn_share_messages)
{
	static struct outcome outcomes[100];
	uint64_t before = client_stats().batches;

	for (int i = 0; i < 100; i++)
		call_it(ECHO, &i, sizeof(i), &outcomes[i]);
	for (int i = 0; i < 100; i++)
		expect_int(&outcomes[i], i);
	assert_int_equal(client_stats().batches - before, 1); /* 100 times 32 bytes */
}

/* Nothing of it is sent, and the records before and after it in the batch are intact. */
CALL_TEST(a_started_reply_may_be_abandoned)
{
	static const struct {
		const char *how, *text;
		enum plx_rpc_status status;
	} cases[] = {
		{"a", "abandoned", PLX_RPC_OK}, {"b", "anew", PLX_RPC_OK},
		{"r", "", PLX_RPC_DENIED},      {"p", "plain", PLX_RPC_OK},
		{"l", "later", PLX_RPC_OK},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct outcome before, it, after;

		call_it(ECHO, "before", 6, &before);
		call_it(BEGIN, cases[i].how, 1, &it);
		call_it(ECHO, "after", 5, &after);
		wait_done(&before);
		wait_done(&after);
		assert_memory_equal(before.data, "before", 6);
		assert_memory_equal(after.data, "after", 5);
		if (cases[i].how[0] == 'l')
			reply_to(kept_count - 1, "later");
		expect_status(&it, cases[i].status);
		assert_text(&it, cases[i].text);
	}
	assert_int_equal(client_stats().strays, 0);
}

CALL_TEST(a_call_ends_at_its_deadline)
{
	struct outcome soon, never;
	uint64_t began_ns = plx_now_ns();

	/* Time for a busy host to deliver both. */
	call_within(LATER, 100 * PLX_NS_PER_MS, &soon);
	call_within(LATER, PLX_NEVER, &never);
	expect_status(&soon, PLX_RPC_DEADLINE);
	assert_true(soon.may_have_run);
	assert_true(plx_now_ns() - began_ns >= 100 * PLX_NS_PER_MS);
	assert_int_equal(kept_count, 2);
	assert_true(plx_rpc_request_deadline_ns(kept[0]) < PLX_NEVER);
	assert_true(plx_rpc_request_deadline_ns(kept[1]) == PLX_NEVER);

	/* The service is notified, and its reply is dropped. */
	PUMP_UNTIL(gone_count == 1);
	reply_to(0, "late");
	reply_to(1, "well");
	expect_status(&never, PLX_RPC_OK);
	pump_ms(10);
	assert_int_equal(soon.count, 1);
	assert_int_equal(client_stats().strays, 0);
}

CALL_TEST(a_deadline_may_be_a_century_or_a_nanosecond_away)
{
	call_within(ECHO, UINT64_C(100) * 365 * 86400 * PLX_NS_PER_S, &outcome);
	expect_status(&outcome, PLX_RPC_OK);
	call_within(ECHO, 1, &outcome);
	wait_done(&outcome);
	assert_true(outcome.status == PLX_RPC_OK || outcome.status == PLX_RPC_DEADLINE);
	pump_ms(10);
	assert_int_equal(outcome.count, 1);
}

CALL_TEST(a_call_may_be_cancelled)
{
	plx_rpc_call_id id = call_it(LATER, NULL, 0, &outcome);

	is_kept(1);
	assert_int_equal(plx_rpc_cancel(caller, id), 0);
	assert_int_equal(outcome.count, 0);
	assert_int_equal(plx_rpc_cancel(caller, id), -ENOENT);
	expect_status(&outcome, PLX_RPC_CANCELLED);
	assert_int_equal(plx_rpc_cancel(caller, id), -ENOENT);
	PUMP_UNTIL(gone_count == 1);
	assert_int_equal(service_stats().cancelled, 1);
	assert_int_equal(plx_rpc_cancel(caller, PLX_NEVER), -ENOENT);
	assert_int_equal(plx_rpc_cancel(caller, 0), -ENOENT);
}

/* Calls from callbacks are sent with the next message, and callbacks of one call share one. */
struct chain {
	unsigned left;
};

static void call_next(const struct plx_rpc_result *result, void *arg)
{
	struct chain *chain = arg;
	struct plx_rpc_call call = {.method = ECHO, .done = call_next, .arg = chain};

	if (chain->left-- == 0)
		note_outcome(result, &outcome);
	else
		assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
}

CALL_TEST(a_callback_may_make_a_call)
{
	struct chain chain = {.left = 1000};
	struct plx_rpc_call call = {.method = ECHO, .done = call_next, .arg = &chain};

	assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
	wait_done(&outcome);
	assert_int_equal(client_stats().calls, 1001);
	assert_int_equal(client_stats().done[PLX_RPC_OK], 1001);
}

CALL_TEST(attributes_are_checked)
{
	struct plx_rpc_method method = {.id = 1, .name = "one"};
	const char *const none[] = {NULL}, *const wrong[] = {"nowhere", NULL};
	struct plx_rpc_service *made;
	struct plx_rpc_client *made_client;

	assert_int_equal(plx_rpc_client_create(none, NULL, &made_client), -EINVAL);
	assert_fails(plx_rpc_client_create(wrong, NULL, &made_client), -EINVAL, "nowhere");
	assert_int_equal(plx_rpc_service_create(NULL, &made), 0);
	assert_fails(plx_rpc_service_add(made, &method), -EINVAL, "handler");
	plx_rpc_service_destroy(made);

	method.handler = (plx_rpc_handler_fn)(void (*)(void))abort;
	assert_int_equal(plx_rpc_service_add(service, &method), -EBUSY);
	assert_int_equal(plx_rpc_service_listen(service, "nowhere", NULL), -EINVAL);
	assert_string_equal(plx_rpc_status_name(PLX_RPC_PEER_DOWN), "peer down");
	assert_string_equal(plx_rpc_status_name(PLX_RPC_STATUS_COUNT), "?");
}

static void *make_client_elsewhere(void *arg)
{
	struct plx_rpc_client *made;
	int rc = plx_rpc_client_create((const char *const[]){"127.0.0.1:1", NULL}, NULL, &made);

	return rc == -ENOENT && strstr(plx_error(), "plx_rpc_client_create: this thread is not an "
						    "lcore")
		     ? arg
		     : NULL;
}

CALL_TEST(the_error_of_another_thread_names_the_function)
{
	assert_ptr_equal(run_in_thread(make_client_elsewhere, state), state);
}

int main(void)
{
	provider = "tcp";
	int failed = plx_test_run("tcp", NULL, NULL);
	provider = "shm";
	return failed + plx_test_run("shm", NULL, NULL);
}
