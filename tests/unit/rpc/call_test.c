/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a service: replies, once each, over tcp and shared memory. */
#include "rpc_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *provider;

static int start(void **state)
{
	rpc_start(provider, NULL, NULL);
	return 0;
}

static int stop(void **state)
{
	rpc_stop();
	return 0;
}

static void a_reply_comes_back(void **state)
{
	struct outcome outcome;

	call_it(ECHO, "hello", 5, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_int_equal(outcome.length, 5);
	assert_memory_equal(outcome.data, "hello", 5);
	assert_true(outcome.may_have_run);
	assert_int_equal(client_stats().done[PLX_RPC_OK], 1);
	assert_int_equal(client_stats().open, 0);
}

static void note_length(const struct plx_rpc_result *result, void *arg)
{
	struct outcome *outcome = arg;
	const uint8_t *data = result->data;

	note_outcome(result, arg);
	assert_int_equal((uintptr_t)data % 8, 0);
	for (uint32_t i = 0; i < result->length; i++)
		assert_int_equal(data[i], (uint8_t)(i * 7 + result->length));
	assert_int_equal(outcome->count, 1);
}

static void of_any_length(void **state)
{
	static const size_t lengths[] = {0,    1,     7,     8,       9,         63,
					 64,   2048,  4055,  4056,    4057,      4080,
					 4096, 10000, 65536, 1 << 20, (16 << 20)};
	uint8_t *data = malloc(16 << 20);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		struct outcome outcome = {0};
		struct plx_rpc_call call = {.method = ECHO,
					    .done = note_length,
					    .arg = &outcome,
					    .deadline_ns = 20 * PLX_NS_PER_S};

		for (size_t k = 0; k < lengths[i]; k++)
			data[k] = (uint8_t)(k * 7 + lengths[i]);
		assert_int_equal(plx_rpc_call(caller, &call, data, lengths[i], NULL), 0);
		wait_done(&outcome);
		assert_int_equal(outcome.status, PLX_RPC_OK);
		assert_int_equal(outcome.length, lengths[i]);
	}
	free(data);
}

static void pieces_and_in_place(void **state)
{
	struct outcome outcome = {0};
	struct plx_rpc_call call = {
		.method = TWICE, .version = 2, .done = note_outcome, .arg = &outcome};
	struct iovec pieces[] = {{"ab", 2}, {NULL, 0}, {"cde", 3}};

	assert_int_equal(plx_rpc_callv(caller, &call, pieces, 3, NULL), 0);
	wait_done(&outcome);
	assert_int_equal(outcome.length, 6);
	assert_memory_equal(outcome.data, "2abcde", 6);

	call_it(BUILD, "12345", 5, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.length, 5);
	assert_memory_equal(outcome.data, "xxxxx", 5);
}

static void each_version_is_a_method_of_its_own(void **state)
{
	struct outcome outcome = {0};
	struct plx_rpc_call call = {.method = TWICE, .done = note_outcome, .arg = &outcome};

	call.version = 1;
	assert_int_equal(plx_rpc_call(caller, &call, "a", 1, NULL), 0);
	wait_done(&outcome);
	assert_memory_equal(outcome.data, "1a", 2);

	call.version = 3;
	outcome.count = 0;
	assert_int_equal(plx_rpc_call(caller, &call, "a", 1, NULL), 0);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_UNKNOWN);
	assert_false(outcome.may_have_run);
}

static void an_error_has_its_code_and_its_bytes(void **state)
{
	struct outcome outcome;

	call_it(FAIL, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_ERROR);
	assert_int_equal(outcome.code, 77);
	assert_memory_equal(outcome.data, "no", 2);
}

