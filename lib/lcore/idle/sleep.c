/* SPDX-License-Identifier: BSD-3-Clause */
/* Falling asleep and waking. An lcore never sleeps past a message that was sent to it:
 *
 *     sender                                  sleeping lcore
 *     S1 publish the message                  S3 set `sleeping`
 *     S2 check `sleeping`; if set,            S4 check for messages again
 *        clear it and write the eventfd
 *
 * All four are sequentially consistent: either S2 sees S3, or S4 sees S1. Then pollers are armed,
 * and the lcore blocks on its epoll set (fd.c), in which the eventfd is, until the next timer. The
 * eventfd is edge-triggered: a write is taken by the block that it ends, or by a look in a turn,
 * and never between S4 and blocking. The model is tests/model/sleep.pml; see also
 * doc/design/idle.md. */
#include "lcore_priv.h"

#define NAP_MAX_NS   PLX_NS_PER_MS
#define REFUSALS_MAX 4 /* in a row, before the lcore naps */

/* Limits of a sleep --------------------------------------------------------------------------- */

/* Return: whether that is the nearest limit so far. */
static bool limit(struct plx_sleep *sleep, uint64_t time_ns, enum plx_wake_cause cause)
{
	if (time_ns >= sleep->until_ns)
		return false;
	sleep->until_ns = time_ns;
	sleep->limited_by = cause;
	return true;
}

void plx_sleep_until(struct plx_sleep *sleep, uint64_t time_ns)
{
	sleep->exact_ns = earlier(sleep->exact_ns, time_ns);
}

void plx_sleep_nap(struct plx_sleep *sleep)
{
	sleep->unsure = true;
}

/* Going to sleep ----------------------------------------------------------------------------- */

/* Let every poller add what ends the sleep. Return: whether to sleep. */
static bool arm(struct loop *loop, struct plx_sleep *sleep)
{
	struct idle *idle = &loop->idle;

	if (!pollers_arm(&loop->pollers, sleep, idle->refusals >= REFUSALS_MAX)) {
		idle->refusals++;
		counter_add(&idle->counts.refused, 1);
		return false;
	}
	if (sleep->unsure) {
		limit(sleep, plx_time_add(loop->now_ns, idle->nap_ns), PLX_WAKE_NAP);
		idle->nap_ns = earlier(idle->nap_ns * 2, NAP_MAX_NS);
	} else {
		idle->refusals = 0;
	}
	return true;
}

/* Of timers, and said_ns, which pollers set in arm. */
static struct due next_due(const struct loop *loop, uint64_t said_ns)
{
	struct due due = wheel_due(&loop->wheel);

	due.exact_ns = earlier(due.exact_ns, said_ns);
	due.next_ns = earlier(due.next_ns, due.exact_ns);
	if (loop->idle.conf.mode == PLX_IDLE_ADAPTIVE && due.exact_ns != UINT64_MAX &&
	    due.exact_ns > loop->now_ns)
		due.early_ns = idle_early_ns(&loop->idle, due.exact_ns - loop->now_ns);
	return due;
}

/* An adaptive lcore does not sleep for work that is closer than a sleep is worth, nor again for
 * work that it has woken for: it polls until then. */
static bool due_soon(struct loop *loop, const struct due *due)
{
	struct idle *idle = &loop->idle;
	uint64_t near_ns = plx_time_add(loop->now_ns, idle->sleep_ns);
	bool exact_is_near = due->exact_ns <= plx_time_add(near_ns, due->early_ns) ||
			     due->exact_ns == idle->awake_for_ns;

	if (idle->conf.mode != PLX_IDLE_ADAPTIVE || (!exact_is_near && due->next_ns > near_ns))
		return false;
	/* Otherwise an estimate that is too high would never be corrected. */
	if (exact_is_near && due->exact_ns != idle->awake_for_ns) {
		idle->awake_for_ns = due->exact_ns;
		idle_polled_to_timer(idle);
	}
	loop->sleep_at_ns = plx_time_add(exact_is_near ? due->exact_ns : due->next_ns, 1);
	return true;
}

/* Set the next time that something waits for. Return: whether to sleep. */
static bool set_limit(struct loop *loop, struct plx_sleep *sleep)
{
	struct due due = next_due(loop, sleep->exact_ns);

	if (due_soon(loop, &due))
		return false;
	sleep->exact_ns = due.exact_ns;
	limit(sleep, due.next_ns, PLX_WAKE_TIMER);
	if (limit(sleep, due.exact_ns - due.early_ns, PLX_WAKE_TIMER))
		sleep->early_ns = due.early_ns;
	return true;
}

/* Awake -------------------------------------------------------------------------------------- */

/* count: events, of which the program's descriptors have some. */
static enum plx_wake_cause cause_of(const struct fds *fds, const struct plx_sleep *sleep, int count,
				    bool is_users)
{
	if (count < 0 || fds->rang) /* a signal handler ran, or it was written to */
		return PLX_WAKE_MESSAGE;
	return is_users ? PLX_WAKE_FD : count ? PLX_WAKE_POLLER : sleep->limited_by;
}

