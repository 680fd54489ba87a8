/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that works, and a loop that hears of each piece of work as it is done. */
#include "netio/netio.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define PIECES 5

static struct netio_context ctx;
static struct netio_signal done;
static _Atomic unsigned results[PIECES];

static void on_done(void *data)
{
	unsigned *heard = data;

	printf("piece %u: %u\n", *heard, atomic_load(&results[*heard]));
	if (++*heard == PIECES)
		netio_terminate(&ctx.evloop);
}

static void *work(void *arg)
{
	for (unsigned i = 0; i < PIECES; i++) {
		atomic_store(&results[i], i * i);
		netio_signal_fire(&done); /* each fire is one call of on_done */
	}
	return NULL;
}

int main(void)
{
	static unsigned heard;
	pthread_t thread;
	int rc;

	if (netio_init(&ctx) || netio_signal_init(&ctx.evloop, &done))
		return 1;
	done.cb = on_done;
	done.data = &heard;
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	rc = netio_run(&ctx.evloop);
	pthread_join(thread, NULL);
	netio_signal_fini(&done);
	return netio_fini(&ctx) || rc;
}
