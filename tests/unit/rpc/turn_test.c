/* SPDX-License-Identifier: BSD-3-Clause */
/* Services and clients whose turns have time for one record: they keep their place in a batch. */
#include "rpc_fixture.h"

#include "fabric_lcore.h"

#define COUNT 60

static unsigned turns, last_turn, crowded; /* a turn with two completions is crowded */
static unsigned handled_in_turn, handled_before;

static int count_turn(void *arg, uint64_t now_ns)
{
	unsigned now = handled_count - handled_before;

	turns++;
	handled_before = handled_count;
	if (now > handled_in_turn)
		handled_in_turn = now;
	return 0;
}

static struct plx_poller *turn_counter;
static _Atomic unsigned done_count;
static unsigned out_of_order;
static unsigned statuses[PLX_RPC_STATUS_COUNT];

static int up(void **state)
{
	kept_count = gone_count = handled_count = 0;
	done_count = out_of_order = 0;
	memset(statuses, 0, sizeof(statuses));
	fixture_start_as(&(struct plx_fabric_conf){.provider = fixture_provider, .turn_max = 1},
			 false);
	turns = crowded = handled_in_turn = handled_before = 0;
	last_turn = UINT32_MAX;
	assert_works(plx_poller_add("turns", count_turn, NULL, &turn_counter));
	service = make_service(here("0"), NULL);
	caller = make_client_of(service, NULL);
	wait_up(caller);
	return 0;
}

PLX_FIXTURE(down, 0, (plx_poller_remove(turn_counter), rpc_stop()))

#undef TEST
#define TEST(name) PLX_TEST_WITH(name, up, down)

static void note_done(const struct plx_rpc_result *result, void *arg)
{
	out_of_order += (uintptr_t)arg != done_count;
	done_count++;
	statuses[result->status]++;
}

/* A completion of the loop, not of a call that cancels it. */
static void note_done_in_turn(const struct plx_rpc_result *result, void *arg)
{
	crowded += turns == last_turn;
	last_turn = turns;
	note_done(result, arg);
}

/* They leave in one batch. */
static void call_all(uint32_t method, plx_rpc_done_fn done)
{
	for (uintptr_t i = 0; i < COUNT; i++) {
		struct plx_rpc_call call = {.method = method, .done = done, .arg = (void *)i};

		assert_works(plx_rpc_call_start(caller, &call, "abcd", 4, NULL));
	}
}

TEST(a_batch_of_requests_is_served_one_a_turn)
{
	call_all(ECHO, note_done_in_turn);
	PUMP_UNTIL(done_count == COUNT);
	assert_int_equal(statuses[PLX_RPC_OK], COUNT);
	assert_int_equal(out_of_order, 0);
	assert_int_equal(crowded, 0);
	assert_int_equal(handled_in_turn, 1);
}

/* They arrive in two batches, the second one while the first is held. */
static void reply_to_all(void)
{
	for (unsigned i = 0; i < COUNT; i++) {
		reply_to(i, "efgh");
		if (i == COUNT / 2)
			PUMP_UNTIL(done_count >= 1);
	}
}

TEST(a_batch_of_replies_is_delivered_one_a_turn_before_the_end_of_its_link)
{
	call_all(LATER, note_done_in_turn);
	is_kept(COUNT);
	reply_to_all();
	pump_until(&done_count, 2, 5000);
	destroy_service(&service);
	assert_in_range(done_count, 1, COUNT - 1);
	PUMP_UNTIL(done_count == COUNT);
	assert_int_equal(statuses[PLX_RPC_OK], COUNT);
	assert_int_equal(out_of_order, 0);
	assert_int_equal(crowded, 0);
	PUMP_UNTIL(!plx_rpc_client_is_up(caller));
}

TEST(a_client_may_be_destroyed_while_replies_wait)
{
	call_all(LATER, note_done);
	is_kept(COUNT);
	reply_to_all();
	destroy_caller();
	assert_int_equal(done_count, COUNT);
	assert_int_equal(fabric_home()->rest_count, 0);
}

/* The rest of its batch does not run. */
TEST(a_client_may_end_while_its_requests_wait)
{
	call_all(SLOW, note_done);
	while (!handled_count)
		plx_loop_turn();
	destroy_caller();
	PUMP_UNTIL(plx_fabric_open_count() == 1);
	assert_in_range(handled_count, 1, COUNT - 1);
	assert_int_equal(fabric_home()->rest_count, 0);
}

FIXTURE_MAIN("tcp", "shm")
