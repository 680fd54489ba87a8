/* SPDX-License-Identifier: BSD-3-Clause */
/* What ends something, in each callback of clients and services: it works there, or returns -EBUSY
 * before any effect. */
#include "rpc_fixture.h"

enum { ACT = 100, HOLD = 101 };

static struct plx_rpc_client *other; /* of the same service */
static struct outcome outcomes[8];   /* of all calls */
static unsigned call_count;
static plx_rpc_call_id other_call; /* of `caller` */

/* What a callback does, once. */
static struct {
	void (*act)(void);
	unsigned skip; /* callbacks before that */
	unsigned times;
	bool is_ending; /* `caller` is being destroyed */
} todo;

static uint32_t handlers_lcore;
static bool gone_acts, place_acts; /* these callbacks too, not only those that are named so */

static void act(void)
{
	if (todo.skip) {
		todo.skip--;
		return;
	}
	if (todo.times++ == 0)
		todo.act();
}

/* Ending ------------------------------------------------------------------------------------ */

static void end_caller(void)
{
	if (!caller)
		return;
	todo.is_ending = true; /* its other callbacks destroy it too */
	plx_rpc_client_destroy(caller);
	caller = NULL;
}

static void end_other(void)
{
	plx_rpc_client_destroy(other);
	other = NULL;
}

static void end_both(void)
{
	end_other();
	end_caller();
}

static void cancel_call(void)
{
	if (caller && !todo.is_ending)
		plx_rpc_cancel(caller, other_call);
}

static void drain(void)
{
	plx_rpc_service_drain(service);
	assert_null(plx_rpc_service_address(service, 0));
}

static void finish(void)
{
	const char *address = plx_rpc_service_address(service, 0); /* NULL: it drains already */

	assert_fails(plx_rpc_service_finish(service, PLX_NS_PER_S), -EBUSY,
		     "plx_rpc_service_finish: a callback of lcore 0 makes this call");
	assert_ptr_equal(plx_rpc_service_address(service, 0), address);
}

static void end_service_now(void)
{
	destroy_service(&service);
}

static void reply_to_kept(void)
{
	for (unsigned i = 0; i < kept_count; i++)
		reply_to(i, "");
	kept_count = 0;
}

static void refuse_kept(void)
{
	for (unsigned i = 0; i < kept_count; i++)
		assert_int_equal(plx_rpc_refuse(kept[i], PLX_RPC_DENIED, 0), 0);
	kept_count = 0;
}

static void end_service_and_reply(void)
{
	end_service_now();
	if (kept_count && handlers_lcore == plx_lcore_id())
		assert_true(plx_rpc_request_is_gone(kept[0]));
	reply_to_kept();
}

static void reply_and_end_service(void)
{
	reply_to_kept();
	end_service_now();
}

static void drain_and_end_all(void)
{
	drain();
	end_service_and_reply();
	end_both();
}

static const struct ending {
	const char *name;
	void (*act)(void);
} endings[] = {
	{"plx_rpc_client_destroy", end_caller},
	{"plx_rpc_client_destroy of another", end_other},
	{"plx_rpc_client_destroy of both", end_both},
	{"plx_rpc_cancel", cancel_call},
	{"plx_rpc_service_drain", drain},
	{"plx_rpc_service_finish", finish},
	{"plx_rpc_service_destroy", end_service_now},
	{"plx_rpc_service_destroy, plx_rpc_reply", end_service_and_reply},
	{"plx_rpc_reply, plx_rpc_service_destroy", reply_and_end_service},
	{"plx_rpc_reply", reply_to_kept},
	{"plx_rpc_refuse", refuse_kept},
	{"all", drain_and_end_all},
};

/* Callbacks --------------------------------------------------------------------------------- */

static void note(const struct plx_rpc_result *result, void *arg)
{
	note_outcome(result, arg);
	if (todo.is_ending)
		plx_rpc_client_destroy(caller); /* again */
}

static void note_and_act(const struct plx_rpc_result *result, void *arg)
{
	note_outcome(result, arg);
	act();
}

static plx_rpc_call_id start_call(struct plx_rpc_client *from, struct plx_rpc_call call)
{
	plx_rpc_call_id id;

	call.done = call.done ?: note;
	call.arg = &outcomes[call_count++];
	assert_works(plx_rpc_call_start(from, &call, "x", 1, &id));
	return id;
}

/* Its callback acts. */
static plx_rpc_call_id start_acting(uint32_t method, uint64_t deadline_ns)
{
	return start_call(caller, (struct plx_rpc_call){.method = method,
							.deadline_ns = deadline_ns,
							.done = note_and_act});
}

static void reply_comes(void)
{
	start_acting(ECHO, 0);
	start_call(caller, (struct plx_rpc_call){.method = ECHO}); /* in the same batch */
}

static void reply_to_saved_comes(void)
{
	start_call(caller,
		   (struct plx_rpc_call){.method = ECHO, .retry = true, .done = note_and_act});
	start_call(caller, (struct plx_rpc_call){.method = ECHO, .retry = true});
}

