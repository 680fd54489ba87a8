/* SPDX-License-Identifier: BSD-3-Clause */
/* The disk: a thread owns the SQLite file. It commits all changes since the last commit as one
 * transaction, so no lcore waits for it. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "store.h"

#include <sched.h>

struct journal;

/** A change is on the disk, or is lost. waiter: as given to journal_put, not NULL. Runs on the
 * journal's lcore, from its loop, in the order of the changes. */
typedef void (*journal_answer_fn)(void *waiter, uint64_t revision, bool is_written);

/** Open or create the file, read it into the store, and start the thread on these CPUs (NULL: any).
 * Writes a transaction, so that an unwritable store is not served. A file that is not a store, or
 * is damaged, is not modified. Thread: an lcore. Return: 0; as tables_open and tables_load;
 * -errno. */
int journal_open(const char *path, const cpu_set_t *cpus, struct store *store,
		 journal_answer_fn answer, struct journal **journal_out);

/** The next numbers, which no change has had, in no earlier process either. journal_put gives them.
 * Thread: as journal_open, also below. */
uint64_t journal_next_revision(const struct journal *journal);
uint64_t journal_next_id(const struct journal *journal);

/** Reserve room for one change before making it, so that every change can be written. The room
 * stays until journal_put uses it. waits: for an answer; half of the room is for these only.
 * Return: 0; -EAGAIN the disk is slow; -ENOMEM. */
int journal_reserve(struct journal *journal, bool waits);

/** Write a change that was made: the parameter's new state, or its removal. Needs room from
 * journal_reserve. waiter: NULL: no answer. */
void journal_put(struct journal *journal, const struct param *param, void *waiter);

struct journal_stats {
	uint64_t changes; /**< changes on the disk */
	uint64_t commits; /**< transactions for them */
	uint64_t lost;    /**< changes made but not on the disk */
	bool is_moved;    /**< the file or its log was moved away */
};

/** Write what is left, answer, and end. A failing disk is retried once. stats_out: totals. Outside
 * the lcore's loop, which it turns. Accepts NULL. */
void journal_close(struct journal *journal, struct journal_stats *stats_out);

#endif
