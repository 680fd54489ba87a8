/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a service: replies, once each, over tcp and shared memory. */
#include "rpc_fixture.h"

PLX_FIXTURE(start, 0, rpc_start(fixture_provider, NULL, NULL))
#define CALL_TEST(name) PLX_TEST_WITH(name, start, rpc_down)

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

CALL_TEST(a_call_ends_with_what_its_handler_answers)
{
	static const struct {
		uint32_t method;
		uint16_t version;
		const char *request;
		enum plx_rpc_status status;
		bool may_have_run; /* a handler that refuses with BUSY states that it did nothing */
		uint32_t code;
		const char *reply;
	} rows[] = {
		{ECHO, 0, "hello", PLX_RPC_OK, true, 0, "hello"},
		{BUILD, 0, "12345", PLX_RPC_OK, true, 0, "xxxxx"},
		{TWICE, 1, "a", PLX_RPC_OK, true, 0, "1a"},
		{TWICE, 3, "a", PLX_RPC_UNKNOWN, false, 0, ""},
		{4711, 0, "", PLX_RPC_UNKNOWN, false, 0, ""},
		{FAIL, 0, "", PLX_RPC_ERROR, true, 77, "no"},
		{DENY, 0, "", PLX_RPC_DENIED, true, 0, ""},
		{TIRED, 0, "", PLX_RPC_BUSY, false, 0, ""},
		{SHORT, 0, "12345678901234567", PLX_RPC_TOO_BIG, false, 0, ""},
		{SHORT, 0, "1234567890123456", PLX_RPC_OK, true, 0, "1234567890123456"},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		call_as((struct plx_rpc_call){.method = rows[i].method, .version = rows[i].version},
			rows[i].request, strlen(rows[i].request), &outcome);
		expect_status(&outcome, rows[i].status);
		assert_text(&outcome, rows[i].reply);
		assert_int_equal(outcome.may_have_run, rows[i].may_have_run);
		assert_int_equal(outcome.code, rows[i].code);
	}
	assert_int_equal(service_stats().unknown, 2);
	assert_int_equal(service_stats().too_big, 1);
	assert_int_equal(client_stats().done[PLX_RPC_OK], 4);
	assert_int_equal(client_stats().open, 0);
}

CALL_TEST(the_handlers_time_is_reported)
{
	struct plx_rpc_method_stats stats;

	call_expecting(PLX_RPC_OK, SLOW, NULL, 0, &outcome);
	assert_in_range(outcome.handler_ns, 2 * PLX_NS_PER_MS, 1000 * PLX_NS_PER_MS);
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
	for (int i = 0; i < 100; i++) {
		expect_status(&outcomes[i], PLX_RPC_OK);
		assert_memory_equal(outcomes[i].data, &i, sizeof(i));
	}
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
		expect_reply(&before, "before");
		expect_reply(&after, "after");
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
	assert_fails(
		plx_rpc_call_start(caller,
				   &(struct plx_rpc_call){.method = ECHO, .key = 1, .hedge = true},
				   NULL, 0, NULL),
		-EINVAL, "a call with a key cannot be hedged");
	assert_string_equal(plx_rpc_status_name(PLX_RPC_PEER_DOWN), "peer down");
	assert_string_equal(plx_rpc_status_name(PLX_RPC_STATUS_COUNT), "?");
}

FIXTURE_MAIN("tcp", "shm")
