/* SPDX-License-Identifier: BSD-3-Clause */
/* A case that may end its process, by a signal or a closed descriptor, runs in a child. */
#ifndef IN_CHILD_H
#define IN_CHILD_H

#include "plx_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A failed check ends the child: cmocka's checks would return into the parent's tests. */
#define check(condition)          \
	do {                      \
		if (!(condition)) \
			_exit(9); \
	} while (0)

/** Run body in a child. Returns its wait status. */
static inline int in_child(void (*body)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGALRM, SIG_DFL);
		alarm(30); /* a hanging child ends by SIGALRM, which no test expects */
		signal(SIGINT, SIG_DFL); /* a shell ignores it for background jobs */
		signal(SIGTERM, SIG_DFL);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

#define assert_passes(body) assert_int_equal(in_child(body), 0)

/** A test whose body runs in a child. */
#define CHILD_TEST(name)                        \
	static void name##_in_child(void);      \
	PLX_TEST(name)                          \
	{                                       \
		assert_passes(name##_in_child); \
	}                                       \
	static void name##_in_child(void)

/** Fail unless that signal ends it. */
static inline void assert_dies(void (*body)(void), int signal_number)
{
	int status = in_child(body);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), signal_number);
}

#endif
