/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char order[16]; /* one letter per task run */

static int start(void **state)
{
	order[0] = '\0';
	return one_lcore(state);
}

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

#define TEST(test) PLX_TEST_WITH(test, start, no_lcores)

PLX_TEST(a_task_needs_an_lcore_and_a_function)
{
	struct plx_task task = {0};

	assert_fails(plx_task_schedule(&task), -ENOENT,
		     "plx_task_schedule: Pollux is not up; call plx_eal_init first");
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
	struct job job;

	job_init(&job, "T");
	assert_int_equal(plx_poller_add("schedules", poll_and_schedule, &job, 0, &poller), 0);
	plx_timer_init(&timer, expire_and_schedule, &job);
	assert_int_equal(plx_timer_start(&timer, 0), 0);
	while (plx_timer_running(&timer)) {
		order[0] = '\0';
		assert_in_range(plx_loop_turn(), 1, 2);
	}
	assert_string_equal(order, "ptT");
	plx_poller_remove(poller);
	assert_int_equal(plx_loop_turn(), 0);
	assert_string_equal(order, "ptT");
}

TEST(tasks_run_in_the_order_in_which_they_were_scheduled)
{
	struct job a, b, c;

	schedule(job_init(&a, "a"));
	schedule(job_init(&b, "b"));
	schedule(job_init(&c, "c"));
	schedule(&a); /* already scheduled: keeps its place */
	assert_string_equal(order, "");
	assert_int_equal(plx_loop_turn(), 3);
	assert_string_equal(order, "abc");
}

TEST(a_task_scheduled_by_a_task_runs_in_the_next_turn)
{
	struct job a, b;

	job_init(&b, "b");
	job_init(&a, "a")->schedules = &b;
	schedule(&a);
	assert_int_equal(plx_loop_turn(), 1);
	assert_string_equal(order, "a");
	assert_true(plx_task_scheduled(&b.task));
	assert_int_equal(plx_loop_turn(), 1);
	assert_string_equal(order, "ab");
	assert_int_equal(plx_loop_turn(), 0);
}

TEST(a_task_that_schedules_itself_runs_once_a_turn)
{
	struct job a, b;

	job_init(&a, "a")->schedules = &a;
	schedule(&a);
	schedule(job_init(&b, "b"));
	assert_int_equal(plx_loop_turn(), 2);
	assert_int_equal(plx_loop_turn(), 1);
	assert_int_equal(plx_loop_turn(), 1);
	assert_string_equal(order, "abaa");
	plx_task_cancel(&a.task);
	assert_int_equal(plx_loop_turn(), 0);
}

TEST(a_cancelled_task_does_not_run)
{
	struct job a, b, c;

	schedule(job_init(&a, "a"));
	schedule(job_init(&b, "b"));
	schedule(job_init(&c, "c"));
	plx_task_cancel(&b.task);
	plx_task_cancel(&b.task);
	assert_false(plx_task_scheduled(&b.task));
	assert_int_equal(plx_loop_turn(), 2);
	assert_string_equal(order, "ac");
	schedule(&b);
	assert_int_equal(plx_loop_turn(), 1);
	assert_string_equal(order, "acb");
}

TEST(a_task_may_cancel_another_one_of_the_same_turn)
{
	struct job a, b, c;

	job_init(&c, "c");
	job_init(&a, "a")->cancels = &c;
	schedule(&a);
	schedule(job_init(&b, "b"));
	schedule(&c);
	assert_int_equal(plx_loop_turn(), 2);
	assert_string_equal(order, "ab");

	/* The next one to run, and the last one. */
	a.cancels = &b;
	b.cancels = &c;
	schedule(&a);
	schedule(&b);
	assert_int_equal(plx_loop_turn(), 1);
	assert_string_equal(order, "aba");
	schedule(&c);
	assert_int_equal(plx_loop_turn(), 1);
	assert_string_equal(order, "abac");
}

