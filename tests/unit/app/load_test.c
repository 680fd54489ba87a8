/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring engine, with its time passed in: a host of 1 us per step. */
#include "load.h"
#include "plx_test.h"

#include <string.h>

#define US(us) plx_measure_tsc((us) * PLX_NS_PER_US)

static struct plx_load load;
static struct plx_measure run;
static uint64_t now, room, ended, warm;

static int send_one(struct plx_load *of, struct plx_flight *flight)
{
	flight->sent_tsc = now;
	if (room == 0)
		return -EAGAIN;
	room--;
	return 0;
}

static unsigned send_burst(struct plx_load *of, unsigned most)
{
	unsigned count = room < most ? (unsigned)room : most;

	room -= count;
	of->blocked = count < most;
	of->last_tsc = now;
	return count;
}

PLX_COUNTS(on_end, ended, struct plx_load *of)
PLX_COUNTS(on_warm, warm, struct plx_load *of, uint64_t now_tsc)

static int setup(void **state)
{
	run = (struct plx_measure){.seed = 1, .name = "test"};
	now = US(1000);
	room = UINT64_MAX;
	ended = warm = 0;
	return 0;
}

static int teardown(void **state)
{
	plx_load_fini(&load);
	return 0;
}

#define LOAD_TEST(name) PLX_TEST_WITH(name, setup, teardown)

static void begin(uint64_t in_flight_max, uint64_t warmup)
{
	assert_works(plx_load_init(&load, &run, 64, in_flight_max));
	load.warmup = warmup;
	load.burst_max = 8;
	load.send = send_one;
	load.send_burst = send_burst;
	load.on_end = on_end;
	plx_load_start(&load, now);
}

/* The oldest requests are answered. */
static void answer(unsigned count)
{
	while (count--)
		plx_load_reply(&load, plx_load_oldest(&load), now, PLX_REPLY_GOOD);
}

/* A little more, so that what is due then is due. */
static void pass_us(uint64_t us)
{
	now += US(us) + 2;
}

static struct plx_result figures(void)
{
	struct plx_result result;

	plx_load_result(&load, &result);
	return result;
}

#define assert_in_flight(count) assert_int_equal(load.sent - load.answered, count)
#define assert_near(ns, us)     assert_in_range(ns, (us) * 1000 - 20, (us) * 1000 + 20)

/* The warm-up -------------------------------------------------------------------------------- */

LOAD_TEST(a_warm_up_is_limited_by_default)
{
	static const struct {
		uint64_t rate, size, in_flight, warmup;
	} rows[] = {
		{0, 64, 1, 1000},    {0, 16 << 20, 1, 4},      {0, 64, 5000, 5000},
		{20, 64, 65536, 20}, {10000, 64, 65536, 1000}, {0, 0, 0, 1000},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		run.rate = rows[i].rate;
		assert_works(plx_load_init(&load, &run, rows[i].size, rows[i].in_flight));
		assert_int_equal(load.warmup, rows[i].warmup);
		assert_int_equal(load.warmup_ns, rows[i].rate ? 0 : PLX_NS_PER_S);
		plx_load_fini(&load);
	}
}

LOAD_TEST(a_warm_up_is_not_recorded)
{
	run.count = 2;
	begin(1, 3);
	for (int i = 0; i < 5; i++) {
		pass_us(7);
		answer(1);
	}
	assert_int_equal(load.sent, 5);
	assert_int_equal(load.rtt_ns.count, 2);
	assert_int_equal(ended, 1);
	assert_near(figures().elapsed_ns, 14);
}

/* Few and slow messages: 30 s of silence otherwise. */
LOAD_TEST(a_warm_up_ends_after_a_second)
{
	run.count = 2;
	begin(1, 1000);
	for (int i = 0; i < 4; i++) {
		pass_us(400000);
		answer(1);
	}
	assert_int_equal(load.state, PLX_LOAD_MEASURING);
	assert_int_equal(load.first_message, 3);
	pass_us(400000);
	answer(1);
	assert_int_equal(load.rtt_ns.count, 2);
	assert_int_equal(ended, 1);
}

LOAD_TEST(a_program_may_delay_the_measured_part)
{
	run.duration_ns = PLX_NS_PER_MS;
	begin(0, 4);
	load.on_warm = on_warm;
	plx_load_turn(&load, now);
	assert_int_equal(load.sent, 4);
	for (int i = 0; i < 3; i++) {
		pass_us(5000);
		assert_int_equal(plx_load_turn(&load, now), 0);
	}
	assert_int_equal(warm, 1);
	plx_load_begin(&load, now);
	assert_int_equal(plx_load_turn(&load, now), 8);
	pass_us(1000);
	plx_load_turn(&load, now);
	assert_int_equal(ended, 1);
	assert_int_equal(figures().count, 8);
}

/* Closed loops ------------------------------------------------------------------------------- */