static void deadline_passes(void)
{
	start_acting(HOLD, PLX_NS_PER_MS);
}

static void call_is_cancelled(void)
{
	plx_rpc_call_id id = start_acting(HOLD, 0);

	start_call(caller, (struct plx_rpc_call){.method = ECHO, .deadline_ns = 1});
	assert_int_equal(plx_rpc_cancel(caller, id), 0);
}

static void client_is_destroyed(void)
{
	struct plx_rpc_client *ends = caller;

	start_acting(HOLD, 0);
	todo.is_ending = true;
	plx_rpc_client_destroy(ends);
	caller = NULL;
}

static void handler_runs(void)
{
	start_call(caller, (struct plx_rpc_call){.method = ACT});
	start_call(caller, (struct plx_rpc_call){.method = ECHO});
}

static void keyed_handler_runs(void)
{
	start_call(caller, (struct plx_rpc_call){.method = ACT, .key = 1});
	start_call(caller, (struct plx_rpc_call){.method = ACT, .key = 1});
}

static void handler_runs_in_a_later_turn(void)
{
	todo.skip = 1;
	for (int i = 0; i < 3; i++)
		start_call(caller, (struct plx_rpc_call){.method = ACT});
}

/* A raw client of the service, whose link can be lost. */
static void send_raw(uint32_t kind, uint64_t key, uint64_t deadline_us)
{
	struct rpc_header header = {.kind = (uint8_t)kind,
				    .flags = key ? RPC_FLAG_KEY : 0,
				    .length = key ? RPC_KEY_BYTES : 0,
				    .method = HOLD,
				    .remaining_us = (uint32_t)deadline_us};
	uint64_t record[RPC_RECORD_BYTES / 8 + 1];

	memcpy(rpc_header_write(record, &header), &key, sizeof(key));
	assert_int_equal(plx_link_send(client.link, record, RPC_RECORD_BYTES + header.length), 0);
}

static void raw_client_calls(uint64_t key, uint64_t deadline_us)
{
	struct plx_link_attr link = {.events = &side_events, .user = &client};
	unsigned before = kept_count;

	gone_acts = true;
	rpc_say(&link, RPC_CLIENT);
	assert_works(plx_link_connect(plx_rpc_service_address(service, 0), &link, &client.link));
	assert_true(pump_until(&client.opened, 1, 3000));
	send_raw(RPC_REQUEST, key, deadline_us);
	is_kept(before + 1);
}

static void request_is_cancelled(void)
{
	raw_client_calls(0, PLX_NS_PER_S);
	send_raw(RPC_CANCEL, 0, 0);
}

static void link_of_request_ends(void)
{
	raw_client_calls(0, PLX_NS_PER_S);
	plx_link_abort(client.link);
}

/* Of a request with a key, which is all that the service has. */
static void lose_the_only_request(uint64_t deadline_us)
{
	end_both();
	reply_to_kept();
	raw_client_calls(7, deadline_us);
	PUMP_UNTIL(service_stats().open == 1);
	plx_link_abort(client.link);
	PUMP_UNTIL(service_stats().clients == 0);
}

static void deadline_of_lost_request_passes(void)
{
	lose_the_only_request(20 * 1000);
}

static void service_of_lost_request_drains(void)
{
	lose_the_only_request(UINT32_MAX - 1);
	plx_rpc_service_drain(service);
}

static void client_connects(void)
{
	struct plx_link_attr link = {.events = &side_events, .user = &client};

	place_acts = true;
	rpc_say(&link, RPC_CLIENT);
	assert_works(plx_link_connect(plx_rpc_service_address(service, 0), &link, &client.link));
}

/* A client of a raw service, whose link can be lost. */
static struct plx_listener *raw_listener;

static void link_of_call_ends(void)
{
	struct plx_link_attr link = {0};
	plx_rpc_call_id id;

	plx_rpc_client_destroy(caller);
	rpc_say(&link, RPC_SERVER);
	raw_listener = fixture_listen(here("0"), &link);
	caller = make_client((const char *const[]){plx_listener_address(raw_listener), NULL}, NULL);
	wait_up(caller);
	id = start_acting(HOLD, 0);
	other_call = start_call(caller, (struct plx_rpc_call){.method = HOLD});
	assert_true(pump_until(&server.messages, 1, 3000));
	assert_true(id != other_call);
	plx_link_abort(server.link);
}

static const struct callback {
	const char *name;
	void (*cause)(void);
} callbacks[] = {
	{"done: a reply", reply_comes},
	{"done: a reply to a saved request", reply_to_saved_comes},
	{"done: the deadline", deadline_passes},
	{"done: cancelled", call_is_cancelled},
	{"done: the link has ended", link_of_call_ends},
	{"done: the client is destroyed", client_is_destroyed},
	{"handler", handler_runs},
	{"handler of a key", keyed_handler_runs},
	{"handler in a later turn", handler_runs_in_a_later_turn},
	{"gone: cancelled", request_is_cancelled},
	{"gone: the link has ended", link_of_request_ends},
	{"gone: the deadline of a lost client", deadline_of_lost_request_passes},
	{"gone: the service drains", service_of_lost_request_drains},
	{"place", client_connects},
};