static void free_it(struct plx_task *task, void *arg)
{
	memset(task, 0xff, sizeof(*task));
	free(task);
}

TEST(a_task_may_free_itself)
{
	struct job last;

	for (unsigned i = 0; i < 3; i++) {
		struct plx_task *task = malloc(sizeof(*task));

		assert_non_null(task);
		plx_task_init(task, free_it, NULL);
		assert_int_equal(plx_task_schedule(task), 0);
	}
	schedule(job_init(&last, "l"));
	assert_int_equal(plx_loop_turn(), 4);
	assert_string_equal(order, "l");
}

static void turn_in_vain(struct plx_task *task, void *arg)
{
	assert_fails(plx_loop_turn(), -EBUSY, "plx_loop_turn: lcore 0 is inside a turn already");
	note("n");
	plx_loop_quit();
}

TEST(a_task_is_inside_the_loop)
{
	struct plx_task task;

	plx_task_init(&task, turn_in_vain, NULL);
	assert_int_equal(plx_task_schedule(&task), 0);
	assert_int_equal(plx_loop_turn(), 1);
	assert_int_equal(plx_task_schedule(&task), 0);
	assert_int_equal(plx_loop_run(), 0);
	assert_string_equal(order, "nn");
}

static int quit_and_schedule(void *arg, uint64_t now_ns)
{
	plx_loop_quit();
	schedule(arg);
	return 0;
}

TEST(the_last_turn_of_a_loop_runs_its_tasks)
{
	struct plx_poller *poller;
	struct job a, b;

	job_init(&b, "b");
	job_init(&a, "a")->schedules = &b;
	assert_int_equal(plx_poller_add("quits", quit_and_schedule, &a, 0, &poller), 0);
	assert_int_equal(plx_loop_run(), 0);
	assert_string_equal(order, "a");
	plx_poller_remove(poller);
	assert_true(plx_task_scheduled(&b.task)); /* by the other task: for a later turn */
	assert_int_equal(plx_loop_turn(), 1);
	assert_string_equal(order, "ab");
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
	const struct plx_idle_conf event = {.mode = PLX_IDLE_EVENT, .sleep_max_ns = PLX_NS_PER_MS};
	struct plx_idle_stats stats;
	struct plx_poller *poller;
	struct plx_task task;

	assert_int_equal(plx_idle_set(0, &event), 0);
	plx_task_init(&task, quit, NULL);
	assert_int_equal(plx_poller_add("arms", poll_nothing, &task, 0, &poller), 0);
	plx_poller_set_arm(poller, arm_and_schedule, NULL);
	assert_int_equal(plx_loop_run(), 0);
	assert_int_equal(plx_idle_stats(0, &stats), 0);
	assert_int_equal(stats.sleeps, 0);
}

TEST(a_task_still_scheduled_at_fini_is_cancelled)
{
	struct job a, b;

	schedule(job_init(&a, "a"));
	schedule(job_init(&b, "b"));
	lcores_down();
	assert_false(plx_task_scheduled(&a.task));
	assert_false(plx_task_scheduled(&b.task));
	lcores_up(1);
	assert_int_equal(plx_loop_turn(), 0);
	assert_string_equal(order, "");
}

static pid_t forked;

static int fork_and_schedule(void *arg, uint64_t now_ns)
{
	schedule(arg);
	forked = fork();
	plx_loop_quit();
	return 0;
}

TEST(the_child_of_a_fork_runs_no_task)
{
	struct plx_poller *poller;
	struct job job;
	int status;

	job_init(&job, "a");
	assert_int_equal(plx_poller_add("forks", fork_and_schedule, &job, 0, &poller), 0);
	plx_loop_run();
	if (forked == 0)
		_exit(strcmp(order, "") != 0 || plx_task_schedule(&job.task) != -EPERM);
	assert_true(forked > 0);
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
	assert_string_equal(order, "a");
}

PLX_TEST_MAIN()
