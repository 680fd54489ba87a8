/* SPDX-License-Identifier: BSD-3-Clause */
/* The SQLite file: tables that any SQLite tool can read. One thread at a time. */
#ifndef TABLES_H
#define TABLES_H

#include "store.h"

struct tables;

/** Open the file, or make it. Return: 0; -EINVAL it is something else, or of a later version;
 * -EBUSY another process has it; -EIO. */
int tables_open(const char *path, struct tables **tables_out);
void tables_close(struct tables *tables);

/** Read all of it into an empty store. Return: 0; -EINVAL something in it makes no sense; -EIO;
 * -ENOMEM. */
int tables_load(struct tables *tables, struct store *store);

/** A transaction. Return: 0; -EIO. */
int tables_begin(struct tables *tables);
int tables_put(struct tables *tables, const struct param *param);
int tables_remove(struct tables *tables, const struct param *param);
int tables_commit(struct tables *tables);
void tables_roll_back(struct tables *tables);

#endif
