/* SPDX-License-Identifier: BSD-3-Clause */
/* Storage of parameters, in reading order: store.c keeps them in memory; journal.c hands changes to
 * a thread that writes them to the disk; tables.c and the rest are the file.
 * All parameters, in memory: lookup by name, and iteration in name order. Clients use it too, for
 * what they know of a service. For one thread. */
#ifndef STORE_H
#define STORE_H

#include "param.h"

struct store;

/** Return: 0; -ENOMEM. */
int store_create(struct store **store_out);
/** Accepts NULL. */
void store_destroy(struct store *store);

uint32_t store_count(const struct store *store);

/** Return: NULL: unknown name. Valid until the parameter is removed. */
const struct param *store_find(const struct store *store, const char *name, size_t length);

/** The first parameter whose name is not before `name`, or with `after`, is after it. NULL:
 * none. */
const struct param *store_first(const struct store *store, const char *name, size_t length,
				bool after);
const struct param *store_next(const struct param *param);

/** Insert a copy; it replaces a parameter with the same name. Return: the copy; NULL: out of
 * memory, and nothing changed. */
const struct param *store_put(struct store *store, const struct param *param);

void store_remove(struct store *store, const struct param *param);

#endif
