/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"

#define LANE_SLOTS 256

/* A receiver without a thread, and lanes to it. */
static struct loop loop;
static struct lane *lanes[3];
static const uint32_t senders[3] = {5, 10, 70}; /* two words of the bell */

static uintptr_t received[4 * LANE_SLOTS];
static unsigned received_count, tasks_run_count;
static struct plx_task task;

static void take(void *arg)
{
	assert_true(received_count < PLX_ARRAY_LEN(received));
	received[received_count++] = (uintptr_t)arg;
}

PLX_COUNTS(count_task, tasks_run_count, struct plx_task *the_task, void *arg)

/* The loop is also the senders'. */
static int set_up(void **state)
{
	received_count = tasks_run_count = 0;
	plx_task_init(&task, count_task, NULL);
	memset(&loop, 0, sizeof(loop));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(lanes); i++) {
		if (!lanes[i])
			lanes[i] = aligned_alloc(alignof(struct lane), lane_bytes(LANE_SLOTS));
		assert_non_null(lanes[i]);
		lane_init(lanes[i], LANE_SLOTS, 0, &loop, &loop);
		loop.in[senders[i]] = lanes[i];
	}
	return 0;
}

static int free_lanes(void **state)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(lanes); i++)
		free(lanes[i]);
	return 0;
}

static int send_fn(unsigned lane, plx_message_fn fn, uintptr_t arg)
{
	struct message message = {.fn.arg = fn, .size_bytes = MESSAGE_ARG, .arg = (void *)arg};

	return lane_send(lanes[lane], &loop.bell, senders[lane], &message);
}

static int send_to(unsigned lane, uintptr_t arg)
{
	return send_fn(lane, take, arg);
}

static unsigned fill(unsigned lane, uintptr_t arg)
{
	unsigned sent = 0;

	while (send_to(lane, arg) == 0)
		sent++;
	return sent;
}

static void drain(unsigned lane)
{
	while (lane_receive(lanes[lane], 16))
		continue;
}

