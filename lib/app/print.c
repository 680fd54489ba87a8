/* SPDX-License-Identifier: BSD-3-Clause */
/* What several programs print, and how they serve. */
#include "app.h"
#include "plx_fabric.h"

#include <inttypes.h>

#define SERVE_DRAIN_NS (500 * PLX_NS_PER_MS)
#define SERVE_JOIN_NS  (5 * PLX_NS_PER_S)

void plx_app_put_text(FILE *out, const void *text, size_t length, const char *plain)
{
	const char *bytes = text;

	for (size_t at = 0; at < length;) {
		char one[PLX_PRINTABLE_BYTES];

		at += plx_printable_next(bytes + at, length - at, plain, one);
		fputs(one, out);
	}
}

void plx_app_say_idle(uint32_t id)
{
	static const char *const causes[PLX_WAKE_CAUSES] = {
		[PLX_WAKE_MESSAGE] = "messages", [PLX_WAKE_POLLER] = "links",
		[PLX_WAKE_FD] = "descriptors",   [PLX_WAKE_TIMER] = "timers",
		[PLX_WAKE_CAP] = "cap",          [PLX_WAKE_NAP] = "naps",
	};
	struct plx_idle_stats stats;
	char woken_by[512] = "", one[64];

	if (plx_idle_stats_read(id, &stats) || !stats.sleeps)
		return;
	for (unsigned i = 0; i < PLX_WAKE_CAUSES; i++) {
		snprintf(one, sizeof(one), "%s %" PRIu64, causes[i], stats.wakes[i]);
		if (stats.wakes[i])
			plx_list_add(woken_by, sizeof(woken_by), one);
	}
	plx_app_say("lcore %" PRIu32 ": slept %" PRIu64 " times, %.3f s; woken by %s", id,
		    stats.sleeps, (double)stats.asleep_ns / (double)PLX_NS_PER_S, woken_by);
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

static int serve(void *arg)
{
	plx_loop_run();
	return plx_fabric_drain(SERVE_DRAIN_NS);
}

void plx_app_serve(void)
{
	plx_lcore_launch_all(serve, NULL, NULL);
	plx_lcore_join_all(SERVE_JOIN_NS, NULL);
}
