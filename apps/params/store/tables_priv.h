/* SPDX-License-Identifier: BSD-3-Clause */
/* The SQLite file: shared by opening, loading and writing. */
#ifndef TABLES_PRIV_H
#define TABLES_PRIV_H

#include "tables.h"

#include <sqlite3.h>

enum statement { BEGIN, COMMIT, ROLLBACK, LOAD, PUT, REMOVE, MARK, STATEMENT_COUNT };

/** The statement LOAD. */
extern const char tables_select_all[];

/** The columns of params after the name, in PUT's binding order. */
#define COLUMNS                                                                              \
	"id, revision, type, value, unit, latch, alarm, level, since, min, max, alarm_low, " \
	"alarm_high, warn_low, warn_high, hysteresis"
/** LIMITS: the first of them. WRONG: of a query that checks the row; NULL: nothing. */
enum column {
	NAME,
	ID,
	REVISION,
	TYPE,
	VALUE,
	UNIT,
	LATCH,
	ALARM,
	LEVEL,
	SINCE,
	LIMITS,
	WRONG = LIMITS + LIMIT_COUNT
};

struct tables {
	sqlite3 *db;
	const char *path;
	sqlite3_stmt *ready[STATEMENT_COUNT];
	int log; /* SQLite's write-ahead log, locked; -1: none */
};

/** Fail with SQLite's message. Return: -EBUSY if another process has the file, else -error. */
int tables_fail(const struct tables *tables, int error, const char *what);

/** Return: the first value of a query; -1: none, or it failed. */
int64_t tables_ask(const struct tables *tables, const char *sql);

/** Return: 0; -ESTALE the file or its log is no longer at its path, so writes would go
 * elsewhere. */
int tables_check_path(const struct tables *tables);

#endif
