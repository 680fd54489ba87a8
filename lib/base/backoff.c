/* SPDX-License-Identifier: BSD-3-Clause */
#include "base_internal.h"

void plx_backoff_init(struct plx_backoff *backoff, uint64_t min_ns, uint64_t max_ns, uint64_t seed)
{
	*backoff = (struct plx_backoff){.min_ns = min_ns, .max_ns = max_ns, .random = seed};
}

static uint64_t range_of(const struct plx_backoff *backoff)
{
	uint64_t range_ns = backoff->min_ns, max_ns = backoff->max_ns;

	for (unsigned i = 0; i < backoff->attempts && range_ns < max_ns; i++)
		range_ns = range_ns > max_ns / 2 ? max_ns : range_ns * 2;
	return range_ns < max_ns ? range_ns : max_ns;
}

static uint64_t draw(struct plx_backoff *backoff, uint64_t range_ns)
{
	return range_ns == UINT64_MAX ? plx_random_next(&backoff->random)
				      : plx_random_next(&backoff->random) % (range_ns + 1);
}

uint64_t plx_backoff_next_ns(struct plx_backoff *backoff)
{
	uint64_t range_ns = range_of(backoff);

	backoff->attempts++;
	return draw(backoff, range_ns);
}

uint64_t plx_backoff_next_same_host_ns(struct plx_backoff *backoff)
{
	uint64_t most_ns = backoff->min_ns > PLX_RECONNECT_SAME_HOST_NS
				 ? backoff->min_ns
				 : PLX_RECONNECT_SAME_HOST_NS;
	uint64_t range_ns = range_of(backoff);

	if (range_ns < most_ns)
		backoff->attempts++;
	return draw(backoff, range_ns < most_ns ? range_ns : most_ns);
}

uint64_t plx_backoff_within_ns(struct plx_backoff *backoff, uint64_t most_ns)
{
	return draw(backoff, most_ns);
}

void plx_backoff_reset(struct plx_backoff *backoff)
{
	backoff->attempts = 0;
}
