/* SPDX-License-Identifier: BSD-3-Clause */
/* The eventfds that end an lcore's sleep. An eventfd belongs to an lcore's id, and stays open until
 * the process ends or unloads the library. A signal handler in plx_stop may write to it at any
 * time, even while lcores end, and must not find another file under its number. */
#include "lcore_priv.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static_assert(ATOMIC_INT_LOCK_FREE == 2, "used in signal handlers");

/* fd + 1; 0: none yet. */
static _Atomic int eventfds[PLX_LCORE_MAX];

int wake_open(uint32_t id)
{
	/* Relaxed: the main thread creates it, then the lcore uses it. */
	int fd = atomic_load_explicit(&eventfds[id], memory_order_relaxed) - 1;
	eventfd_t count;

	if (fd >= 0) {
		eventfd_read(fd, &count); /* of the last stop; fails if there was none */
		return fd;
	}
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return plx_fail(errno, "lcore %u: no eventfd to wake it by: %s; look at ulimit -n",
				id, strerror(errno));
	atomic_store_explicit(&eventfds[id], fd + 1, memory_order_seq_cst); /* see wake_all */
	return fd;
}

static void ring(int fd)
{
	int saved = errno;

	/* Fails only after 2^64 writes without a read; then it is readable anyway. */
	while (eventfd_write(fd, 1) < 0 && errno == EINTR)
		;
	errno = saved; /* of the code that a signal handler interrupted */
}

void wake_write(struct bell *bell)
{
	LCORE_STEP();
	/* S2: one sender writes per sleep. */
	if (!atomic_exchange_explicit(&bell->sleeping, 0, memory_order_seq_cst))
		return;
	/* Relaxed: for statistics; the write orders it well enough. */
	atomic_store_explicit(&bell->rung_tsc, plx_tsc(), memory_order_relaxed);
	LCORE_STEP();
	ring(bell->eventfd);
}

void wake_all(void)
{
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		/* Sequentially consistent, as the caller's store and wake_open are: an lcore whose
		 * eventfd does not exist yet checks for a stop later. */
		int fd = atomic_load_explicit(&eventfds[id], memory_order_seq_cst) - 1;

		if (fd >= 0)
			ring(fd);
	}
}

/* Close the eventfds when the library is unloaded: nothing can call wake_all after that. A process
 * that ends with lcores leaves it to the kernel. */
PLX_DESTRUCTOR static void unload(void)
{
	if (!plx_lcore_count())
		wake_close_all();
}

void wake_close_all(void)
{
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		/* Relaxed: only this thread can see it. */
		int fd = atomic_exchange_explicit(&eventfds[id], 0, memory_order_relaxed) - 1;

		if (fd >= 0)
			close(fd);
	}
}