LOAD_TEST(a_closed_loop_keeps_its_requests_in_flight)
{
	run.count = 100;
	begin(16, 0);
	assert_in_flight(16);
	answer(50);
	assert_in_flight(16);
	answer(40);
	assert_in_flight(10);
	assert_int_equal(ended, 0);
	answer(10);
	assert_int_equal(ended, 1);
	assert_int_equal(load.rtt_ns.count, 100);
}

LOAD_TEST(a_closed_loop_waits_for_room)
{
	run.count = 2;
	room = 1;
	begin(1, 0);
	pass_us(5);
	answer(1);
	assert_in_flight(0);
	pass_us(5);
	room = 1;
	plx_load_writable(&load, now);
	pass_us(5);
	answer(1);
	assert_int_equal(ended, 1);
	assert_int_equal(load.again, 1);
	assert_near(load.rtt_ns.max, 5);
}

/* The rate of all replies is over the time that they took. */
LOAD_TEST(a_run_lasts_until_the_last_answer_good_or_bad)
{
	run.count = 4;
	begin(1, 0);
	for (int i = PLX_REPLY_GOOD; i <= PLX_REPLY_NONE; i++) {
		pass_us(10);
		plx_load_reply(&load, plx_load_oldest(&load), now, (enum plx_reply)i);
	}
	assert_near(figures().elapsed_ns, 20);
	assert_int_equal(figures().lost, 2);
}

LOAD_TEST(a_refused_request_is_measured_from_its_repeat)
{
	run.count = 1;
	begin(1, 0);
	pass_us(5);
	assert_true(plx_load_refused(&load, load.flights, now, now + US(100)));
	pass_us(100);
	plx_load_repeat(&load, load.flights);
	pass_us(7);
	answer(1);
	assert_int_equal(ended, 1);
	assert_near(load.rtt_ns.max, 7);
	assert_true(figures().has_gaps);
}

LOAD_TEST(a_run_ends_whose_requests_are_all_refused)
{
	run.duration_ns = PLX_NS_PER_MS;
	begin(1, 1000);
	assert_true(plx_load_refused(&load, load.flights, now, now + US(400)));
	assert_int_equal(load.state, PLX_LOAD_WARMUP);
	pass_us(1000000);
	assert_true(plx_load_refused(&load, load.flights, now, now + US(400)));
	assert_int_equal(load.state, PLX_LOAD_MEASURING);
	pass_us(700);
	assert_false(plx_load_refused(&load, load.flights, now, now + US(400)));
	assert_int_equal(ended, 1);
}

/* Open loops --------------------------------------------------------------------------------- */

LOAD_TEST(a_stall_counts_for_each_request_that_it_delays)
{
	run.rate = 100000;
	run.count = 4;
	begin(PLX_LOAD_OPEN_MAX, 0);
	plx_load_turn(&load, now);
	answer(1);
	pass_us(35);
	plx_load_turn(&load, now);
	pass_us(1);
	answer(3);
	assert_int_equal(plx_load_turn(&load, now), 0);
	assert_int_equal(ended, 1);
	assert_near(load.rtt_ns.max, 26);
	assert_near(load.service_ns.max, 1);
	assert_near(figures().scheduled_ns, 30);
	assert_near(figures().sending_ns, 35);
	assert_int_equal(figures().rate, 100000);
	assert_string_equal(figures().arrival, "fixed");
}

LOAD_TEST(an_open_loop_repeats_what_found_no_room)
{
	run.rate = 100000;
	run.count = 10;
	begin(PLX_LOAD_OPEN_MAX, 0);
	room = 0;
	for (int i = 0; i < 3; i++) {
		plx_load_turn(&load, now);
		pass_us(5);
	}
	assert_int_equal(load.again, 1);
	room = 1;
	plx_load_turn(&load, now);
	pass_us(5);
	answer(1);
	assert_near(load.rtt_ns.max, 20);
	assert_near(load.service_ns.max, 5);
}

LOAD_TEST(an_open_loop_has_a_limit_in_flight)
{
	run.rate = 100000;
	run.count = 10;
	begin(3, 0);
	pass_us(1000);
	assert_int_equal(plx_load_turn(&load, now), 1); /* due since the begin */
	pass_us(1000);
	plx_load_turn(&load, now);
	assert_in_flight(3);
	answer(1);
	plx_load_turn(&load, now);
	assert_in_flight(3);
}

LOAD_TEST(an_open_loop_waits_for_its_last_replies)
{
	run.rate = 100000;
	run.count = 3;
	begin(PLX_LOAD_OPEN_MAX, 0);
	plx_load_turn(&load, now);
	pass_us(40);
	plx_load_turn(&load, now);
	answer(2);
	pass_us(1900000);
	plx_load_turn(&load, now);
	assert_int_equal(ended, 0);
	pass_us(200000);
	plx_load_turn(&load, now);
	assert_int_equal(ended, 1);
	assert_int_equal(figures().lost, 1);
}

