/* SPDX-License-Identifier: BSD-3-Clause */
/* Link handling common to all runs, and how a run ends. */
#include "ping.h"
#include "plx_lcore.h"

#include <inttypes.h>
#include <stdio.h>

void ping_fill(uint8_t *out, uint64_t size, uint64_t seq)
{
	for (uint64_t i = 0; i < size; i++)
		out[i] = (uint8_t)((seq + i) * 167 + (i >> 8));
}

int ping_meet(const struct ping_conf *conf, struct ping_outcome *outcome,
	      const struct plx_link *link)
{
	snprintf(outcome->provider, sizeof(outcome->provider), "%s", plx_link_fi_provider(link));
	snprintf(outcome->provider_choice, sizeof(outcome->provider_choice), "%s",
		 plx_link_choice(link));
	plx_measure_idle(outcome->idle);
	if (conf->size_bytes > plx_link_message_max(link))
		return plx_fail(EMSGSIZE, "--size %" PRIu64 ": the peer accepts at most %" PRIu64,
				conf->size_bytes, plx_link_message_max(link));
	return 0;
}

void ping_abort(struct plx_link *link)
{
	if (link)
		plx_link_abort(link);
	for (int i = 0; i < 1000 && plx_fabric_open_count(); i++)
		plx_loop_turn();
}

int ping_end(struct ping_outcome *outcome, uint64_t measured, const char *failure, bool signalled)
{
	if (failure && measured) {
		outcome->failed = true;
		snprintf(outcome->interrupted, sizeof(outcome->interrupted), "%s", failure);
	}
	if (failure)
		return plx_fail(EIO, "%s", failure);
	if (!signalled)
		return 0;
	if (!measured)
		return plx_fail(EINTR, "%s came before anything was measured",
				plx_measure_signal());
	snprintf(outcome->interrupted, sizeof(outcome->interrupted), "%s", plx_measure_signal());
	return 0;
}
