/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal's two sides: the lcore (journal.c) and the thread (journal_disk.c). */
#ifndef JOURNAL_PRIV_H
#define JOURNAL_PRIV_H

#include "journal.h"
#include "plx_ring.h"
#include "tables.h"

#include <pthread.h>
#include <semaphore.h>

#define ROOM      (1u << 16) /* changes that wait */
#define GROUP_MAX 4096       /* changes of one transaction */

/* Numbers that can have been given after those of the last commit. */
#define UNWRITTEN_MAX (ROOM + GROUP_MAX)

/* The file's marks are so far ahead: twice that, so that they are raised in few transactions. */
#define AHEAD (2 * UNWRITTEN_MAX)

/* On its way to the disk. */
struct change {
	struct plx_rpc_request *request;
	uint64_t revision;
	uint64_t id;
	uint32_t length;
	bool is_refused; /* the file does not take it */
	uint8_t record[];
};

/* Numbers that may have been given. */
struct marks {
	uint64_t revision, id;
};

enum stage {
	STAGE_RUNS,
	STAGE_ENDS,    /* nothing more comes: write what there is, and end */
	STAGE_IS_LATE, /* nobody takes answers */
};

struct journal {
	struct store *store;
	struct tables *tables;
	struct plx_ring *ring; /* of struct change *: from the lcore to the thread */
	sem_t filled;          /* posted after each push */
	PLX_ATOMIC(int) stage;

	/* The lcore's. */
	pthread_t thread;
	bool started;
	struct change *spare; /* of the next put */

	/* The thread's, while it runs. */
	struct journal_stats stats;
	struct marks marks; /* that are in the file */
	struct change *group[GROUP_MAX];
	uint32_t count;
	bool is_given_up; /* the file: nothing more is written, and that was logged */
};

/** Write the marks that are far enough ahead of what was given. Inside a transaction. Return: as
 * tables_mark. */
int journal_mark_ahead(struct journal *journal, struct marks given);

/** The thread. arg: the journal. */
void *journal_write_all(void *arg);

#endif
