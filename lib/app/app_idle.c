/* SPDX-License-Identifier: BSD-3-Clause */
/* One line about how an lcore slept. */
#include "plx_app.h"
#include "plx_lcore.h"

#include <inttypes.h>
#include <stdio.h>

#define LINE_BYTES 512

static void add(char line[LINE_BYTES], size_t *used, const char *what, uint64_t count)
{
	if (!count || *used >= LINE_BYTES)
		return;
	*used += (size_t)snprintf(line + *used, LINE_BYTES - *used, "%s %s %" PRIu64,
				  *used ? "," : "", what, count);
}

void plx_app_say_idle(uint32_t id)
{
	struct plx_idle_stats stats;
	char line[LINE_BYTES] = "";
	size_t used = 0;

	if (plx_idle_stats(id, &stats) || !stats.sleeps)
		return;
	add(line, &used, "messages", stats.wakes[PLX_WAKE_MESSAGE]);
	add(line, &used, "links", stats.wakes[PLX_WAKE_POLLER]);
	add(line, &used, "descriptors", stats.wakes[PLX_WAKE_FD]);
	add(line, &used, "timers", stats.wakes[PLX_WAKE_TIMER]);
	add(line, &used, "cap", stats.wakes[PLX_WAKE_CAP]);
	add(line, &used, "naps", stats.wakes[PLX_WAKE_NAP]);
	plx_app_say("lcore %" PRIu32 ": slept %" PRIu64 " times, %.3f s; woken by%s", id,
		    stats.sleeps, (double)stats.asleep_ns / (double)PLX_NS_PER_S, line);
	if (stats.spurious)
		plx_app_say("lcore %" PRIu32 ": woken for nothing %" PRIu64 " times", id,
			    stats.spurious);
	if (stats.rescues)
		plx_app_say("lcore %" PRIu32 ": not woken where there was work %" PRIu64
			    " times: what should have woken it is broken",
			    id, stats.rescues);
	if (stats.naps && stats.awake_by)
		plx_app_say("lcore %" PRIu32 ": poller %s cannot be waited for", id,
			    stats.awake_by);
}
