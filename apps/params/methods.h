/* SPDX-License-Identifier: BSD-3-Clause */
/* What the service does when it is called: see wire.h. Thread: the lcore of the store. */
#ifndef METHODS_H
#define METHODS_H

#include "journal.h"

/** Register all methods, on that store and journal: they outlive the last call. One service.
 * Return: 0; -ENOMEM. */
int methods_add(struct plx_rpc_service *service, struct store *store, struct journal *journal);

#endif
