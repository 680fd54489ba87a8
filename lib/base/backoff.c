/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_base.h"

void plx_backoff_init(struct plx_backoff *backoff, uint64_t min_ns, uint64_t max_ns, uint64_t seed)
{
	*backoff = (struct plx_backoff){
		.min_ns = min_ns, .max_ns = max_ns, .random = seed ? seed : 1, /* 0 would stay 0 */
	};
}

/* xorshift64, of Marsaglia, "Xorshift RNGs" (2003). */
static uint64_t next_random(struct plx_backoff *backoff)
{
	uint64_t value = backoff->random;

	value ^= value << 13;
	value ^= value >> 7;
	value ^= value << 17;
	return backoff->random = value;
}

uint64_t plx_backoff_next_ns(struct plx_backoff *backoff)
{
	uint64_t range_ns = backoff->min_ns;

	for (unsigned i = 0; i < backoff->attempts && range_ns <= backoff->max_ns / 2; i++)
		range_ns *= 2;
	if (backoff->attempts && range_ns > backoff->max_ns / 2)
		range_ns = backoff->max_ns;
	if (range_ns > backoff->max_ns)
		range_ns = backoff->max_ns;
	backoff->attempts++;
	return range_ns == UINT64_MAX ? next_random(backoff)
				      : next_random(backoff) % (range_ns + 1);
}

void plx_backoff_reset(struct plx_backoff *backoff)
{
	backoff->attempts = 0;
}
