/* SPDX-License-Identifier: BSD-3-Clause */
/* Services that end, in order and not, and clients that move on. */
#include "rpc_fixture.h"

static struct plx_rpc_service *other;

static int stop(void **state)
{
	if (other)
		destroy_service(&other);
	rpc_stop();
	return 0;
}

static void start_two(void)
{
	struct plx_rpc_client_stats stats = {0};

	kept_count = gone_count = handled_count = 0;
	fixture_start("tcp", false);
	service = make_service(here("0"), NULL);
	other = make_service(here("0"), NULL);
	caller = make_client((const char *const[]){plx_rpc_service_address(service, 0),
						   plx_rpc_service_address(other, 0), NULL},
			     NULL);
	for (int i = 0; i < 3000 && stats.links < 2; i++) {
		pump_ms(1);
		stats = client_stats();
	}
	assert_int_equal(stats.links, 2);
}

static unsigned clients_of(const struct plx_rpc_service *which)
{
	struct plx_rpc_service_stats stats;

	plx_rpc_service_stats(which, &stats);
	return stats.clients;
}

static void what_is_open_is_answered(void **state)
{
	struct outcome open, after;

	rpc_start("tcp", NULL, NULL);
	call_it(LATER, NULL, 0, &open);
	assert_true(pump_until(&kept_count, 1, 3000));
	plx_rpc_service_drain(service);
	pump_ms(50);
	assert_false(plx_rpc_service_is_drained(service));
	assert_int_equal(clients_of(service), 1);
	call_within(ECHO, 20 * PLX_NS_PER_MS, &after); /* it waits: the client knows */
	wait_done(&after);
	assert_int_equal(after.status, PLX_RPC_DEADLINE);
	assert_false(after.may_have_run);
	assert_int_equal(open.count, 0);
	assert_int_equal(plx_rpc_reply(kept[0], "bye", 3), 0);
	kept[0] = NULL;
	wait_done(&open);
	assert_int_equal(open.status, PLX_RPC_OK);
	for (int i = 0; i < 3000 && !plx_rpc_service_is_drained(service); i++)
		pump_ms(1);
	assert_true(plx_rpc_service_is_drained(service));
}

/* What was on its way when the service began to drain is refused, and that is all that it knows of
 * it: nothing has run. */
static void what_is_on_its_way_is_refused(void **state)
{
	struct outcome outcome;

	rpc_start("tcp", NULL, NULL);
	plx_rpc_service_drain(service);
	call_it(ECHO, NULL, 0, &outcome);
	wait_done(&outcome);
	if (outcome.status != PLX_RPC_OK) { /* the call came first */
		assert_int_equal(outcome.status, PLX_RPC_DRAINING);
		assert_false(outcome.may_have_run);
	}
}

static void finish_waits_for_clients(void **state)
{
	struct outcome open;

	rpc_start("tcp", NULL, NULL);
	call_it(LATER, NULL, 0, &open);
	assert_true(pump_until(&kept_count, 1, 3000));
	assert_int_equal(plx_rpc_service_finish(service, 20 * PLX_NS_PER_MS), -ETIMEDOUT);
	assert_error_has("still has 1 clients, and owes 1 replies");
	plx_rpc_reply(kept[0], NULL, 0);
	kept[0] = NULL;
	assert_int_equal(plx_rpc_service_finish(service, 3 * PLX_NS_PER_S), 0);
	assert_int_equal(open.status, PLX_RPC_OK);
}

/* A stream of calls over two services, of which one drains and comes again: no caller sees it. */
static struct {
	unsigned running, done, failed, left;
} stream;

static void stream_next(const struct plx_rpc_result *result, void *arg)
{
	struct plx_rpc_call call = {.method = ECHO, .done = stream_next};

	stream.done++;
	stream.failed += result->status != PLX_RPC_OK;
	if (stream.left == 0) {
		stream.running--;
		return;
	}
	stream.left--;
	assert_int_equal(plx_rpc_call(caller, &call, "x", 1, NULL), 0);
}

static void clients_move_on(void **state)
{
	struct plx_rpc_call call = {.method = ECHO, .done = stream_next};
	char address[PLX_ADDRESS_MAX];

	start_two();
	strcpy(address, plx_rpc_service_address(service, 0));
	stream.failed = stream.done = 0;
	stream.left = UINT32_MAX;
	stream.running = 32;
	for (int i = 0; i < 32; i++)
		assert_int_equal(plx_rpc_call(caller, &call, "x", 1, NULL), 0);
	for (int round = 0; round < 5; round++) {
		pump_ms(20);
		plx_rpc_service_drain(service);
		for (int i = 0; i < 3000 && !plx_rpc_service_is_drained(service); i++)
			pump_ms(1);
		assert_true(plx_rpc_service_is_drained(service));
		destroy_service(&service);
		pump_ms(5);
		service = make_service(address, NULL);
		for (int i = 0; i < 5000 && clients_of(service) == 0; i++)
			pump_ms(1);
		assert_int_equal(clients_of(service), 1);
	}
	stream.left = 0;
	for (int i = 0; i < 3000 && stream.running; i++)
		pump_ms(1);
	assert_int_equal(stream.running, 0);
	assert_true(stream.done > 1000);
	assert_int_equal(stream.failed, 0);
}

static void one_that_dies_takes_its_calls_alone(void **state)
{
	struct outcome outcomes[10];
	unsigned down = 0;

	start_two();
	for (int i = 0; i < 10; i++)
		call_within(LATER, 500 * PLX_NS_PER_MS, &outcomes[i]);
	assert_true(pump_until(&kept_count, 10, 3000));
	assert_int_equal(client_stats().waiting, 0);
	destroy_service(&service); /* its links are aborted */
	for (int i = 0; i < 10; i++) {
		wait_done(&outcomes[i]);
		down += outcomes[i].status == PLX_RPC_PEER_DOWN;
		assert_true(outcomes[i].may_have_run);
	}
	assert_int_equal(down, 5); /* the least open calls: one here, one there */
	call_it(ECHO, NULL, 0, &outcomes[0]);
	wait_done(&outcomes[0]);
	assert_int_equal(outcomes[0].status, PLX_RPC_OK);
	for (unsigned i = 0; i < 10; i++)
		plx_rpc_reply(kept[i], NULL, 0);
	kept_count = 0;
}

/* A client that never hears of a service waits for it, and its calls for their deadlines. */
static void a_service_may_come_later(void **state)
{
	char address[PLX_ADDRESS_MAX];
	struct outcome outcome;

	rpc_start("tcp", NULL, NULL);
	strcpy(address, plx_rpc_service_address(service, 0));
	destroy_service(&service);
	for (int i = 0; i < 3000 && plx_rpc_client_is_up(caller); i++)
		pump_ms(1);
	call_within(ECHO, 5 * PLX_NS_PER_S, &outcome);
	pump_ms(100);
	assert_int_equal(outcome.count, 0);
	service = make_service(address, NULL);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_open_is_answered),
		TEST(what_is_on_its_way_is_refused),
		TEST(finish_waits_for_clients),
		TEST(clients_move_on),
		TEST(one_that_dies_takes_its_calls_alone),
		TEST(a_service_may_come_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
