/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU time of threads as a test chooses, whatever else runs on the host. Needs a wrapped
 * clock_gettime. */
#ifndef CPU_TIME_H
#define CPU_TIME_H

#include "lcore_internal.h"

#include <stdatomic.h>
#include <time.h>

/* false: each thread always has its CPU; true: it has it for a tenth of the time. */
static _Atomic bool cpu_is_away;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	bool is_cpu = clock == CLOCK_THREAD_CPUTIME_ID;
	int rc = __real_clock_gettime(is_cpu ? CLOCK_MONOTONIC : clock, time);

	if (is_cpu && cpu_is_away) {
		uint64_t ns = (uint64_t)time->tv_sec * PLX_NS_PER_S + (uint64_t)time->tv_nsec;

		time->tv_sec = (time_t)(ns / 10 / PLX_NS_PER_S);
		time->tv_nsec = (long)(ns / 10 % PLX_NS_PER_S);
	}
	return rc;
}

static inline void cpu_set_away(bool is_away)
{
	cpu_is_away = is_away;
	lcore_note_cpu();
}

static inline void spin_ms(unsigned ms)
{
	uint64_t until_ns = plx_now_ns() + ms * PLX_NS_PER_MS;

	while (plx_now_ns() < until_ns)
		;
}

#endif