static void what_cannot_be_is_told(void **state)
{
	struct outcome outcome;

	call_it(4711, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_UNKNOWN);
	call_it(DENY, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_DENIED);
	call_it(SHORT, "12345678901234567", 17, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_TOO_BIG);
	call_it(SHORT, "1234567890123456", 16, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_int_equal(service_stats().unknown, 1);
	assert_int_equal(service_stats().too_big, 1);
}

/* A handler that refuses with BUSY states that it did nothing. Otherwise it may have run. */
static void what_a_handler_refuses(void **state)
{
	struct outcome busy, denied;

	call_it(TIRED, NULL, 0, &busy);
	wait_done(&busy);
	assert_int_equal(busy.status, PLX_RPC_BUSY);
	assert_false(busy.may_have_run);
	call_it(DENY, NULL, 0, &denied);
	wait_done(&denied);
	assert_int_equal(denied.status, PLX_RPC_DENIED);
	assert_true(denied.may_have_run);
}

static void a_reply_may_come_later(void **state)
{
	struct outcome outcomes[8];

	for (int i = 0; i < 8; i++)
		call_it(LATER, &i, sizeof(i), &outcomes[i]);
	assert_true(pump_until(&kept_count, 8, 3000));
	assert_int_equal(service_stats().open, 8);
	for (int i = 7; i >= 0; i--) { /* in another order */
		assert_int_equal(plx_rpc_reply(kept[i], &i, sizeof(i)), 0);
		kept[i] = NULL;
	}
	for (int i = 0; i < 8; i++) {
		int got;

		wait_done(&outcomes[i]);
		assert_int_equal(outcomes[i].status, PLX_RPC_OK);
		memcpy(&got, outcomes[i].data, sizeof(got));
		assert_int_equal(got, i);
	}
	assert_int_equal(service_stats().open, 0);
}

static void the_handlers_time_is_told(void **state)
{
	struct outcome outcome;
	struct plx_rpc_method_stats stats;

	call_it(SLOW, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_true(outcome.handler_ns >= 2 * PLX_NS_PER_MS);
	assert_true(outcome.handler_ns < 1000 * PLX_NS_PER_MS);
	assert_int_equal(plx_rpc_method_stats(service, 4, &stats), 0);
	assert_string_equal(stats.name, "slow");
	assert_int_equal(stats.slow, 1);
	assert_int_equal(stats.requests, 1);
	assert_int_equal(stats.replies, 1);
	assert_true(stats.handler_ns >= 2 * PLX_NS_PER_MS);
	assert_int_equal(plx_rpc_method_stats(service, 16, &stats), -ENOENT);
}

static void calls_of_one_turn_share_messages(void **state)
{
	static struct outcome outcomes[100];
	uint64_t before = client_stats().batches;

	for (int i = 0; i < 100; i++)
		call_it(ECHO, &i, sizeof(i), &outcomes[i]);
	for (int i = 0; i < 100; i++) {
		int got;

		wait_done(&outcomes[i]);
		assert_int_equal(outcomes[i].status, PLX_RPC_OK);
		memcpy(&got, outcomes[i].data, sizeof(got));
		assert_int_equal(got, i);
	}
	assert_int_equal(client_stats().batches - before, 1); /* 100 times 32 bytes */
}

/* Nothing of it is sent, and the records before and after it in the batch are intact. */
static void a_reply_that_was_begun_may_be_given_up(void **state)
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
		struct outcome before, it, behind;

		call_it(ECHO, "before", 6, &before);
		call_it(BEGIN, cases[i].how, 1, &it);
		call_it(ECHO, "behind", 6, &behind);
		wait_done(&before);
		wait_done(&behind);
		assert_memory_equal(before.data, "before", 6);
		assert_memory_equal(behind.data, "behind", 6);
		if (cases[i].how[0] == 'l') {
			assert_int_equal(plx_rpc_reply(kept[kept_count - 1], "later", 5), 0);
			kept[kept_count - 1] = NULL;
		}
		wait_done(&it);
		assert_int_equal(it.status, cases[i].status);
		assert_int_equal(it.length, strlen(cases[i].text));
		assert_memory_equal(it.data, cases[i].text, it.length);
	}
	assert_int_equal(client_stats().strays, 0);
}

static void deadlines(void **state)
{
	struct outcome soon, never;
	uint64_t began_ns = plx_now_ns();

	/* Time for a busy host to deliver both. */
	call_within(LATER, 100 * PLX_NS_PER_MS, &soon);
	call_within(LATER, PLX_NEVER, &never);
	wait_done(&soon);
	assert_int_equal(soon.status, PLX_RPC_DEADLINE);
	assert_true(soon.may_have_run);
	assert_true(plx_now_ns() - began_ns >= 100 * PLX_NS_PER_MS);
	assert_int_equal(kept_count, 2);
	assert_true(plx_rpc_request_deadline_ns(kept[0]) < PLX_NEVER);
	assert_true(plx_rpc_request_deadline_ns(kept[1]) == PLX_NEVER);

	/* The service is notified, and its reply is dropped. */
	for (int i = 0; i < 1000 && !gone_count; i++)
		pump_ms(1);
	assert_int_equal(gone_count, 1);
	assert_int_equal(plx_rpc_reply(kept[0], "late", 4), 0);
	kept[0] = NULL;
	assert_int_equal(plx_rpc_reply(kept[1], "well", 4), 0);
	kept[1] = NULL;
	wait_done(&never);
	assert_int_equal(never.status, PLX_RPC_OK);
	pump_ms(10);
	assert_int_equal(soon.count, 1);
	assert_int_equal(client_stats().strays, 0);
}