static void assert_received_in_order(uintptr_t first, unsigned count)
{
	assert_int_equal(received_count, count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(received[i], first + i);
}

static bool rings(uint32_t sender)
{
	return atomic_load(&loop.bell.lanes[sender / 64]) >> sender % 64 & 1;
}

#define TEST(test) PLX_TEST_WITH(test, set_up, NULL)

/* Bursts of 1, 2, ... through a lane whose first position is `start`. */
static void pass_many(uint32_t start)
{
	uintptr_t sent = 0;

	lane_init(lanes[0], LANE_SLOTS, start, &loop, &loop);
	assert_int_equal(lane_receive(lanes[0], 16), 0);
	for (unsigned burst = 1; burst <= LANE_SLOTS; burst++) {
		received_count = 0;
		for (unsigned i = 0; i < burst; i++)
			assert_int_equal(send_to(0, sent++), 0);
		if (burst == LANE_SLOTS)
			assert_int_equal(send_to(0, 0), -EAGAIN);
		drain(0);
		assert_received_in_order(sent - burst, burst);
	}
	assert_int_equal(counter_get(&lanes[0]->full), 1);
}

TEST(a_lane_keeps_its_order_over_many_laps_and_where_its_positions_wrap)
{
	pass_many(0);
	pass_many(1);
	pass_many(LANE_SLOTS - 1);
	for (uint32_t before = 0; before <= LANE_SLOTS; before += 64)
		pass_many(UINT32_MAX - before);
}

/* A running message keeps its slot until its function returns. */
static void fill_and_look(void *arg)
{
	struct message *slot = arg;
	struct message before = *slot;

	assert_int_equal(fill(0, 0), LANE_SLOTS - 1);
	assert_memory_equal(slot, &before, sizeof(before));
	received_count++;
}

TEST(a_message_stays_while_its_function_runs)
{
	send_fn(0, fill_and_look, (uintptr_t)&lanes[0]->slots[0]);
	assert_int_equal(lane_receive(lanes[0], 1), 1);
	assert_int_equal(received_count, 1);
}

TEST(a_bit_stays_until_the_lane_is_cold)
{
	send_to(0, 1);
	send_to(1, 1);
	assert_int_equal(lanes_receive(&loop, 16), 2);
	for (unsigned i = 1; i < LANE_COLD_LOOKS; i++) {
		assert_int_equal(lanes_receive(&loop, 16), 0);
		assert_true(rings(5));
	}
	send_to(1, 2); /* this one is warm again */
	assert_int_equal(lanes_receive(&loop, 16), 1);
	assert_false(rings(5));
	assert_true(rings(10));
	for (unsigned i = 0; i < LANE_COLD_LOOKS; i++) {
		assert_true(rings(10));
		lanes_receive(&loop, 16);
	}
	assert_true(bell_is_silent(&loop.bell));
	send_to(0, 3);
	assert_true(rings(5));
	assert_int_equal(lanes_receive(&loop, 16), 1);
}

TEST(full_lanes_take_turns)
{
	unsigned count[3] = {0};

	for (unsigned lane = 0; lane < 3; lane++)
		fill(lane, lane);
	for (unsigned turn = 0; turn < 9; turn++) {
		received_count = 0;
		assert_int_equal(lanes_receive(&loop, 16), 16);
		for (unsigned i = 0; i < 16; i++)
			count[received[i]]++;
	}
	for (unsigned lane = 0; lane < 3; lane++)
		assert_int_equal(count[lane], 3 * 16);
}

TEST(one_message_passes_full_lanes)
{
	for (unsigned busy = 0; busy < 3; busy++) {
		unsigned late = (busy + 1) % 3;

		set_up(state);
		fill(busy, 1);
		assert_int_equal(lanes_receive(&loop, 16), 16);
		send_to(late, 2);
		assert_int_equal(lanes_receive(&loop, 16), 16);
		assert_int_equal(received[16], 2);
	}
}

/* Of a lane that was full, and for a task that waits after one that was cancelled. */
static void expect_room_after(uint32_t slots, unsigned taken)
{
	struct plx_task cancelled;

	plx_task_init(&cancelled, count_task, NULL);
	lane_init(lanes[0], slots, UINT32_MAX, &loop, &loop);
	fill(0, 0);
	assert_works(lane_wait("test", lanes[0], &cancelled));
	plx_task_cancel(&cancelled);
	assert_works(lane_wait("test", lanes[0], &task));
	while (taken-- > 0) {
		signals_run(&loop);
		signals_run(&loop);
		assert_int_equal(tasks_run_count, 0);
		assert_int_equal(lane_receive(lanes[0], 1), 1);
	}
	signals_run(&loop); /* the receiver sees the request */
	signals_run(&loop); /* the sender is notified */
	assert_int_equal(tasks_run_count, 1);
	assert_false(plx_task_scheduled(&task));
	assert_int_equal(signals_run(&loop), 0);
}

TEST(room_is_reported_once_half_a_lane_is_free)
{
	expect_room_after(LANE_SLOTS, LANE_SLOTS / 2);
	tasks_run_count = 0;
	expect_room_after(2, 1);
}

TEST(room_that_is_available_is_reported_at_once)
{
	assert_works(lane_wait("test", lanes[0], &task));
	assert_works(lane_wait("test", lanes[0], &task)); /* once */
	assert_int_equal(tasks_run_count, 0);
	assert_int_equal(signals_run(&loop), 1);
	assert_int_equal(tasks_run_count, 1);
	assert_int_equal(signals_run(&loop), 0);
}

static void refill(struct plx_task *the_task, void *arg)
{
	fill(0, 0);
}

TEST(a_sender_that_gets_no_room_waits_for_the_next)
{
	struct plx_task greedy;

	plx_task_init(&greedy, refill, NULL);
	fill(0, 0);
	assert_works(lane_wait("test", lanes[0], &greedy));
	assert_works(lane_wait("test", lanes[0], &task));
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(tasks_run_count, 0);
		received_count = 0;
		drain(0);
		for (unsigned i = 0; i < 4; i++) /* the receiver looks again each time */
			signals_run(&loop);
	}
	assert_int_equal(tasks_run_count, 1);
}

PLX_TEST_MAIN_WITH(NULL, free_lanes)
