/* SPDX-License-Identifier: BSD-3-Clause */
/* The service's methods: see wire.h. Thread: the store's lcore. */
#ifndef METHODS_H
#define METHODS_H

#include "journal.h"

/** Register all methods for that store and journal, which must outlive the last call. For one
 * service only.
 * Return: 0; -ENOMEM. */
int methods_add(struct plx_rpc_service *service, struct store *store, struct journal *journal);

#endif
