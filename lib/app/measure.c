/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by programs that measure: their options, how a run was cut short, and when an open loop
 * sends. */
#include "app.h"
#include "base_internal.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>

#define BURST_LENGTH 100
#define BURST_GAP_NS (10 * PLX_NS_PER_US)

const char *const plx_arrivals[] = {"fixed", "poisson", "burst", NULL};

int plx_measure_check(const struct plx_measure *measure)
{
	const char *needs = measure->out_dir ? "--out" : measure->rate ? "--rate" : NULL;

	if (measure->count_given && measure->duration_given)
		return plx_fail(EINVAL, "--count and --duration exclude each other");
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

double plx_measure_rate(const struct plx_measure *measure)
{
	return measure->interval_ns ? 1e9 / (double)measure->interval_ns : (double)measure->rate;
}

uint64_t plx_measure_tsc(uint64_t ns)
{
	return (uint64_t)((double)ns / 1e9 * plx_clock_info_read()->hz);
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

/* Schedules -------------------------------------------------------------------------------- */

/* The pause after a burst that keeps the rate. */
static double burst_gap(const struct plx_schedule *schedule)
{
	if (schedule->count % BURST_LENGTH)
		return schedule->burst_gap_tsc;
	return schedule->gap_tsc * BURST_LENGTH - schedule->burst_gap_tsc * (BURST_LENGTH - 1);
}

void plx_schedule_init(struct plx_schedule *schedule, enum plx_arrival arrival, double rate,
		       uint64_t seed, double tsc_hz)
{
	*schedule = (struct plx_schedule){
		.gap_tsc = tsc_hz / rate,
		.burst_gap_tsc = (double)BURST_GAP_NS / 1e9 * tsc_hz,
		.random = seed,
		.arrival = arrival,
	};
}

void plx_schedule_advance(struct plx_schedule *schedule)
{
	double gap = schedule->gap_tsc;

	schedule->count++;
	if (schedule->arrival == PLX_ARRIVAL_POISSON) {
		double uniform = ((double)(plx_random_next(&schedule->random) >> 11) + 0.5) /
				 9007199254740992.0;

		gap *= -log(uniform);
	} else if (schedule->arrival == PLX_ARRIVAL_BURST) {
		gap = burst_gap(schedule);
	}
	schedule->next_tsc += gap;
}

void plx_schedule_sleep(const struct plx_schedule *schedule, struct plx_sleep *sleep)
{
	if (schedule->next_tsc <= (double)plx_tsc())
		plx_sleep_nap(sleep);
	else
		plx_sleep_until(sleep, plx_tsc_time_ns((uint64_t)schedule->next_tsc));
}

bool plx_schedule_is_hopeless(uint64_t stop_tsc, uint64_t now_tsc)
{
	return stop_tsc && now_tsc > stop_tsc &&
	       plx_tsc_to_ns(now_tsc - stop_tsc) > PLX_SCHEDULE_DRAIN_NS;
}
