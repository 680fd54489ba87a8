/* SPDX-License-Identifier: BSD-3-Clause */
/* plx_test.h: programs end at their time limit, whatever their threads do. */
#include "in_child.h" /* check */
#include "mem/child.h"

static void *spin(void *arg)
{
	for (;;)
		sched_yield();
	return NULL;
}

/* Like a worker of an lcore that a failed test does not stop. */
static void start_thread(void)
{
	pthread_t thread;

	check(pthread_create(&thread, NULL, spin, NULL) == 0);
}

static void reach_the_limit(void)
{
	alarm(1);
	plx_test_begin();
	start_thread();
	wait_until(false);
}

static void (*body)(void);

static int run_body(void)
{
	body();
	return 0;
}

/* Return: its wait status, and its text. */
static struct child_end run_child(void (*fn)(void))
{
	struct child_end end;

	body = fn;
	child_run(run_body, &end);
	return end;
}

PLX_TEST(a_program_that_hangs_ends_at_its_limit_and_says_where)
{
	struct child_end end = run_child(reach_the_limit);

	assert_true(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGALRM);
	assert_child_said(&end, "the test program's time limit is over; it is here:", "harness");
}

/* tests/sanitizers/mutex.h --------------------------------------------------------------------- */

static pthread_mutex_t *volatile freed; /* volatile: compilers would see the error, too */

static void lock_it(void)
{
	freed = malloc(sizeof(*freed));
	check(freed && pthread_mutex_init(freed, NULL) == 0);
	free(freed);
	pthread_mutex_lock(freed);
}

PLX_TEST(sanitizers_report_a_mutex_in_freed_memory)
{
	if (!PLX_TEST_SANITIZED)
		skip();
	struct child_end end = run_child(lock_it);
	assert_child_said(&end, "heap-use-after-free");
}

PLX_TEST_MAIN()
