/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal's two sides: the lcore (journal.c) and the thread (journal_disk.c). */
#ifndef JOURNAL_PRIV_H
#define JOURNAL_PRIV_H

#include "journal.h"
#include "plx_ring.h"
#include "tables.h"

#include <pthread.h>
#include <semaphore.h>

#define ROOM      (1u << 16) /* queued changes */
#define GROUP_MAX 4096       /* changes per transaction */

/* Upper bound of numbers given since the last commit. */
#define UNWRITTEN_MAX (ROOM + GROUP_MAX)

/* How far the file's marks are ahead: twice the bound, so that few transactions raise them. */
#define AHEAD (2 * UNWRITTEN_MAX)

/* A change on its way to the disk. */
struct change {
	struct plx_rpc_request *request;
	uint64_t revision;
	uint64_t id;
	uint32_t length;
	bool is_refused; /* the file rejected it */
	uint8_t record[];
};

/* Upper bounds of the numbers given. */
struct marks {
	uint64_t revision, id;
};

enum stage {
	STAGE_RUNS,
	STAGE_ENDS,    /* no more changes: write the rest, and end */
	STAGE_IS_LATE, /* no one takes answers */
};

struct journal {
	struct store *store;
	struct tables *tables;
	struct plx_ring *ring; /* struct change *, from the lcore to the thread */
	sem_t filled;          /* posted after each push */
	PLX_ATOMIC(int) stage;

	/* Used by the lcore: */
	pthread_t thread;
	bool started;
	struct change *spare; /* for the next put */

	/* Used by the thread while it runs: */
	struct journal_stats stats;
	struct marks marks; /* as in the file */
	struct change *group[GROUP_MAX];
	uint32_t count;
	bool is_given_up; /* on the file: nothing more is written; logged */
};

/** Write marks far enough ahead of the numbers given. Inside a transaction. Return: as
 * tables_mark. */
int journal_mark_ahead(struct journal *journal, struct marks given);

/** The thread's main function. arg: the journal. */
void *journal_write_all(void *arg);

#endif
