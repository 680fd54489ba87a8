/* SPDX-License-Identifier: BSD-3-Clause */
/* The eventfds that end an lcore's sleep. One belongs to an lcore's id, and stays until the process
 * ends or unloads the library: a signal handler that calls plx_stop may be about to write to it at
 * any time, also while the lcores end, and must not find somebody else's descriptor under its
 * number. */
#include "lcore_priv.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static_assert(ATOMIC_INT_LOCK_FREE == 2, "used in signal handlers");

/* + 1; 0: none yet. */
static _Atomic int eventfds[PLX_LCORE_MAX];

int wake_open(uint32_t id)
{
	/* Relaxed: the main thread and the lcore itself make it, one after the other. */
	int fd = atomic_load_explicit(&eventfds[id], memory_order_relaxed) - 1;

	if (fd >= 0) {
		wake_clear(fd); /* the last stop */
		return fd;
	}
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return plx_fail(errno, "lcore %u: no eventfd to wake it by: %s; look at ulimit -n",
				id, strerror(errno));
	atomic_store_explicit(&eventfds[id], fd + 1, memory_order_seq_cst); /* see wake_all */
	return fd;
}

void wake_clear(int fd)
{
	uint64_t count;
	ssize_t bytes = read(fd, &count, sizeof(count));

	(void)bytes; /* nothing in it where it was not written, after all */
}

static void ring(int fd)
{
	uint64_t one = 1;
	int saved = errno;

	/* Fails only where it is rung 2^64 times over, and then it is rung. */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	errno = saved; /* of whom a signal handler has interrupted */
}

void wake_write(struct bell *bell)
{
	LCORE_STEP();
	/* S2: one sender writes for each sleep. */
	if (!atomic_exchange_explicit(&bell->sleeping, 0, memory_order_seq_cst))
		return;
	/* Relaxed: for statistics, and the write orders it well enough for them. */
	atomic_store_explicit(&bell->rung_tsc, plx_tsc(), memory_order_relaxed);
	LCORE_STEP();
	ring(bell->eventfd);
}

void wake_all(void)
{
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		/* With the store of what is told, and with wake_open, sequentially consistent: an
		 * lcore whose eventfd is not there yet looks for a stop later. */
		int fd = atomic_load_explicit(&eventfds[id], memory_order_seq_cst) - 1;

		if (fd >= 0)
			ring(fd);
	}
}

/* Close them when the library is unloaded: nothing can call wake_all after that. A process that
 * ends with lcores leaves that to the kernel. */
PLX_DESTRUCTOR static void unload(void)
{
	if (!plx_lcore_count())
		wake_close_all();
}

void wake_close_all(void)
{
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		/* Relaxed: there is one thread that can see it. */
		int fd = atomic_exchange_explicit(&eventfds[id], 0, memory_order_relaxed) - 1;

		if (fd >= 0)
			close(fd);
	}
}
