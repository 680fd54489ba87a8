/* SPDX-License-Identifier: BSD-3-Clause */
/* Services on two lcores, replies from other lcores than the request's, waiting threads, and misuse
 * on another lcore. */
#include "log_capture.h"
#include "misuse.h"
#include "rpc_fixture.h"

#include <pthread.h>

#define CALLS 200

/* The service is on lcore 1, the client on this one. */
static void start_two_lcores(plx_rpc_handler_fn handler)
{
	struct plx_rpc_method method = {.id = ECHO, .name = "echo", .handler = handler};
	struct plx_listen_attr listen = {.spread = PLX_SPREAD_ROUND_ROBIN,
					 .lcores = {UINT64_C(1) << 1}};

	fixture_start("tcp", true);
	worker_start();
	service = make_service_of(&method, 1, here("0"), NULL, &listen);
	caller = make_client_of(service, NULL);
	wait_up(caller);
}

static void stop_two_lcores(void)
{
	plx_rpc_client_destroy(caller);
	assert_int_equal(plx_rpc_service_finish(service, 3 * PLX_NS_PER_S), 0);
	assert_int_equal(service_stats().clients, 0);
	plx_rpc_service_destroy(service);
	pump_ms(20);
	worker_stop();
	fixture_stop();
}

static _Atomic unsigned on_lcore_1, elsewhere;

static void on_counted_echo(struct plx_rpc_request *request, const void *data, uint32_t length,
			    void *arg)
{
	on_lcore_1 += plx_lcore_id() == 1;
	plx_rpc_reply(request, data, length);
}

/* The request goes to lcore 0, which replies. */
static void reply_here(void *arg)
{
	assert_works(plx_rpc_reply(arg, "from afar", 9));
	elsewhere++;
}

static void on_send_away(struct plx_rpc_request *request, const void *data, uint32_t length,
			 void *arg)
{
	if (plx_lcore_send(0, reply_here, request) != 0)
		plx_rpc_refuse(request, PLX_RPC_BUSY, 0);
}

PLX_TEST(another_lcore_may_send_a_reply)
{
	static struct outcome outcomes[CALLS];

	elsewhere = 0;
	start_two_lcores(on_send_away);
	for (int i = 0; i < CALLS; i++)
		call_it(ECHO, NULL, 0, &outcomes[i]);
	for (int i = 0; i < CALLS; i++)
		expect_reply(&outcomes[i], "from afar");
	assert_int_equal(elsewhere, CALLS);
	stop_two_lcores();
}

/* Turn the loop until the thread has ended. Return: its result. */
static void *result_of(pthread_t thread)
{
	void *result;

	PUMP_UNTIL(pthread_tryjoin_np(thread, &result) == 0);
	return result;
}

static void *call_many(void *arg)
{
	uintptr_t mine = (uintptr_t)arg;
	intptr_t wrong = 0;

	for (uint32_t i = 0; i < CALLS; i++) {
		struct plx_rpc_call call = {.method = ECHO, .deadline_ns = 10 * PLX_NS_PER_S};
		uint64_t sent = mine << 32 | i, got = 0;
		struct plx_rpc_result answer;

		if (plx_rpc_call_wait(caller, &call, &sent, sizeof(sent), &got, sizeof(got),
				      &answer) != 0 ||
		    answer.status != PLX_RPC_OK || answer.length != sizeof(got) || got != sent)
			wrong++;
	}
	return (void *)wrong;
}

PLX_TEST(threads_may_wait)
{
	pthread_t threads[3];

	on_lcore_1 = 0;
	start_two_lcores(on_counted_echo);
	threads_start(threads, PLX_ARRAY_LEN(threads), call_many, NULL, 1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(threads); i++)
		assert_null(result_of(threads[i]));
	assert_int_equal(on_lcore_1, PLX_ARRAY_LEN(threads) * CALLS);
	stop_two_lcores();
}