static void measure(struct loop *loop, enum plx_wake_cause cause, const struct plx_sleep *sleep,
		    uint64_t tsc)
{
	struct idle *idle = &loop->idle;

	if (cause == PLX_WAKE_MESSAGE) {
		/* Relaxed: see wake_write. Not every writer sets it: plx_stop does not. */
		uint64_t rung = atomic_exchange_explicit(&loop->bell.rung_tsc, 0,
							 memory_order_relaxed);

		if (rung && rung <= tsc)
			idle_follow_wake(idle, plx_tsc_to_ns(tsc - rung));
	} else if (cause == PLX_WAKE_TIMER && sleep->early_ns) {
		idle->awake_for_ns = sleep->exact_ns;
		if (sleep->lasted_ns)
			idle_follow_timer(idle,
					  plx_time_since(sleep->until_ns, plx_tsc_time_ns(tsc)));
	}
}

/* After the next turn: whether the expected source woke the lcore. */
static void judge(struct idle *idle, enum plx_wake_cause cause, uint64_t work)
{
	bool told = cause == PLX_WAKE_MESSAGE || cause == PLX_WAKE_POLLER || cause == PLX_WAKE_FD;

	counter_add(&idle->counts.spurious, told && !work);
	counter_add(&idle->counts.rescues, cause == PLX_WAKE_CAP && work);
}

/* The time of that tsc. Outside the possible range, the counter may have stepped. */
static uint64_t checked_time_ns(uint64_t tsc, uint64_t least_ns, uint64_t most_ns)
{
	uint64_t time_ns = plx_tsc_time_ns(tsc);

	if (time_ns >= least_ns && plx_time_since(most_ns, time_ns) < LOOP_LONG_NS)
		return time_ns;
	plx_clock_look(true);
	return plx_tsc_time_ns(tsc);
}

static uint64_t sleep_now(struct loop *loop, struct plx_sleep *sleep)
{
	struct idle *idle = &loop->idle;
	uint64_t fell_tsc = plx_tsc();
	uint64_t fell_ns = checked_time_ns(fell_tsc, loop->now_ns, UINT64_MAX);
	uint64_t woke_tsc, woke_ns, work;
	enum plx_wake_cause cause;
	int count;

	LCORE_STEP();
	count = fds_wait(&loop->fds, plx_time_since(fell_ns, sleep->until_ns));
	LCORE_STEP();
	woke_tsc = plx_tsc();
	woke_ns = checked_time_ns(woke_tsc, fell_ns, sleep->until_ns);
	if (sleep->until_ns > fell_ns)
		sleep->lasted_ns = plx_time_since(fell_ns, woke_ns);
	if (plx_time_since(sleep->until_ns, woke_ns) >= LOOP_LONG_NS)
		loop_note_pause(loop, woke_ns - sleep->until_ns, woke_ns);
	LCORE_STEP();
	/* Relaxed: a sender that clears it now writes for nothing, and the next sleep is short. */
	atomic_store_explicit(&loop->bell.sleeping, 0, memory_order_relaxed);
	loop_skip_time(loop, fell_tsc, woke_tsc);
	work = fds_handle(&loop->fds);
	cause = cause_of(&loop->fds, sleep, count, work > 0);
	measure(loop, cause, sleep, woke_tsc);
	counter_add(&idle->counts.sleeps, 1);
	counter_add(&idle->counts.naps, sleep->unsure);
	counter_add(&idle->counts.wakes[cause], 1);
	counter_add(&idle->counts.asleep_ns, sleep->lasted_ns);
	idle->slept = true;
	idle_look(loop);
	if (loop_asked_to_stop(loop))
		return 0;
	work += loop_turn(loop);
	judge(idle, cause, work);
	return work;
}

uint64_t sleep_until_work(struct loop *loop)
{
	struct plx_sleep sleep = {.limited_by = PLX_WAKE_CAP, .exact_ns = UINT64_MAX};
	struct bell *bell = &loop->bell;
	struct due due = next_due(loop, UINT64_MAX); /* no poller was asked yet */

	if (due_soon(loop, &due))
		return 0;
	sleep.until_ns = plx_time_add(loop->now_ns, loop->idle.conf.sleep_max_ns);
	/* Relaxed: discards a ring after the last sleep. */
	atomic_store_explicit(&bell->rung_tsc, 0, memory_order_relaxed);
	LCORE_STEP();
	atomic_store_explicit(&bell->sleeping, 1, memory_order_seq_cst); /* S3 */
	LCORE_STEP();
	if (messages_wait(loop)) /* S4 */
		counter_add(&loop->idle.counts.late, 1);
	/* Timers and tasks started in arm count. A stop before S3 is seen here; a later one writes
	 * the eventfd. */
	else if (arm(loop, &sleep) && set_limit(loop, &sleep) && !tasks_wait(&loop->tasks) &&
		 !loop_asked_to_stop(loop))
		return sleep_now(loop, &sleep);
	atomic_store_explicit(&bell->sleeping, 0, memory_order_relaxed); /* as in sleep_now */
	return 0;
}
