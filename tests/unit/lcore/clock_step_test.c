/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops whose clock steps, like the TSC when a host resumes or a virtual machine moves. Stepping
 * plx_clock_scale.base_ns is equivalent, and a step of turn_tsc is what a turn sees. If a step
 * stopped a timer, the test would hang until its time limit. */
#include "lcore_priv.h"
#include "lcores.h"

#define HOUR_NS  (3600 * (int64_t)PLX_NS_PER_S)
#define DELAY_NS (20 * PLX_NS_PER_MS)
#define LATE_NS  (20 * PLX_NS_PER_S) /* far below the step: the host may be busy */

static int start(void **state)
{
	one_lcore(state);
	plx_clock_look(true);
	return 0;
}

static uint64_t raw_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (uint64_t)time.tv_sec * PLX_NS_PER_S + (uint64_t)time.tv_nsec;
}

static void step(int64_t ns)
{
	atomic_fetch_add(&plx_clock_scale.base_ns, (uint64_t)ns);
}

/* The same, noticed by the current turn. */
static void step_in_turn(int64_t ns)
{
	double counts = (double)ns / 1e9 * plx_clock_info()->hz;

	step(ns);
	loop_self->turn_tsc -= (uint64_t)(int64_t)counts;
}

static void quit(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

static struct plx_timer second;
static int64_t step_ns;

static void step_and_wait(struct plx_timer *timer, void *arg)
{
	plx_timer_init(&second, quit, NULL);
	plx_timer_start(&second, DELAY_NS);
	step(step_ns);
}

/* Return: how long the second timer waited. */
static uint64_t run(const struct plx_idle_conf *conf)
{
	struct plx_timer first;
	uint64_t begin_ns = raw_ns();

	assert_int_equal(plx_idle_set(0, conf), 0);
	plx_timer_init(&first, step_and_wait, NULL);
	plx_timer_start(&first, 0);
	assert_int_equal(plx_loop_run(), 0);
	return raw_ns() - begin_ns;
}

#define TEST(test) PLX_TEST_WITH(test, start, no_lcores)

TEST(a_clock_step_back_stops_no_timer)
{
	static const struct {
		const char *name;
		struct plx_idle_conf idle;
	} cases[] = {
		{"of an lcore that polls", {.mode = PLX_IDLE_POLL}},
		{"of an lcore that falls asleep", {.mode = PLX_IDLE_EVENT}},
	};

	step_ns = -HOUR_NS;
	for (unsigned i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		uint64_t steps = plx_clock_steps();

		if (run(&cases[i].idle) > LATE_NS || plx_clock_steps() != steps + 1)
			fail_msg("%s", cases[i].name);
	}
}

static void *step_while_asleep(void *arg)
{
	const struct loop *loop = arg;

	while (!atomic_load(&loop->bell.sleeping))
		continue;
	step(-HOUR_NS);
	return NULL;
}

TEST(a_clock_step_back_stops_no_timer_of_a_sleeping_lcore)
{
	uint64_t steps = plx_clock_steps();
	pthread_t thread;

	step_ns = 0;
	assert_int_equal(pthread_create(&thread, NULL, step_while_asleep, loop_self), 0);
	assert_in_range(run(&(struct plx_idle_conf){.mode = PLX_IDLE_EVENT}), 0, LATE_NS);
	pthread_join(thread, NULL);
	plx_clock_look(true);
	assert_int_equal(plx_clock_steps(), steps + 1);
}

TEST(the_turn_after_a_clock_step_has_the_right_time)
{
	static const int64_t steps_ns[] = {-HOUR_NS, HOUR_NS};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(steps_ns); i++) {
		uint64_t before_ns, steps = plx_clock_steps();

		plx_loop_turn();
		plx_loop_turn();
		before_ns = loop_self->now_ns;
		step_in_turn(steps_ns[i]);
		plx_loop_turn();
		assert_int_equal(plx_clock_steps(), steps + 1);
		assert_in_range(loop_self->now_ns, before_ns - 20 * PLX_NS_PER_MS,
				before_ns + LATE_NS);
		struct plx_lcore_stats stats = stats_of(0);
		assert_true(plx_tsc_to_ns(stats.longest_turn_cycles) < LATE_NS);
		assert_true(plx_tsc_to_ns(stats.busy_cycles + stats.idle_cycles) < LATE_NS);
	}
}

PLX_TEST_MAIN()
