/* SPDX-License-Identifier: BSD-3-Clause */
/* Storage of parameters, in reading order: store.c keeps all in memory; journal.c and
 * journal_disk.c pass changes to a thread that writes them to the disk; tables.c and the rest are
 * the file.
 * All parameters, in memory: lookup by name, and iteration in name order. For one thread. */
#ifndef STORE_H
#define STORE_H

#include "param.h"

struct store;

/** Return: 0; -ENOMEM. */
int store_create(struct store **store_out);
void store_destroy(struct store *store);

uint32_t store_count(const struct store *store);
uint64_t store_revision(const struct store *store);

/** The highest id given so far. */
uint64_t store_last_id(const struct store *store);

/** Return: NULL: unknown name. Valid until the parameter is removed. */
const struct param *store_find(const struct store *store, const char *name, size_t length);

/** The first parameter whose name is not before `name`, or with `after`, is after it. NULL:
 * none. */
const struct param *store_first(const struct store *store, const char *name, size_t length,
				bool after);
const struct param *store_next(const struct param *param);

/** Insert a parameter unchanged, with its id and revision. For loading. Return: 0; -EEXIST;
 * -ENOMEM. */
int store_restore(struct store *store, const struct param *param);

/** The next revision and id will be greater. */
void store_set_revision(struct store *store, uint64_t revision, uint64_t last_id);

/** Define a parameter, or redefine an existing one. The caller has checked the arguments. now_ns:
 * from param_now_ns, here and below. Return: 0; -ENOMEM. */
int store_define(struct store *store, const char *name, size_t length,
		 const struct param_kind *kind, const struct param_value *value, uint64_t now_ns,
		 const struct param **param_out);

/** Set a checked value. Return: 0; -ENOMEM. */
int store_set(struct store *store, const struct param *param, const struct param_value *value,
	      uint64_t now_ns);

/** Return: whether there was an alarm to acknowledge; if not, nothing changes. */
bool store_acknowledge(struct store *store, const struct param *param, uint64_t now_ns);

/** Return: the revision of the removal. */
uint64_t store_remove(struct store *store, const struct param *param);

#endif
