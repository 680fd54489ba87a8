/* SPDX-License-Identifier: BSD-3-Clause */
/* The child of a fork. It has a copy of the lcores' memory, but not their threads, and shares their
 * descriptors with the parent. So it has no lcores: calls that need one fail and name the fork, and
 * the parent's resources stay untouched. */
#include "lcore_priv.h"

/* Set in the child only, before it has threads. */
static bool forked;
static struct plx_fork_hook *hooks;

void plx_fork_hook_add(struct plx_fork_hook *hook)
{
	hook->next = hooks;
	hooks = hook;
}

bool plx_is_forked(void)
{
	return forked;
}

int plx_fail_forked(const char *what)
{
	return plx_fail(EPERM,
			"%s: this process was forked from one that uses Pollux, and cannot use it; "
			"call exec, or fork before plx_eal_init",
			what);
}

/* Calls only async-signal-safe functions: other threads may have held any lock. */
static void in_child(void)
{
	if (plx_lcore_count()) {
		forked = true;
		for (struct plx_fork_hook *hook = hooks; hook; hook = hook->next)
			hook->fn();
		if (loop_self)
			loop_end_turns(loop_self);
		lcore_forget_all();
		stop_give_back();
	}
	wake_close_all();
}

PLX_CONSTRUCTOR static void watch_forks(void)
{
	/* If this fails (no memory), forks go unnoticed. */
	pthread_atfork(NULL, NULL, in_child);
}
