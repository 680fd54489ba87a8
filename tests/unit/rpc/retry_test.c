/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are retried because their link ended before the reply. */
#include "rpc_fixture.h"

#include "rpc_client.h"

#include <stdio.h>

static int stop(void **state)
{
	rpc_stop();
	return 0;
}

static void start(const char *provider)
{
	struct plx_rpc_client_attr attr = {.reconnect_min_ns = PLX_NS_PER_MS};

	rpc_start(provider, NULL, &attr);
}

static void call_retry(uint32_t method, uint64_t key, uint64_t deadline_ns, struct outcome *outcome)
{
	struct plx_rpc_call call = {
		.method = method, .key = key, .retry = true, .deadline_ns = deadline_ns};

	call_as(call, "again", 5, outcome);
}

/* As if the network failed. */
static void cut_link(void)
{
	plx_link_abort(caller->channels[0].session.link);
}

#define TEST(name) PLX_TEST_WITH(name, NULL, stop)

TEST(without_retry_it_is_over)
{
	struct outcome outcome;

	start("tcp");
	call_it(LATER, NULL, 0, &outcome);
	is_kept(1);
	cut_link();
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_PEER_DOWN);
	assert_true(outcome.may_have_run);
	assert_int_equal(client_stats().retried, 0);
}

TEST(without_a_key_it_runs_again)
{
	struct outcome outcome;

	start("tcp");
	call_retry(LATER, 0, 0, &outcome);
	is_kept(1);
	cut_link();
	is_kept(2);
	assert_int_equal(gone_count, 1);
	reply_to(0, "first");
	reply_to(1, "second");
	expect_reply(&outcome, "second");
	assert_int_equal(client_stats().retried, 1);
	assert_int_equal(client_stats().open, 0);
	assert_int_equal(caller->request_bytes, 0);
}

static void a_key_whose_reply_was_lost(const char *provider)
{
	struct outcome outcome;

	start(provider);
	call_retry(LATER, 7, 0, &outcome);
	is_kept(1);
	reply_to(0, "once");
	cut_link();
	expect_reply(&outcome, "once");
	pump_ms(20);
	assert_int_equal(handled_count, 1);
	assert_int_equal(service_stats().repeated, 1);
	assert_int_equal(caller->request_bytes, 0);
}

TEST(a_lost_reply_is_given_again_tcp)
{
	a_key_whose_reply_was_lost("tcp");
}

TEST(a_lost_reply_is_given_again_shm)
{
	a_key_whose_reply_was_lost("shm");
}

/* The handler is not notified of the lost client: the client returns for the reply. */
TEST(a_handler_that_gives_up_when_told_runs_to_its_end)
{
	struct outcome outcome;

	start("tcp");
	gone_refuses = true;
	call_retry(LATER, 7, 0, &outcome);
	is_kept(1);
	cut_link();
	pump_ms(50);
	wait_up(caller);
	pump_ms(20);
	assert_int_equal(gone_count, 0);
	reply_to(0, "done");
	expect_reply(&outcome, "done");
	assert_int_equal(handled_count, 1);
	assert_int_equal(service_stats().open, 0);
}

/* If the client does not return: at its deadline, so that the handler does not work in vain. */
TEST(a_handler_is_told_at_the_deadline_of_who_is_lost)
{
	struct outcome outcome;

	start("tcp");
	gone_refuses = true;
	call_as((struct plx_rpc_call){.method = LATER,
				      .key = 7,
				      .deadline_ns = 300 * PLX_NS_PER_MS},
		NULL, 0, &outcome);
	is_kept(1);
	cut_link();
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_PEER_DOWN);
	assert_int_equal(gone_count, 0);
	for (int i = 0; i < 3000 && !gone_count; i++)
		pump_ms(1);
	assert_int_equal(gone_count, 1);
	assert_int_equal(service_stats().open, 0);
	kept[0] = NULL;
}

TEST(a_key_that_runs_still)
{
	struct outcome outcome;

	start("tcp");
	call_retry(LATER, 7, 60 * PLX_NS_PER_S, &outcome);
	is_kept(1);
	for (int i = 0; i < 3; i++) {
		cut_link();
		pump_ms(50);
		wait_up(caller);
		pump_ms(10);
	}
	assert_int_equal(outcome.count, 0);
	assert_int_equal(service_stats().open, 2); /* it, and the one that waits for it */
	reply_to(0, "late");
	expect_reply(&outcome, "late");
	assert_int_equal(handled_count, 1);
	assert_int_equal(client_stats().retried, 3);
}

static void come_anew(char *address)
{
	snprintf(address, PLX_ADDRESS_MAX, "%s", plx_rpc_service_address(service, 0));
	destroy_service(&service);
	for (int i = 0; i < 3000 && plx_rpc_client_is_up(caller); i++)
		pump_ms(1);
	service = make_service(address, NULL);
}

