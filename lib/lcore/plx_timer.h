/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Functions that an lcore's loop calls later: timers at a time, tasks at the end of the turn.
 */
#ifndef PLX_TIMER_H
#define PLX_TIMER_H

#include "plx_base.h"

PLX_BEGIN_DECLS

/* Timers ----------------------------------------------------------------------------------- */

struct plx_timer;
typedef void (*plx_timer_fn)(struct plx_timer *timer, void *arg);

/** A timer, embedded in the user's struct. Zero it or use plx_timer_init; the fields are private.
 * Never early. On an awake lcore at most one tick (1.024 us) and one turn late, if at most 64
 * timers expire in that turn. Timers that expire close together may delay each other (of a million
 * 20 s timers, the first fires about 0.3 s late), but never a timer with a shorter delay. Timers
 * of one turn fire in the order of their ticks, except in such a crowd.
 * An adaptive lcore wakes before a timer, by the time that most recent wake-ups took, and polls
 * the rest; a longer wake-up makes it late. Under PLX_IDLE_EVENT it is late by the whole wake-up.
 * The memory must stay until the timer fired, was stopped, or plx_lcores_fini stopped it. fn may
 * free it. */
struct plx_timer {
	struct plx_timer *next;
	struct plx_timer **prev_next; /**< NULL: not running */
	uint64_t expiry_tick;
	uint64_t expiry_ns;
	uint64_t period_ns;
	plx_timer_fn fn;
	void *arg;
	struct plx_timer_wheel *wheel;
	uint32_t slot;
	bool lax;
};

void plx_timer_init(struct plx_timer *timer, plx_timer_fn fn, void *arg);

/** Call fn once on the calling lcore, delay_ns after this turn's clock. Moves a running timer.
 * Range: 0 (the next tick, never in this turn) to PLX_NEVER.
 * Thread: an lcore, the same one while it runs.
 * Return: 0; -ENOENT not an lcore; -EINVAL no function. */
int plx_timer_start(struct plx_timer *timer, uint64_t delay_ns);

/** Call fn every period_ns (at least 1), without drift. Periods missed during a long turn are
 * skipped.
 * Thread: an lcore.
 * Return: 0; -ENOENT; -EINVAL. */
int plx_timer_start_periodic(struct plx_timer *timer, uint64_t period_ns);

/** lax: the timer may be late by a wake-up, as most time-outs may; a sleeping lcore does not wake
 * before it to poll. Default, also after plx_timer_init: false.
 * Thread: the timer's lcore. */
void plx_timer_set_lax(struct plx_timer *timer, bool lax);

/** Stop a timer: fn does not run after this. Does nothing if it is not running. Allowed inside fn.
 * Thread: the timer's lcore, or the main thread while that lcore runs nothing. */
void plx_timer_stop(struct plx_timer *timer);

static inline bool plx_timer_running(const struct plx_timer *timer)
{
	return timer->prev_next != NULL;
}

/* Tasks ------------------------------------------------------------------------------------ */

struct plx_task;
typedef void (*plx_task_fn)(struct plx_task *task, void *arg);

/** A function to run once at the end of the turn, however often it is scheduled. Use it to send
 * what callbacks gathered, or to call back outside the current call.
 * Embedded in the user's struct. Zero it or use plx_task_init; the fields are private. The memory
 * must stay until fn runs, which may free it, or the task is cancelled; plx_lcores_fini cancels
 * all. */
struct plx_task {
	struct plx_task *next; /**< NULL: not scheduled */
	struct plx_task *prev;
	plx_task_fn fn;
	void *arg;
	uint64_t run;
};

void plx_task_init(struct plx_task *task, plx_task_fn fn, void *arg);

/** Run fn once on the calling lcore at the end of this turn, after pollers and timers; outside
 * turns, at the end of the next one. Tasks run in the order in which they were scheduled. Does
 * nothing if already scheduled. A task scheduled inside a task runs at the end of the next turn,
 * which follows at once.
 * An lcore does not sleep while a task is scheduled: use a poller for work of every turn. A task
 * left when plx_loop_run returns waits for the next turn.
 * Thread: an lcore, the same one while it is scheduled.
 * Return: 0; -ENOENT not an lcore; -EPERM plx_is_forked; -EINVAL no function. */
int plx_task_schedule(struct plx_task *task);

/** Cancel a task: fn does not run after this. Does nothing if it is not scheduled.
 * Thread: the task's lcore, or the main thread while that lcore runs nothing. */
void plx_task_cancel(struct plx_task *task);

/** Whether a task is scheduled. False inside fn, unless fn scheduled it again. Thread: the task's
 * lcore. */
static inline bool plx_task_scheduled(const struct plx_task *task)
{
	return task->next != NULL;
}

PLX_END_DECLS

#endif