static void on_act(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	on_later(request, data, length, arg);
	act();
}

static void on_hold_gone(struct plx_rpc_request *request, void *arg)
{
	if (gone_acts)
		act();
}

static uint32_t place(struct plx_listener *listener, const struct sockaddr *peer, void *arg)
{
	if (place_acts)
		act();
	return handlers_lcore;
}

/* Each pair ----------------------------------------------------------------------------------- */

static void start_service(void)
{
	static const struct plx_rpc_method acting[] = {
		{.id = ECHO, .name = "echo", .handler = on_echo},
		{.id = ACT, .name = "act", .handler = on_act},
		{.id = HOLD, .name = "hold", .handler = on_later, .gone = on_hold_gone},
	};
	struct plx_rpc_service_attr one_a_turn = {.turn_max = 1};
	struct plx_listen_attr listen = {.spread = PLX_SPREAD_CALLBACK, .place = place};

	assert_works(plx_rpc_service_create(&one_a_turn, &service));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(acting); i++)
		assert_works(plx_rpc_service_add(service, &acting[i]));
	assert_works(plx_rpc_service_listen(service, here("0"), &listen));
}

static void begin(void (*fn)(void))
{
	kept_count = call_count = 0;
	gone_acts = place_acts = false;
	memset(outcomes, 0, sizeof(outcomes));
	memset(&todo, 0, sizeof(todo));
	fixture_renew_sides();
	start_service();
	caller = make_client_of(service, NULL);
	other = make_client_of(service, NULL);
	wait_up(caller);
	wait_up(other);
	start_call(other, (struct plx_rpc_call){.method = HOLD});
	other_call = start_call(caller, (struct plx_rpc_call){.method = HOLD});
	is_kept(2);
	todo.act = fn;
}

static void end(void)
{
	todo.act = NULL;
	if (other)
		end_other();
	destroy_caller();
	reply_to_kept();
	destroy_service(&service);
	plx_listener_close(raw_listener);
	raw_listener = NULL;
	if (client.link)
		plx_link_abort(client.link);
	PUMP_UNTIL(!plx_fabric_open_count());
	for (unsigned i = 0; i < call_count; i++)
		assert_int_equal(outcomes[i].count, 1);
}

static void try_pair(const struct callback *callback, const struct ending *ending)
{
	print_message("%s in %s\n", ending->name, callback->name);
	begin(ending->act);
	callback->cause();
	PUMP_UNTIL(todo.times);
	for (int turn = 0; turn < 20; turn++)
		plx_loop_turn();
	end();
}

PLX_TEST(each_call_that_ends_something_may_be_made_in_each_callback)
{
	fixture_start("tcp", false);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(callbacks); i++) {
		for (unsigned j = 0; j < PLX_ARRAY_LEN(endings); j++)
			try_pair(&callbacks[i], &endings[j]);
	}
	fixture_stop(); /* nothing is left */
}

static void act_in_task(struct plx_task *task, void *arg)
{
	act();
}

PLX_TEST(a_service_may_be_destroyed_inside_its_plx_rpc_service_finish)
{
	struct plx_task task;

	fixture_start("tcp", false);
	begin(end_service_and_reply);
	plx_task_init(&task, act_in_task, NULL);
	plx_task_schedule(&task);
	assert_int_equal(plx_rpc_service_finish(service, 5 * PLX_NS_PER_S), 0);
	assert_int_equal(todo.times, 1);
	end();
	fixture_stop();
}

/* Handlers run on lcore 1 meanwhile. */
static unsigned replies;

static void call_again(const struct plx_rpc_result *result, void *arg)
{
	struct plx_rpc_call call = {.method = ECHO, .done = call_again};

	if (result->status == PLX_RPC_OK && ++replies == 500)
		act();
	if (result->status == PLX_RPC_OK && !todo.is_ending)
		assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
}

static void end_during_handlers(void (*fn)(void))
{
	struct plx_rpc_call call = {.method = ECHO, .done = call_again};

	replies = 0;
	fixture_start("tcp", true);
	handlers_lcore = 1;
	worker_start();
	begin(fn);
	for (int i = 0; i < 16; i++)
		assert_int_equal(plx_rpc_call_start(caller, &call, "x", 1, NULL), 0);
	PUMP_UNTIL(todo.times);
	pump_ms(5);
	end();
	worker_stop();
	handlers_lcore = 0;
	fixture_stop();
}

PLX_TEST(a_service_may_end_in_a_callback_while_other_lcores_run_its_handlers)
{
	end_during_handlers(end_service_now);
	end_during_handlers(end_service_and_reply);
	end_during_handlers(drain);
	end_during_handlers(finish);
	end_during_handlers(drain_and_end_all);
}

PLX_TEST_MAIN()
