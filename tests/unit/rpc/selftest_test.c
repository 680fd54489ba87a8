/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods that every service has. */
#include "rpc_fixture.h"

#include "log_capture.h"

#include <errno.h>
#include <jansson.h>
#include <unistd.h>

TEST(the_self_test_echoes_and_discards)
{
	call_expecting(PLX_RPC_OK, PLX_RPC_ECHO, "hello", 5, &outcome);
	assert_memory_equal(outcome.data, "hello", 5);
	call_expecting(PLX_RPC_OK, PLX_RPC_DISCARD, "hello", 5, &outcome);
	assert_int_equal(outcome.length, 0);
}

static void generate_it(uint32_t wanted, enum plx_rpc_status expected)
{
	uint8_t bytes[4] = {(uint8_t)wanted, (uint8_t)(wanted >> 8), (uint8_t)(wanted >> 16),
			    (uint8_t)(wanted >> 24)};

	call_expecting(expected, PLX_RPC_GENERATE, bytes, 4, &outcome);
}

TEST(the_self_test_generates_bytes)
{
	generate_it(65536, PLX_RPC_OK);
	assert_int_equal(outcome.length, 65536);
	for (unsigned i = 0; i < sizeof(outcome.data); i++)
		assert_int_equal((uint8_t)outcome.data[i], i);
	generate_it(0, PLX_RPC_OK);
	generate_it(65537, PLX_RPC_TOO_BIG);
	generate_it(UINT32_MAX, PLX_RPC_TOO_BIG);
	call_expecting(PLX_RPC_ERROR, PLX_RPC_GENERATE, "abc", 3, &outcome);
}

static char description[16384];

static void note_description(const struct plx_rpc_result *result, void *arg)
{
	assert_true(result->length < sizeof(description));
	memcpy(description, result->data, result->length);
	description[result->length] = '\0';
	note_outcome(result, arg);
}

static void describe_it(void)
{
	const struct plx_rpc_call call = {
		.method = PLX_RPC_DESCRIBE, .done = note_description, .arg = &outcome};

	outcome.count = 0;
	assert_int_equal(plx_rpc_call_start(caller, &call, NULL, 0, NULL), 0);
	wait_done(&outcome);
}

TEST(the_self_test_describes_its_methods)
{
	call_expecting(PLX_RPC_OK, ECHO, NULL, 0, &outcome);
	describe_it();
	json_t *all = json_loads(description, 0, NULL);
	assert_non_null(all);
	json_t *echo = json_array_get(json_object_get(all, "methods"), 0);
	assert_string_equal(json_string_value(json_object_get(echo, "name")), "echo");
	assert_int_equal(json_integer_value(json_object_get(echo, "requests")), 1);
	assert_string_equal(json_string_value(json_object_get(all, "version")), plx_version());
	json_decref(all);
}

static void expect_own(const json_t *of)
{
	const char *program = json_string_value(json_object_get(of, "program"));

	assert_non_null(program);
	assert_in_range(strlen(program), 1, 15);
	assert_memory_equal(program, program_invocation_short_name, strlen(program));
	assert_int_equal(json_integer_value(json_object_get(of, "pid")), getpid());
}

static void expect_client(const char *driver, const char *choice)
{
	json_t *all = (describe_it(), json_loads(description, 0, NULL));
	const json_t *it = json_object_get(all, "client");

	assert_int_equal(json_integer_value(json_object_get(all, "pid")), getpid());
	expect_own(it);
	assert_memory_equal(json_string_value(json_object_get(it, "provider")), driver,
			    strlen(driver));
	assert_string_equal(json_string_value(json_object_get(it, "choice")), choice);
	assert_non_null(strchr(json_string_value(json_object_get(it, "address")), ':'));
	json_decref(all);
}

TEST(the_description_names_the_client_over_tcp)
{
	expect_client("tcp", "the peer is on this host, but shm is not offered here");
}

PLX_TEST_WITH(the_description_names_the_client_over_shm, rpc_up_shm, rpc_down)
{
	expect_client("shm", "the peer chose it");
}

/* Both sides are in this process. */
static void expect_link(const struct plx_link *link)
{
	assert_non_null(link);
	assert_memory_equal(plx_link_peer_program(link), program_invocation_short_name,
			    strlen(plx_link_peer_program(link)));
	assert_int_equal(plx_link_peer_pid(link), getpid());
}

TEST(requests_and_clients_lead_to_their_links)
{
	call_it(LATER, NULL, 0, &outcome);
	PUMP_UNTIL(kept_count == 1);
	expect_link(plx_rpc_request_link(kept[0]));
	expect_link(plx_rpc_client_link(caller));
	assert_string_equal(plx_link_choice(plx_rpc_client_link(caller)), "it was asked for");
	destroy_caller();
	PUMP_UNTIL(gone_count == 1);
	assert_null(plx_rpc_request_link(kept[0]));
	caller = make_client((const char *const[]){"127.0.0.1:9", NULL}, NULL);
	assert_null(plx_rpc_client_link(caller));
}

/* Even if the program's name is not UTF-8. */
TEST(the_description_is_json_whatever_the_program_name)
{
	char *before = program_invocation_short_name;

	program_invocation_short_name = "\xfe\x1b[31m";
	describe_it();
	program_invocation_short_name = before;
	assert_int_equal(outcome.status, PLX_RPC_OK);
	json_t *all = json_loads(description, 0, NULL);
	assert_non_null(all);
	assert_string_equal(json_string_value(json_object_get(all, "program")), "\\xfe\\x1b[31m");
	json_decref(all);
}

/* The service's operator cannot make them faster. */
TEST_BARE(self_test_methods_are_not_reported_as_slow)
{
	rpc_start("tcp", &(struct plx_rpc_service_attr){.slow_ns = 1}, NULL);
	log_capture();
	describe_it();
	call_expecting(PLX_RPC_OK, PLX_RPC_ECHO, NULL, 0, &outcome);
	assert_int_equal(log_count("its handler ran"), 0);
	call_expecting(PLX_RPC_OK, ECHO, NULL, 0, &outcome);
	assert_int_equal(log_count("its handler ran"), 1);
	plx_log_set_sink(NULL, NULL);
}

TEST_BARE(the_self_test_rate_is_bounded)
{
	unsigned good = 0, busy = 0;

	rpc_start("tcp", &(struct plx_rpc_service_attr){.self_test_rate = 100}, NULL);
	for (int i = 0; i < 50; i++) {
		call_it(PLX_RPC_ECHO, NULL, 0, &outcome);
		wait_done(&outcome);
		good += outcome.status == PLX_RPC_OK;
		busy += outcome.status == PLX_RPC_BUSY;
		assert_true(outcome.status == PLX_RPC_OK || outcome.retry_after_ns > 0);
	}
	assert_true(good >= 1);
	assert_true(busy >= 1);
	call_expecting(PLX_RPC_OK, ECHO, NULL, 0, &outcome); /* others are not */
}

TEST_BARE(the_self_test_can_be_disabled)
{
	struct plx_rpc_method method = {.id = PLX_RPC_ECHO, .name = "mine"};

	rpc_start("tcp", &(struct plx_rpc_service_attr){.self_test_rate = PLX_NONE}, NULL);
	call_expecting(PLX_RPC_UNKNOWN, PLX_RPC_ECHO, NULL, 0, &outcome);
	assert_fails(plx_rpc_service_add(service, &method), -EINVAL, "the library's own");
}

PLX_TEST_MAIN()
