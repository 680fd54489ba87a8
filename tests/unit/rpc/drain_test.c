/* SPDX-License-Identifier: BSD-3-Clause */
/* Services that end, in order or not, and clients that move on. */
#include "rpc_client.h"
#include "rpc_fixture.h"
#include "rpc_service.h"
#include "rpc_wire.h"

static int stop(void **state)
{
	rpc_stop();
	return 0;
}

static unsigned clients_of(const struct plx_rpc_service *which)
{
	struct plx_rpc_service_stats stats;

	plx_rpc_service_stats(which, &stats);
	return stats.clients;
}

#define TEST(name) PLX_TEST_WITH(name, NULL, stop)

TEST(what_is_open_is_answered)
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

/* Requests in flight when the service starts to drain are refused, and nothing of them runs. */
TEST(what_is_on_its_way_is_refused)
{
	struct outcome outcome;

	rpc_start("tcp", NULL, NULL);
	plx_rpc_service_drain(service);
	call_it(ECHO, NULL, 0, &outcome);
	wait_done(&outcome);
	if (outcome.status !=
	    PLX_RPC_OK) { /* the call came first; hostile_test covers the other order */
		assert_int_equal(outcome.status, PLX_RPC_DRAINING);
		assert_false(outcome.may_have_run);
	}
}

/* A client that takes its replies slowly gets them all, and then has time to leave. */
TEST(replies_that_wait_are_not_cut_off)
{
	enum { MANY = 20 };
	struct plx_link_attr link = {
		.events = &side_events, .user = &client, .rx_buf_count = 4, .rx_buf_bytes = 4096};
	struct rpc_greeting greeting = {
		.version_min = 1, .version_max = 1, .role = RPC_CLIENT, .payload_max = 4000};
	struct rpc_header header = {
		.kind = RPC_REQUEST, .method = LATER, .remaining_us = UINT32_MAX};
	uint64_t batch[MANY * RPC_RECORD_BYTES / 8];
	uint8_t bytes[3000] = {0};

	rpc_start("tcp", NULL, NULL);
	link.hello_length = RPC_GREETING_BYTES;
	rpc_greeting_write(link.hello, &greeting);
	assert_int_equal(plx_link_connect(plx_rpc_service_address(service, 0), &link, &client.link),
			 0);
	assert_true(pump_until(&client.opened, 1, 3000));
	for (header.call = 0; header.call < MANY; header.call++)
		rpc_header_write(&batch[header.call * RPC_RECORD_BYTES / 8], &header);
	assert_int_equal(plx_link_send(client.link, batch, sizeof(batch)), 0);
	assert_true(pump_until(&kept_count, MANY, 3000));
	client.keep = 512; /* it takes nothing from now on */
	plx_rpc_service_drain(service);
	pump_ms(1900);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(plx_rpc_reply(kept[i], bytes, sizeof(bytes)), 0);
		kept[i] = NULL;
	}
	pump_ms(2300); /* its time to leave starts when it has them */
	assert_int_equal(client.closed, 0);
	client.keep = 0;
	side_release(&client, UINT32_MAX);
	assert_true(pump_until(&client.closed, 1, 6000)); /* it does not leave on its own */
	assert_int_equal(client.reason, PLX_LINK_CLOSED);
	assert_true(client.bytes >= MANY * (sizeof(bytes) + RPC_RECORD_BYTES));
	client.link = NULL;
}

/* A service that refuses at once has the fewest open calls; it must not get all calls for that. */
TEST(one_that_is_full_is_not_asked_for_ever)
{
	struct plx_rpc_service_attr one = {.open_total = 1};
	struct plx_rpc_service *full;
	struct plx_rpc_client *filler;
	struct plx_rpc_call never = {.method = LATER, .deadline_ns = PLX_NEVER};
	static struct outcome fills, held; /* they end with their clients */
	struct outcome outcome;

	kept_count = gone_count = handled_count = 0;
	fixture_start("tcp", false);
	full = make_service(here("0"), &one);
	service = make_service(here("0"), NULL);
	caller = filler = make_client((const char *const[]){plx_rpc_service_address(full, 0), NULL},
				      NULL);
	wait_up(filler);
	call_as(never, NULL, 0, &fills);
	assert_true(pump_until(&kept_count, 1, 3000));
	caller = make_client((const char *const[]){plx_rpc_service_address(service, 0),
						   plx_rpc_service_address(full, 0), NULL},
			     NULL);
	for (int i = 0; i < 3000 && client_stats().links < 2; i++)
		pump_ms(1);
	call_as(never, NULL, 0, &held); /* so that the one with room has more open */
	assert_true(pump_until(&kept_count, 2, 3000));
	for (int i = 0; i < 100; i++) {
		call_it(ECHO, "x", 1, &outcome);
		wait_done(&outcome);
		assert_int_equal(outcome.status, PLX_RPC_OK);
	}
	plx_rpc_client_destroy(filler);
	plx_rpc_service_destroy(full);
}

