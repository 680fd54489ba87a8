/* SPDX-License-Identifier: BSD-3-Clause */
/* Services that end, in order or not, and clients that move on. */
#include "log_capture.h"
#include "rpc_client.h"
#include "rpc_fixture.h"
#include "rpc_service.h"
#include "rpc_wire.h"

TEST(open_requests_are_answered)
{
	struct outcome open, after;

	call_it(LATER, NULL, 0, &open);
	is_kept(1);
	plx_rpc_service_drain(service);
	pump_ms(50);
	assert_false(plx_rpc_service_is_drained(service));
	assert_int_equal(service_stats().clients, 1);
	call_within(ECHO, 20 * PLX_NS_PER_MS, &after); /* it waits: the client knows */
	expect_status(&after, PLX_RPC_DEADLINE);
	assert_false(after.may_have_run);
	assert_int_equal(open.count, 0);
	reply_to(0, "bye");
	expect_status(&open, PLX_RPC_OK);
	PUMP_UNTIL(plx_rpc_service_is_drained(service));
}

TEST(requests_in_flight_are_refused)
{
	plx_rpc_service_drain(service);
	call_it(ECHO, NULL, 0, &outcome);
	wait_done(&outcome);
	if (outcome.status !=
	    PLX_RPC_OK) { /* the call came first; hostile_test covers the other order */
		assert_int_equal(outcome.status, PLX_RPC_DRAINING);
		assert_false(outcome.may_have_run);
	}
}

/* A raw client with many open requests, which never leaves on its own. */
enum { MANY = 20 };

static void open_many(void)
{
	struct plx_link_attr link = {.rx_buf_count = 4, .rx_buf_bytes = 4096};
	struct rpc_greeting greeting = {
		.version_min = 1, .version_max = 1, .role = RPC_CLIENT, .payload_max = 4000};
	struct rpc_header header = {
		.kind = RPC_REQUEST, .method = LATER, .remaining_us = UINT32_MAX};
	uint64_t batch[MANY * RPC_RECORD_BYTES / 8];

	link.hello_length = RPC_GREETING_BYTES;
	rpc_greeting_write(link.hello, &greeting);
	connect_raw(&link);
	PUMP_UNTIL(client.opened >= 1);
	for (header.call = 0; header.call < MANY; header.call++)
		rpc_header_write(&batch[header.call * RPC_RECORD_BYTES / 8], &header);
	assert_int_equal(plx_link_send(client.link, batch, sizeof(batch)), 0);
	is_kept(MANY);
}

static const uint8_t long_reply[3000];

static void reply_to_all(void)
{
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(plx_rpc_reply(kept[i], long_reply, sizeof(long_reply)), 0);
		kept[i] = NULL;
	}
}

/* Also on a busy host, where pump_ms takes longer. */
static void turn_for(uint64_t ns)
{
	uint64_t end_ns = plx_now_ns() + ns;

	while (plx_now_ns() < end_ns)
		plx_loop_turn();
}

/* A client that takes its replies slowly gets them all, and then has time to leave. */
TEST(queued_replies_are_not_cut_off)
{
	open_many();
	client.keep = 512; /* it takes nothing from now on */
	plx_rpc_service_drain(service);
	turn_for(1900 * PLX_NS_PER_MS);
	reply_to_all();
	turn_for(2300 * PLX_NS_PER_MS); /* its time to leave starts when it has them */
	assert_int_equal(client.closed, 0);
	client.keep = 0;
	side_release(&client, UINT32_MAX);
	PUMP_UNTIL(client.closed >= 1); /* it does not leave on its own */
	assert_int_equal(client.reason, PLX_LINK_CLOSED);
	assert_true(client.bytes >= MANY * (sizeof(long_reply) + RPC_RECORD_BYTES));
	client.link = NULL;
}

