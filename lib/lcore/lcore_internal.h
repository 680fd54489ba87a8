/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of lib/lcore for the libraries above it; not installed. */
#ifndef LCORE_INTERNAL_H
#define LCORE_INTERNAL_H

#include "plx_lcore.h"
#include "plx_watch.h"

/** Set the error text of `what` in the child of a fork. Thread: any. Return: -EPERM. */
int plx_fail_forked(const char *what);

/** Set the error text of `what` on a thread that is not an lcore. Thread: any. Return: -ENOENT;
 * -EPERM in the child of a fork. */
int plx_fail_no_lcore(const char *what);

/** Whether what `what` begins may take turns of the loop, or end what a turn uses: stands at the
 * top of calls that do, before any effect. Thread: any. Return: 0 on an lcore, outside its loop;
 * -EBUSY in a callback; -ENOENT not an lcore; -EPERM in the child of a fork; each with an error
 * text. */
int plx_check_outside(const char *what);

/** The same for what ends all lcores. Thread: any. Return: as plx_check_outside, but -EPERM on a
 * thread other than the main lcore's. */
int plx_check_may_end(const char *what);

/** Call fn as if in a turn of the loop: its callbacks cannot run the loop, or end what runs it.
 * Thread: an lcore, inside its loop or not; any, if no lcore is left. */
void plx_loop_run_inside(void (*fn)(void *arg), void *arg);

/** The calling lcore's epoll set: a sleeping lcore wakes for what it watches, and handles it. An
 * awake one does so only when asked to look. Thread: an lcore. Return: valid until the lcore ends.
 */
struct plx_watch_set *lcore_watch_set(void);

/** plx_loop_run in two steps. plx_loop_quit ends the run that the last begin started, even before
 * that runs. Thread: an lcore. Return: as plx_loop_run. */
int lcore_loop_begin(void);
int lcore_loop_run(void);

/** leave: runs on a thread that leaves its lcore, outside the loop, before its timers and tasks are
 * stopped and its pollers and descriptors removed: ends what the library has there. May take turns
 * of the loop. join: runs on the next thread, before its first turn; may be NULL. Ownership:
 * static. */
struct lcore_leave_hook {
	void (*leave)(void);
	void (*join)(void);
	struct lcore_leave_hook *next; /* private */
};

/** The last one added runs first. Thread: setup (constructors). */
void lcore_leave_hook_add(struct lcore_leave_hook *hook);

/** The poller stays when its lcore's thread leaves: it belongs to a library. */
void lcore_poller_keep(struct plx_poller *poller);

/** Error texts say that the calling adopted thread must call this to leave; plx_lcore_leave if not
 * set. call: static. */
void lcore_leave_by(const char *call);

/** Let plx_lcore_adopt fail while the lcores end, with -ESHUTDOWN, or allow it again. */
void lcore_allow_adopting(bool allow);

/** Whether lcore id runs nothing and the caller may act for it: it is the main lcore. If so, no
 * thread becomes that lcore until lcore_release_idle. No callbacks in between. */
bool lcore_hold_idle(uint32_t id);
void lcore_release_idle(void);

/** Wait until all adopted threads, except the calling one, have left. timeout_ns: in all. Return:
 * 0; -ETIMEDOUT, the text names one. */
int lcore_wait_adopted(const char *what, uint64_t timeout_ns);

#define LCORE_LONG_TURN_NS (20 * PLX_NS_PER_MS)

/** After each turn of plx_loop_run that takes LCORE_LONG_TURN_NS or longer, before the next one,
 * call fn(arg, took_ns) on the lcore. It must not run callbacks. fn: NULL ends that. One per lcore.
 * Thread: the lcore, or the main thread while that lcore runs nothing. */
void lcore_on_long_turn(uint32_t id, void (*fn)(void *arg, uint64_t took_ns), void *arg);

/** Note how much CPU time the lcore's thread has had, for lcore_away_ns. Call about ten times a
 * second: it makes a system call. Thread: an lcore. */
void lcore_note_cpu(void);

/** How long the thread was without its CPU while awake since the last note, at most: how much of
 * took_ns, which ends now, that may have been. It was preempted, or slept in a callback. Makes a
 * system call.
 * Thread: any. Return: 0 to took_ns; 0 if unknown: not an lcore, or the last note is older than a
 * second before took_ns. */
uint64_t lcore_away_ns(uint64_t took_ns);

/** Runs in the child of a fork, on the thread that forked, while plx_lcore_id still returns its
 * lcore. fn: calls only async-signal-safe functions. Ownership: static. */
struct plx_fork_hook {
	void (*fn)(void);
	struct plx_fork_hook *next; /* private */
};

/** Thread: setup (constructors). */
void plx_fork_hook_add(struct plx_fork_hook *hook);

#endif
