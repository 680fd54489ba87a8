/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"

/* A call and its result. */
struct request {
	struct plx_call call;
	int question;
	int answer;
	uint32_t ran_on, ended_on;
	unsigned runs, ends;
	unsigned order; /* of its end among all */
	unsigned again; /* further calls to make when it ends */
};

static unsigned ended;

static int run_request(struct plx_call *call, void *arg)
{
	struct request *request = arg;

	request->ran_on = plx_lcore_id();
	request->runs++;
	return 2 * request->question;
}

static void end_request(struct plx_call *call, int result, void *arg)
{
	struct request *request = arg;

	request->answer = result;
	request->ended_on = plx_lcore_id();
	request->ends++;
	request->order = ended++;
	if (request->again) {
		request->again--;
		request->question = result;
		if (plx_lcore_call(request->ran_on, call))
			request->answer = -1;
	}
}

static void make(struct request *request, int question)
{
	*request = (struct request){
		.call = {.fn = run_request, .done = end_request, .arg = request},
		.question = question,
		.ran_on = PLX_LCORE_NONE,
		.ended_on = PLX_LCORE_NONE,
	};
}

PLX_FIXTURE(start, three_lcores(state), ended = 0)

#define TEST(test) PLX_TEST_WITH(test, start, no_lcores)

static struct request request; /* of a test with one */

TEST(a_call_runs_on_the_target_and_completes_on_the_caller)
{
	make(&request, 21);
	assert_int_equal(plx_lcore_call(10, &request.call), 0);
	assert_int_equal(turns_until_idle(NULL), 0);
	assert_int_equal(run_on(10, turns_until_idle, NULL), 1);
	assert_int_equal(request.ends, 0);
	assert_int_equal(turns_until_idle(NULL), 1);
	assert_int_equal(request.ran_on, 10);
	assert_int_equal(request.ended_on, 0);
	assert_int_equal(request.answer, 42);
	assert_int_equal(request.ends, 1);
}

TEST(a_completed_call_may_be_reused)
{
	make(&request, 1);
	request.again = 3;
	assert_int_equal(plx_lcore_call(10, &request.call), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(run_on(10, turns_until_idle, NULL), 1);
		assert_int_equal(turns_until_idle(NULL), 1);
	}
	assert_int_equal(request.answer, 16);
	assert_int_equal(request.ends, 4);
}

static void *call_from_here(void *arg)
{
	request.answer = plx_lcore_call(0, &request.call);
	return strstr(plx_error(), "plx_lcore_call: this thread is not an lcore") ? arg : NULL;
}

TEST(errors_of_calls_name_the_missing_part)
{
	make(&request, 1);
	assert_fails(plx_lcore_call(7, &request.call), -ENOENT,
		     "plx_lcore_call: there is no lcore 7");
	request.call.done = NULL;
	assert_fails(plx_lcore_call(0, &request.call), -EINVAL,
		     "plx_lcore_call: no done: give both functions");
	make(&request, 1);
	assert_non_null(run_in_thread(call_from_here, &request));
	assert_int_equal(request.answer, -ENOENT);
	assert_int_equal(turns_until_idle(NULL), 0);
}

static void ignore(void *arg)
{
}

static int fill_lane(void *arg)
{
	int sent = 0;

	while (plx_lcore_send((uint32_t)(uintptr_t)arg, ignore, NULL) == 0)
		sent++;
	return sent;
}

static int one_turn(void *arg)
{
	return plx_loop_turn();
}

TEST(responses_wait_for_room_in_order)
{
	struct request requests[3];

	assert_int_equal(run_on(10, fill_lane, (void *)0), PLX_LANE_SLOTS_DEFAULT);
	assert_int_equal(stats_of(0).messages_full, 1);
	for (unsigned i = 0; i < 3; i++) {
		make(&requests[i], (int)i);
		assert_int_equal(plx_lcore_call(10, &requests[i].call), 0);
	}
	assert_int_equal(run_on(10, one_turn, NULL), 3);
	assert_int_equal(requests[2].runs, 1);
	assert_int_equal(run_on(10, one_turn, NULL), 0);
	assert_int_equal(stats_of(0).messages_full, 4);
	assert_true(turns_until_idle(NULL) > PLX_LANE_SLOTS_DEFAULT); /* messages, and signals */
	assert_int_equal(ended, 0);
	assert_int_equal(run_on(10, one_turn, NULL), 1); /* it is notified of the room */
	assert_int_equal(run_on(10, one_turn, NULL), 0);
	assert_int_equal(turns_until_idle(NULL), 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(requests[i].answer, 2 * i);
		assert_int_equal(requests[i].ends, 1);
		assert_int_equal(requests[i].order, i);
	}
}

static int make_call_to_10(void *arg)
{
	return plx_lcore_call(10, arg);
}

/* Lcore 20 does not take its messages; lcore 0 does. */
TEST(a_full_lane_of_one_caller_delays_no_other)
{
	struct request stuck, other;

	make(&stuck, 1);
	make(&other, 2);
	run_on(10, fill_lane, (void *)20);
	run_on(10, fill_lane, (void *)0);
	assert_int_equal(run_on(20, make_call_to_10, &stuck.call), 0);
	run_on(10, one_turn, NULL);
	assert_int_equal(plx_lcore_call(10, &other.call), 0);
	run_on(10, one_turn, NULL);
	assert_int_equal(stuck.runs + other.runs, 2);
	turns_until_idle(NULL);
	run_on(10, one_turn, NULL);
	turns_until_idle(NULL);
	assert_int_equal(other.ends, 1);
	assert_int_equal(stuck.ends, 0);
	run_on(20, turns_until_idle, NULL);
	run_on(10, one_turn, NULL);
	assert_int_equal(run_on(20, turns_until_idle, NULL), 1);
	assert_int_equal(stuck.ended_on, 20);
}

PLX_TEST_MAIN()
