/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"
#include "log_capture.h"

static uintptr_t received[4 * PLX_LANE_SLOTS_DEFAULT];
static _Atomic unsigned received_count;

static void take(void *arg)
{
	unsigned i = atomic_fetch_add(&received_count, 1);

	if (i < PLX_ARRAY_LEN(received))
		received[i] = (uintptr_t)arg;
}

PLX_FIXTURE(one_receiver, one_lcore(state), atomic_store(&received_count, 0))
PLX_FIXTURE(three_receivers, three_lcores(state), atomic_store(&received_count, 0))

#define ONE(test)   PLX_TEST_WITH(test, one_receiver, no_lcores)
#define THREE(test) PLX_TEST_WITH(test, three_receivers, no_lcores)

/* Between lcores ----------------------------------------------------------------------------- */

ONE(errors_name_the_lcore_or_the_missing_function)
{
	assert_fails(plx_lcore_on_room(7, NULL), -ENOENT, "plx_lcore_on_room: there is no lcore 7");
	assert_fails(plx_lcore_send(7, take, NULL), -ENOENT, "plx_lcore_send: there is no lcore 7");
	assert_int_equal(plx_lcore_send(PLX_LCORE_NONE, take, NULL), -ENOENT);
	assert_fails(plx_lcore_on_room(0, &(struct plx_task){0}), -EINVAL,
		     "plx_lcore_on_room: the task has no function");
	assert_fails(plx_lcore_send(0, NULL, NULL), -EINVAL, "plx_lcore_send: no function to call");
	assert_fails(plx_lcore_send_data(0, NULL, "", 1), -EINVAL,
		     "plx_lcore_send_data: no function to call");
	assert_int_equal(plx_loop_turn(), 0);
	lcores_down();
	assert_fails(
		plx_lcore_send(0, take, NULL), -ENOENT,
		"there is no lcore 0: Pollux is not up; call plx_eal_init or plx_app_start first");
	lcores_up(1);
}

PLX_TEST(a_send_before_memory_is_initialized_is_refused)
{
	lcores_prepare(1);
	assert_int_equal(plx_lcores_init(&lcores.conf), 0);
	assert_fails(plx_lcore_send(0, take, NULL), -ENOMEM,
		     "Pollux is not up; call plx_eal_init or plx_app_start first");
	assert_int_equal(stats_of(0).lanes, 0);
	lcores_down();
}

static void send_myself(void *arg)
{
	take(arg);
	plx_lcore_send(0, send_myself, arg);
}

ONE(a_message_that_sends_itself_lets_the_turn_end)
{
	plx_lcore_send(0, send_myself, NULL);
	assert_int_equal(plx_loop_turn(), MESSAGES_TURN_MAX);
	assert_int_equal(plx_loop_turn(), MESSAGES_TURN_MAX);
	assert_int_equal(received_count, 2 * MESSAGES_TURN_MAX);
}

static int fill_lane_to_0(void *arg)
{
	int sent = 0;

	while (plx_lcore_send(0, take, arg) == 0)
		sent++;
	return sent;
}

THREE(a_full_lane_blocks_only_its_sender)
{
	assert_int_equal(run_on(10, fill_lane_to_0, NULL), PLX_LANE_SLOTS_DEFAULT);
	assert_int_equal(stats_of(0).messages_full, 1);
	assert_int_equal(run_on(20, fill_lane_to_0, NULL), PLX_LANE_SLOTS_DEFAULT);
	assert_int_equal(stats_of(0).messages_full, 2);
	assert_int_equal(stats_of(0).lanes, 2);
	assert_int_equal(turns_until_idle(NULL), 2 * PLX_LANE_SLOTS_DEFAULT);
	assert_int_equal(stats_of(0).messages, 2 * PLX_LANE_SLOTS_DEFAULT);
	assert_int_equal(run_on(10, fill_lane_to_0, NULL), PLX_LANE_SLOTS_DEFAULT);
}

/* Sends until the lane is full, repeatedly. */
struct stream {
	struct plx_task task;
	unsigned sent, rounds, last;
};

static void stream_on(struct plx_task *task, void *arg)
{
	struct stream *stream = arg;

	stream->rounds++;
	while (stream->sent < stream->last) {
		if (plx_lcore_send(0, take, (void *)(uintptr_t)stream->sent)) {
			assert_int_equal(plx_lcore_on_room(0, task), 0);
			return;
		}
		stream->sent++;
	}
}

static int stream_from_here(void *arg)
{
	struct stream *stream = arg;

	plx_task_init(&stream->task, stream_on, stream);
	plx_task_schedule(&stream->task);
	return turns_until_idle(NULL);
}

THREE(a_sender_is_notified_when_a_full_lane_has_room)
{
	struct stream stream = {.last = 3 * PLX_LANE_SLOTS_DEFAULT};

	run_on(10, stream_from_here, &stream);
	assert_int_equal(stream.sent, PLX_LANE_SLOTS_DEFAULT);
	assert_int_equal(run_on(10, turns_until_idle, NULL), 0); /* nothing to poll meanwhile */
	while (stream.sent < stream.last) {
		turns_until_idle(NULL);
		run_on(10, turns_until_idle, NULL);
	}
	turns_until_idle(NULL);
	assert_int_equal(received_count, stream.last);
	for (uintptr_t i = 0; i < stream.last; i++)
		assert_int_equal(received[i], i);
	assert_int_equal(stream.rounds, 3);
}

