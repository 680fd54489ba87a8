/* SPDX-License-Identifier: BSD-3-Clause */
/* Exclude memory from core dumps. */
#include "base_internal.h"

#include <sys/mman.h>

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
