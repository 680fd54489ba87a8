/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting in another thread until an lcore sleeps. */
#ifndef ASLEEP_H
#define ASLEEP_H

#include "lcore_priv.h"

#include <unistd.h>

#define ASLEEP_GAP_NS   (5 * PLX_NS_PER_MS)
#define ASLEEP_LIMIT_US 10000000

/* Wait until lcore id sleeps, and ASLEEP_GAP_NS more; at most ten seconds: after that the test's
 * assertions on the sleep fail. */
static inline void wait_until_asleep(uint32_t id)
{
	struct loop *loop = atomic_load(&lcore_get(id)->loop);

	for (unsigned us = 0; us < ASLEEP_LIMIT_US && !atomic_load(&loop->bell.sleeping); us += 100)
		usleep(100);
	usleep(ASLEEP_GAP_NS / 1000);
}

#endif
