/* SPDX-License-Identifier: BSD-3-Clause */
/* The disk: its own thread writes what has changed into an SQLite file, so that no lcore waits
 * for it. What has come meanwhile is one transaction. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "plx_rpc.h"
#include "store.h"

#include <sched.h>

struct journal;

/** Open the file, make it if it is not there, and read it into the store. A transaction is written,
 * so that what cannot be written is not served: with it the file says which revisions and ids may
 * be given until it says more, and no later start gives those anew. Nothing in a file that is not a
 * store's, or not in order, is touched. store: outlives it. Return: 0; as tables_open and
 * tables_load. */
int journal_open(const char *path, struct store *store, struct journal **journal_out);

/** Start the thread, on these CPUs. Thread: an lcore. Return: 0; -errno. */
int journal_start(struct journal *journal, const cpu_set_t *cpus);

/** Have room for one change, before it is made: what cannot be written is not changed. It stays
 * until journal_put uses it. Thread: that which started it. Return: 0; -EAGAIN the disk is late;
 * -ENOMEM. */
int journal_reserve(struct journal *journal);

/** A change was made, and is to be written: the parameter as it is now, or that it is no more.
 * There is room for it: journal_reserve. request: is answered by the thread, with the revision when
 * it is on the disk, with PARAMS_NOT_WRITTEN when that cannot be; NULL: nobody waits. Thread: as
 * journal_reserve. */
void journal_put(struct journal *journal, const struct param *param, bool removed,
		 struct plx_rpc_request *request);

struct journal_stats {
	uint64_t changes;  /**< that are on the disk */
	uint64_t commits;  /**< that they took */
	uint64_t failures; /**< transactions that were tried in vain */
	uint64_t lost;     /**< changes that were made, and are not on the disk */
	bool is_moved;     /**< the file or its log is no longer at its path */
};

/** Write what is left, and end: the loop is turned meanwhile, so that the thread's answers arrive.
 * A disk that fails is tried once more, not for ever. stats_out: what was done in all; may be NULL.
 * Thread: as journal_reserve, outside its loop. Accepts NULL, and one that was not started. */
void journal_close(struct journal *journal, struct journal_stats *stats_out);

#endif
