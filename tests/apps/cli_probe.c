/* SPDX-License-Identifier: BSD-3-Clause */
/* An application that only starts: every kind of option, a line for each lcore, then it ends.
 * cli_test checks its output. */
#include "app.h"
#include "plx_lcore.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const colours[] = {"red", "green", "blue", NULL};

static uint64_t count = 1, size_bytes = 64, pause_ns;
static const char *listen_address, *text;
static unsigned colour;
static bool hold, hang, verbose;

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &listen_address, "an address (default: none)"),
	PLX_TEXT("text", "TEXT", &text, "any text (default: none)"),
	PLX_UINT("count", "N", &count, 1, 1000, "a number, 1 to 1000 (default: 1)"),
	PLX_SIZE("size", "BYTES", &size_bytes, 0, 1 << 20, "a size up to 1M (default: 64)"),
	PLX_TIME("pause", "TIME", &pause_ns, PLX_NS_PER_MS, 10 * PLX_NS_PER_S,
		 "a duration, 1ms to 10s (default: none)"),
	PLX_CHOICE("colour", "NAME", &colour, colours, "red, green or blue (default: red)"),
	PLX_FLAG("hold", &hold, "run until a signal comes"),
	PLX_FLAG("hang", &hang, "let the workers never return"),
	PLX_FLAG("verbose", &verbose, "print the options"),
	PLX_OPTIONS_END,
};

static int check(void)
{
	if (hold && hang)
		return plx_fail(EINVAL, "--hold and --hang: give one of them");
	return 0;
}

static const struct plx_app app = {.name = "cli-probe",
				   .summary = "starts, says where, and ends",
				   .options = options,
				   .check = check};

static int run_worker(void *arg)
{
	while (hang)
		plx_pause();
	return plx_loop_run();
}

static void print_options(void)
{
	printf("listen %s text %s count %" PRIu64 " size %" PRIu64 " pause %" PRIu64 " colour %s\n",
	       listen_address ? listen_address : "-", text ? text : "-", count, size_bytes,
	       pause_ns, colours[colour]);
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	if (verbose)
		print_options();
	PLX_LCORE_FOREACH (id)
		printf("lcore %u cpu %u%s\n", id, plx_lcore_cpu(id),
		       id == plx_lcore_main() ? " main" : "");
	fflush(stdout);
	PLX_LCORE_FOREACH_WORKER (id) {
		if (plx_lcore_launch(id, run_worker, NULL))
			return plx_app_fail(&app);
	}
	if (hold && plx_loop_run())
		return plx_app_fail(&app);
	return plx_app_finish(&app, 0);
}
