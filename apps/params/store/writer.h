/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that writes the journal's batches to the disk. */
#ifndef WRITER_H
#define WRITER_H

#include "plx_lcore.h"
#include "tables.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/queue.h>

/* A change on its way to the disk. */
struct change {
	STAILQ_ENTRY(change) link;
	void *waiter;
	bool is_refused; /* the file rejected it */
	struct param param;
	char bytes[]; /* its name and text */
};

STAILQ_HEAD(changes, change);

struct writer {
	pthread_t thread;
	sem_t filled;              /* the thread has a batch; an empty one ends it */
	struct plx_signal written; /* the lcore has it back */

	/* Of the thread between `filled` and `written`, otherwise of the lcore: */
	struct tables *tables;
	struct changes batch;
	bool is_awaited;       /* clients wait for changes of the batch */
	struct numbers mark;   /* what the batch marks, if it is not marked already */
	struct numbers marked; /* on the disk */
	int rc;                /* of writer_write_now */
	char error[512];
};

/** Start the thread on these CPUs (NULL: any). Return: 0; -EAGAIN. */
int writer_start(struct writer *writer, const cpu_set_t *cpus);

/** End the thread. The batch is empty. */
void writer_stop(struct writer *writer);

/** Write the batch and the mark as one transaction, in this thread. Return: as tables_end. */
int writer_write_now(struct writer *writer);

#endif
