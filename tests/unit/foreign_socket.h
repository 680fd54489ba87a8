/* SPDX-License-Identifier: BSD-3-Clause */
/* A UNIX socket of another user, held by a child process; needs root. */
#ifndef FOREIGN_SOCKET_H
#define FOREIGN_SOCKET_H

#include "plx_test.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOREIGN_USER 12345

struct foreign {
	pid_t pid;
};

/* An abstract name. Return: its length as an address. */
static inline size_t foreign_name(const char *text, struct sockaddr_un *name_out)
{
	int n = snprintf(name_out->sun_path + 1, sizeof(name_out->sun_path) - 1, "%s", text);

	return offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n;
}

/* A child that begins something, and then stays until it is killed. Return: its pid; 0: it could
 * not begin. */
static inline pid_t stay_in_child(bool (*begin)(const void *arg), const void *arg)
{
	int told[2];
	char byte;

	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!begin(arg) || write(told[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	if (read(told[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(told[0]);
	return pid;
}

static inline void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct foreign_name {
	const struct sockaddr *name;
	socklen_t length;
	int type;
	bool listens;
};

static inline bool foreign_begin(const void *arg)
{
	const struct foreign_name *it = arg;

	if (setuid(FOREIGN_USER))
		return false;
	int fd = socket(AF_UNIX, it->type, 0);
	return bind(fd, it->name, it->length) == 0 && (!it->listens || listen(fd, 16) == 0);
}

/* Bind that name, and listen if requested. */
static inline struct foreign foreign_bind(const struct sockaddr_un *name, size_t length, int type,
					  bool listens)
{
	const struct foreign_name it = {(const struct sockaddr *)name, (socklen_t)length, type,
					listens};
	struct foreign foreign = {stay_in_child(foreign_begin, &it)};

	assert_int_not_equal(foreign.pid, 0);
	return foreign;
}

static inline void foreign_end(const struct foreign *foreign)
{
	end_child(foreign->pid);
}

#endif