/* However slowly it answers, and however long the client does not take the replies. */
TEST(a_client_that_takes_no_replies_is_dropped)
{
	uint64_t began_ns;

	log_capture();
	open_many();
	client.keep = 512;
	plx_rpc_service_drain(service);
	turn_for(500 * PLX_NS_PER_MS);
	began_ns = plx_now_ns();
	reply_to_all();
	assert_int_equal(plx_rpc_service_finish(service, 8 * PLX_NS_PER_S), 0);
	assert_in_range(plx_now_ns() - began_ns, PLX_CLOSE_NS,
			PLX_CLOSE_NS + 2 * PLX_NS_PER_S); /* on a busy host */
	assert_int_equal(log_count("it did not take its replies and leave within 5 s"), 1);
	assert_int_equal(service_stats().protocol, 0);
	side_release(&client, UINT32_MAX);
	client.link = NULL;
	plx_log_set_sink(NULL, NULL);
}

/* A service that refuses at once has the fewest open calls; it must not get all calls for that. */
TEST_BARE(a_full_service_does_not_attract_all_calls)
{
	struct plx_rpc_service_attr one = {.open_total = 1};
	struct plx_rpc_client *filler;
	struct plx_rpc_call never = {.method = LATER, .deadline_ns = PLX_NEVER};
	static struct outcome fills, held; /* they end with their clients */

	kept_count = gone_count = handled_count = 0;
	fixture_start("tcp", false);
	struct plx_rpc_service *full = make_service(here("0"), &one);
	service = make_service(here("0"), NULL);
	caller = filler = make_client_of(full, NULL);
	wait_up(filler);
	call_as(never, NULL, 0, &fills);
	is_kept(1);
	caller = make_client((const char *const[]){plx_rpc_service_address(service, 0),
						   plx_rpc_service_address(full, 0), NULL},
			     NULL);
	PUMP_UNTIL(client_stats().links >= 2);
	call_as(never, NULL, 0, &held); /* so that the one with room has more open */
	is_kept(2);
	for (int i = 0; i < 100; i++)
		call_expecting(PLX_RPC_OK, ECHO, "x", 1, &outcome);
	plx_rpc_client_destroy(filler);
	plx_rpc_service_destroy(full);
}

/* One has the fewest open calls, and only takes short requests: long ones go to the other. */
TEST_BARE(a_request_goes_to_a_service_with_room)
{
	static char data[1000];
	static const struct plx_rpc_call calls[] = {{.method = ECHO},
						    {.method = ECHO, .retry = true},
						    {.method = ECHO, .hedge = true},
						    {.method = ECHO, .key = 1}};
	struct plx_rpc_call never = {.method = LATER, .deadline_ns = PLX_NEVER};
	static struct outcome held; /* it ends with the client */

	rpc_start_two(&(struct plx_rpc_service_attr){.request_max = 64});
	for (unsigned i = 0; i < PLX_ARRAY_LEN(calls); i++) {
		call_as(calls[i], data, sizeof(data), &outcome);
		expect_status(&outcome, PLX_RPC_OK);
	}
	call_as(never, data, sizeof(data), &held); /* so that the one that takes it has more open */
	is_kept(1);
	call_as(calls[0], data, sizeof(data), &outcome);
	expect_status(&outcome, PLX_RPC_OK);

	/* If no connected service takes it, the call fails with that reason. */
	plx_rpc_service_drain(second_service);
	PUMP_UNTIL(caller->channels[1].draining != false);
	destroy_service(&second_service);
	PUMP_UNTIL(client_stats().links <= 1);
	call_as(calls[0], data, sizeof(data), &outcome);
	expect_status(&outcome, PLX_RPC_TOO_BIG);
}

/* Both are full: the caller gets that, after one try at each. */
TEST_BARE(a_call_is_refused_once_all_services_are_full)
{
	rpc_start_two(NULL);
	call_it(ONE, NULL, 0, &(struct outcome){0});
	call_it(ONE, NULL, 0, &(struct outcome){0});
	is_kept(2);
	call_expecting(PLX_RPC_BUSY, ONE, NULL, 0, &outcome);
	assert_false(outcome.may_have_run);
	destroy_caller();
}

