/* SPDX-License-Identifier: BSD-3-Clause */
/* How loops are asked to stop, and how signals do it in programs that want that. Worker threads
 * keep the signal mask that they inherit: whichever thread takes a signal, the handler sets atomics
 * and writes to the lcores' eventfds, so there is nothing to gain from choosing one. */
#include "lcore_priv.h"

#include <signal.h>
#include <unistd.h>

static_assert(ATOMIC_BOOL_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "used in signal handlers");

struct stop_line lcore_stop;

/* Whoever ends a process with its group (timeout, a supervisor, a terminal) may send the signal
 * twice in a row; a user who sees no effect takes longer than that to ask again. */
#define STOP_SAME_NS (100 * PLX_NS_PER_MS)

static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "used in signal handlers");

/* Relaxed throughout: S1 publishes the signal, and of two at once either may be the first. */
static _Atomic int64_t heard_ns; /* when a signal came that was no repetition; 0: none did */
static _Atomic bool is_asked;    /* the next such signal ends the process */

static const int caught[] = {SIGINT, SIGTERM}; /* in programs that ask for it */

/* Not plx_now_ns: a program may ask for the handlers before it sets up anything. */
static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * (int64_t)PLX_NS_PER_S + now.tv_nsec;
}

/* Return: whether the signal counts, as none came shortly before. */
static bool is_new(void)
{
	int64_t now_ns = monotonic_ns();
	int64_t before_ns = atomic_load_explicit(&heard_ns, memory_order_relaxed);

	do {
		if (before_ns && now_ns - before_ns < (int64_t)STOP_SAME_NS)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&heard_ns, &before_ns, now_ns, memory_order_relaxed, memory_order_relaxed));
	return true;
}

/* As if it were not caught. The kernel lets no default action end the first process of a PID
 * namespace, such as that of a container. */
static void end_process(int signal_number)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, signal_number);
	sigaction(signal_number, &by_default, NULL);
	raise(signal_number);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL); /* it was blocked in here: now it ends */
	_exit(128 + signal_number);
}

static void on_signal(int signal_number)
{
	int old_errno = errno;

	if (is_new()) {
		if (atomic_exchange_explicit(&is_asked, true, memory_order_relaxed))
			end_process(signal_number);
		atomic_store_explicit(&lcore_stop.signal, signal_number, memory_order_relaxed);
		plx_stop();
	}
	errno = old_errno;
}

void plx_stop_on_signals(void)
{
	/* SA_RESTART: a system call of the program does not fail for a signal that is ours. */
	struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK}, old;

	sigemptyset(&ours.sa_mask);
	for (size_t i = 0; i < PLX_ARRAY_LEN(caught); i++) {
		/* Cannot fail: the signals exist and may be caught. */
		sigaction(caught[i], NULL, &old);
		if (old.sa_handler != SIG_DFL)
			continue;
		sigaction(caught[i], &ours, NULL);
	}
}

/* Whether the handler of a signal is this file's. */
static bool is_ours(int signal_number)
{
	struct sigaction now;

	return sigaction(signal_number, NULL, &now) == 0 && now.sa_handler == on_signal;
}

/* In the child of a fork, which has no loop that could stop. */
void stop_give_back(void)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};

	for (size_t i = 0; i < PLX_ARRAY_LEN(caught); i++) {
		if (is_ours(caught[i]))
			sigaction(caught[i], &by_default, NULL);
	}
}

/* At exit(3), libinfinipath gives signals their default action back, and a second one would end the
 * process by that. This destructor runs first, because libfabric is unloaded after its users. */
PLX_DESTRUCTOR static void wait_for_exit(void)
{
	sigset_t ours;

	sigemptyset(&ours);
	for (size_t i = 0; i < PLX_ARRAY_LEN(caught); i++) {
		if (is_ours(caught[i]))
			sigaddset(&ours, caught[i]);
	}
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
}

void stop_begin(void)
{
	/* Relaxed: no loop runs yet. A signal that came since the last fini stops these lcores; one
	 * that stopped those before does not count for them. */
	if (!atomic_load_explicit(&lcore_stop.asked, memory_order_relaxed))
		atomic_store_explicit(&is_asked, false, memory_order_relaxed);
}

void stop_forget(void)
{
	/* Relaxed: no loop runs any more. The handlers stay, so that a second signal does not end
	 * the process while it is on its way out. */
	atomic_store_explicit(&lcore_stop.asked, false, memory_order_relaxed);
	atomic_store_explicit(&lcore_stop.signal, 0, memory_order_relaxed);
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
