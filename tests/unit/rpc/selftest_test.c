/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods that every service has. */
#include "rpc_fixture.h"

#include "log_capture.h"

#include <jansson.h>
#include <string.h>

static int stop(void **state)
{
	rpc_stop();
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, NULL, stop)

TEST(echo_and_discard)
{
	struct outcome outcome;

	rpc_start("tcp", NULL, NULL);
	call_it(PLX_RPC_ECHO, "hello", 5, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_memory_equal(outcome.data, "hello", 5);
	call_it(PLX_RPC_DISCARD, "hello", 5, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_int_equal(outcome.length, 0);
}

static void generate_it(uint32_t wanted, struct outcome *outcome)
{
	uint8_t bytes[4] = {(uint8_t)wanted, (uint8_t)(wanted >> 8), (uint8_t)(wanted >> 16),
			    (uint8_t)(wanted >> 24)};

	call_it(PLX_RPC_GENERATE, bytes, 4, outcome);
	wait_done(outcome);
}

TEST(generate)
{
	struct outcome outcome;

	rpc_start("tcp", NULL, NULL);
	generate_it(65536, &outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_int_equal(outcome.length, 65536);
	for (unsigned i = 0; i < sizeof(outcome.data); i++)
		assert_int_equal((uint8_t)outcome.data[i], i);
	generate_it(0, &outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	generate_it(65537, &outcome);
	assert_int_equal(outcome.status, PLX_RPC_TOO_BIG);
	generate_it(UINT32_MAX, &outcome);
	assert_int_equal(outcome.status, PLX_RPC_TOO_BIG);
	call_it(PLX_RPC_GENERATE, "abc", 3, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_ERROR);
}

static char description[16384];

static void note_description(const struct plx_rpc_result *result, void *arg)
{
	assert_true(result->length < sizeof(description));
	memcpy(description, result->data, result->length);
	description[result->length] = '\0';
	note_outcome(result, arg);
}

TEST(describe)
{
	struct outcome outcome = {0};
	struct plx_rpc_call call = {
		.method = PLX_RPC_DESCRIBE, .done = note_description, .arg = &outcome};
	json_t *all, *echo;

	rpc_start("tcp", NULL, NULL);
	call_it(ECHO, NULL, 0, &outcome);
	wait_done(&outcome);
	outcome.count = 0;
	assert_int_equal(plx_rpc_call(caller, &call, NULL, 0, NULL), 0);
	wait_done(&outcome);
	all = json_loads(description, 0, NULL);
	assert_non_null(all);
	echo = json_array_get(json_object_get(all, "methods"), 0);
	assert_string_equal(json_string_value(json_object_get(echo, "name")), "echo");
	assert_int_equal(json_integer_value(json_object_get(echo, "requests")), 1);
	assert_string_equal(json_string_value(json_object_get(all, "version")), plx_version());
	json_decref(all);
}

/* Even if the program's name is not UTF-8. */
TEST(describe_is_json_whatever_the_program_is_called)
{
	char *before = program_invocation_short_name;
	struct outcome outcome = {0};
	struct plx_rpc_call call = {
		.method = PLX_RPC_DESCRIBE, .done = note_description, .arg = &outcome};
	json_t *all;

	rpc_start("tcp", NULL, NULL);
	program_invocation_short_name = "\xfe\x1b[31m";
	assert_int_equal(plx_rpc_call(caller, &call, NULL, 0, NULL), 0);
	wait_done(&outcome);
	program_invocation_short_name = before;
	assert_int_equal(outcome.status, PLX_RPC_OK);
	all = json_loads(description, 0, NULL);
	assert_non_null(all);
	assert_string_equal(json_string_value(json_object_get(all, "program")), "\\xfe\\x1b[31m");
	json_decref(all);
}

/* The service's operator cannot make them faster. */
TEST(its_methods_are_not_named_as_slow)
{
	struct plx_rpc_service_attr attr = {.slow_ns = 1};
	struct outcome outcome = {0};
	struct plx_rpc_call call = {
		.method = PLX_RPC_DESCRIBE, .done = note_description, .arg = &outcome};

	rpc_start("tcp", &attr, NULL);
	log_capture();
	assert_int_equal(plx_rpc_call(caller, &call, NULL, 0, NULL), 0);
	wait_done(&outcome);
	call_it(PLX_RPC_ECHO, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_int_equal(log_count("its handler ran"), 0);
	call_it(ECHO, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(log_count("its handler ran"), 1);
	plx_log_set_sink(NULL, NULL);
}

TEST(it_is_bounded)
{
	struct plx_rpc_service_attr attr = {.self_test_rate = 100};
	struct outcome outcome;
	unsigned good = 0, busy = 0;

	rpc_start("tcp", &attr, NULL);
	for (int i = 0; i < 50; i++) {
		call_it(PLX_RPC_ECHO, NULL, 0, &outcome);
		wait_done(&outcome);
		good += outcome.status == PLX_RPC_OK;
		busy += outcome.status == PLX_RPC_BUSY;
		assert_true(outcome.status == PLX_RPC_OK || outcome.retry_after_ns > 0);
	}
	assert_true(good >= 1);
	assert_true(busy >= 1);
	call_it(ECHO, NULL, 0, &outcome); /* others are not */
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
}

TEST(it_can_be_left_out)
{
	struct plx_rpc_service_attr attr = {.self_test_rate = PLX_NONE};
	struct plx_rpc_method method = {.id = PLX_RPC_ECHO, .name = "mine"};
	struct outcome outcome;

	rpc_start("tcp", &attr, NULL);
	call_it(PLX_RPC_ECHO, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_UNKNOWN);
	assert_fails(plx_rpc_service_add(service, &method), -EINVAL, "the library's own");
}

PLX_TEST_MAIN()