/* One has the fewest open calls, and only takes short requests: long ones go to the other. */
TEST(a_request_goes_to_a_service_that_takes_it)
{
	static char data[1000];
	struct plx_rpc_service_attr small = {.request_max = 64};
	static const struct plx_rpc_call calls[] = {{.method = ECHO},
						    {.method = ECHO, .retry = true},
						    {.method = ECHO, .hedge = true},
						    {.method = ECHO, .key = 1}};
	struct plx_rpc_call never = {.method = LATER, .deadline_ns = PLX_NEVER};
	static struct outcome held; /* it ends with the client */
	struct outcome outcome;

	rpc_start_two(&small);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(calls); i++) {
		call_as(calls[i], data, sizeof(data), &outcome);
		wait_done(&outcome);
		assert_int_equal(outcome.status, PLX_RPC_OK);
	}
	call_as(never, data, sizeof(data), &held); /* so that the one that takes it has more open */
	assert_true(pump_until(&kept_count, 1, 3000));
	call_as(calls[0], data, sizeof(data), &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);

	/* If no connected service takes it, the call fails with that reason. */
	plx_rpc_service_drain(second_service);
	for (int i = 0; i < 3000 && caller->channels[1].draining == false; i++)
		pump_ms(1);
	destroy_service(&second_service);
	for (int i = 0; i < 3000 && client_stats().links > 1; i++)
		pump_ms(1);
	call_as(calls[0], data, sizeof(data), &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_TOO_BIG);
}

/* Both are full: the caller gets that, after one try at each. */
TEST(all_may_be_full)
{
	struct outcome outcome;

	rpc_start_two(NULL);
	call_it(ONE, NULL, 0, &(struct outcome){0});
	call_it(ONE, NULL, 0, &(struct outcome){0});
	assert_true(pump_until(&kept_count, 2, 3000));
	call_it(ONE, NULL, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_BUSY);
	assert_false(outcome.may_have_run);
	plx_rpc_client_destroy(caller);
	caller = NULL;
}

/* A closing link takes no calls: they wait for the next link. */
TEST(a_link_that_closes_takes_no_calls)
{
	const struct channel *channel;
	struct outcome open, outcome;

	rpc_start("tcp", NULL, NULL);
	channel = &caller->channels[0];
	call_it(LATER, NULL, 0, &open); /* so that the client does not close on its own */
	assert_true(pump_until(&kept_count, 1, 3000));
	plx_link_close(LIST_FIRST(&service->local[0]->acceptor.links)->link);
	for (int i = 0; i < 1000 && plx_link_is_open(channel->session.link); i++)
		plx_loop_turn();
	assert_true(channel_is_up(channel)); /* its closure has not been reported yet */
	call_it(ECHO, "x", 1, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_int_equal(open.status, PLX_RPC_PEER_DOWN);
}

TEST(finish_waits_for_clients)
{
	struct outcome open;

	rpc_start("tcp", NULL, NULL);
	call_it(LATER, NULL, 0, &open);
	assert_true(pump_until(&kept_count, 1, 3000));
	assert_fails(plx_rpc_service_finish(service, 20 * PLX_NS_PER_MS), -ETIMEDOUT,
		     "still has 1 clients, and owes 1 replies");
	plx_rpc_reply(kept[0], NULL, 0);
	kept[0] = NULL;
	assert_int_equal(plx_rpc_service_finish(service, 3 * PLX_NS_PER_S), 0);
	assert_int_equal(open.status, PLX_RPC_OK);
}

/* A stream of calls over two services, one of which drains and restarts: no caller notices. */
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

TEST(clients_move_on)
{
	struct plx_rpc_call call = {.method = ECHO, .done = stream_next};
	char address[PLX_ADDRESS_MAX];

	rpc_start_two(NULL);
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

TEST(one_that_dies_takes_its_calls_alone)
{
	struct outcome outcomes[10];
	unsigned down = 0;

	rpc_start_two(NULL);
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
	assert_int_equal(down, 5); /* the fewest open calls: one here, one there */
	call_it(ECHO, NULL, 0, &outcomes[0]);
	wait_done(&outcomes[0]);
	assert_int_equal(outcomes[0].status, PLX_RPC_OK);
	for (unsigned i = 0; i < 10; i++)
		plx_rpc_reply(kept[i], NULL, 0);
	kept_count = 0;
}

/* A client that never reaches a service waits for one, and its calls until their deadlines. */
TEST(a_service_may_come_later)
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

PLX_TEST_MAIN()
