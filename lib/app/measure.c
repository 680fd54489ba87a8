/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by programs that measure: their options, and how a run was cut short. */
#include "plx_app.h"
#include "plx_lcore.h"

#include <inttypes.h>
#include <signal.h>

int plx_measure_check(const struct plx_measure *measure)
{
	const char *needs = measure->out_dir ? "--out" : measure->rate ? "--rate" : NULL;

	if (needs && !measure->count && !measure->duration_ns)
		return plx_fail(EINVAL, "%s is for measuring; give --count or --duration", needs);
	if ((measure->arrival_given || measure->seed_given) && !measure->rate)
		return plx_fail(EINVAL,
				"--arrival and --seed are for an open loop; give --rate R too");
	if (measure->arrival == PLX_ARRIVAL_BURST && measure->rate > PLX_ARRIVAL_BURST_RATE_MAX)
		return plx_fail(
			EINVAL,
			"--arrival burst: inside a burst there are %d a second; give --rate up to "
			"that",
			PLX_ARRIVAL_BURST_RATE_MAX);
	/* An invalid name is an error on any host; the run reports problems with the folder. */
	return measure->out_dir && plx_result_prepare(measure->name, measure->out_dir) == -EINVAL
		     ? -EINVAL
		     : 0;
}

uint64_t plx_measure_tsc(uint64_t ns)
{
	return (uint64_t)((double)ns / 1e9 * plx_clock_info()->hz);
}

const char *plx_measure_idle(char out[PLX_MEASURE_IDLE_BYTES])
{
	struct plx_idle_conf idle = {0};

	plx_idle_get(plx_lcore_id(), &idle); /* cannot fail: this is an lcore */
	plx_idle_format(&idle, out, PLX_MEASURE_IDLE_BYTES);
	return out;
}

const char *plx_measure_signal(void)
{
	return plx_stop_signal() == SIGTERM ? "SIGTERM" : "SIGINT";
}

void plx_measure_say_interrupted(const struct plx_measure *measure, const char *why, uint64_t count,
				 const char *unit, uint64_t elapsed_ns)
{
	if (measure->count)
		plx_app_say("INTERRUPTED after %" PRIu64 " of %" PRIu64 " %s: %s", count,
			    measure->count, unit, why);
	else
		plx_app_say("INTERRUPTED after %.2f of %.2f s: %s", (double)elapsed_ns / 1e9,
			    (double)measure->duration_ns / 1e9, why);
}
