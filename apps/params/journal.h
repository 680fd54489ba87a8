/* SPDX-License-Identifier: BSD-3-Clause */
/* The disk: a thread of its own writes what has changed into an SQLite file, so that no lcore waits
 * for it. What has come meanwhile is one transaction. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "plx_rpc.h"
#include "store.h"

#include <sched.h>

struct journal;

/** Open the file, make it if it is not there, and read it into the store. Nothing in a file that is
 * not a store's, or not in order, is touched. Return: 0; -EINVAL; -EIO; -ENOMEM. */
int journal_open(const char *path, struct store *store, struct journal **journal_out);

/** Start the thread, on these CPUs. Thread: an lcore. Return: 0; -errno. */
int journal_start(struct journal *journal, const cpu_set_t *cpus);

/** A change is to be written: the parameter as it is now, or that it is no more. request: is
 * answered with its revision when it is on the disk; NULL: nobody waits. Thread: that which started
 * it. Return: 0; -EAGAIN the disk is behind; -ENOMEM. */
int journal_put(struct journal *journal, const struct param *param, bool removed,
		struct plx_rpc_request *request);

/** Whether there is no room for one more change. Thread: as journal_put. */
bool journal_is_full(const struct journal *journal);

struct journal_stats {
	uint64_t changes, commits, failures;
};

/** Write what is left, and end. told: is told of what was done in all; may be NULL. Thread: as
 * journal_put; replies travel to their lcores. Accepts NULL, and one that was not started. */
void journal_close(struct journal *journal, void (*told)(const struct journal_stats *stats));

#endif
