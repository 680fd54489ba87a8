/* SPDX-License-Identifier: BSD-3-Clause */
/* Each case is a process of its own, since it may end by a signal. */
#include "lcores.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED 9

/* What a child finds wrong ends it: cmocka's own checks would return into the parent's tests. */
#define check(condition)               \
	do {                           \
		if (!(condition))      \
			_exit(FAILED); \
	} while (0)

static struct lcores lcores;

static void up(bool catch_signals)
{
	lcores_prepare(&lcores, 2);
	lcores.conf.catch_signals = catch_signals;
	check(plx_lcores_init(&lcores.conf) == 0);
}

/* Run body in a child. Returns its wait status. */
static int in_child(void (*body)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(30); /* a child that hangs ends by SIGALRM, which no test expects */
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int run_loop(void *arg)
{
	return plx_loop_run();
}

static void signal_a_running_loop(int signal_number)
{
	struct plx_lcore_stats stats;
	int result = -1;

	up(true);
	check(plx_stop_signal() == 0);
	check(plx_lcore_launch(10, run_loop, NULL) == 0);
	do {
		plx_lcore_stats(10, &stats);
	} while (!stats.turns);
	check(!plx_stopping());
	kill(getpid(), signal_number);
	check(plx_lcore_join(10, UINT64_MAX, &result) == 0);
	check(result == 0);
	check(plx_stopping());
	check(plx_stop_signal() == signal_number);
	check(plx_lcores_fini(UINT64_MAX) == 0);
	check(!plx_stopping());
	check(plx_stop_signal() == 0);
	plx_topo_close(lcores.topo);
}

static void interrupt_loop(void)
{
	signal_a_running_loop(SIGINT);
}

static void terminate_loop(void)
{
	signal_a_running_loop(SIGTERM);
	signal_a_running_loop(SIGTERM); /* again, after a new init */
}

static void the_first_signal_stops_the_loops(void **state)
{
	assert_int_equal(in_child(interrupt_loop), 0);
	assert_int_equal(in_child(terminate_loop), 0);
}

static void interrupt_twice(void)
{
	up(true);
	raise(SIGINT);
	check(plx_stopping());
	usleep(110000);
	raise(SIGINT);
}

static void interrupt_and_terminate_in_a_row(void)
{
	up(true);
	raise(SIGINT);
	raise(SIGINT);
	raise(SIGTERM);
	check(plx_stop_signal() == SIGINT);
}

static void two_in_a_row_are_one(void **state)
{
	/* A host that takes this process off its CPU for 100 ms makes them two. */
	for (int tries = 0; tries < 20; tries++)
		if (in_child(interrupt_and_terminate_in_a_row) == 0)
			return;
	fail_msg("the second signal ended the process in each of 20 tries");
}

static void interrupt_then_terminate(void)
{
	up(true);
	raise(SIGINT);
	check(plx_stopping());
	usleep(110000);
	raise(SIGTERM);
}

static void the_second_ends_the_process_as_if_not_caught(void **state)
{
	int status = in_child(interrupt_twice);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGINT);
	status = in_child(interrupt_then_terminate);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void stop_then_interrupt(void)
{
	up(true);
	plx_stop();
	raise(SIGINT);
	check(plx_stop_signal() == SIGINT);
}

static void a_stop_by_the_program_is_no_first_signal(void **state)
{
	assert_int_equal(in_child(stop_then_interrupt), 0);
}

static void old_handler(int signal_number)
{
}

static void look_at_handlers(void)
{
	struct sigaction action;

	signal(SIGINT, old_handler);
	signal(SIGTERM, SIG_IGN);

	up(false);
	sigaction(SIGINT, NULL, &action);
	check(action.sa_handler == old_handler);
	check(plx_lcores_fini(UINT64_MAX) == 0);
	plx_topo_close(lcores.topo);

	up(true);
	sigaction(SIGINT, NULL, &action);
	check(action.sa_handler != old_handler);
	check(plx_lcores_fini(UINT64_MAX) == 0);
	sigaction(SIGINT, NULL, &action);
	check(action.sa_handler == old_handler);
	sigaction(SIGTERM, NULL, &action);
	check(action.sa_handler == SIG_IGN);
	plx_topo_close(lcores.topo);
}

static void old_handlers_come_back(void **state)
{
	assert_int_equal(in_child(look_at_handlers), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_signal_stops_the_loops),
		cmocka_unit_test(the_second_ends_the_process_as_if_not_caught),
		cmocka_unit_test(two_in_a_row_are_one),
		cmocka_unit_test(a_stop_by_the_program_is_no_first_signal),
		cmocka_unit_test(old_handlers_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
