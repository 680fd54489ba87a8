/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints of closed listeners. Some providers still use one after it is closed, and the
 * event queue may still have its requests. The port is released at once, the endpoint after
 * RETIRED_NS. */
#include "fabric_provider.h"

#include <stdlib.h>

#define RETIRED_NS (10 * PLX_NS_PER_S) /* twice the longest connect time */

struct retired {
	struct fid_pep *pep;
	uint64_t until_ns;
	struct retired *next;
};

/* Requests from now on find no listener: see eq.c. */
void retire_pep(struct plx_set *set, struct fid_pep *pep)
{
	bool stays = set->driver->outlives_close && set->driver->outlives_close(pep);
	struct retired *retired = stays ? malloc(sizeof(*retired)) : NULL;

	pep->fid.context = NULL;
	if (!retired) {
		fi_close(&pep->fid);
		return;
	}
	*retired = (struct retired){pep, plx_now_ns() + RETIRED_NS, set->retired};
	set->retired = retired;
	set->listeners++; /* so that its events are read */
}

/* Close endpoints whose time is over. Call after a read of the event queue. */
void retire_reap(struct plx_set *set, uint64_t now_ns)
{
	struct retired **at = &set->retired;

	while (*at) {
		struct retired *retired = *at;

		if ((int64_t)(now_ns - retired->until_ns) < 0) {
			at = &retired->next;
			continue;
		}
		*at = retired->next;
		set->listeners--;
		fi_close(&retired->pep->fid);
		free(retired);
	}
}

void retire_reap_all(struct plx_set *set)
{
	retire_reap(set, plx_now_ns() + RETIRED_NS);
}