LOAD_TEST(an_open_loop_that_cannot_keep_up_ends)
{
	run.rate = 1000000;
	run.duration_ns = PLX_NS_PER_MS;
	begin(PLX_LOAD_OPEN_MAX, 0);
	plx_load_turn(&load, now);
	pass_us(1000 + 1999000);
	assert_int_equal(plx_load_turn(&load, now), 16);
	pass_us(2000);
	assert_int_equal(plx_load_turn(&load, now), 0);
	assert_int_equal(load.state, PLX_LOAD_DRAINING);
}

/* One way ------------------------------------------------------------------------------------ */

LOAD_TEST(one_way_bursts_end_with_the_warm_up_and_with_the_run)
{
	static const int bursts[] = {8, 2, 8, 8, 4};

	run.count = 20;
	begin(0, 10);
	for (size_t i = 0; i < PLX_ARRAY_LEN(bursts); i++) {
		assert_int_equal(ended, 0);
		assert_int_equal(plx_load_turn(&load, now), bursts[i]);
		pass_us(1);
	}
	assert_int_equal(ended, 1);
	assert_int_equal(figures().count, 20);
	assert_near(figures().elapsed_ns, 2);
	assert_true(figures().one_way);
}

LOAD_TEST(one_way_waits_for_room_but_not_past_its_end)
{
	run.duration_ns = PLX_NS_PER_MS;
	begin(0, 0);
	room = 3;
	assert_int_equal(plx_load_turn(&load, now), 3);
	room = 100;
	assert_int_equal(plx_load_turn(&load, now), 0);
	plx_load_writable(&load, now);
	assert_int_equal(plx_load_turn(&load, now), 8);
	load.blocked = true;
	pass_us(1000);
	plx_load_turn(&load, now);
	assert_int_equal(ended, 1);
}

LOAD_TEST(one_way_with_a_rate_catches_up)
{
	run.rate = 1000000;
	run.duration_ns = PLX_NS_PER_S;
	begin(0, 0);
	assert_int_equal(plx_load_turn(&load, now), 0);
	pass_us(5);
	assert_int_equal(plx_load_turn(&load, now), 5);
	pass_us(20);
	assert_int_equal(plx_load_turn(&load, now), 8);
	assert_int_equal(plx_load_turn(&load, now), 8);
	assert_int_equal(plx_load_turn(&load, now), 4);
	assert_int_equal(plx_load_turn(&load, now), 0);
}

/* Ends --------------------------------------------------------------------------------------- */

LOAD_TEST(a_failure_ends_the_run_and_the_first_one_counts)
{
	run.count = 10;
	begin(1, 0);
	answer(3);
	plx_load_fail(&load, "the peer left");
	plx_load_fail(&load, "and something else");
	answer(1);
	assert_int_equal(load.rtt_ns.count, 3);
	assert_string_equal(figures().interrupted, "the peer left");
	assert_true(figures().failed);
	assert_int_equal(figures().planned_count, 10);
	assert_int_equal(plx_load_end(&load), 0);
}

LOAD_TEST(a_run_that_measured_nothing_has_only_a_cause)
{
	run.count = 10;
	begin(1, 5);
	answer(3);
	load.signalled = true;
	assert_fails(plx_load_end(&load), -EINTR, "came before anything was measured");
	plx_load_fail(&load, "the peer left");
	assert_fails(plx_load_end(&load), -EIO, "the peer left");
}

static int send_nothing(struct plx_load *of, struct plx_flight *flight)
{
	return plx_fail(EIO, "broken");
}

LOAD_TEST(a_send_that_fails_ends_the_run)
{
	run.count = 10;
	assert_works(plx_load_init(&load, &run, 64, 1));
	load.send = send_nothing;
	load.on_end = on_end;
	plx_load_start(&load, now);
	assert_string_equal(load.error, "broken");
	assert_int_equal(load.again, 0);
	assert_int_equal(ended, 1);
}

LOAD_TEST(a_repeat_that_fails_ends_the_run)
{
	run.count = 10;
	begin(1, 0);
	assert_true(plx_load_refused(&load, load.flights, now, now + US(100)));
	load.send = send_nothing;
	plx_load_repeat(&load, load.flights);
	assert_string_equal(load.error, "broken");
}

LOAD_TEST(nothing_that_moves_for_ten_seconds_is_silence)
{
	run.count = 2;
	begin(1, 0);
	for (int i = 0; i < 9; i++)
		assert_false(plx_load_is_silent(&load));
	answer(1);
	for (int i = 0; i < 10; i++)
		assert_false(plx_load_is_silent(&load));
	assert_true(plx_load_is_silent(&load));
	answer(1); /* now nothing is in flight */
	for (int i = 0; i < 20; i++)
		assert_false(plx_load_is_silent(&load));
}

PLX_TEST_MAIN()
