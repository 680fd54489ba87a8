/* SPDX-License-Identifier: BSD-3-Clause */
/* The calling lcore and the owner of an object; the version. */
#include "owner.h"

#include <stdio.h>
#include <stdlib.h>

__thread uint32_t plx_lcore_id_tls = PLX_LCORE_NONE;
bool (*owner_may_stand_in)(uint32_t owner);

const char *plx_version(void)
{
	return PLX_VERSION;
}

void owner_fail(const char *function, uint32_t owner)
{
	uint32_t here = plx_lcore_id();

	if (here == PLX_LCORE_NONE)
		fprintf(stderr, "%s: called on a thread that is not an lcore", function);
	else
		fprintf(stderr, "%s: called on lcore %u", function, here);
	fprintf(stderr,
		", but lcore %u owns the object; call it there, by plx_lcore_send if need be\n",
		owner);
	abort();
}
