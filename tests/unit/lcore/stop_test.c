/* SPDX-License-Identifier: BSD-3-Clause */
/* Each case is a separate process, because it may end by a signal. */
#include "in_child.h"
#include "lcores.h"

#include <sched.h>

#define SKIPPED 77
#define GAP_US  110000 /* signals further apart are two */

static void up(void)
{
	lcores_prepare(2);
	check(plx_lcores_init(&lcores.conf) == 0);
	plx_stop_on_signals();
}

static void down(void)
{
	check(plx_lcores_fini(UINT64_MAX) == 0);
	plx_topo_close(lcores.topo);
}

static void signal_a_running_loop(int signal_number)
{
	struct plx_lcore_stats stats;
	int result = -1;

	up();
	check(plx_stop_signal() == 0);
	check(plx_lcore_launch(10, run_loop, NULL) == 0);
	do {
		plx_lcore_stats_read(10, &stats);
	} while (!stats.turns);
	check(!plx_stopping());
	kill(getpid(), signal_number);
	check(plx_lcore_join(10, PLX_NEVER, &result) == 0);
	check(result == 0);
	check(plx_stopping());
	check(plx_stop_signal() == signal_number);
	down();
	check(!plx_stopping());
	check(plx_stop_signal() == 0);
}

CHILD_TEST(the_first_signal_stops_the_loops_also_after_a_new_init)
{
	signal_a_running_loop(SIGINT);
	usleep(GAP_US);
	signal_a_running_loop(SIGTERM);
}

static void interrupt_then_raise(int second)
{
	up();
	raise(SIGINT);
	check(plx_stopping());
	usleep(GAP_US);
	raise(second);
}

static void interrupt_twice(void)
{
	interrupt_then_raise(SIGINT);
}

/* A host that preempts this process for 100 ms turns one signal into two. */
static void assert_sometimes_passes(void (*body)(void))
{
	for (int tries = 0; tries < 20; tries++)
		if (in_child(body) == 0)
			return;
	fail_msg("the second signal ended the process in each of 20 tries");
}

static void interrupt_then_terminate(void)
{
	interrupt_then_raise(SIGTERM);
}

static void interrupt_end_and_terminate(void)
{
	up();
	raise(SIGINT);
	down();
	usleep(GAP_US);
	raise(SIGTERM);
}

PLX_TEST(a_second_signal_ends_the_process_as_if_not_caught)
{
	assert_dies(interrupt_end_and_terminate, SIGTERM);
	assert_dies(interrupt_twice, SIGINT);
	assert_dies(interrupt_then_terminate, SIGTERM);
}

static void interrupt_stop_and_interrupt(void)
{
	up();
	raise(SIGINT);
	down();
	raise(SIGINT);
	raise(SIGTERM);
}

PLX_TEST(two_signals_in_a_row_count_as_one_after_the_lcores_ended)
{
	assert_sometimes_passes(interrupt_stop_and_interrupt);
}

CHILD_TEST(a_signal_before_the_lcores_stops_them)
{
	plx_stop_on_signals();
	raise(SIGTERM);
	up();
	check(plx_loop_run() == 0);
	check(plx_stop_signal() == SIGTERM);
	down();
}

/* The first process of a PID namespace. */
static void be_first(void)
{
	int status = -1;

	if (unshare(CLONE_NEWPID) != 0)
		_exit(SKIPPED);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(30);
		if (getpid() != 1)
			_exit(9);
		interrupt_then_terminate();
		_exit(9);
	}
	check(waitpid(pid, &status, 0) == pid);
	check(WIFEXITED(status));
	_exit(WEXITSTATUS(status));
}

PLX_TEST(a_second_signal_ends_the_first_process_of_a_container)
{
	int status = in_child(be_first);

	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED) {
		print_message("no new PID namespace here: unshare(CLONE_NEWPID) needs "
			      "CAP_SYS_ADMIN\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
}

static void own_handler(int signal_number)
{
}

static struct sigaction action_of(int signal_number)
{
	struct sigaction action;

	sigaction(signal_number, NULL, &action);
	return action;
}

CHILD_TEST(handlers_of_the_program_and_ignored_signals_are_kept)
{
	lcores_prepare(2);
	check(plx_lcores_init(&lcores.conf) == 0);
	check(action_of(SIGINT).sa_handler == SIG_DFL);
	check(action_of(SIGTERM).sa_handler == SIG_DFL);
	signal(SIGINT, own_handler);
	plx_stop_on_signals();
	check(action_of(SIGINT).sa_handler == own_handler);
	check(action_of(SIGTERM).sa_handler != SIG_DFL);
	check(action_of(SIGTERM).sa_flags & SA_ONSTACK);
	check(action_of(SIGTERM).sa_flags & SA_RESTART);
	signal(SIGTERM, SIG_IGN);
	plx_stop_on_signals();
	check(action_of(SIGTERM).sa_handler == SIG_IGN);
	down();
}

PLX_TEST_MAIN()
