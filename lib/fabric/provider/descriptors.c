/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that libfabric opens while it searches its providers are inherited across exec, and
 * there is no option against it. They are found by comparing before and after. */
#include "fabric_provider.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t descriptors_limit(void)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

static bool used_up(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE;
	close(fd);
	return false;
}

const char *descriptors_strerror(int rc)
{
	static __thread char text[96];

	if (rc != -FI_EMFILE && !used_up())
		return fi_strerror(-rc);
	snprintf(text, sizeof(text),
		 "this process may have only %" PRIu64
		 " descriptors; raise the limit with `ulimit -n`",
		 descriptors_limit());
	return text;
}

/* At the mark. The kernel gives the lowest free number: few are above. */
static bool was_open[4096];

void descriptors_mark(void)
{
	for (int fd = 0; fd < (int)PLX_ARRAY_LEN(was_open); fd++)
		was_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

void descriptors_close_on_exec(void)
{
	for (int fd = 0; fd < (int)PLX_ARRAY_LEN(was_open); fd++) {
		int flags = was_open[fd] ? -1 : fcntl(fd, F_GETFD);

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
	}
}
