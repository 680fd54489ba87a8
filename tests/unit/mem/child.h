/* SPDX-License-Identifier: BSD-3-Clause */
/* Run part of a test in another process: for one-time effects, crashes, and failing system calls.
 */
#ifndef CHILD_H
#define CHILD_H

#include "plx_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_TEXT_BYTES 8192

struct child_end {
	int status;                  /* from waitpid */
	char text[CHILD_TEXT_BYTES]; /* its standard error: its log and asserts */
};

/** Run fn there with the log on standard error; its result is the exit status. */
static inline void child_run(int (*fn)(void), struct child_end *end_out)
{
	struct rlimit no_core = {0, 0};
	size_t used = 0;
	ssize_t n;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		plx_log_set_sink(plx_log_to_stderr, NULL);
		_exit(fn());
	}
	close(fds[1]);
	while (used < CHILD_TEXT_BYTES - 1 &&
	       (n = read(fds[0], end_out->text + used, CHILD_TEXT_BYTES - 1 - used)) > 0)
		used += (size_t)n;
	end_out->text[used] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &end_out->status, 0), pid);
}

static inline void child_said(const struct child_end *end, const char *const *parts)
{
	for (; *parts; parts++) {
		if (!strstr(end->text, *parts))
			fail_msg("the child said '%s', not '%s'", end->text, *parts);
	}
}

/** Fail unless the child's text contains each of these parts. */
#define assert_child_said(end, ...) child_said(end, (const char *const[]){__VA_ARGS__, NULL})

/* A function that aborts with a message; in debug builds. */
struct fatal_case {
	int (*fn)(void);
	const char *text;
};

static inline void assert_fatal(const struct fatal_case *cases, size_t count)
{
#ifdef NDEBUG
	skip();
#endif
	for (size_t i = 0; i < count; i++) {
		struct child_end end;

		child_run(cases[i].fn, &end);
		if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGABRT)
			fail_msg("no abort with '%s', but status %#x and '%s'", cases[i].text,
				 (unsigned)end.status, end.text);
		assert_child_said(&end, cases[i].text);
	}
}

/** What fn returns to skip a test on a host that does not allow it. */
#define CHILD_SKIP 77

/** Fail unless fn succeeds there. */
static inline void child_succeeds(int (*fn)(void), struct child_end *end_out)
{
	child_run(fn, end_out);
	if (WIFEXITED(end_out->status) && WEXITSTATUS(end_out->status) == CHILD_SKIP)
		skip();
	if (end_out->status)
		fail_msg("status %#x: %s", (unsigned)end_out->status, end_out->text);
}

static inline void child_says(int (*fn)(void), int line_count, const char *const *parts)
{
	struct child_end end;

	child_succeeds(fn, &end);
	child_said(&end, parts);
	for (const char *at = end.text; *at; at++)
		line_count -= *at == '\n';
	if (line_count)
		fail_msg("%d lines fewer than expected: '%s'", line_count, end.text);
}

/** Fail unless fn succeeds there and logs that many lines, which contain these parts. */
#define assert_child_says(fn, line_count, ...) \
	child_says(fn, line_count, (const char *const[]){__VA_ARGS__, NULL})

/** Make a system call of this process fail from now on: always, or (arg >= 0) if its argument with
 * that number, 0 to 5, is value. Return: 0; -1 the host does not allow that. */
static inline int child_deny(int syscall_number, int arg, unsigned value, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)syscall_number, arg < 0 ? 2 : 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args) + 8 * (unsigned)(arg < 0 ? 0 : arg)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = PLX_ARRAY_LEN(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
