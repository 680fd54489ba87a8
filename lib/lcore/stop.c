/* SPDX-License-Identifier: BSD-3-Clause */
/* How loops are asked to stop. Worker threads keep the signal mask that they inherit: whichever
 * thread takes a signal, the handler sets atomics and writes to the lcores' eventfds, so there
 * is nothing to gain from choosing one, and an application that wants signals for itself blocks
 * them before plx_lcores_init. */
#include "lcore_priv.h"

#include <signal.h>

static_assert(ATOMIC_BOOL_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "used in signal handlers");

struct stop_line lcore_stop;

static const int caught[] = {SIGINT, SIGTERM};
static struct sigaction old_actions[PLX_ARRAY_LEN(caught)];
static bool catching;

/* Who ends a process with its group (timeout, a supervisor, a terminal) may well send the signal
 * twice in a row; who asks again on seeing no effect takes longer than that. */
#define STOP_SAME_NS (100 * PLX_NS_PER_MS)

static void on_signal(int signal_number)
{
	uint64_t now_ns = plx_now_ns();
	uint64_t first_ns = 0;

	/* Relaxed: S1 publishes the signal, and of two at once either may be the first. */
	if (atomic_compare_exchange_strong_explicit(&lcore_stop.first_ns, &first_ns, now_ns,
						    memory_order_relaxed, memory_order_relaxed)) {
		atomic_store_explicit(&lcore_stop.signal, signal_number, memory_order_relaxed);
		plx_stop();
		return;
	}
	if ((int64_t)(now_ns - first_ns) < (int64_t)STOP_SAME_NS)
		return;
	/* Asked again: it is still blocked here, so the default action is taken on return. */
	struct sigaction action = {.sa_handler = SIG_DFL};

	sigaction(signal_number, &action, NULL);
	raise(signal_number);
}

void stop_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	/* Cannot fail: the signals exist and may be caught. */
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < PLX_ARRAY_LEN(caught); i++)
		sigaction(caught[i], &action, &old_actions[i]);
	catching = true;
}

void stop_release_signals(void)
{
	for (size_t i = 0; catching && i < PLX_ARRAY_LEN(caught); i++)
		sigaction(caught[i], &old_actions[i], NULL);
	catching = false;
	/* Relaxed: no loop runs any more. */
	atomic_store_explicit(&lcore_stop.asked, false, memory_order_relaxed);
	atomic_store_explicit(&lcore_stop.signal, 0, memory_order_relaxed);
	atomic_store_explicit(&lcore_stop.first_ns, 0, memory_order_relaxed);
}

void plx_stop(void)
{
	/* S1 -> S2: who sees the flag also sees the signal, and what was written before plx_stop.
	 */
	atomic_store_explicit(&lcore_stop.asked, true, memory_order_seq_cst); /* see wake_all */
	wake_all();
}

bool plx_stopping(void)
{
	return atomic_load_explicit(&lcore_stop.asked, memory_order_acquire); /* S2 <- S1 */
}

int plx_stop_signal(void)
{
	return atomic_load_explicit(&lcore_stop.signal, memory_order_relaxed); /* relaxed: see S2 */
}
