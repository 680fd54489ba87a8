/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods that every service has. */
#include "rpc_fixture.h"

#include "log_capture.h"

#include <errno.h>
#include <jansson.h>
#include <unistd.h>

TEST(the_self_test_discards_and_generates_bytes)
{
	static const struct {
		uint8_t wanted[4]; /* little-endian */
		enum plx_rpc_status status;
		uint32_t length;
	} rows[] = {
		{{0, 0, 1, 0}, PLX_RPC_OK, 65536},
		{{0, 0, 0, 0}, PLX_RPC_OK, 0},
		{{1, 0, 1, 0}, PLX_RPC_TOO_BIG, 0},
		{{255, 255, 255, 255}, PLX_RPC_TOO_BIG, 0},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		call_expecting(rows[i].status, PLX_RPC_GENERATE, rows[i].wanted, 4, &outcome);
		assert_int_equal(outcome.length, rows[i].length);
		for (unsigned j = 0; j < sizeof(outcome.data) && j < outcome.length; j++)
			assert_int_equal((uint8_t)outcome.data[j], j);
	}
	call_expecting(PLX_RPC_ERROR, PLX_RPC_GENERATE, "abc", 3, &outcome);
	call_expecting(PLX_RPC_OK, PLX_RPC_DISCARD, "hello", 5, &outcome);
	assert_int_equal(outcome.length, 0);
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

static const char *text_of(const json_t *of, const char *name)
{
	return json_string_value(json_object_get(of, name));
}

/* Even if the program's name is not UTF-8. */
TEST(the_description_names_the_service_its_methods_and_the_client)
{
	char *before = program_invocation_short_name;

	call_expecting(PLX_RPC_OK, ECHO, NULL, 0, &outcome);
	program_invocation_short_name = "\xfe\x1b[31m";
	describe_it();
	program_invocation_short_name = before;
	json_t *all = json_loads(description, 0, NULL);
	assert_non_null(all);
	const json_t *echo = json_array_get(json_object_get(all, "methods"), 0);
	const json_t *it = json_object_get(all, "client");
	assert_string_equal(text_of(all, "program"), "\\xfe\\x1b[31m");
	assert_string_equal(text_of(all, "version"), plx_version());
	assert_string_equal(text_of(echo, "name"), "echo");
	assert_int_equal(json_integer_value(json_object_get(echo, "requests")), 1);
	assert_memory_equal(text_of(it, "program"), before, strlen(text_of(it, "program")));
	assert_int_equal(json_integer_value(json_object_get(it, "pid")), getpid());
	assert_string_equal(text_of(it, "choice"),
			    "the peer is on this host, but shm is not offered here");
	assert_non_null(strchr(text_of(it, "address"), ':'));
	json_decref(all);
}

TEST(requests_and_clients_lead_to_their_links)
{
	call_it(LATER, NULL, 0, &outcome);
	PUMP_UNTIL(kept_count == 1);
	assert_int_equal(plx_link_peer_pid(plx_rpc_request_link(kept[0])), getpid());
	assert_int_equal(plx_link_peer_pid(plx_rpc_client_link(caller)), getpid());
	destroy_caller();
	PUMP_UNTIL(gone_count == 1);
	assert_null(plx_rpc_request_link(kept[0]));
	caller = make_client((const char *const[]){"127.0.0.1:9", NULL}, NULL);
	assert_null(plx_rpc_client_link(caller));
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