static void years_and_a_nanosecond(void **state)
{
	struct outcome outcome;

	call_within(ECHO, UINT64_C(100) * 365 * 86400 * PLX_NS_PER_S, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	call_within(ECHO, 1, &outcome);
	wait_done(&outcome);
	assert_true(outcome.status == PLX_RPC_OK || outcome.status == PLX_RPC_DEADLINE);
	pump_ms(10);
	assert_int_equal(outcome.count, 1);
}

static void a_call_may_be_cancelled(void **state)
{
	struct outcome outcome;
	plx_rpc_call_id id = call_it(LATER, NULL, 0, &outcome);

	assert_true(pump_until(&kept_count, 1, 3000));
	assert_int_equal(plx_rpc_cancel(caller, id), 0);
	assert_int_equal(outcome.count, 0);
	assert_int_equal(plx_rpc_cancel(caller, id), -ENOENT);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_CANCELLED);
	assert_int_equal(plx_rpc_cancel(caller, id), -ENOENT);
	for (int i = 0; i < 1000 && !gone_count; i++)
		pump_ms(1);
	assert_int_equal(gone_count, 1);
	assert_int_equal(service_stats().cancelled, 1);
	assert_int_equal(plx_rpc_cancel(caller, PLX_NEVER), -ENOENT);
	assert_int_equal(plx_rpc_cancel(caller, 0), -ENOENT);
}

/* Calls from callbacks are sent with the next message, and callbacks of one call share one. */
struct chain {
	struct outcome outcome;
	unsigned left;
};

static void call_next(const struct plx_rpc_result *result, void *arg)
{
	struct chain *chain = arg;
	struct plx_rpc_call call = {.method = ECHO, .done = call_next, .arg = chain};

	if (chain->left-- == 0)
		note_outcome(result, &chain->outcome);
	else
		assert_int_equal(plx_rpc_call(caller, &call, "x", 1, NULL), 0);
}

static void a_callback_may_call(void **state)
{
	struct chain chain = {.left = 1000};
	struct plx_rpc_call call = {.method = ECHO, .done = call_next, .arg = &chain};

	assert_int_equal(plx_rpc_call(caller, &call, "x", 1, NULL), 0);
	wait_done(&chain.outcome);
	assert_int_equal(client_stats().calls, 1001);
	assert_int_equal(client_stats().done[PLX_RPC_OK], 1001);
}

static void attributes_are_checked(void **state)
{
	struct plx_rpc_service_attr big = {.request_max = PLX_RPC_PAYLOAD_MAX + 1};
	struct plx_rpc_client_attr huge = {.reply_max = PLX_RPC_PAYLOAD_MAX + 1};
	struct plx_rpc_method method = {.id = 1, .name = "one"};
	const char *const none[] = {NULL}, *const wrong[] = {"nowhere", NULL};
	struct plx_rpc_service *made;
	struct plx_rpc_client *made_client;

	assert_fails(plx_rpc_service_create(&big, &made), -EINVAL, "request_max");
	assert_int_equal(plx_rpc_client_create(none, NULL, &made_client), -EINVAL);
	assert_fails(plx_rpc_client_create(wrong, NULL, &made_client), -EINVAL, "nowhere");
	assert_fails(plx_rpc_client_create((const char *const[]){"127.0.0.1:1", NULL}, &huge,
					   &made_client),
		     -EINVAL, "reply_max");
	huge = (struct plx_rpc_client_attr){.link = {.provider = "carrier-pigeon"}};
	assert_fails(plx_rpc_client_create((const char *const[]){"127.0.0.1:1", NULL}, &huge,
					   &made_client),
		     -EINVAL, "carrier-pigeon");
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

static void the_error_of_another_thread_names_the_function(void **state)
{
	void *as_it_should;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, make_client_elsewhere, state), 0);
	assert_int_equal(pthread_join(thread, &as_it_should), 0);
	assert_ptr_equal(as_it_should, state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reply_comes_back),
		TEST(of_any_length),
		TEST(pieces_and_in_place),
		TEST(each_version_is_a_method_of_its_own),
		TEST(an_error_has_its_code_and_its_bytes),
		TEST(what_cannot_be_is_told),
		TEST(what_a_handler_refuses),
		TEST(a_reply_may_come_later),
		TEST(the_handlers_time_is_told),
		TEST(calls_of_one_turn_share_messages),
		TEST(a_reply_that_was_begun_may_be_given_up),
		TEST(deadlines),
		TEST(years_and_a_nanosecond),
		TEST(a_call_may_be_cancelled),
		TEST(a_callback_may_call),
		TEST(attributes_are_checked),
		TEST(the_error_of_another_thread_names_the_function),
	};
	int failed = 0;

	provider = "tcp";
	failed += cmocka_run_group_tests_name("tcp", tests, NULL, NULL);
	provider = "shm";
	failed += cmocka_run_group_tests_name("shm", tests, NULL, NULL);
	return failed;
}
