/* SPDX-License-Identifier: BSD-3-Clause */
/* What libfabric and its dependencies do to a process, put right:
 *
 * - Loading libfabric loads libinfinipath, whose constructor installs handlers for six signals;
 * with them SIGTERM ends in a backtrace and exit status 1. Handlers from such a library are taken
 * out; anybody else's (the application's, a sanitizer's) stay.
 * - Its descriptors are inherited across exec. There is no way to ask for them, so they are found:
 *   those that a set-up call opened by comparing before and after, sockets by their local port. */
#include "fabric_priv.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_stray(void *handler)
{
	static const char *const libraries[] = {"libinfinipath", "libpsm", "libfabric"};
	Dl_info where;

	if (!dladdr(handler, &where) || !where.dli_fname)
		return false;
	for (size_t i = 0; i < PLX_ARRAY_LEN(libraries); i++) {
		if (strstr(where.dli_fname, libraries[i]))
			return true;
	}
	return false;
}

void hygiene_signals(void)
{
	static const int signals[] = {SIGINT, SIGILL, SIGABRT, SIGBUS, SIGSEGV, SIGTERM};

	for (size_t i = 0; i < PLX_ARRAY_LEN(signals); i++) {
		struct sigaction now;
		struct sigaction by_default = {.sa_handler = SIG_DFL};
		void *handler;

		if (sigaction(signals[i], NULL, &now) != 0 || now.sa_handler == SIG_DFL ||
		    now.sa_handler == SIG_IGN)
			continue;
		memcpy(&handler, &now.sa_handler, sizeof(handler));
		if (is_stray(handler))
			sigaction(signals[i], &by_default, NULL);
	}
}

/* The size of this process' descriptor table: no descriptor is above it. */
static int table_size(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];
	int size = 1024;

	if (!status)
		return size;
	while (fgets(line, sizeof(line), status)) {
		if (sscanf(line, "FDSize: %d", &size) == 1)
			break;
	}
	fclose(status);
	return size;
}

struct fd_mark {
	int size;
	uint8_t open[];
};

/* Remember which descriptors are open. Free it through hygiene_close_on_exec_since. NULL where
 * there is no memory; that is accepted there, and does nothing. */
struct fd_mark *hygiene_mark(void)
{
	int size = table_size();
	struct fd_mark *mark = malloc(sizeof(*mark) + (size_t)size);

	if (!mark)
		return NULL;
	mark->size = size;
	for (int fd = 0; fd < size; fd++)
		mark->open[fd] = fcntl(fd, F_GETFD) >= 0;
	return mark;
}

static void close_on_exec(int fd, int flags)
{
	if (!(flags & FD_CLOEXEC))
		fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* Descriptors opened since the mark become close-on-exec, those of other threads among them. */
void hygiene_close_on_exec_since(struct fd_mark *mark)
{
	int size = table_size();

	for (int fd = 0; mark && fd < size; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && (fd >= mark->size || !mark->open[fd]))
			close_on_exec(fd, flags);
	}
	free(mark);
}

/* Sockets whose local port this is: a listener's own and what it accepted, or a connection's. */
void hygiene_close_on_exec_port(uint16_t port)
{
	int size = table_size();

	for (int fd = 3; fd < size; fd++) {
		struct sockaddr_storage name;
		socklen_t len = sizeof(name);
		int flags = fcntl(fd, F_GETFD);

		if (flags < 0 || (flags & FD_CLOEXEC))
			continue;
		if (getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
		    address_port((struct sockaddr *)&name) == port)
			close_on_exec(fd, flags);
	}
}
