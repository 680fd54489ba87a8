/* SPDX-License-Identifier: BSD-3-Clause */
/* The SQLite file: tables that any SQLite tool can read. One thread at a time. */
#ifndef TABLES_H
#define TABLES_H

#include "store.h"

struct tables;

/** Higher revisions and ids were never given: a file that has them is not loaded. */
#define TABLES_NUMBER_MAX (INT64_MAX / 2)

/** Open the file, or make it, and lock it: no other process reads or writes it until it is closed,
 * or opens another file at its path. Return: 0; -EINVAL it is something else, of a later version,
 * or none that SQLite can write ahead for; -EBUSY another process has it; -EISDIR; -ENOTDIR,
 * -ENOENT its folder is none, or not there; -EROFS it, or its folder, cannot be written; -EIO. */
int tables_open(const char *path, struct tables **tables_out);

/** Accepts NULL. */
void tables_close(struct tables *tables);

/** Read all of it into an empty store. Alarms become those of the values, which somebody may have
 * edited. Return: 0; -EINVAL something in it makes no sense; -EIO; -ENOMEM. */
int tables_load(struct tables *tables, struct store *store);

/** A transaction: begin, changes and marks, and commit, or roll back. Return: 0; -EINVAL the file
 * does not take what was put, now or later, and the rest of the transaction stays; -EUCLEAN it is
 * damaged; -ESTALE (commit) the file or its log was moved, removed or replaced; -EIO. */
int tables_begin(struct tables *tables);
int tables_put(struct tables *tables, const struct param *param);
int tables_remove(struct tables *tables, const struct param *param);
int tables_commit(struct tables *tables);
void tables_roll_back(struct tables *tables);

/** Numbers up to these may have been given: a store that is loaded continues after them. */
int tables_mark(struct tables *tables, uint64_t revision, uint64_t id);

#endif
