/* SPDX-License-Identifier: BSD-3-Clause */
/* The SQLite file, for the files that open, load and write it. */
#ifndef TABLES_PRIV_H
#define TABLES_PRIV_H

#include "tables.h"

#include <sqlite3.h>

enum statement { BEGIN, COMMIT, ROLLBACK, PUT, REMOVE, MARK, STATEMENT_COUNT };

struct tables {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *ready[STATEMENT_COUNT];
};

/** Say what SQLite says. Return: -EBUSY where another process has the file, else -error. */
int tables_fail(const struct tables *tables, int error, const char *what);

#endif
