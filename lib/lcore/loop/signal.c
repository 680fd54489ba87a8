/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal has a count of fires; signals with a count other than 0 are on a stack, which the lcore
 * takes as a whole. The thread that raises a count from 0 pushes, so a signal is on the stack at
 * most once. Firing needs no memory, room or lock: signal handlers may fire.
 *
 *     a thread that fires                    the lcore
 *     G1 add to the count                    G3 take the stack
 *     G2 if it was 0: push                   G4 of each: take the next one, then the count
 *
 * A fire before G4 is in the count that G4 takes; a later one finds 0, and pushes again. G4 reads
 * the next pointer before it takes the count, because the signal may be pushed again after that. */
#include "lcore_priv.h"

static_assert(ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "for signal handlers");

/* C++ headers cannot use _Atomic. */
static _Atomic uint64_t *fired(struct plx_signal *signal)
{
	static_assert(sizeof(_Atomic uint64_t) == sizeof(uint64_t), "the same except for its type");
	return (_Atomic uint64_t *)&signal->fired;
}

int plx_signal_init(struct plx_signal *signal, uint32_t id, plx_signal_fn fn, void *arg)
{
	struct loop *loop = lcore_loop(id);

	if (!loop)
		return lcore_fail_unknown("plx_signal_init", id);
	if (!fn)
		return plx_fail(EINVAL, "plx_signal_init: no function to call: give one");
	*signal = (struct plx_signal){.fn = fn, .arg = arg, .loop = loop};
	return 0;
}

void plx_signal_fire(struct plx_signal *signal)
{
	struct loop *loop = signal->loop;
	struct plx_signal *top;

	if (plx_unlikely(!loop)) /* not initialized, or already finished */
		return;
	/* G1 -> G4: writes before a fire are visible to the signal's function. */
	if (atomic_fetch_add_explicit(fired(signal), 1, memory_order_acq_rel) != 0)
		return;
	/* Relaxed: the exchange checks whether it is still the top. */
	top = atomic_load_explicit(&loop->signals.fired, memory_order_relaxed);
	do {
		signal->next = top;
		/* G2 -> G3: the link is visible to the lcore that takes the stack. */
	} while (!atomic_compare_exchange_weak_explicit(
		&loop->signals.fired, &top, signal, memory_order_release, memory_order_relaxed));
	LCORE_STEP();
	/* B1 -> B2 of message.c, and S1 */
	atomic_fetch_or_explicit(&loop->bell.others, OTHERS_SIGNALS, memory_order_seq_cst);
	wake_if_asleep(&loop->bell);
}

/* Append fired signals to the list, the oldest first. */
static void take_fired(struct signals *signals)
{
	/* G3 <- G2 */
	struct plx_signal *top = atomic_exchange_explicit(&signals->fired, NULL,
							  memory_order_acquire);
	struct plx_signal *oldest = NULL, **end = &signals->first;

	while (top) {
		struct plx_signal *next = top->next;

		top->next = oldest;
		oldest = top;
		top = next;
	}
	while (*end)
		end = &(*end)->next;
	*end = oldest;
}

unsigned signals_run(struct loop *loop)
{
	struct signals *signals = &loop->signals;
	unsigned count = 0;

	take_fired(signals);
	while (signals->first && count < SIGNALS_TURN_MAX) {
		struct plx_signal *signal = signals->first;
		uint64_t fires;

		signals->first = signal->next;
		/* G4 <- G1 */
		fires = atomic_exchange_explicit(fired(signal), 0, memory_order_acq_rel);
		signal->fn(signal, fires, signal->arg);
		count++;
	}
	if (signals->first) /* relaxed: only this lcore reads it next */
		atomic_fetch_or_explicit(&loop->bell.others, OTHERS_SIGNALS, memory_order_relaxed);
	return count;
}

/* The lcores may have ended before the signal. */
static bool is_there(const struct loop *loop)
{
	PLX_LCORE_FOREACH (id) {
		if (lcore_loop(id) == loop)
			return true;
	}
	return false;
}

void plx_signal_fini(struct plx_signal *signal)
{
	struct loop *loop = signal->loop;

	if (!loop || !is_there(loop)) {
		*signal = (struct plx_signal){0};
		return;
	}
	ASSERT_OWNER(loop->pollers.lcore_id);
	take_fired(&loop->signals);
	for (struct plx_signal **at = &loop->signals.first; *at; at = &(*at)->next) {
		if (*at == signal) {
			*at = signal->next;
			break;
		}
	}
	if (loop->signals.first) /* relaxed: as above */
		atomic_fetch_or_explicit(&loop->bell.others, OTHERS_SIGNALS, memory_order_relaxed);
	*signal = (struct plx_signal){0};
}
