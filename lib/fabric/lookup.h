/* SPDX-License-Identifier: BSD-3-Clause */
/* Name look-ups on another thread. */
#ifndef PLX_FABRIC_LOOKUP_H
#define PLX_FABRIC_LOOKUP_H

#include "fabric_address.h"

struct plx_fabric_lcore;

int lookup_home_init(struct plx_fabric_lcore *home);
/* Thread: main, when no lcore runs. Drops pending look-ups without a callback. */
void lookup_home_fini(struct plx_fabric_lcore *home);

/* The result for a name, at most one second old. An empty list: it does not resolve, and `why` has
 * the reason. Return: whether there is one. Thread: any. */
bool lookup_known(const char *host, struct address_list *list_out, char *why, size_t size);

#endif
