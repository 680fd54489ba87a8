/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread works, and a signal tells the loop about each piece of work that is done.
 * Run it:  netio_signal */
#include "netio/netio.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define PIECES 5

struct program {
	struct netio_context ctx;
	struct netio_signal done;
	_Atomic unsigned results[PIECES];
	unsigned seen;
};

/* In the loop: once for each fire. */
static void on_done(void *data)
{
	struct program *program = data;

	printf("piece %u: %u\n", program->seen, atomic_load(&program->results[program->seen]));
	if (++program->seen == PIECES)
		netio_terminate(&program->ctx.evloop);
}

/* On the other thread. */
static void *work(void *arg)
{
	struct program *program = arg;

	for (unsigned i = 0; i < PIECES; i++) {
		atomic_store(&program->results[i], i * i);
		netio_signal_fire(&program->done);
	}
	return NULL;
}

int main(void)
{
	static struct program program;
	pthread_t thread;
	int rc;

	if (netio_init(&program.ctx) != 0 ||
	    netio_signal_init(&program.ctx.evloop, &program.done) != 0)
		return 1; /* NetIO logs what fails to standard error */
	program.done.cb = on_done;
	program.done.data = &program;
	if (pthread_create(&thread, NULL, work, &program) != 0) {
		fprintf(stderr, "netio_signal: no thread\n");
		return 1;
	}
	rc = netio_run(&program.ctx.evloop);
	pthread_join(thread, NULL); /* first, because the thread fires the signal */
	netio_signal_fini(&program.done);
	return netio_fini(&program.ctx) != 0 || rc != 0;
}
