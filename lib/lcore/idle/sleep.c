/* SPDX-License-Identifier: BSD-3-Clause */
/* Falling asleep and waking. An lcore never sleeps past a message that was sent to it:
 *
 *     sender                                  sleeping lcore
 *     S1 publish the message                  S3 set `sleeping`
 *     S2 check `sleeping`; if set,            S4 check for messages again
 *        clear it and write the eventfd
 *
 * All four are sequentially consistent: either S2 sees S3, or S4 sees S1. Then pollers are armed,
 * and the lcore blocks on their descriptors, its eventfd and the next timer. It reads the eventfd
 * after that, before the next turn, and never between S4 and blocking. The model is
 * tests/model/sleep.pml; see also doc/design/idle.md.
 *
 * Why ppoll instead of epoll: there are few descriptors, their order shows their owners, and its
 * time-out is in ns. With many descriptors the last one
 * is an epoll set of the rest (sleep_set.c). */
#include "lcore_priv.h"

#include <string.h>

#define NAP_MAX_NS   PLX_NS_PER_MS
#define REFUSALS_MAX 4 /* in a row, before the lcore naps */

__thread bool plx_loop_falls_asleep_tls;

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

/* The array has one place left, or none. Return: whether fd will end the sleep. */
static bool sleep_on_set(struct plx_sleep *sleep, int fd)
{
	struct sleep_set *set = &loop_self->sleep_set;

	if (sleep->count == SLEEP_SET && sleep_set_begin(set))
		sleep->fds[sleep->count++] = (struct pollfd){.fd = set->epoll, .events = POLLIN};
	if (sleep->count == SLEEP_FDS_MAX && sleep_set_add(set, fd, sleep->arming))
		return true;
	plx_sleep_nap(sleep);
	return false;
}

void plx_sleep_forget(int fd)
{
	if (loop_self)
		sleep_set_forget(&loop_self->sleep_set, fd);
}

bool plx_sleep_on(struct plx_sleep *sleep, int fd)
{
	if (plx_unlikely(sleep->count >= SLEEP_SET))
		return sleep_on_set(sleep, fd);
	sleep->whose[sleep->count] = sleep->arming;
	sleep->fds[sleep->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
	return true;
}

void plx_sleep_nap(struct plx_sleep *sleep)
{
	sleep->unsure = true;
}

bool plx_sleep_ended_by(const struct plx_sleep *sleep, int fd)
{
	for (uint32_t i = 1; i < sleep->count; i++) {
		if (sleep->fds[i].fd == fd && sleep->fds[i].revents)
			return true;
	}
	return sleep->count == SLEEP_FDS_MAX && sleep_set_ready(&loop_self->sleep_set, fd);
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

/* ppoll until until_ns. If that is over already, the sleep lasts 0 ns. */
static void block(struct plx_sleep *sleep, uint64_t now_ns)
{
	uint64_t wait_ns = plx_time_since(now_ns, sleep->until_ns);
	struct timespec timeout = {
		.tv_sec = (time_t)(wait_ns / PLX_NS_PER_S),
		.tv_nsec = (long)(wait_ns % PLX_NS_PER_S),
	};
	/* Fails if a signal handler ran, which also wakes the lcore. */
	sleep->ready = ppoll(sleep->fds, sleep->count,
			     sleep->until_ns == UINT64_MAX ? NULL : &timeout, NULL);
	if (sleep->ready < 0) {
		for (uint32_t i = 0; i < sleep->count; i++)
			sleep->fds[i].revents = 0;
	}
	if (sleep->count == SLEEP_FDS_MAX && sleep->fds[SLEEP_SET].revents)
		sleep->whose[SLEEP_SET] = sleep_set_look(&loop_self->sleep_set);
}

/* Awake -------------------------------------------------------------------------------------- */

static enum plx_wake_cause cause_of(const struct loop *loop, const struct plx_sleep *sleep)
{
	if (sleep->fds[0].revents || sleep->ready < 0)
		return PLX_WAKE_MESSAGE;
	for (uint32_t i = 1; i < sleep->count; i++) {
		if (sleep->fds[i].revents)
			return loop->fds.poller && loop->fds.poller == sleep->whose[i]
				     ? PLX_WAKE_FD
				     : PLX_WAKE_POLLER;
	}
	return sleep->limited_by;
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

	if (plx_unlikely(sleep->count == SLEEP_FDS_MAX))
		sleep_set_settle(&loop->sleep_set);
	LCORE_STEP();
	block(sleep, fell_ns);
	LCORE_STEP();
	woke_tsc = plx_tsc();
	woke_ns = checked_time_ns(woke_tsc, fell_ns, sleep->until_ns);
	if (sleep->until_ns > fell_ns)
		sleep->lasted_ns = plx_time_since(fell_ns, woke_ns);
	if (plx_time_since(sleep->until_ns, woke_ns) >= LOOP_LONG_NS)
		loop_note_pause(loop, woke_ns - sleep->until_ns, woke_ns);
	cause = cause_of(loop, sleep);
	if (sleep->fds[0].revents)
		wake_clear(loop->bell.eventfd);
	LCORE_STEP();
	/* Relaxed: a sender that clears it now writes for nothing, and the next sleep is short. */
	atomic_store_explicit(&loop->bell.sleeping, 0, memory_order_relaxed);
	measure(loop, cause, sleep, woke_tsc);
	counter_add(&idle->counts.sleeps, 1);
	counter_add(&idle->counts.naps, sleep->unsure);
	counter_add(&idle->counts.wakes[cause], 1);
	counter_add(&idle->counts.asleep_ns, sleep->lasted_ns);
	idle->slept = true;
	loop_skip_time(loop, fell_tsc, woke_tsc);
	pollers_woke(&loop->pollers, sleep);
	idle_look(loop);
	if (loop_asked_to_stop(loop))
		return 0;
	work = loop_turn(loop);
	judge(idle, cause, work);
	return work;
}

uint64_t sleep_until_work(struct loop *loop)
{
	struct plx_sleep sleep;
	struct bell *bell = &loop->bell;
	struct due due = next_due(loop, UINT64_MAX); /* no poller was asked yet */
	uint64_t work;

	if (due_soon(loop, &due))
		return 0;
	/* The last check: pollers that skip some sources in most turns check all of them. */
	plx_loop_falls_asleep_tls = true;
	work = loop_turn(loop);
	plx_loop_falls_asleep_tls = false;
	if (work || loop->sleep_at_ns == PLX_NEVER) /* it was set to poll in this turn */
		return work;
	memset(&sleep, 0, offsetof(struct plx_sleep, fds));
	sleep.until_ns = plx_time_add(loop->now_ns, loop->idle.conf.sleep_max_ns);
	sleep.limited_by = PLX_WAKE_CAP;
	sleep.exact_ns = UINT64_MAX;
	sleep.count = 1;
	sleep.fds[0] = (struct pollfd){.fd = bell->eventfd, .events = POLLIN};

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
