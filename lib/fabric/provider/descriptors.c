/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that libfabric opens while it searches its providers are inherited across exec, and
 * there is no option against it. They are found by comparing before and after. */
#include "fabric_provider.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The size of this process's descriptor table: all descriptors are below it. */
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

/* Remember which descriptors are open. Free with descriptors_close_on_exec. Return: NULL out of
 * memory, which descriptors_close_on_exec accepts. */
struct fd_mark *descriptors_mark(void)
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

/* Make descriptors opened since the mark close-on-exec, including those of other threads. */
void descriptors_close_on_exec(struct fd_mark *mark)
{
	int size = mark ? table_size() : 0;

	for (int fd = 0; fd < size; fd++) {
		bool was_open = fd < mark->size && mark->open[fd];
		int flags = was_open ? -1 : fcntl(fd, F_GETFD);

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
	}
	free(mark);
}
