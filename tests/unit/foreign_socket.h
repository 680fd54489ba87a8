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

/* Bind that name, and listen if requested. */
static inline struct foreign foreign_bind(const struct sockaddr_un *name, size_t length, int type,
					  bool listens)
{
	struct foreign foreign;
	char byte = 0;
	int told[2];

	assert_int_equal(pipe(told), 0);
	foreign.pid = fork();
	assert_true(foreign.pid >= 0);
	if (foreign.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setuid(FOREIGN_USER))
			_exit(1);
		int fd = socket(AF_UNIX, type, 0);
		if (bind(fd, (const struct sockaddr *)name, (socklen_t)length) ||
		    (listens && listen(fd, 16)) || write(told[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	return foreign;
}

static inline void foreign_end(const struct foreign *foreign)
{
	kill(foreign->pid, SIGKILL);
	waitpid(foreign->pid, NULL, 0);
}

#endif
