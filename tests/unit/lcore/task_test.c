/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"

#include <stdio.h>
#include <unistd.h>

static char order[16]; /* one letter per task run */

static void note(const char *what)
{
	size_t length = strlen(order);

	assert_true(length + 1 < sizeof(order));
	snprintf(order + length, sizeof(order) - length, "%s", what);
}

/* A task that records a letter, and may act on another task. */
struct job {
	struct plx_task task;
	const char *letter;
	struct job *schedules, *cancels;
};

static void run(struct plx_task *task, void *arg)
{
	struct job *job = arg;

	assert_ptr_equal(task, &job->task);
	assert_false(plx_task_scheduled(task));
	note(job->letter);
	if (job->schedules)
		assert_int_equal(plx_task_schedule(&job->schedules->task), 0);
	if (job->cancels)
		plx_task_cancel(&job->cancels->task);
}

static struct job *job_init(struct job *job, const char *letter)
{
	*job = (struct job){.letter = letter};
	plx_task_init(&job->task, run, job);
	return job;
}

static void schedule(struct job *job)
{
	assert_int_equal(plx_task_schedule(&job->task), 0);
}

static struct job a, b, c;

/* Turns with that work. The letters so far: */
static void expect_turn(int work, const char *letters)
{
	assert_int_equal(plx_loop_turn(), work);
	assert_string_equal(order, letters);
}

static int poll_and_schedule(void *arg, uint64_t now_ns)
{
	note("p");
	schedule(arg);
	schedule(arg);
	return 0;
}

static void expire_and_schedule(struct plx_timer *timer, void *arg)
{
	note("t");
	schedule(arg);
}

static int start(void **state)
{
	order[0] = '\0';
	job_init(&a, "a");
	job_init(&b, "b");
	job_init(&c, "c");
	return one_lcore(state);
}

#define TEST(test) PLX_TEST_WITH(test, start, no_lcores)

PLX_TEST(a_task_needs_an_lcore_and_a_function)
{
	struct plx_task task = {0};

	assert_fails(plx_task_schedule(&task), -ENOENT, NOT_UP("plx_task_schedule"));
	lcores_up(1);
	assert_fails(plx_task_schedule(&task), -EINVAL,
		     "plx_task_schedule: the task has no function; call plx_task_init first");
	assert_false(plx_task_scheduled(&task));
	plx_task_cancel(&task);
	lcores_down();
}

TEST(a_task_runs_once_at_the_end_of_the_turn_that_scheduled_it)
{
	struct plx_timer timer;
	struct plx_poller *poller;

	assert_int_equal(plx_poller_add("schedules", poll_and_schedule, &a, &poller), 0);
	plx_timer_init(&timer, expire_and_schedule, &a);
	assert_int_equal(plx_timer_start(&timer, 0), 0);
	while (plx_timer_running(&timer)) {
		order[0] = '\0';
		assert_in_range(plx_loop_turn(), 1, 2);
	}
	assert_string_equal(order, "pta");
	plx_poller_remove(poller);
	expect_turn(0, "pta");
}

TEST(a_task_that_schedules_itself_runs_once_a_turn)
{
	a.schedules = &a;
	schedule(&a);
	schedule(&b);
	expect_turn(2, "ab");
	expect_turn(1, "aba");
	expect_turn(1, "abaa");
	plx_task_cancel(&a.task);
	expect_turn(0, "abaa");
}

TEST(a_task_may_cancel_another_one_of_the_same_turn)
{
	a.cancels = &b; /* the next one to run */
	c.cancels = &a;
	schedule(&a);
	schedule(&b);
	schedule(&c);
	expect_turn(2, "ac");
	schedule(&b);
	expect_turn(1, "acb");
}

static void free_it(struct plx_task *task, void *arg)
{
	memset(task, 0xff, sizeof(*task));
	free(task);
}

TEST(a_task_may_free_itself)
{
	for (unsigned i = 0; i < 3; i++) {
		struct plx_task *task = malloc(sizeof(*task));

		assert_non_null(task);
		plx_task_init(task, free_it, NULL);
		assert_int_equal(plx_task_schedule(task), 0);
	}
	schedule(&a);
	expect_turn(4, "a");
}

static void quit(struct plx_task *task, void *arg)
{
	plx_loop_quit();
}

static int poll_nothing(void *arg, uint64_t now_ns)
{
	return 0;
}

static int arm_and_schedule(void *arg, struct plx_sleep *sleep)
{
	assert_int_equal(plx_task_schedule(arg), 0);
	return 0;
}

TEST(an_lcore_with_a_scheduled_task_does_not_sleep)
{
	struct plx_poller *poller;
	struct plx_task task;

	assert_int_equal(plx_idle_set(0, &event_idle), 0);
	plx_task_init(&task, quit, NULL);
	assert_int_equal(plx_poller_add("arms", poll_nothing, &task, &poller), 0);
	plx_poller_set_arm(poller, arm_and_schedule);
	assert_int_equal(plx_loop_run(), 0);
	assert_int_equal(idle_stats_of(0).sleeps, 0);
}

TEST(a_task_still_scheduled_at_fini_is_cancelled)
{
	schedule(&a);
	schedule(&b);
	lcores_down();
	assert_false(plx_task_scheduled(&a.task));
	assert_false(plx_task_scheduled(&b.task));
	lcores_up(1);
	expect_turn(0, "");
}

PLX_TEST_MAIN()