static void *call_what_fails(void *arg)
{
	struct plx_rpc_call unknown = {.method = 4711};
	struct plx_rpc_result answer;
	char room[2];
	intptr_t wrong = 0;

	wrong += plx_rpc_call_wait(caller, &unknown, NULL, 0, NULL, 0, &answer) != 0;
	wrong += answer.status != PLX_RPC_UNKNOWN;
	unknown.method = ECHO;
	wrong += plx_rpc_call_wait(caller, &unknown, "long", 4, room, sizeof(room), &answer) != 0;
	wrong += answer.status != PLX_RPC_OK || answer.length != 4 || memcmp(room, "lo", 2) != 0;
	wrong += plx_rpc_call_wait(caller, &unknown, "long", PLX_RPC_PAYLOAD_MAX + 1, NULL, 0,
				   &answer) != -EMSGSIZE;
	wrong += !strstr(plx_error(), "a request of");
	wrong += plx_rpc_call_wait(caller, &unknown, NULL, 5, NULL, 0, &answer) != -EINVAL;
	wrong += plx_rpc_call_wait(caller, &unknown, NULL, 0, NULL, 5, &answer) != -EINVAL;
	wrong += plx_rpc_call_wait(caller, &unknown, NULL, 0, NULL, 0, NULL) != -EINVAL;
	return (void *)wrong;
}

PLX_TEST(waiting_threads_get_errors)
{
	struct plx_rpc_call call = {.method = ECHO};
	struct plx_rpc_result answer;
	pthread_t thread;

	start_two_lcores(on_counted_echo);
	assert_int_equal(plx_rpc_call_wait(caller, &call, NULL, 0, NULL, 0, &answer), -EDEADLK);
	assert_int_equal(pthread_create(&thread, NULL, call_what_fails, NULL), 0);
	assert_null(result_of(thread));
	stop_two_lcores();
}

/* Lcore 1 may handle the drain while the service is being destroyed. */
PLX_TEST(a_service_destroyed_while_an_lcore_drains_it)
{
	struct plx_rpc_service *drained;
	uint64_t before;

	fixture_start("tcp", true);
	worker_start();
	before = zone_bytes_used();
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(plx_rpc_service_create(NULL, &drained), 0);
		plx_rpc_service_drain(drained);
		plx_rpc_service_destroy(drained);
	}
	PUMP_UNTIL(zone_bytes_used() == before); /* lcore 1 ends its parts in its loop */
	worker_stop();
	fixture_stop();
}

static struct plx_rpc_result late_answer;

static void *call_within_time(uint32_t method, uint64_t deadline_ns)
{
	const struct plx_rpc_call call = {.method = method, .deadline_ns = deadline_ns};

	memset(&late_answer, 'x', sizeof(late_answer));
	return (void *)(intptr_t)plx_rpc_call_wait(caller, &call, "x", 1, NULL, 0, &late_answer);
}

static void *call_briefly(void *arg)
{
	return call_within_time(ECHO, 10 * PLX_NS_PER_MS);
}

static void *call_a_kept_one(void *arg)
{
	return call_within_time(LATER, PLX_NS_PER_S);
}

static void expect_deadline(bool may_have_run)
{
	assert_int_equal(late_answer.status, PLX_RPC_DEADLINE);
	assert_int_equal(late_answer.may_have_run, may_have_run);
	assert_int_equal(late_answer.length, 0);
	assert_null(late_answer.data);
}

PLX_TEST(a_thread_does_not_wait_for_an_lcore_without_a_loop)
{
	rpc_start("tcp", NULL, NULL);
	log_capture();
	for (int i = 0; i < 3; i++) {
		assert_null(run_in_thread(call_briefly, NULL));
		expect_deadline(false);
	}
	plx_log_set_sink(NULL, NULL);
	assert_int_equal(log_count("plx_rpc_call_wait: lcore 0, which owns the client, does not "
				   "run its loop"),
			 1);
	pump_ms(10); /* they were withdrawn */
	assert_int_equal(client_stats().calls, 0);
	call_expecting(PLX_RPC_OK, ECHO, "x", 1, &outcome);
	assert_int_equal(handled_count, 1);
	rpc_stop();
}

