/* SPDX-License-Identifier: BSD-3-Clause */
/* The disk: a thread writes changes into an SQLite file, so no lcore waits for it. Changes that
 * arrive during a write form the next transaction. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "plx_rpc.h"
#include "store.h"

#include <sched.h>

struct journal;

/** Open or create the file and read it into the store. Writes a transaction, so that an unwritable
 * store is not served. The transaction records which revisions and ids may be given before the next
 * one, so no later start gives them again. A file that is not a store, or is damaged, is not
 * modified. store: must outlive the journal. Return: 0; as tables_open and tables_load. */
int journal_open(const char *path, struct store *store, struct journal **journal_out);

/** Start the thread on these CPUs. Thread: an lcore. Return: 0; -errno. */
int journal_start(struct journal *journal, const cpu_set_t *cpus);

/** Reserve room for one change before making it, so that every change can be written. The room
 * stays until journal_put uses it. Thread: the one that started the journal. Return: 0; -EAGAIN the
 * disk is slow; -ENOMEM. */
int journal_reserve(struct journal *journal);

/** Write a change that was made: the parameter's new state, or its removal. Needs room from
 * journal_reserve. request: the thread answers it, with the revision once it is on the disk, or
 * with PARAMS_NOT_WRITTEN if that fails; NULL: no answer. Thread: as journal_reserve. */
void journal_put(struct journal *journal, const struct param *param, bool removed,
		 struct plx_rpc_request *request);

struct journal_stats {
	uint64_t changes;  /**< changes on the disk */
	uint64_t commits;  /**< transactions for them */
	uint64_t failures; /**< failed attempts at transactions */
	uint64_t lost;     /**< changes made but not on the disk */
	bool is_moved;     /**< the file or its log was moved away */
};

/** Write what is left, and end. Turns the loop meanwhile, so that the thread's answers are sent. A
 * failing disk is retried once. stats_out: totals; may be NULL.
 * Thread: as journal_reserve, outside its loop. Accepts NULL, and a journal that was not
 * started. */
void journal_close(struct journal *journal, struct journal_stats *stats_out);

#endif
