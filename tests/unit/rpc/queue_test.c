/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that wait for room on the link: sent in order, once each, however their calls end. */
#include "rpc_client.h"
#include "rpc_fixture.h"

#define MANY 20000

/* The number at the start of each request, as the service got it. */
static uint32_t came[MANY];
static unsigned came_count;

static void on_number(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	memcpy(&came[came_count++], data, sizeof(*came));
	plx_rpc_reply(request, data, length);
}

static unsigned statuses[PLX_RPC_STATUS_COUNT];
static _Atomic unsigned ended;
static unsigned wrong;

static void forget_ends(void)
{
	memset(statuses, 0, sizeof(statuses));
	ended = wrong = 0;
}

static int start_numbers(void **state)
{
	struct plx_rpc_method method = {.id = ECHO, .name = "number", .handler = on_number};

	forget_ends();
	came_count = 0;
	fixture_start("tcp", false);
	start_method(&method, NULL, NULL);
	return 0;
}

static void count_end(const struct plx_rpc_result *result, void *arg)
{
	uint32_t number = (uint32_t)(uintptr_t)arg, said = 0;

	statuses[result->status]++;
	ended++;
	if (result->status != PLX_RPC_OK)
		return;
	if (result->length >= sizeof(said))
		memcpy(&said, result->data, sizeof(said));
	wrong += said != number;
}

/* A call whose request starts with its number. Return: its id. */
static plx_rpc_call_id call_number(struct plx_rpc_call call, uint32_t number, uint32_t length)
{
	static uint8_t data[16384];
	plx_rpc_call_id id = 0;

	memcpy(data, &number, sizeof(number));
	call.method = ECHO;
	call.done = count_end;
	call.arg = (void *)(uintptr_t)number;
	assert_int_equal(plx_rpc_call_start(caller, &call, data, length, &id), 0);
	return id;
}

/* All kinds and lengths: some that the queue takes, and some that it does not. */
PLX_TEST_WITH(requests_keep_their_order, start_numbers, rpc_down)
{
	const uint32_t lengths[] = {4, 5, 64, 64, 700, 64, 4000, 8, 4056, 4057, 4081, 12000};
	uint64_t random = 1;
	unsigned out_of_order = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		struct plx_rpc_call call = {.deadline_ns = 30 * PLX_NS_PER_S};

		random = random * 6364136223846793005u + 1442695040888963407u;
		uint32_t length =
			lengths[(random >> 40) % (random >> 62 ? 4 : PLX_ARRAY_LEN(lengths))];
		call.retry = (random >> 33) % 1000 == 0;
		call_number(call, i, length);
		if (i % 5000 == 4999)
			plx_loop_turn();
		if (client_stats().waiting > 15000)
			pump_until(&ended, ended + 3000, 10000);
	}
	PUMP_UNTIL(ended >= MANY);
	assert_int_equal(statuses[PLX_RPC_OK], MANY);
	assert_int_equal(wrong, 0);
	assert_int_equal(came_count, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		out_of_order += came[i] != i;
	assert_int_equal(out_of_order, 0);
	assert_int_equal(client_stats().waiting, 0);
	assert_int_equal(caller->request_bytes, 0);
	assert_int_equal(caller->queue.bytes, 0);
}

PLX_TEST_WITH(cancelled_requests_are_not_sent, start_numbers, rpc_down)
{
	plx_rpc_call_id *ids = calloc(MANY, sizeof(*ids));
	unsigned waiting = 0, sent;

	for (uint32_t i = 0; i < MANY; i++)
		ids[i] = call_number((struct plx_rpc_call){0}, i, 64);
	waiting = client_stats().waiting;
	sent = MANY - waiting;
	assert_true(waiting > MANY / 2); /* otherwise this tests nothing */
	for (uint32_t i = sent; i < MANY; i++) {
		if (i % 3 != 0)
			assert_int_equal(plx_rpc_cancel(caller, ids[i]), 0);
	}
	assert_int_equal(client_stats().waiting, (MANY - 1) / 3 - (sent - 1) / 3);
	PUMP_UNTIL(ended >= MANY);
	assert_int_equal(statuses[PLX_RPC_OK] + statuses[PLX_RPC_CANCELLED], MANY);
	assert_int_equal(statuses[PLX_RPC_OK], came_count);
	for (unsigned i = sent; i < came_count; i++)
		assert_int_equal(came[i] % 3, 0);
	assert_int_equal(caller->request_bytes, 0);
	assert_int_equal(caller->queue.bytes + caller->queue.stale_bytes, 0);
	free(ids);
}

/* One call with time left precedes all expired ones: memory stays bounded, and it is finally sent,
 * like every call after it. */
TEST(memory_of_expired_requests_is_bounded)
{
	struct outcome patient, last, large;
	uint64_t most = 0;

	end_service();
	call_within(ECHO, 60 * PLX_NS_PER_S, &patient);
	for (int round = 0; round < 40; round++) {
		forget_ends();
		for (uint32_t i = 0; i < 1000; i++)
			call_number((struct plx_rpc_call){.deadline_ns = PLX_NS_PER_MS}, i, 1000);
		PUMP_UNTIL(ended >= 1000);
		most = caller->queue.bytes > most ? caller->queue.bytes : most;
	}
	assert_true(most < 3 << 20); /* of 40 MB */
	assert_true(caller->queue.stale_bytes > 0);
	assert_int_equal(client_stats().waiting, 1);
	call_within(ECHO, 60 * PLX_NS_PER_S, &last);
	call_it(ECHO, (char[33]){0}, 33, &large);
	assert_int_equal(patient.count, 0);
	service = make_service(service_address, &(struct plx_rpc_service_attr){.request_max = 32});
	expect_status(&patient, PLX_RPC_OK);
	expect_status(&last, PLX_RPC_OK);
	expect_status(&large, PLX_RPC_TOO_BIG);
	assert_int_equal(handled_count, 2);
	assert_int_equal(caller->queue.bytes + caller->queue.stale_bytes, 0);
}

/* Queued requests were never sent: they did not run, and another link takes them. */
TEST(the_link_may_end_before_they_are_sent)
{
	forget_ends();
	for (uint32_t i = 0; i < MANY; i++)
		call_number((struct plx_rpc_call){.deadline_ns = 20 * PLX_NS_PER_S}, i, 64);
	unsigned waiting = client_stats().waiting;
	assert_true(waiting > MANY / 2);
	plx_link_abort(caller->channels[0].session.link);
	PUMP_UNTIL(ended >= MANY);
	assert_int_equal(statuses[PLX_RPC_PEER_DOWN], MANY - waiting);
	assert_int_equal(statuses[PLX_RPC_OK], waiting);
	assert_int_equal(wrong, 0);
}

PLX_TEST_MAIN()
