/* SPDX-License-Identifier: BSD-3-Clause */
/* Stops all loops, on request or by signals if the program wants that. Worker threads keep their
 * inherited signal mask: any thread may take a signal, because the handler only sets atomics and
 * writes to the lcores' eventfds. */
#include "lcore_priv.h"

#include <signal.h>
#include <unistd.h>

static_assert(ATOMIC_BOOL_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2 &&
		      ATOMIC_LLONG_LOCK_FREE == 2,
	      "used in signal handlers");

struct stop_line lcore_stop;

/* Tools that end a process with its group (timeout, a supervisor, a terminal) may send the signal
 * twice in a row. A user who repeats it takes longer than this. */
#define STOP_SAME_NS (100 * PLX_NS_PER_MS)

/* Relaxed throughout: S1 publishes the signal, and of two at once either may be the first. */
static _Atomic int64_t heard_ns; /* time of the last signal that was not a repetition; 0: none */
static _Atomic bool is_asked;    /* the next such signal ends the process */

static const int caught[] = {SIGINT, SIGTERM}; /* if the program asks for it */

/* Return: whether the signal counts: no other one arrived shortly before. */
static bool is_new(void)
{
	int64_t before_ns = atomic_load_explicit(&heard_ns, memory_order_relaxed);
	/* Not plx_now_ns: a program may install the handlers before plx_eal_init. */
	int64_t now_ns = (int64_t)plx_kernel_ns(CLOCK_MONOTONIC);

	do {
		if (before_ns && now_ns - before_ns < (int64_t)STOP_SAME_NS)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&heard_ns, &before_ns, now_ns, memory_order_relaxed, memory_order_relaxed));
	return true;
}

/* As if the signal were not caught. The kernel ignores default actions for the first process of a
 * PID namespace, such as a container's: _exit follows. */
static void end_process(int signal_number)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, signal_number);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL); /* ends the process */
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

static bool has_handler(int signal_number, void (*handler)(int))
{
	struct sigaction now;

	/* Cannot fail: the signals are valid and can be caught. */
	sigaction(signal_number, NULL, &now);
	return now.sa_handler == handler;
}

/* Only where the handler is the old one. */
static void replace_handlers(void (*old)(int), void (*handler)(int))
{
	/* SA_RESTART: our signals must not make the program's system calls fail. */
	const struct sigaction action = {.sa_handler = handler,
					 .sa_flags = SA_RESTART | SA_ONSTACK};

	for (size_t i = 0; i < PLX_ARRAY_LEN(caught); i++) {
		if (has_handler(caught[i], old))
			sigaction(caught[i], &action, NULL);
	}
}

void plx_stop_on_signals(void)
{
	replace_handlers(SIG_DFL, on_signal);
}

/* For the child of a fork, which has no loop to stop. */
void stop_give_back(void)
{
	replace_handlers(on_signal, SIG_DFL);
}

/* At exit(3), libinfinipath restores the signals' default action, and a second signal would then
 * end the process. This destructor runs first, because libfabric is unloaded after its users. */
PLX_DESTRUCTOR static void wait_for_exit(void)
{
	sigset_t ours;

	sigemptyset(&ours);
	for (size_t i = 0; i < PLX_ARRAY_LEN(caught); i++) {
		if (has_handler(caught[i], on_signal))
			sigaddset(&ours, caught[i]);
	}
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
}

void stop_begin(void)
{
	/* Relaxed: no loop runs yet. A signal since the last fini stops these lcores; one that
	 * stopped the previous ones does not count. */
	if (!atomic_load_explicit(&lcore_stop.asked, memory_order_relaxed))
		atomic_store_explicit(&is_asked, false, memory_order_relaxed);
}

void stop_forget(void)
{
	/* Relaxed: no loop runs. The handlers stay, so that a second signal does not end the
	 * process during its exit. */
	atomic_store_explicit(&lcore_stop.asked, false, memory_order_relaxed);
	atomic_store_explicit(&lcore_stop.signal, 0, memory_order_relaxed);
}

void plx_stop(void)
{
	/* S1 -> S2: a thread that sees the flag sees the signal, and writes before it. */
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
