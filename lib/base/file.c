/* SPDX-License-Identifier: BSD-3-Clause */
/* Grow files without triggering SIGXFSZ, and exclude memory from core dumps. */
#include "base_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

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

static bool leaves_out; /* written at setup, before such memory is mapped */

void plx_dump_leave_out(bool on)
{
	leaves_out = on;
}

void plx_dump_mark(void *base, size_t size_bytes)
{
	if (leaves_out)
		madvise(base, size_bytes, MADV_DONTDUMP); /* cannot fail for mapped memory */
}
