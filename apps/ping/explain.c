/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-ping --explain: the result as sentences, for new users. */
#include "ping.h"

#include <inttypes.h>
#include <string.h>

static void explain_times(const struct plx_load *load)
{
	const struct plx_hist *rtt_ns = &load->rtt_ns;
	char text[PLX_HIST_TEXT_BYTES];

	plx_app_say("- A round trip is %" PRIu64 " bytes sent to the server and sent back.%s",
		    load->size_bytes,
		    load->run->rate
			    ? " It counts from the time it was due, so a delay counts for each "
			      "message that waited."
			    : " The next one starts when it has ended.");
	if (plx_hist_quantile_known(rtt_ns, 0.5))
		plx_app_say("- p50: half of them took at most %s us.",
			    plx_hist_quantile_format(rtt_ns, 0.5, PLX_NS_PER_US, text));
	if (plx_hist_quantile_known(rtt_ns, 0.99))
		plx_app_say("- p99: one in a hundred took longer than %s us.",
			    plx_hist_quantile_format(rtt_ns, 0.99, PLX_NS_PER_US, text));
	plx_app_say("- max: %.2f us. The largest times are mostly those when the kernel or a "
		    "hypervisor took a CPU away; plx-info --doctor shows what to change.",
		    (double)rtt_ns->max / 1e3);
	plx_app_say("- Each row of the histogram is a range of times; its bar is the share of all "
		    "round trips.");
}

static void explain_provider(const struct plx_load *load)
{
	if (strcmp(load->provider, "plx_shm") == 0)
		plx_app_say("- provider plx_shm: shared memory, because both processes are on this "
			    "host. --provider tcp uses TCP, as between two hosts.");
	else
		plx_app_say("- provider %s: the libfabric provider that carried the messages.",
			    load->provider);
}

static void explain_idle(const struct plx_load *load)
{
	struct plx_idle_stats stats = {0};

	plx_app_say(
		"- idle %s: what the process does while no message comes. poll never sleeps: "
		"lowest latency, a whole CPU. event sleeps at once. adaptive polls, then sleeps.",
		load->idle);
	plx_idle_stats_read(plx_lcore_id(), &stats); /* cannot fail: this lcore */
	if (stats.sleeps)
		plx_app_say("- slept %" PRIu64 " times: the CPU was free for others during %.3f s.",
			    stats.sleeps, (double)stats.asleep_ns / 1e9);
}

void ping_explain(const struct plx_load *load)
{
	if (!load->rtt_ns.count)
		return;
	plx_app_say("%s", "");
	explain_times(load);
	explain_provider(load);
	explain_idle(load);
}
