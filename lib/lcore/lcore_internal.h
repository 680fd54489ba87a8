/* SPDX-License-Identifier: BSD-3-Clause */
/* What lib/lcore does for the libraries above it, and not for programs: not installed. */
#ifndef LCORE_INTERNAL_H
#define LCORE_INTERNAL_H

#include "plx_lcore.h"

/** Fail as `what` does where plx_is_forked. Thread: any. Return: -EPERM. */
int plx_fail_forked(const char *what);

/** Fail as `what` does on a thread that is no lcore. Thread: any. Return: -ENOENT; -EPERM where
 * plx_is_forked. */
int plx_fail_no_lcore(const char *what);

/** To be called in a process that was forked, on the thread that called fork, while plx_lcore_id
 * still tells its lcore. fn: makes only calls that signal handlers may make. Ownership: static. */
struct plx_fork_hook {
	void (*fn)(void);
	struct plx_fork_hook *next; /* private */
};

/** Thread: setup (constructors). */
void plx_fork_hook_add(struct plx_fork_hook *hook);

#endif
