/* SPDX-License-Identifier: BSD-3-Clause */
/* The SQLite file, whose tables any SQLite tool can read. One thread at a time. */
#ifndef TABLES_H
#define TABLES_H

#include "store.h"

struct tables;

/** The highest revision and id given so far. */
struct numbers {
	uint64_t revision, id;
};

/** Open or create the file and lock it: no other process reads or writes it, or opens another file
 * at its path, until it is closed. Ownership: the path is used until then. Return: 0; -EINVAL it is
 * something else, of a later version, or one that SQLite cannot log ahead for; -EBUSY another
 * process has it; -EISDIR; -ENOTDIR, -ENOENT its directory is not one, or is missing; -EROFS it, or
 * its directory, is not writable; -EIO. */
int tables_open(const char *path, struct tables **tables_out);

/** Accepts NULL. */
void tables_close(struct tables *tables);

/** Read everything into an empty store. Alarms are recomputed from the values, which may have been
 * edited. Return: 0; -EINVAL invalid contents; -EIO; -ENOMEM. */
int tables_load(struct tables *tables, struct store *store, struct numbers *given_out);

/** A transaction: begin, changes and a mark, then end. Return: 0; -EINVAL the file will never
 * accept this change, and the rest of the transaction stays; -EUCLEAN it is damaged; -EIO. */
int tables_begin(struct tables *tables);
/** Write the parameter's state, or its removal. */
int tables_put(struct tables *tables, const struct param *param);
/** Numbers up to these may have been given: a loaded store continues after them. */
int tables_mark(struct tables *tables, const struct numbers *given);
/** Commit if rc is 0, else roll back. Return: rc; else as above; -ESTALE the file or its log was
 * moved, removed or replaced. */
int tables_end(struct tables *tables, int rc);

#endif