/* Another service does not know the key. */
TEST(a_service_that_has_ended)
{
	struct outcome outcome;
	char address[PLX_ADDRESS_MAX];

	start("tcp");
	call_retry(LATER, 7, 5 * PLX_NS_PER_S, &outcome);
	is_kept(1);
	come_anew(address);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_PEER_DOWN);
	assert_true(outcome.may_have_run);
	assert_int_equal(handled_count, 1);
	call_retry(ECHO, 7, 0, &outcome);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
}

TEST(without_a_key_another_one_may_have_it)
{
	struct outcome outcome;
	char address[PLX_ADDRESS_MAX];

	start("tcp");
	call_retry(LATER, 0, 5 * PLX_NS_PER_S, &outcome);
	is_kept(1);
	come_anew(address);
	is_kept(2);
	reply_to(1, "yes");
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
}

/* A draining service answers what it has run, even on another link; its refusal of the rest does
 * not let another service run it. */
TEST(a_key_and_a_drain)
{
	struct outcome outcome;

	start("tcp");
	call_retry(LATER, 7, 2 * PLX_NS_PER_S, &outcome);
	is_kept(1);
	cut_link();
	wait_up(caller);
	pump_ms(10);
	plx_rpc_service_drain(service);
	pump_ms(20);
	assert_int_equal(outcome.count, 0);
	reply_to(0, "late");
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_OK);
	assert_int_equal(handled_count, 1);
}

TEST(the_deadline_holds)
{
	struct outcome with_key, without;

	start("tcp");
	call_retry(LATER, 7, 200 * PLX_NS_PER_MS, &with_key);
	call_retry(LATER, 0, 200 * PLX_NS_PER_MS, &without);
	is_kept(2);
	destroy_service(&service);
	wait_done(&with_key);
	wait_done(&without);
	assert_int_equal(with_key.status, PLX_RPC_PEER_DOWN);
	assert_int_equal(without.status, PLX_RPC_PEER_DOWN);
	assert_true(with_key.may_have_run && without.may_have_run);
	assert_int_equal(client_stats().waiting, 0);
	assert_int_equal(caller->request_bytes, 0);
}

TEST(what_is_tried_again_can_be_cancelled)
{
	struct plx_rpc_call call = {.method = LATER, .key = 7, .retry = true};
	struct outcome outcome;
	plx_rpc_call_id id;

	/* Random, so it is long in tests where it must not end. */
	rpc_start("tcp", NULL,
		  &(struct plx_rpc_client_attr){.deadline_ns = 3600 * PLX_NS_PER_S,
						.reconnect_min_ns = 3600 * PLX_NS_PER_S});
	id = call_as(call, NULL, 0, &outcome);
	is_kept(1);
	cut_link();
	for (int i = 0; i < 3000 && client_stats().waiting == 0; i++)
		pump_ms(1);
	assert_int_equal(client_stats().waiting, 1);
	assert_int_equal(plx_rpc_cancel(caller, id), 0);
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_CANCELLED);
	assert_true(outcome.may_have_run);
	assert_int_equal(client_stats().waiting, 0);
}

/* Past half of the time that keys are remembered, nothing is certain. */
TEST(too_late_to_ask)
{
	struct plx_rpc_service_attr service_attr = {.key_ns = 100 * PLX_NS_PER_MS};
	struct plx_rpc_client_attr client_attr = {.reconnect_min_ns = PLX_NS_PER_MS};
	struct outcome outcome;

	rpc_start("tcp", &service_attr, &client_attr);
	call_retry(LATER, 7, 5 * PLX_NS_PER_S, &outcome);
	is_kept(1);
	pump_ms(80);
	cut_link();
	wait_done(&outcome);
	assert_int_equal(outcome.status, PLX_RPC_PEER_DOWN);
	assert_true(outcome.may_have_run);
}

/* No attempt extends the range beyond that. */
static void refused_on_this_host_it_is_tried_again_within_50_ms(const char *provider)
{
	rpc_start(provider, NULL, NULL);
	destroy_service(&service);
	pump_ms(400);
	for (int i = 0; i < 3000 && caller->channels[0].session.state != PLX_CONNECTOR_WAITING; i++)
		pump_ms(1);
	assert_int_equal(caller->channels[0].session.state, PLX_CONNECTOR_WAITING);
	assert_in_range(caller->channels[0].session.backoff.attempts, 1, 3);
}

TEST(refused_on_this_host_tcp)
{
	refused_on_this_host_it_is_tried_again_within_50_ms("tcp");
}

TEST(refused_on_this_host_shm)
{
	refused_on_this_host_it_is_tried_again_within_50_ms("shm");
}

PLX_TEST_MAIN()
