/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a child program inherits: none of libfabric's, and all of the application's that
 * it wants. */
#include "count.h"
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD_MAX 2048

static bool is_inheritable(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

static unsigned inheritable(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < FD_MAX; fd++)
		count += is_inheritable(fd);
	return count;
}

/* Links --------------------------------------------------------------------------------------- */

static void expect_nothing_of_a_link_is_inherited(const char *provider)
{
	unsigned before = inheritable();
	struct plx_listener *listener;

	fixture_start(provider, true);
	worker_start();
	listener = fixture_listen("127.0.0.1:0", NULL);
	assert_int_equal(inheritable(), before);
	fixture_connect(listener, NULL);
	assert_int_equal(inheritable(), before);
	worker_stop();
	fixture_stop();
}

PLX_TEST(a_child_inherits_no_descriptors_of_a_link)
{
	expect_nothing_of_a_link_is_inherited("tcp");
	expect_nothing_of_a_link_is_inherited("shm");
}

/* Signals, once libfabric and its dependencies are loaded -------------------------------------- */

#define LOOK   "--look"
#define FAILED 9

static bool has_handler(int signal_number)
{
	struct sigaction action;

	sigaction(signal_number, NULL, &action);
	return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

/* In a separate process, started with SIGINT ignored and SIGTERM not. */
static int look(void)
{
	static const int signals[] = {SIGINT, SIGILL, SIGABRT,
				      SIGTERM}; /* none used by a sanitizer */
	sigset_t blocked;

	for (size_t i = 0; i < PLX_ARRAY_LEN(signals); i++)
		if (has_handler(signals[i]))
			return FAILED;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGHUP))
		return FAILED;
	if (signal(SIGINT, SIG_DFL) != SIG_IGN || signal(SIGTERM, SIG_DFL) != SIG_DFL)
		return FAILED;
	return 0;
}

PLX_TEST(no_library_installs_signal_handlers_before_main)
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		sigset_t mask;

		sigemptyset(&mask);
		sigaddset(&mask, SIGHUP);
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_DFL);
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
		execl("/proc/self/exe", "process_test", LOOK, NULL);
		_exit(FAILED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], LOOK) == 0)
		return look();
	return plx_test_run("tests", NULL, NULL);
}
