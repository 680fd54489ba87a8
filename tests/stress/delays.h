/* SPDX-License-Identifier: BSD-3-Clause */
/* Random delays, called by the steps of step.h. */
#ifndef DELAYS_H
#define DELAYS_H

#include "stress.h"

void stress_step(void);

void stress_step(void)
{
	uint32_t what = dice(64);

	if (what == 0)
		usleep(dice(32));
	else if (what % 8 == 0)
		sched_yield();
	else if (what % 4 == 1)
		for (uint32_t i = dice(1024); i > 0; i--)
			plx_pause();
}

#endif
