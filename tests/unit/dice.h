/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, the same in each run: xorshift64 (G. Marsaglia, "Xorshift RNGs", 2003). */
#ifndef DICE_H
#define DICE_H

#include <stdint.h>

static inline uint64_t dice_next(uint64_t *state)
{
	uint64_t next = *state ? *state : UINT64_C(88172645463325252);

	next ^= next << 13;
	next ^= next >> 7;
	next ^= next << 17;
	return *state = next;
}

/* From 0 to sides - 1. */
static inline uint32_t dice_roll(uint64_t *state, uint32_t sides)
{
	return (uint32_t)((dice_next(state) >> 32) * sides >> 32);
}

#endif
