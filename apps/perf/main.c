/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-perf: the cost of rings, pools and messages between lcores, compared with DPDK's if built
 * with it. */
#include "perf.h"

#include <stdlib.h>

const char *const perf_mode_names[] = {"ring", "pool", "hop", NULL};

static const struct plx_app app = {
	.name = "plx-perf",
	.summary = "Measure rings, pools, and messages between lcores.",
	.eal = &(const struct plx_eal_conf){.idle = "poll"},
	.usage =
		"  plx-perf ring [EAL options] [--kinds LIST] [--bursts LIST] [--on one|two|both]\n"
		"           [--capacity N] [--compare dpdk] [--rounds N] [--duration TIME] [--json "
		"FILE]\n"
		"  plx-perf pool [EAL options] [--bursts LIST] [--compare dpdk] ...\n"
		"  plx-perf hop  [EAL options] [--gap-us N] [--with-idle-tcp] [--histogram FILE] "
		"...",
	.examples = "  plx-perf ring -l 0,1\n"
		    "  plx-perf hop -l 0,1",
	.more = "man plx-perf, or doc/apps/plx-perf.md",
	.options = perf_options,
	.check = perf_check,
	.modes = perf_mode_names,
	.mode = &perf_conf.mode,
};

/* The words, and after the mode two lcores, unless lcores were given. */
static int arrange(int argc, char **argv, char **words)
{
	static char option[] = "-l", list[64];
	int count = 0, first = argc > 1 && argv[1][0] != '-' ? 2 : 1;

	while (count < first && count < argc) {
		words[count] = argv[count];
		count++;
	}
	if (!perf_lcores_chosen(argc - first, argv + first) &&
	    perf_two_lcores(list, sizeof(list))) {
		words[count++] = option;
		words[count++] = list;
	}
	for (int i = first; i < argc; i++)
		words[count++] = argv[i];
	words[count] = NULL;
	return count;
}

static int run(void)
{
	static int (*const modes[])(const struct perf_conf *conf) = {
		[PERF_RING] = perf_ring_run,
		[PERF_POOL] = perf_pool_run,
		[PERF_HOP] = perf_hop_run,
	};
	int rc = perf_check_pinned() ?: modes[perf_conf.mode](&perf_conf);

	if (rc == 0)
		return 0;
	return rc == -EINVAL ? plx_app_fail_usage(&app) : plx_app_fail(&app);
}

int main(int argc, char **argv)
{
	char **words = calloc((size_t)argc + 3, sizeof(*words));
	int status = 1;

	if (words) {
		status = plx_app_start(arrange(argc, argv, words), words, &app);
		if (status == PLX_APP_RUN)
			status = plx_app_finish(&app, run());
	}
	free(words);
	return status;
}
