/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the loop of an lcore calls later: timers at a time, tasks at the end of the turn.
 */
#ifndef PLX_TIMER_H
#define PLX_TIMER_H

#include "plx_base.h"

PLX_BEGIN_DECLS

/* Timers ----------------------------------------------------------------------------------- */

struct plx_timer;
typedef void (*plx_timer_fn)(struct plx_timer *timer, void *arg);

/** A timer, embedded in its user's struct. Zero it or use plx_timer_init; the fields are private.
 * Expiry is never early and at most one tick (1.024 us) and one turn late on an lcore that is
 * awake, if no more than 64 timers are due in that turn. Where very many expire close together,
 * they may delay each other (with a million 20 s timers, the first fires about 0.3 s late), but no
 * timer that was started for a shorter time. An lcore that sleeps wakes before it, by what most of
 * its last wake-ups took, and polls the rest; it is late where this one takes longer, and under
 * PLX_IDLE_EVENT by all that a wake-up takes. Timers of one turn fire in the order of their ticks,
 * except in such a crowd. Its memory must stay until it has fired, was stopped, or plx_lcores_fini
 * stopped it; fn may free it. */
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

/** Call fn once, delay_ns from this turn's clock on, on the calling lcore; a timer that runs is
 * moved. Range: 0 (the next tick: never the turn that runs) to PLX_NEVER.
 * Thread: an lcore, always the same one while it runs. Return: 0; -ENOENT not an lcore; -EINVAL no
 * function. */
int plx_timer_start(struct plx_timer *timer, uint64_t delay_ns);

/** Call fn every period_ns (at least 1), without drift; periods missed by a long turn are skipped.
 * Thread: an lcore. Return: 0; -ENOENT; -EINVAL. */
int plx_timer_start_periodic(struct plx_timer *timer, uint64_t period_ns);

/** lax: nobody minds if it is late by a wake-up, as with most time-outs: an lcore that sleeps does
 * not wake before it to poll. Default: false, also behind plx_timer_init. Thread: the timer's
 * lcore.
 */
void plx_timer_set_lax(struct plx_timer *timer, bool lax);

/** After it returns fn is not called any more. Does nothing to one that is not running; allowed
 * inside fn. Thread: the timer's lcore, or the main thread while that lcore runs nothing. */
void plx_timer_stop(struct plx_timer *timer);

static inline bool plx_timer_running(const struct plx_timer *timer)
{
	return timer->prev_next != NULL;
}

/* Tasks ------------------------------------------------------------------------------------ */

struct plx_task;
typedef void (*plx_task_fn)(struct plx_task *task, void *arg);

/** Something to be done once at the end of the turn, however often it is asked for: to send what
 * callbacks gathered, or to call back outside of the call that caused it. Embedded in its user's
 * struct. Zero it or use plx_task_init; the fields are private. Its memory must stay until fn is
 * called, which may free it, or until it was cancelled; plx_lcores_fini cancels all. */
struct plx_task {
	struct plx_task *next; /**< NULL: not scheduled */
	struct plx_task *prev;
	plx_task_fn fn;
	void *arg;
	uint64_t run;
};

void plx_task_init(struct plx_task *task, plx_task_fn fn, void *arg);

/** Call fn once on the calling lcore, at the end of this turn, past pollers and timers; outside of
 * turns, at the end of the next one. Tasks run in the order in which they were scheduled. Does
 * nothing to one that is scheduled. Inside a task: at the end of the next turn, which follows at
 * once. An lcore does not sleep while a task is scheduled; what is to be done every turn is work
 * for a poller. One that is left when plx_loop_run returns waits for the next turn. Thread: an
 * lcore, the same one while it is scheduled. Return: 0; -ENOENT not an lcore; -EPERM where
 * plx_is_forked; -EINVAL no function. */
int plx_task_schedule(struct plx_task *task);

/** fn is not called any more. Does nothing to one that is not scheduled. Thread: the task's lcore,
 * or the main thread while that lcore runs nothing. */
void plx_task_cancel(struct plx_task *task);

/** False inside fn, unless that has scheduled it again. Thread: the task's lcore. */
static inline bool plx_task_scheduled(const struct plx_task *task)
{
	return task->next != NULL;
}

PLX_END_DECLS

#endif
