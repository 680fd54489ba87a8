/* SPDX-License-Identifier: BSD-3-Clause */
/* A callback that counts its calls, and ends the loop at the last one. */
#ifndef COUNTED_CALLS_H
#define COUNTED_CALLS_H

#include "netio_fixture.h"

static uint64_t calls, until;

static inline void count(void *data)
{
	assert_ptr_equal(data, &calls);
	if (++calls == until)
		netio_terminate(&ctx.evloop);
}

static inline void expect_calls(uint64_t count)
{
	calls = 0;
	until = count;
}

#endif