static void *send_two(void *arg)
{
	plx_lcore_send(10, take, NULL);
	plx_lcore_send(10, take, NULL);
	return NULL;
}

PLX_TEST(messages_never_received_are_logged)
{
	three_receivers(state);
	send_two(NULL);
	plx_lcore_send(10, take, NULL);
	assert_int_equal(run_on(10, turns_until_idle, NULL), 3); /* these are */
	send_two(NULL);
	run_in_thread(send_two, NULL);
	plx_lcore_send(20, take, NULL);
	log_capture();
	lcores_down();
	plx_log_set_sink(NULL, NULL);
	assert_int_equal(received_count, 3);
	assert_int_equal(log_count("lcore 10 ended with 4 messages that it never received"), 1);
	assert_int_equal(log_count("lcore 20 ended with 1 message that it never received"), 1);
}

/* Payload ------------------------------------------------------------------------------------ */

static char taken[PLX_MESSAGE_BYTES + 1];
static size_t taken_bytes;
static bool taken_aligned;

static void take_data(const void *data, size_t size_bytes)
{
	taken_bytes = size_bytes;
	taken_aligned = (uintptr_t)data % 8 == 0;
	memcpy(taken, data, size_bytes);
}

ONE(a_message_carries_up_to_48_bytes)
{
	char data[PLX_MESSAGE_BYTES + 1], sent[sizeof(data)];

	for (size_t size = 0; size <= PLX_MESSAGE_BYTES; size++) {
		memset(taken, 0, sizeof(taken));
		for (size_t i = 0; i < sizeof(data); i++)
			sent[i] = data[i] = (char)(size * 3 + i + 1);
		assert_int_equal(plx_lcore_send_data(0, take_data, data, size), 0);
		memset(data, 0, sizeof(data)); /* the caller may reuse it */
		assert_int_equal(plx_loop_turn(), 1);
		assert_int_equal(taken_bytes, size);
		assert_true(taken_aligned);
		assert_memory_equal(taken, sent, size);
	}
	assert_int_equal(plx_lcore_send_data(0, take_data, NULL, 0), 0);
	assert_int_equal(plx_loop_turn(), 1);
	assert_int_equal(taken_bytes, 0);
}

ONE(a_message_longer_than_48_bytes_is_refused)
{
	char data[PLX_MESSAGE_BYTES + 1] = {0};

	assert_fails(plx_lcore_send_data(0, take_data, data, sizeof(data)), -EMSGSIZE,
		     "49 bytes: a message carries at most 48; send a pointer");
	assert_int_equal(plx_lcore_send_data(0, take_data, data, MESSAGE_ARG), -EMSGSIZE);
	assert_int_equal(plx_lcore_send_data(0, take_data, data, SIZE_MAX), -EMSGSIZE);
	assert_fails(plx_lcore_send_data(1, take_data, data, 1), -ENOENT,
		     "plx_lcore_send_data: there is no lcore 1");
	assert_int_equal(plx_loop_turn(), 0);
}

/* Threads that are not lcores ---------------------------------------------------------------- */

struct foreigner {
	unsigned count;
	unsigned sent;
	int err;
};

static void *send_some(void *arg)
{
	struct foreigner *foreigner = arg;

	while (foreigner->sent < foreigner->count && !foreigner->err) {
		foreigner->err = plx_lcore_send(0, take, (void *)(uintptr_t)foreigner->sent);
		foreigner->sent += !foreigner->err;
	}
	return NULL;
}

static struct foreigner send_from_thread(unsigned count)
{
	struct foreigner foreigner = {.count = count};

	run_in_thread(send_some, &foreigner);
	return foreigner;
}

ONE(any_thread_may_send_until_its_lane_is_full)
{
	assert_int_equal(send_from_thread(100).sent, 100);
	assert_int_equal(turns_until_idle(NULL), 100);
	for (uintptr_t i = 0; i < 100; i++)
		assert_int_equal(received[i], i);
	struct foreigner foreigner = send_from_thread(UINT32_MAX);
	assert_int_equal(foreigner.err, -EAGAIN);
	assert_int_equal(foreigner.sent, PLX_LANE_SLOTS_DEFAULT);
	assert_int_equal(stats_of(0).messages_full, 1);
	assert_int_equal(turns_until_idle(NULL), PLX_LANE_SLOTS_DEFAULT);
	assert_int_equal(send_from_thread(1).sent, 1);
}

ONE(messages_of_other_threads_and_of_lanes_share_a_turn)
{
	send_from_thread(100);
	for (uintptr_t i = 0; i < 100; i++)
		plx_lcore_send(0, take, (void *)(1000 + i));
	assert_int_equal(plx_loop_turn(), MESSAGES_TURN_MAX);
	for (uintptr_t i = 0; i < MESSAGES_TURN_MAX / 2; i++) {
		assert_int_equal(received[i], i);
		assert_int_equal(received[MESSAGES_TURN_MAX / 2 + i], 1000 + i);
	}
	assert_int_equal(turns_until_idle(NULL), 200 - MESSAGES_TURN_MAX);
}

PLX_TEST_MAIN()