/* The loop ends while a call is open. The lcore ends that call later. */
PLX_TEST(a_thread_does_not_wait_for_a_loop_that_has_ended)
{
	pthread_t thread;
	void *rc;

	rpc_start("tcp", NULL, NULL);
	assert_int_equal(pthread_create(&thread, NULL, call_a_kept_one, NULL), 0);
	PUMP_UNTIL(kept_count == 1);
	pthread_join(thread, &rc);
	assert_null(rc);
	expect_deadline(true);
	assert_int_equal(client_stats().open, 1);
	reply_to(0, "late");
	PUMP_UNTIL(client_stats().open == 0);
	rpc_stop();
}

static struct plx_rpc_request *taken;
static _Atomic unsigned taken_count;

static void on_take(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	taken = request;
	taken_count++;
}

PLX_TEST(a_reply_after_its_service_ended_is_dropped)
{
	taken_count = 0;
	start_two_lcores(on_take);
	call_it(ECHO, NULL, 0, &outcome);
	PUMP_UNTIL(taken_count >= 1);
	plx_rpc_service_destroy(service);
	expect_status(&outcome, PLX_RPC_PEER_DOWN);
	pump_ms(20);
	/* In vain; and the last of it is freed. */
	assert_int_equal(plx_rpc_reply(taken, "x", 1), 0);
	plx_rpc_client_destroy(caller);
	pump_ms(50);
	worker_stop();
	fixture_stop();
}

/* Ends, while the other lcore runs handlers. unit_ends tests more, on one lcore. */

static unsigned replies;

static void call_again(const struct plx_rpc_result *result, void *arg)
{
	struct plx_rpc_call call = {.method = ECHO, .done = call_again};

	if (result->status != PLX_RPC_OK)
		return;
	if (++replies == 500) {
		assert_fails(plx_rpc_service_finish(service, PLX_NS_PER_S), -EBUSY,
			     "plx_rpc_service_finish: a callback of lcore 0 makes this call");
		plx_rpc_service_drain(service);
		destroy_service(&service);
	}
	assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
}

PLX_TEST(a_service_may_end_in_a_callback_while_another_lcore_runs_its_handlers)
{
	struct plx_rpc_call call = {.method = ECHO, .done = call_again};

	replies = 0;
	start_two_lcores(on_counted_echo);
	for (int i = 0; i < 16; i++)
		assert_works(plx_rpc_call_start(caller, &call, "x", 1, NULL));
	PUMP_UNTIL(!service);
	pump_ms(5);
	destroy_caller();
	PUMP_UNTIL(!plx_fabric_open_count());
	worker_stop();
	fixture_stop();
}

static void end_service_and_reply(struct plx_task *task, void *arg)
{
	destroy_service(&service);
	assert_true(plx_rpc_request_is_gone(kept[0]));
	reply_to(0, "");
}

PLX_TEST(a_service_may_be_destroyed_inside_its_plx_rpc_service_finish)
{
	struct plx_task task;

	rpc_start("tcp", NULL, NULL);
	call_it(LATER, NULL, 0, &outcome);
	is_kept(1);
	plx_task_init(&task, end_service_and_reply, NULL);
	plx_task_schedule(&task);
	assert_int_equal(plx_rpc_service_finish(service, 5 * PLX_NS_PER_S), 0);
	assert_null(service);
	rpc_stop();
}

static void set_up(void)
{
	rpc_start("tcp", NULL, NULL);
}

MISUSE(plx_rpc_call_start, caller, &(struct plx_rpc_call){.method = ECHO}, "x", 1, NULL)
MISUSE(plx_rpc_cancel, caller, 1)
MISUSE(plx_rpc_client_is_up, caller)
MISUSE(plx_rpc_client_destroy, caller)
MISUSE(plx_rpc_service_drain, service)
MISUSE(plx_rpc_service_destroy, service)

PLX_TEST(clients_and_services_may_be_used_only_on_their_lcore)
{
	assert_misuses(set_up);
}

PLX_TEST_MAIN()
