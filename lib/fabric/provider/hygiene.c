/* SPDX-License-Identifier: BSD-3-Clause */
/* What libfabric and its dependencies do to a process, put right:
 *
 * - Loading libfabric loads libinfinipath, whose constructor installs handlers for six signals;
 * with them SIGTERM ends in a backtrace and exit status 1, also where the signal was ignored.
 * Handlers from such a library are taken out as soon as Pollux is loaded, and what was ignored is
 * ignored again; anybody else's (the application's, a sanitizer's) stay.
 * - Its descriptors are inherited across exec. There is no way to ask for them, so those that a
 * call opened are found by comparing before and after. Sockets are the driver's (drivers/fi_tcp).
 * - Its verbs provider keeps a cache of memory registrations, by default, in which each has every
 *   remote right, whatever it was asked for, and stays when it is closed. It is turned off.
 * - From 1.20 on its tcp provider fills 16 MiB with a domain's first transfer, for tagged messages
 *   that come early: an lcore stops for 60 ms, in the middle of a connect or an accept. With
 *   buffers of the smallest size that takes 5 ms. */
#include "fabric_provider.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __clang__
#define UNINSTRUMENTED \
	__attribute__((disable_sanitizer_instrumentation, no_sanitize("coverage"), used))
#else
#define UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined"), used))
#endif

/* libfabric reads these once, with its first call. What the user set stays. */
void hygiene_environment(void)
{
	setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
	setenv("FI_TCP_MAX_RX_SIZE", "128", 0);
}

uint64_t hygiene_descriptor_limit(void)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

static bool are_descriptors_used_up(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE;
	close(fd);
	return false;
}

const char *hygiene_strerror(int rc)
{
	static __thread char text[96];

	if (rc != -FI_EMFILE && !are_descriptors_used_up())
		return fi_strerror(-rc);
	snprintf(text, sizeof(text),
		 "this process may have only %" PRIu64
		 " descriptors; raise the limit with `ulimit -n`",
		 hygiene_descriptor_limit());
	return text;
}

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

/* As the kernel has it, on 64-bit systems; the sets of libc are longer. */
struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer; /* libc's own, as SA_RESTORER says */
	uint64_t mask;
};

#define KERNEL_SA_RESTORER 0x04000000ul

/* Bits as in the kernel's sigset_t. */
#define BIT(signal_number) (UINT64_C(1) << ((signal_number) - 1))
#define ENDING             (BIT(SIGINT) | BIT(SIGTERM))

static struct kernel_action before[PLX_ARRAY_LEN(stray_signals)]; /* any constructor ran */
static uint64_t blocked;                                          /* from then on, by this file */

static void nothing(void)
{
}

/* The loader calls this before any constructor, ours and libinfinipath's: nothing else of a shared
 * library runs that early. No sanitizer is up, nor the symbols of libc that one replaces. What
 * would end the process waits until undo_signals: libinfinipath measures the clock for 0.2 s
 * meanwhile. */
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

static struct sigaction libc_action(const struct kernel_action *from)
{
	struct sigaction action = {.sa_flags = (int)(from->flags & ~KERNEL_SA_RESTORER)};

	memcpy(&action.sa_handler, &from->handler, sizeof(action.sa_handler));
	sigemptyset(&action.sa_mask);
	for (int i = 1; i <= 64; i++) {
		if (from->mask & BIT(i))
			sigaddset(&action.sa_mask, i);
	}
	return action;
}

void hygiene_signals(void)
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(stray_signals); i++) {
		struct sigaction now, wanted = libc_action(&before[i]);
		void *handler;

		if (sigaction(stray_signals[i], NULL, &now) != 0)
			continue;
		memcpy(&handler, &now.sa_handler, sizeof(handler));
		if (!is_stray(handler))
			continue;
		if (is_stray(before[i].handler)) /* it was loaded before Pollux */
			wanted = (struct sigaction){.sa_handler = SIG_DFL};
		sigaction(stray_signals[i], &wanted, NULL);
	}
}

/* libinfinipath's constructor has run: libfabric is loaded before what needs it. */
__attribute__((constructor)) static void undo_signals(void)
{
	looked_at_signals(); /* does nothing, but makes the loader call the above */
	hygiene_signals();
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &blocked, NULL, sizeof(blocked));
}

/* The size of this process' descriptor table: no descriptor is above it. */
static int table_size(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];
	int size = 1024;

	if (!status)
		return size;
	while (fgets(line, sizeof(line), status)) {
		if (sscanf(line, "FDSize: %d", &size) == 1)
			break;
	}
	fclose(status);
	return size;
}

struct fd_mark {
	int size;
	uint8_t open[];
};

/* Remember which descriptors are open. Free it through hygiene_close_on_exec_since. NULL where the
 * driver opens none that would be inherited, or there is no memory; that is accepted there, and
 * does nothing. */
struct fd_mark *hygiene_mark(const struct plx_fabric_driver *driver)
{
	bool needed = !driver || !driver->closes_on_exec;
	int size = needed ? table_size() : 0;
	struct fd_mark *mark = needed ? malloc(sizeof(*mark) + (size_t)size) : NULL;

	if (!mark)
		return NULL;
	mark->size = size;
	for (int fd = 0; fd < size; fd++)
		mark->open[fd] = fcntl(fd, F_GETFD) >= 0;
	return mark;
}

static void close_on_exec(int fd, int flags)
{
	if (!(flags & FD_CLOEXEC))
		fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* Descriptors opened since the mark become close-on-exec, those of other threads among them. */
void hygiene_close_on_exec_since(struct fd_mark *mark)
{
	int size = mark ? table_size() : 0;

	for (int fd = 0; fd < size; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && (fd >= mark->size || !mark->open[fd]))
			close_on_exec(fd, flags);
	}
	free(mark);
}
