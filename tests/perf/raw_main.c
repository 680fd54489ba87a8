/* SPDX-License-Identifier: BSD-3-Clause */
/* The main function of a raw baseline. */
#include "raw_common.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define HIGHEST_NS      (10 * PLX_NS_PER_S)
#define DIGITS          3
#define DURATION_NS     (2 * PLX_NS_PER_S)
#define WARMUP_DEFAULT  1000
#define WAIT_DEFAULT_NS (30 * PLX_NS_PER_S)

static int pin(uint64_t cpu)
{
	cpu_set_t set;

	if (cpu == RAW_CPU_ANY)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return plx_fail(errno, "--cpu %llu: cannot run there: %s", (unsigned long long)cpu,
				strerror(errno));
	return 0;
}

static uint64_t duration_tsc(const struct raw_options *options)
{
	return (uint64_t)((double)options->duration_ns / (double)PLX_NS_PER_S *
			  plx_clock_info_read()->hz);
}

static int measure_trips(const struct raw_options *options)
{
	struct raw_run run = {
		.warmup_left = options->warmup,
		.count_left = options->count,
		.duration_tsc = duration_tsc(options),
	};
	uint8_t *message = raw_message(options->size);
	int rc = message ? plx_hist_init(&run.hist, HIGHEST_NS, DIGITS) : -ENOMEM;

	rc = rc ? rc : raw_program.ping(options, message, &run);
	rc = rc ? rc : raw_report_run(options, &run);
	plx_hist_fini(&run.hist);
	free(message);
	return rc;
}

static int measure_flow(const struct raw_options *options)
{
	struct raw_flow flow = {.duration_tsc = duration_tsc(options)};
	int rc = raw_program.stream(options, &flow);

	return rc ? rc : raw_report_flow(options, &flow);
}

static int run(const struct raw_options *options)
{
	int rc = pin(options->cpu);

	if (rc)
		return rc;
	if (options->listen)
		return raw_program.serve(options);
	return raw_program.stream ? measure_flow(options) : measure_trips(options);
}

int main(int argc, char **argv)
{
	struct raw_options options = {
		.name = raw_program.name,
		.provider = raw_program.provider,
		.idle = raw_program.idle ? raw_program.idle : "poll",
		.size = 64,
		.duration_ns = DURATION_NS,
		.warmup = WARMUP_DEFAULT,
		.wait_ns = WAIT_DEFAULT_NS,
		.cpu = RAW_CPU_ANY,
	};
	int status = 2;

	plx_clock_init();
	int rc = raw_parse(argc, argv, &raw_program, &options);
	if (rc > 0)
		return 0;
	if (!rc) {
		status = 1;
		rc = run(&options);
	}
	if (!rc)
		return 0;
	fprintf(stderr, "%s: %s\n", raw_program.name, plx_error());
	return rc == -ERANGE ? 3 : status; /* it ran, but its figures are not what they claim */
}
