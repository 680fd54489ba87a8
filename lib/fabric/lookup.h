/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that were looked up on another thread. */
#ifndef PLX_FABRIC_LOOKUP_H
#define PLX_FABRIC_LOOKUP_H

#include "fabric_address.h"

struct plx_fabric_lcore;

int lookup_home_init(struct plx_fabric_lcore *home);
/* No lcore runs any more: what still waits is not called. */
void lookup_home_fini(struct plx_fabric_lcore *home);

/* The answer of the last second for a name. An empty list: it does not resolve, and why. Return:
 * whether it is known. Thread: any. */
bool lookup_known(const char *host, struct address_list *list_out, char *why, size_t size);

#endif
