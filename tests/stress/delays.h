/* SPDX-License-Identifier: BSD-3-Clause */
/* Random delays, called by the steps of step.h. */
#ifndef DELAYS_H
#define DELAYS_H

#include "dice.h"
#include "plx_base.h"

#include <sched.h>
#include <unistd.h>

static __thread uint64_t dice;

static uint32_t roll(void)
{
	if (!dice)
		dice = (uint64_t)(uintptr_t)&dice | 1;
	return (uint32_t)(dice_next(&dice) >> 32);
}

void stress_step(void);

void stress_step(void)
{
	uint32_t random = roll();

	if (random % 64 == 0)
		usleep(random >> 8 & 31);
	else if (random % 8 == 0)
		sched_yield();
	else if (random % 4 == 1)
		for (uint32_t i = random >> 8 & 1023; i > 0; i--)
			plx_pause();
}

#endif
