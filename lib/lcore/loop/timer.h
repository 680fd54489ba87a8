/* SPDX-License-Identifier: BSD-3-Clause */
/* What a loop calls later, and the two places where it keeps that: a wheel and a ring. */
#ifndef LCORE_TIMER_H
#define LCORE_TIMER_H

#include "plx_timer.h"

/* Timers: timer.c -------------------------------------------------------------------------- */

#define WHEEL_TICK_SHIFT 10 /* a tick is 2^10 ns = 1.024 us */
#define WHEEL_SLOT_BITS  6
#define WHEEL_SLOTS      (1u << WHEEL_SLOT_BITS)
#define WHEEL_LEVELS     9  /* 9 * 6 + 10 = 64: every 64-bit time has a slot */
#define WHEEL_FIRED_MAX  64 /* timers fired in one turn */
#define WHEEL_MOVED_MAX  32 /* timers moved in one turn from one level */

struct wheel_slot {
	struct plx_timer *first;
	struct plx_timer **moved_next; /* where the next one from a higher level is inserted */
	struct plx_timer **last_next;  /* where the next one that starts is appended */
};

struct plx_timer_wheel {
	uint64_t next_ns; /* nothing is to be done before: all that an idle turn looks at */
	uint64_t tick;    /* no slot that has timers ends before it */
	uint32_t begun;   /* bit n: some timers of level n's first slot were moved, some not */
	uint32_t levels;  /* bit n: level n has timers */
	uint64_t fired;   /* timers, ever */
	uint64_t occupied[WHEEL_LEVELS]; /* bit n: slot n of the level has timers */
	struct wheel_slot slots[WHEEL_LEVELS * WHEEL_SLOTS];
	uint32_t lcore_id;
};

void wheel_init(struct plx_timer_wheel *wheel, uint64_t now_ns);

/* Stop all timers. */
void wheel_fini(struct plx_timer_wheel *wheel);

/* Start or move a timer: due at expiry_ns, but never within the present tick. */
void wheel_start(struct plx_timer_wheel *wheel, struct plx_timer *timer, uint64_t now_ns,
		 uint64_t expiry_ns);

/* Fire what is due, in the order of expiry, except that timers overtake those in a slot with more
 * than WHEEL_MOVED_MAX. What is above the bounds is left for the next call (next_ns stays <=
 * now_ns). Returns how many timers were fired or moved. */
unsigned wheel_expire(struct plx_timer_wheel *wheel, uint64_t now_ns);

/* For one who sleeps. UINT64_MAX: never. */
struct due {
	uint64_t next_ns;  /* when something is to be done */
	uint64_t exact_ns; /* when something is that may not be late */
};

/* When the next timers fire: wheel->next_ns is also when one moves from level to level. Where many
 * lie close together it may be as early as the slot that they are in. */
struct due wheel_due(const struct plx_timer_wheel *wheel);

/* Tasks: task.c ---------------------------------------------------------------------------- */

/* ring: a task without a function, which all others hang on. */
void tasks_init(struct plx_task *ring, uint32_t lcore_id);

/* Cancel all. */
void tasks_fini(struct plx_task *ring);

/* Schedule one at the end of the ring; does nothing to one that is scheduled. Return: 0; -EINVAL no
 * function. */
int task_append(const char *what, struct plx_task *ring, struct plx_task *task);

/* Call the first one that was scheduled before ring->run was raised. Return: false: there is none.
 */
bool task_run_next(struct plx_task *ring);

/* Call those that were scheduled before. Returns how many. */
uint64_t tasks_run(struct plx_task *ring);

static inline bool tasks_wait(const struct plx_task *ring)
{
	return ring->next != ring;
}

#endif
