/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric loads libinfinipath, whose constructor installs handlers for six signals: SIGTERM then
 * ends in a backtrace and exit status 1, even if it was ignored. Pollux removes handlers of such a
 * library as soon as it is loaded, and restores ignored signals. Handlers of the application or a
 * sanitizer stay. */
#include "fabric_provider.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __clang__
#define UNINSTRUMENTED \
	__attribute__((disable_sanitizer_instrumentation, no_sanitize("coverage"), used))
#else
#define UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined"), used))
#endif

static bool is_stray(void *handler)
{
	static const char *const libraries[] = {"libinfinipath", "libpsm", "libfabric"};
	Dl_info where;

	if (handler == (void *)SIG_DFL || handler == (void *)SIG_IGN || !dladdr(handler, &where) ||
	    !where.dli_fname)
		return false;
	for (size_t i = 0; i < PLX_ARRAY_LEN(libraries); i++) {
		if (strstr(where.dli_fname, libraries[i]))
			return true;
	}
	return false;
}

static const int stray_signals[] = {SIGINT, SIGILL, SIGABRT, SIGBUS, SIGSEGV, SIGTERM};

/* The kernel's layout on 64-bit systems; libc's signal sets are longer. */
struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer; /* libc's */
	uint64_t mask;
};

/* Bits of the kernel's sigset_t. */
#define BIT(signal_number) (UINT64_C(1) << ((signal_number) - 1))
#define ENDING             (BIT(SIGINT) | BIT(SIGTERM))

static struct kernel_action before[PLX_ARRAY_LEN(stray_signals)]; /* before constructors ran */
static uint64_t blocked;                                          /* since then, by this file */

static void nothing(void)
{
}

/* The loader resolves this before any constructor, ours and libinfinipath's: nothing else in a
 * shared library runs that early. Sanitizers are not initialized, nor the libc symbols that they
 * replace. SIGINT and SIGTERM stay blocked until undo_signals, because libinfinipath measures the
 * clock for 0.2 s. */
UNINSTRUMENTED static void (*look_at_signals(void))(void)
{
	uint64_t ending = 0, old = 0;

	for (size_t i = 0; i < PLX_ARRAY_LEN(stray_signals); i++) {
		syscall(SYS_rt_sigaction, stray_signals[i], NULL, &before[i], sizeof(ending));
		if (before[i].handler == (void *)SIG_DFL)
			ending |= BIT(stray_signals[i]) & ENDING;
	}
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &ending, &old, sizeof(ending));
	blocked = ending & ~old;
	return nothing;
}

static void looked_at_signals(void) __attribute__((ifunc("look_at_signals")));

/* libc's call finds handlers that a sanitizer wraps; the kernel's restores the action as it was. */
void signals_restore(void)
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(stray_signals); i++) {
		struct kernel_action wanted = before[i];
		struct sigaction now;
		void *handler;

		if (sigaction(stray_signals[i], NULL, &now) != 0)
			continue;
		memcpy(&handler, &now.sa_handler, sizeof(handler));
		if (!is_stray(handler))
			continue;
		if (is_stray(before[i].handler)) /* loaded before Pollux */
			wanted = (struct kernel_action){.handler = (void *)SIG_DFL};
		syscall(SYS_rt_sigaction, stray_signals[i], &wanted, NULL, sizeof(wanted.mask));
	}
}

/* libinfinipath's constructor has run: the loader initializes libfabric before libraries that need
 * it. */
PLX_CONSTRUCTOR static void undo_signals(void)
{
	looked_at_signals(); /* does nothing, but makes the loader call the above */
	signals_restore();
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &blocked, NULL, sizeof(blocked));
}
