/* SPDX-License-Identifier: BSD-3-Clause */
/* Each case is a child, because a signal or a closed descriptor would affect the whole test. */
#include "in_child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int pipe_without_reader(void)
{
	int ends[2];

	check(pipe(ends) == 0);
	close(ends[0]);
	return ends[1];
}

static void write_by_default(void)
{
	int fd = pipe_without_reader();

	check(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	check(plx_write(fd, "x", 1) == -EPIPE);
	check(plx_write_or_drop(fd, "x", 1) == -EPIPE);
	check(signal(SIGPIPE, SIG_DFL) == SIG_DFL); /* the process's settings are unchanged */
}

static void log_without_reader(void)
{
	check(dup2(pipe_without_reader(), STDERR_FILENO) == STDERR_FILENO);
	plx_log_to_stderr(PLX_LOG_ERROR, "test", "nobody reads this", NULL);
}

PLX_TEST(writing_to_a_closed_pipe_raises_no_signal)
{
	assert_passes(write_by_default);
	assert_passes(log_without_reader);
}

CHILD_TEST(a_pending_signal_stays_pending)
{
	int fd = pipe_without_reader();
	sigset_t pipe_signal, now;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL);
	check(plx_write(fd, "x", 1) == -EPIPE);
	sigpending(&now);
	check(!sigismember(&now, SIGPIPE));
	raise(SIGPIPE);
	check(plx_write(fd, "x", 1) == -EPIPE);
	sigpending(&now);
	check(sigismember(&now, SIGPIPE));
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	check(sigismember(&now, SIGPIPE) && !sigismember(&now, SIGXFSZ));
}

CHILD_TEST(writing_beyond_the_file_size_limit_raises_no_signal)
{
	const struct rlimit limit = {.rlim_cur = 4, .rlim_max = 4};
	char path[] = "/tmp/plx-write-XXXXXX";
	int fd = mkstemp(path);

	check(fd >= 0);
	unlink(path);
	check(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	check(plx_write_or_drop(fd, "12345678", 8) == -EFBIG);
	check(plx_write(fd, "5", 1) == -EFBIG);
}

CHILD_TEST(text_for_a_full_pipe_is_dropped)
{
	int ends[2];

	check(pipe2(ends, O_NONBLOCK) == 0);
	while (write(ends[1], "x", 1) == 1)
		continue;
	check(fcntl(ends[1], F_SETFL, 0) == 0);
	check(plx_write_or_drop(ends[1], "x", 1) == -EAGAIN);
}

CHILD_TEST(a_failed_write_reports_its_reason)
{
	check(plx_write_or_drop(open("/dev/full", O_WRONLY), "x", 1) == -ENOSPC);
	close(STDOUT_FILENO);
	check(plx_write_or_drop(STDOUT_FILENO, "x", 1) == -EBADF);
}

static bool is_null(int fd)
{
	struct stat it, null;

	return fstat(fd, &it) == 0 && stat("/dev/null", &null) == 0 && it.st_rdev == null.st_rdev;
}

CHILD_TEST(closed_standard_streams_are_replaced_by_unusable_descriptors)
{
	char byte;

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd);
	plx_hold_stdio();
	check(is_null(STDIN_FILENO) && is_null(STDOUT_FILENO) && is_null(STDERR_FILENO));
	check(dup(STDERR_FILENO) > STDERR_FILENO);
	check(read(STDIN_FILENO, &byte, 1) == -1 && errno == EBADF);
	check(plx_write(STDOUT_FILENO, "x", 1) == -EBADF);
	check(plx_write(STDERR_FILENO, "x", 1) == -EBADF);
}

PLX_TEST_MAIN()
