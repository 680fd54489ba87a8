/* SPDX-License-Identifier: BSD-3-Clause */
/* How soon after its start a process sends its first message. */
#include "process_fixture.h"

#include <time.h>

#define STARTS        5
#define START_MS_GOAL 120 /* in addition to the first fi_getinfo, on a quiet host */
#define START_MS_MAX  200.0

static double ms_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, STARTS, sizeof(values[0]), compare_doubles);
	return values[STARTS / 2];
}

/* A new process's first fi_getinfo, which probes all providers whatever is requested; with shm
 * libfabric does the same, to read its parameters and to log. Includes loading: libraries that
 * libfabric pulls in do much before main (Debian's libinfinipath sleeps 200 ms to calibrate the
 * clock). */
static double getinfo_ms(double *load_ms_out)
{
	double from_ms = ms_now(), took_ms;
	struct process *process = launch("tests/apps/first_getinfo tcp");
	const char *line = process_line(process, LIMIT_MS);
	double to_ms = ms_now();

	assert_non_null(line);
	took_ms = atof(line) / 1000;
	*load_ms_out = to_ms - from_ms - took_ms;
	expect_status(process, 0);
	return took_ms;
}

/* From fork until the server has accepted the client's HELLO, when the first message is sent. Both
 * times are taken here, so the interval is too long rather than too short. */
static double start_ms(const struct server *server, const char *provider)
{
	double from_ms = ms_now(), to_ms;
	struct process *client = launch_ping(server, provider, "--count 1 --warmup 0");
	const char *line = process_line(server->process, LIMIT_MS);

	to_ms = ms_now();
	assert_non_null(strstr(line ? line : "", " connected over "));
	expect_figures(client);
	expect_line(server->process, " gone: closed");
	return to_ms - from_ms;
}

/* The minimum of the runs is compared with the limit, because other load only adds. If fi_getinfo
 * (about 80 ms) takes longer than the limit on a busy host, that is the limit. */
PROVIDER_TEST(first_message_leaves_soon_after_exec)
{
	if (PLX_SANITIZED)
		skip();
	struct server server = serve_echo(provider);
	double ours[STARTS], fabric[STARTS], load[STARTS];

	for (int i = 0; i < STARTS; i++) {
		fabric[i] = getinfo_ms(&load[i]);
		ours[i] = start_ms(&server, provider) - fabric[i] - load[i];
	}
	print_message("%s: medians of %d: %.0f ms to load libfabric, %.0f ms for the first "
		      "fi_getinfo, %.0f ms more to the first message (goal: %d)\n",
		      provider, STARTS, median(load), median(fabric), median(ours), START_MS_GOAL);
	assert_true(ours[0] < (fabric[0] > START_MS_MAX ? fabric[0] : START_MS_MAX));
	end_server(&server);
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
