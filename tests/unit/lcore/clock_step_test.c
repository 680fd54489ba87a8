/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops whose clock steps, like the TSC when a host resumes or a virtual machine moves. Stepping
 * plx_clock_scale.base_ns is equivalent, and a step of turn_tsc is what a turn sees. */
#include "lcores.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#define HOUR_NS  (3600 * (int64_t)PLX_NS_PER_S)
#define DELAY_NS (20 * PLX_NS_PER_MS)
#define LATE_S   20 /* far below the step: the host may be busy */
#define LATE_NS  (LATE_S * PLX_NS_PER_S)

/* The clock begins at a day, as if the host had run for that long: a counter that steps back does
 * not get below zero. */
static int begin_at_a_day(void **state)
{
	plx_clock_scale.base_ns = (uint64_t)(24 * HOUR_NS);
	plx_clock_init();
	return 0;
}

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
	double counts = (double)ns / 1e9 * plx_clock_info_read()->hz;

	step(ns);
	loop_self->turn_tsc -= (uint64_t)(int64_t)counts;
}

static void quit(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

/* Ends the loop of a timer that a step has stopped. */
static void give_up(int number)
{
	plx_loop_quit();
}

/* Return: for how long. */
static uint64_t run_until_quit(void)
{
	uint64_t begin_ns = raw_ns();
	unsigned limit_s = alarm(LATE_S);
	void (*at_limit)(int) = signal(SIGALRM, give_up);

	assert_int_equal(plx_loop_run(), 0);
	signal(SIGALRM, at_limit);
	alarm(limit_s);
	return raw_ns() - begin_ns;
}

/* Return: how long a timer waited. */
static uint64_t run(const struct plx_idle_conf *conf)
{
	struct plx_timer timer;

	assert_int_equal(plx_idle_set(0, conf), 0);
	plx_timer_init(&timer, quit, NULL);
	plx_timer_start(&timer, DELAY_NS);
	return run_until_quit();
}

#define TEST(test) PLX_TEST_WITH(test, start, no_lcores)

static int64_t asleep_step_ns; /* in the next sleep */

static bool is_forbidden;     /* as in old containers */
static int longest_coarse_ms; /* asked of epoll_wait */

int __real_epoll_pwait2(int epoll, struct epoll_event *events, int count,
			const struct timespec *timeout, const sigset_t *mask);
int __wrap_epoll_pwait2(int epoll, struct epoll_event *events, int count,
			const struct timespec *timeout, const sigset_t *mask);

int __real_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms);

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
	if (timeout_ms > longest_coarse_ms)
		longest_coarse_ms = timeout_ms;
	return __real_epoll_wait(epoll, events, count, timeout_ms);
}

int __wrap_epoll_pwait2(int epoll, struct epoll_event *events, int count,
			const struct timespec *timeout, const sigset_t *mask)
{
	step(asleep_step_ns);
	asleep_step_ns = 0;
	if (!is_forbidden)
		return __real_epoll_pwait2(epoll, events, count, timeout, mask);
	errno = EPERM;
	return -1;
}

TEST(an_lcore_sleeps_without_epoll_pwait2)
{
	is_forbidden = true;
	assert_in_range(run(&event_idle), 0, LATE_NS - 1);
	is_forbidden = false;
	assert_in_range(idle_stats_of(0).sleeps, 1, 10);
	assert_in_range(idle_stats_of(0).wakes[PLX_WAKE_TIMER], 1, 10);
	assert_int_equal(idle_stats_of(0).wakes[PLX_WAKE_MESSAGE], 0);
	assert_int_equal(longest_coarse_ms, 0); /* milliseconds would make timers late */
}

TEST(a_clock_step_stops_no_timer_of_a_sleeping_lcore)
{
	static const int64_t steps_ns[] = {-HOUR_NS, HOUR_NS};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(steps_ns); i++) {
		uint64_t steps = plx_clock_steps();

		asleep_step_ns = steps_ns[i];
		assert_in_range(run(&event_idle), 0, LATE_NS - 1);
		assert_int_equal(asleep_step_ns, 0);
		assert_int_equal(plx_clock_steps(), steps + 1);
	}
}

/* Steps that no turn sees ---------------------------------------------------------------------- */

PLX_TEST(a_clock_step_before_lcores_exist_stops_no_timer)
{
	step(HOUR_NS);
	lcores_up(1);
	assert_in_range(run(&(struct plx_idle_conf){.mode = PLX_IDLE_POLL}), 0, LATE_NS - 1);
	lcores_down();
}

/* The first timer starts before or after the step, and is neither early nor late. */
TEST(a_clock_step_between_runs_stops_no_timer)
{
	struct plx_timer timer;

	plx_timer_init(&timer, quit, NULL);
	for (unsigned i = 0; i < 2; i++) {
		run(&(struct plx_idle_conf){.mode = PLX_IDLE_POLL});
		if (i == 0)
			step(HOUR_NS);
		plx_timer_start(&timer, DELAY_NS);
		if (i == 1)
			step(HOUR_NS);
		assert_in_range(run_until_quit(), DELAY_NS - PLX_NS_PER_MS, LATE_NS - 1);
		assert_in_range(run(&(struct plx_idle_conf){.mode = PLX_IDLE_POLL}), 0,
				LATE_NS - 1);
	}
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

PLX_TEST_MAIN_WITH(begin_at_a_day, NULL)
