/* SPDX-License-Identifier: BSD-3-Clause */
/* The SQLite file: shared by opening, loading and writing. */
#ifndef TABLES_PRIV_H
#define TABLES_PRIV_H

#include "tables.h"

#include <limits.h>
#include <sqlite3.h>
#include <sys/types.h>

enum statement { BEGIN, COMMIT, ROLLBACK, PUT, REMOVE, MARK, STATEMENT_COUNT };

/** The columns of params after the name, in PUT's binding order. */
#define COLUMNS                                                                              \
	"id, revision, type, value, unit, latch, alarm, level, since, min, max, alarm_low, " \
	"alarm_high, warn_low, warn_high, hysteresis"
enum column { NAME, ID, REVISION, TYPE, VALUE, UNIT, LATCH, ALARM, LEVEL, SINCE, LIMITS };

struct tables {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *ready[STATEMENT_COUNT];
	int claim; /* a socket whose name claims the path; -1: none */

	/* SQLite's write-ahead log. */
	bool has_log;
	dev_t log_device;
	ino_t log_inode;
};

/** Fail with SQLite's message. Return: -EBUSY if another process has the file, else -error. */
int tables_fail(const struct tables *tables, int error, const char *what);

/** Return: -EBUSY another process has the file or its path. */
int tables_fail_busy(const struct tables *tables);

/** The directory of a path. */
void tables_folder_of(const char *path, char out[PATH_MAX]);

/** Claim the path for this process until tables_close, even if no file exists. Processes of other
 * network namespaces do not see the claim. If another user, except root, holds the name, that is
 * logged and there is no claim. Return: 0; -EBUSY another process has it; -errno. */
int tables_claim_path(struct tables *tables);

/** Record the log's identity, once SQLite has opened it. */
void tables_note_log(struct tables *tables);

/** Return: 0; -ESTALE the file or its log is no longer at its path, so writes would go
 * elsewhere. */
int tables_check_path(const struct tables *tables);

/** Before closing: move the whole log into the file, wherever that is. */
void tables_end_log(struct tables *tables);

#endif
