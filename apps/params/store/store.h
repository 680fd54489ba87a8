/* SPDX-License-Identifier: BSD-3-Clause */
/* What keeps parameters, in reading order: store.c all of them, in memory; journal.c and
 * journal_disk.c what changed, on its way to the disk by a thread; tables.c and the others the
 * file.
 *
 * All parameters, in memory: found by name at once, and in the order of their names. Its user's
 * thread alone. */
#ifndef STORE_H
#define STORE_H

#include "param.h"

struct store;

/** Return: 0; -ENOMEM. */
int store_create(struct store **store_out);
void store_destroy(struct store *store);

uint32_t store_count(const struct store *store);
uint64_t store_revision(const struct store *store);

/** The highest id that was given. */
uint64_t store_last_id(const struct store *store);

/** Return: NULL: unknown name. Valid until it is removed. */
const struct param *store_find(const struct store *store, const char *name, size_t length);

/** The first one whose name is not before that, or, with `after`, is after it. NULL: none. */
const struct param *store_first(const struct store *store, const char *name, size_t length,
				bool after);
const struct param *store_next(const struct param *param);

/** Put one in as it was: its id and revision are taken over, and so is whatever it says. For
 * loading. Return: 0; -EEXIST; -ENOMEM. */
int store_restore(struct store *store, const struct param *param);

/** The next revision will be more than that. */
void store_set_revision(struct store *store, uint64_t revision, uint64_t last_id);

/** Define a parameter of that kind and value, or define the one that is there anew. All were
 * checked. now_ns: of param_now_ns, here and below. Return: 0; -ENOMEM. */
int store_define(struct store *store, const char *name, size_t length,
		 const struct param_kind *kind, const struct param_value *value, uint64_t now_ns,
		 const struct param **param_out);

/** Set a value, which was checked. Return: 0; -ENOMEM. */
int store_set(struct store *store, const struct param *param, const struct param_value *value,
	      uint64_t now_ns);

/** Return: whether there was something to be acknowledged; if not, nothing is changed. */
bool store_acknowledge(struct store *store, const struct param *param, uint64_t now_ns);

/** Return: the revision of that. */
uint64_t store_remove(struct store *store, const struct param *param);

#endif
