/* SPDX-License-Identifier: BSD-3-Clause */
/* plx_test.h: programs end at a failed check, and at their time limit, whatever their threads do.
 */
#include "in_child.h"
#include "plx_test.h"

#include <stdio.h>

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

static void fail_beside_a_thread(void)
{
	start_thread();
	assert_int_equal(1, 2);
}

PLX_TEST(a_failed_check_ends_the_program)
{
	assert_dies(fail_beside_a_thread, SIGABRT);
}

static void fail_with_a_child(void)
{
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0)
		pause();
	fail();
}

PLX_TEST(the_children_of_a_failed_program_end)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	assert_dies(fail_with_a_child, SIGABRT);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* no process can write */
	close(ends[0]);
}

static void wait_for_nothing(void)
{
	start_thread();
	wait_until(false);
}

static void reach_the_limit(void)
{
	alarm(1);
	plx_test_begin();
	wait_for_nothing();
}

static FILE *output;

static void reach_the_limit_with_output(void)
{
	check(dup2(fileno(output), STDERR_FILENO) >= 0);
	reach_the_limit();
}

PLX_TEST(a_program_that_hangs_ends_at_its_limit_and_says_where)
{
	char text[4096] = "";

	output = tmpfile();
	assert_non_null(output);
	assert_dies(reach_the_limit_with_output, SIGALRM);
	rewind(output);
	assert_in_range(fread(text, 1, sizeof(text) - 1, output), 1, sizeof(text));
	fclose(output);
	assert_non_null(strstr(text, "the test program's time limit is over; it is here:"));
	assert_non_null(strstr(text, "harness"));
}

PLX_TEST(a_skipped_test_ends_no_program)
{
	skip();
}

PLX_TEST_MAIN()
