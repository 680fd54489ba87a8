/* SPDX-License-Identifier: BSD-3-Clause */
/* The SQLite file, for the files that open, load and write it. */
#ifndef TABLES_PRIV_H
#define TABLES_PRIV_H

#include "tables.h"

#include <sqlite3.h>

enum statement { BEGIN, COMMIT, ROLLBACK, PUT, REMOVE, MARK, STATEMENT_COUNT };

/** Columns of params behind the name, in the order of the parameters of PUT. */
#define COLUMNS                                                                              \
	"id, revision, type, value, unit, latch, alarm, level, since, min, max, alarm_low, " \
	"alarm_high, warn_low, warn_high, hysteresis"
enum column { NAME, ID, REVISION, TYPE, VALUE, UNIT, LATCH, ALARM, LEVEL, SINCE, LIMITS };

struct tables {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *ready[STATEMENT_COUNT];
};

/** Say what SQLite says. Return: -EBUSY where another process has the file, else -error. */
int tables_fail(const struct tables *tables, int error, const char *what);

#endif
