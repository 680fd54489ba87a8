/* SPDX-License-Identifier: BSD-3-Clause */
/* Write logs, lines and results, and grow files. Writing to a pipe without a reader, or beyond the
 * file size limit, sends a signal to the writing thread. By default that ends the process, which
 * may belong to the application. */
#include "base_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Consume the signal that the write caused. One that was pending before is the program's. */
static void unblock(int signal_number, const sigset_t *pending, const sigset_t *old)
{
	static const struct timespec no_time;
	sigset_t caused;

	sigemptyset(&caused);
	sigaddset(&caused, signal_number);
	if (signal_number && !sigismember(pending, signal_number))
		while (sigtimedwait(&caused, NULL, &no_time) < 0 && errno == EINTR)
			continue;
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

ssize_t plx_write(int fd, const void *data, size_t len)
{
	sigset_t signals, old, pending;
	ssize_t done;
	int err;

	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	sigaddset(&signals, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &signals, &old);
	sigpending(&pending);
	do
		done = write(fd, data, len);
	while (done < 0 && errno == EINTR);
	err = done < 0 ? errno : 0;
	unblock(err == EPIPE ? SIGPIPE : err == EFBIG ? SIGXFSZ : 0, &pending, &old);
	return err ? -err : done;
}

int plx_write_or_drop(int fd, const char *text, size_t len)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};

	/* A ready pipe takes PIPE_BUF (4096) bytes atomically, so lines do not mix. */
	while (len > 0) {
		int count = poll(&ready, 1, 0);

		if (count < 0 && errno == EINTR)
			continue;
		if (count != 1)
			return -EAGAIN;

		ssize_t done = plx_write(fd, text, len);

		if (done < 0)
			return (int)done;
		text += done;
		len -= (size_t)done;
	}
	return 0;
}

void plx_hold_stdio(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* Open in the wrong direction: reading or writing gives EBADF, as on a closed
		 * descriptor. The lower descriptors are open, so open(2) returns this one. */
		/* cppcheck-suppress leakReturnValNotUsed */
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return;
	}
}

int plx_file_fits(uint64_t size_bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	    size_bytes <= limit.rlim_cur)
		return 0;
	return plx_fail(EFBIG,
			"%llu bytes are needed; this process may create files of at most %llu; "
			"raise the limit with ulimit -f",
			(unsigned long long)size_bytes, (unsigned long long)limit.rlim_cur);
}

int plx_file_resize(int fd, uint64_t size_bytes)
{
	int rc = plx_file_fits(size_bytes);

	if (rc)
		return rc;
	if (ftruncate(fd, (off_t)size_bytes) != 0)
		return plx_fail(errno, "ftruncate: %s", strerror(errno));
	return 0;
}
