/* SPDX-License-Identifier: BSD-3-Clause */
/* The main function of a raw baseline: its command line, and its results as text and files. It
 * exits with 3 if it ran, but its figures are not what they claim to be. */
#include "raw_common.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define HIGHEST_NS   (10 * PLX_NS_PER_S)
#define DIGITS       3
#define LIMIT_NS_MAX (24 * 3600 * PLX_NS_PER_S)

static struct raw_options values = {
	.size = 64,
	.duration_ns = 2 * PLX_NS_PER_S,
	.warmup = 1000,
	.wait_ns = 30 * PLX_NS_PER_S,
	.cpu = RAW_CPU_ANY,
};
static const char *connect_to;
static unsigned cq, idle;
static bool count_given;

static const char *const cqs[] = {"fd", "none", NULL};
static const char *const idles[] = {"poll", "event", NULL};

/* Options of every baseline. */
static const struct plx_option common[] = {
	PLX_TEXT("listen", "ADDR", &values.address,
		 "be the server, which takes the size from its client and ends with it"),
	PLX_TEXT("connect", "ADDR", &connect_to, "be the client, and measure"),
	PLX_SIZE("size", "N", &values.size, 1, RAW_SIZE_MAX, "bytes of a message (default 64)"),
	PLX_TIME("duration", "S", &values.duration_ns, PLX_NS_PER_MS, LIMIT_NS_MAX,
		 "measure that long (default 2s)"),
	PLX_UINT("count", "N", &values.count, 1, 0, "measure that many", .given = &count_given),
	PLX_UINT("warmup", "N", &values.warmup, 0, 0, "before that (default 1000)"),
	PLX_UINT("cpu", "N", &values.cpu, 0, CPU_SETSIZE - 1, "run on CPU N alone"),
	PLX_TEXT("out", "DIR", &values.out,
		 "write NAME.json there, and of round trips NAME.hgrm and NAME.csv"),
	PLX_TEXT("name", "NAME", &values.name, "of the run (default that of the program)"),
	PLX_TIME("wait", "S", &values.wait_ns, PLX_NS_PER_MS, LIMIT_NS_MAX,
		 "how long a server waits for its client (default 30s)"),
};

/* Those that a program names in its `choices`. */
static const struct plx_option chosen[] = {
	PLX_TEXT("provider", "P", &values.provider,
		 "libfabric's provider of FI_EP_MSG: tcp, net, ..."),
	PLX_CHOICE("cq", "KIND", &cq, cqs, "completion queue: fd (can sleep) or none (default fd)"),
	PLX_CHOICE("idle", "HOW", &idle, idles,
		   "poll, or event: sleep until a message is there (default poll)"),
	PLX_FLAG("one-way", &values.one_way, "measure messages one way, not round trips"),
	PLX_FLAG("copy", &values.copy, "client: send copies, not from where messages lie"),
	PLX_UINT("window", "N", &values.window, 1, RAW_POSTED_MAX,
		 "sends in flight, unless injected (default by size)"),
	PLX_UINT("posted", "N", &values.posted, 1, RAW_POSTED_MAX,
		 "server: receives posted ahead (default by size)"),
};

static int split_address(const char *option)
{
	unsigned port = 0;
	int rc = plx_address_split(option, values.address, values.host, &port);
	size_t length = strlen(values.host);

	if (rc == 0 && values.host[0] == '[') {
		memmove(values.host, values.host + 1, length - 2);
		values.host[length - 2] = '\0';
	}
	if (strcmp(values.host, "*") == 0)
		strcpy(values.host, "0.0.0.0");
	snprintf(values.port, sizeof(values.port), "%u", port);
	return rc;
}

static int check(void)
{
	values.listen = values.address != NULL;
	if (values.listen == (connect_to != NULL))
		return plx_fail(EINVAL, "give one of --listen ADDR and --connect ADDR");
	values.address = values.listen ? values.address : connect_to;
	if (count_given)
		values.duration_ns = 0;
	if (raw_program.fixed_size && values.size != raw_program.fixed_size)
		return plx_fail(EINVAL, "--size %llu: only messages of %llu B are possible",
				(unsigned long long)values.size,
				(unsigned long long)raw_program.fixed_size);
	values.cq_cannot_sleep = cq != 0;
	values.sleeps = idle != 0;
	if (!values.idle)
		values.idle = idles[idle];
	if (values.sleeps && values.cq_cannot_sleep)
		return plx_fail(EINVAL, "--idle event needs --cq fd: one of none cannot sleep");
	if (!raw_program.address_is_a_name)
		return split_address(values.listen ? "--listen" : "--connect");
	snprintf(values.host, sizeof(values.host), "%s", values.address);
	return 0;
}

static struct plx_option options[PLX_ARRAY_LEN(common) + PLX_ARRAY_LEN(chosen) + 1];
static const struct plx_app app = {
	.summary = "messages without any framework", .options = options, .check = check};

static void collect_options(void)
{
	struct plx_option *end = options + PLX_ARRAY_LEN(common);

	memcpy(options, common, sizeof(common));
	for (size_t i = 0; i < PLX_ARRAY_LEN(chosen); i++) {
		if (raw_program.choices && strstr(raw_program.choices, chosen[i].name))
			*end++ = chosen[i];
	}
}

/* Measuring -------------------------------------------------------------------------------- */

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

static int report(struct plx_result *result)
{
	result->name = values.name;
	result->provider = values.provider;
	result->idle = values.idle;
	result->size_bytes = values.size;
	result->clock_drift_ppm = plx_clock_drift_ppm();
	plx_result_print(result, stdout, 0);
	int rc = values.out ? plx_result_write(result, values.out) : 0;
	return rc ? rc : plx_result_check(result);
}

static int measure_trips(void)
{
	struct raw_run run = {
		.warmup_left = values.warmup,
		.count_left = values.count,
		.duration_tsc = plx_measure_tsc(values.duration_ns),
	};
	struct plx_result result = {.rtt_ns = &run.hist};
	uint8_t *message = raw_message(values.size);
	int rc = message ? plx_hist_init(&run.hist, HIGHEST_NS, DIGITS) : -ENOMEM;

	rc = rc ? rc : raw_program.ping(&values, message, &run);
	result.elapsed_ns = plx_tsc_to_ns(run.last_tsc - run.first_tsc);
	rc = rc ? rc : report(&result);
	plx_hist_fini(&run.hist);
	free(message);
	return rc;
}

static int measure_flow(void)
{
	struct raw_flow flow = {.duration_tsc = plx_measure_tsc(values.duration_ns)};
	int rc = raw_program.stream(&values, &flow);
	struct plx_result result = {
		.one_way = true,
		.count = flow.count,
		.again = flow.again,
		.elapsed_ns = plx_tsc_to_ns(flow.elapsed_tsc),
	};

	return rc ? rc : report(&result);
}

static int run(void)
{
	int rc = pin(values.cpu);

	if (rc)
		return rc;
	if (values.listen)
		return raw_program.serve(&values);
	return raw_streams(&values) ? measure_flow() : measure_trips();
}

int main(int argc, char **argv)
{
	values.name = program_invocation_short_name;
	values.provider = raw_program.provider;
	values.idle = raw_program.idle;
	plx_clock_init();
	collect_options();
	int rc = plx_app_start_alone(argc, argv, &app);
	if (rc != PLX_APP_RUN)
		return rc;
	rc = run();
	if (rc)
		plx_app_fail(&app);
	return plx_app_end_output(&app, rc == -ERANGE ? 3 : rc != 0);
}