TEST(a_closing_link_gets_no_calls)
{
	struct outcome open;
	const struct channel *channel = &caller->channels[0];

	call_it(LATER, NULL, 0, &open); /* so that the client does not close on its own */
	is_kept(1);
	plx_link_close(LIST_FIRST(&service->local[0]->acceptor.links)->link);
	for (int i = 0; i < 1000 && plx_link_is_open(channel->session.link); i++)
		plx_loop_turn();
	assert_true(channel_is_up(channel)); /* its closure has not been reported yet */
	call_expecting(PLX_RPC_OK, ECHO, "x", 1, &outcome);
	assert_int_equal(open.status, PLX_RPC_PEER_DOWN);
}

TEST(plx_rpc_service_finish_waits_for_clients)
{
	struct outcome open;

	call_it(LATER, NULL, 0, &open);
	is_kept(1);
	assert_fails(plx_rpc_service_finish(service, 20 * PLX_NS_PER_MS), -ETIMEDOUT,
		     "still has 1 clients, and owes 1 replies");
	reply_to(0, "");
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
	assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
}

TEST_BARE(clients_move_to_another_service_during_a_drain)
{
	struct plx_rpc_call call = {.method = ECHO, .done = stream_next};
	char address[PLX_ADDRESS_MAX];

	rpc_start_two(NULL);
	strcpy(address, plx_rpc_service_address(service, 0));
	stream.failed = stream.done = 0;
	stream.left = UINT32_MAX;
	stream.running = 32;
	for (int i = 0; i < 32; i++)
		assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
	for (int round = 0; round < 5; round++) {
		pump_ms(20);
		plx_rpc_service_drain(service);
		PUMP_UNTIL(plx_rpc_service_is_drained(service));
		destroy_service(&service);
		pump_ms(5);
		service = make_service(address, NULL);
		PUMP_UNTIL(service_stats().clients == 1);
	}
	stream.left = 0;
	PUMP_UNTIL(!stream.running);
	assert_int_equal(stream.running, 0);
	assert_true(stream.done > 1000);
	assert_int_equal(stream.failed, 0);
}

static unsigned count_down(const struct outcome *outcomes, unsigned count)
{
	unsigned down = 0;

	for (unsigned i = 0; i < count; i++)
		down += outcomes[i].count && outcomes[i].status == PLX_RPC_PEER_DOWN &&
			outcomes[i].may_have_run;
	return down;
}

TEST_BARE(a_failed_service_ends_only_its_calls)
{
	struct outcome outcomes[10];

	rpc_start_two(NULL);
	for (int i = 0; i < 10; i++)
		call_it(LATER, NULL, 0, &outcomes[i]);
	is_kept(10);
	assert_int_equal(client_stats().waiting, 0);
	destroy_service(&service); /* its links are aborted */
	/* Those with the fewest open calls got the next one: one here, one there. */
	PUMP_UNTIL(count_down(outcomes, 10) == 5);
	call_expecting(PLX_RPC_OK, ECHO, NULL, 0, &outcome);
	for (unsigned i = 0; i < 10; i++)
		plx_rpc_reply(kept[i], NULL, 0);
	kept_count = 0;
	for (int i = 0; i < 10; i++)
		wait_done(&outcomes[i]);
	assert_int_equal(count_down(outcomes, 10), 5);
}

/* A client that never reaches a service waits for one, and its calls until their deadlines. */
TEST(a_service_may_start_later)
{
	end_service();
	call_within(ECHO, 5 * PLX_NS_PER_S, &outcome);
	pump_ms(100);
	assert_int_equal(outcome.count, 0);
	service = make_service(service_address, NULL);
	expect_status(&outcome, PLX_RPC_OK);
}

PLX_TEST_MAIN()
