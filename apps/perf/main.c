/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-perf: what rings, pools and messages between lcores cost, beside DPDK's own where it is there
 * to be compared with. */
#include "perf.h"
#include "plx_ring.h"
#include "ring_bench.h"

#include <stdlib.h>
#include <string.h>

const uint32_t perf_bursts[PERF_BURSTS] = {1, 8, 32, 256};

static struct perf_conf conf = {
	.capacity = 4096,
	.rounds = 7,
	.duration_ns = 30 * PLX_NS_PER_MS,
	.gap_us = 20,
};
static const char *kinds_text, *bursts_text;
static bool kinds_given, bursts_given, on_given, capacity_given, gap_given;

static const char *const mode_names[] = {"", "ring", "pool", "hop", NULL};
static const char *const places[] = {"both", "one", "two", NULL};
static const char *const peers[] = {"dpdk", NULL};
static unsigned peer;

static const struct plx_app_option options[] = {
	{.name = "rounds",
	 .placeholder = "N",
	 .help = "measure everything that often, in turn, and take medians (default 7)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.rounds,
	 .min = 1,
	 .max = PERF_ROUNDS_MAX},
	{.name = "duration",
	 .placeholder = "S",
	 .help = "of one measurement in a round (default 30ms)",
	 .kind = PLX_APP_DURATION,
	 .value = &conf.duration_ns,
	 .min = 100 * PLX_NS_PER_US,
	 .max = 10 * PLX_NS_PER_S},
	{.name = "compare",
	 .placeholder = "dpdk",
	 .help = "ring, pool: a row of DPDK's own beside each; where built with it",
	 .kind = PLX_APP_CHOICE,
	 .value = &peer,
	 .choices = peers,
	 .given = &conf.compare},
	{.name = "bursts",
	 .placeholder = "N,N,...",
	 .help = "ring, pool: of 1, 8, 32 and 256 (default all; pool: 1,32)",
	 .kind = PLX_APP_STRING,
	 .value = &bursts_text,
	 .given = &bursts_given},
	{.name = "kinds",
	 .placeholder = "KIND,...",
	 .help = "ring: of spsc, mpsc and mpmc (default all)",
	 .kind = PLX_APP_STRING,
	 .value = &kinds_text,
	 .given = &kinds_given},
	{.name = "on",
	 .placeholder = "one|two|both",
	 .help = "ring: on one lcore, from one to another, or both (default)",
	 .kind = PLX_APP_CHOICE,
	 .value = &conf.on,
	 .choices = places,
	 .given = &on_given},
	{.name = "capacity",
	 .placeholder = "N",
	 .help = "ring: elements of each (default 4096)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.capacity,
	 .min = 2,
	 .max = 1 << 24,
	 .given = &capacity_given},
	{.name = "gap-us",
	 .placeholder = "N",
	 .help = "hop: microseconds of quiet before a message to a cold lane (default 20)",
	 .kind = PLX_APP_UINT,
	 .value = &conf.gap_us,
	 .min = 1,
	 .max = 1000000,
	 .given = &gap_given},
	{.name = "with-idle-tcp",
	 .help = "hop: one more row, while both lcores poll an idle link over tcp",
	 .kind = PLX_APP_FLAG,
	 .value = &conf.with_idle_tcp},
	{.name = "histogram",
	 .placeholder = "FILE",
	 .help = "hop: write the percentiles there, in HdrHistogram's format",
	 .kind = PLX_APP_STRING,
	 .value = &conf.histogram_path},
	{.name = "json",
	 .placeholder = "FILE",
	 .help = "write the results there",
	 .kind = PLX_APP_STRING,
	 .value = &conf.json_path},
	{.name = NULL},
};

/* Checks ----------------------------------------------------------------------------------- */

/* A list of names, or of numbers, as bits. */
static int parse_list(const char *option, const char *text, const char *const *names,
		      unsigned count, const char *allowed, unsigned *bits_out)
{
	const char *word = text;

	*bits_out = 0;
	for (;;) {
		size_t len = strcspn(word, ",");
		unsigned i = 0;

		while (i < count && (strlen(names[i]) != len || strncmp(word, names[i], len) != 0))
			i++;
		if (i == count)
			return plx_fail(EINVAL, "%s %s: '%.*s' is none of %s", option, text,
					(int)len, word, allowed);
		*bits_out |= 1U << i;
		if (!word[len])
			return 0;
		word += len + 1;
	}
}

static int check_lists(void)
{
	static const char *const kinds[] = {"spsc", "mpsc", "mpmc"};
	static const char *const bursts[] = {"1", "8", "32", "256"};
	int rc = 0;

	conf.kinds = (1U << PERF_KINDS) - 1;
	conf.bursts = conf.mode == PERF_POOL ? 1 << 0 | 1 << 2 : (1U << PERF_BURSTS) - 1;
	if (kinds_given)
		rc = parse_list("--kinds", kinds_text, kinds, PERF_KINDS, "spsc, mpsc, mpmc",
				&conf.kinds);
	if (rc == 0 && bursts_given)
		rc = parse_list("--bursts", bursts_text, bursts, PERF_BURSTS,
				"1, 8, 32, 256, which this program is compiled for", &conf.bursts);
	return rc;
}

/* Each option is for some modes. */
static int check_mode(void)
{
	const struct {
		const char *option;
		bool given;
		unsigned modes;
	} uses[] = {
		{"--compare", conf.compare, 1 << PERF_RING | 1 << PERF_POOL},
		{"--bursts", bursts_given, 1 << PERF_RING | 1 << PERF_POOL},
		{"--kinds", kinds_given, 1 << PERF_RING},
		{"--on", on_given, 1 << PERF_RING},
		{"--capacity", capacity_given, 1 << PERF_RING},
		{"--gap-us", gap_given, 1 << PERF_HOP},
		{"--with-idle-tcp", conf.with_idle_tcp, 1 << PERF_HOP},
		{"--histogram", conf.histogram_path != NULL, 1 << PERF_HOP},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(uses); i++)
		if (uses[i].given && !(uses[i].modes >> conf.mode & 1))
			return plx_fail(EINVAL,
					"%s: not for plx-perf %s; --help tells what it is for",
					uses[i].option, mode_names[conf.mode]);
	return 0;
}

static int check_bursts(void)
{
	for (unsigned i = 0; i < PERF_BURSTS && conf.mode == PERF_RING; i++)
		if (conf.bursts >> i & 1 && perf_bursts[i] >= conf.capacity)
			return plx_fail(
				EINVAL,
				"--capacity %llu: a burst of %u needs more; give a greater one, "
				"or --bursts without %u",
				(unsigned long long)conf.capacity, perf_bursts[i], perf_bursts[i]);
	return 0;
}

/* Before a long run, that what it finds can be kept. */
static int check_file(const char *option, const char *path)
{
	FILE *file = path ? fopen(path, "a") : NULL;

	if (path && !file)
		return plx_fail(EINVAL, "%s %s: cannot be written: %s", option, path,
				strerror(errno));
	if (file)
		fclose(file);
	return 0;
}

static int check(void)
{
	int rc;

	if (conf.mode == PERF_NONE)
		return plx_fail(EINVAL, "what to measure comes first: plx-perf ring, pool or hop");
	rc = check_mode();
	if (rc == 0)
		rc = check_lists();
	if (rc == 0)
		rc = check_bursts();
	if (rc == 0 && conf.compare && !ring_dpdk())
		rc = plx_fail(EINVAL,
			      "--compare dpdk: this program was built without DPDK; install "
			      "libdpdk-dev, configure the build again (meson setup --reconfigure), "
			      "and run apps/plx-perf-dpdk of the build folder");
	if (rc == 0)
		rc = check_file("--json", conf.json_path);
	if (rc == 0)
		rc = check_file("--histogram", conf.histogram_path);
	return rc;
}

/* Start ------------------------------------------------------------------------------------ */

static const struct plx_app app = {
	.name = "plx-perf",
	.summary = "Measure rings, pools, and messages between lcores.",
	.usage =
		"  plx-perf ring [EAL options] [--kinds LIST] [--bursts LIST] [--on one|two|both]\n"
		"           [--capacity N] [--compare dpdk] [--rounds N] [--duration S] [--json "
		"FILE]\n"
		"  plx-perf pool [EAL options] [--bursts LIST] [--compare dpdk] ...\n"
		"  plx-perf hop  [EAL options] [--gap-us N] [--with-idle-tcp] [--histogram FILE] "
		"...",
	.options = options,
	.check = check,
};

/* The words without the mode; and with two lcores where nothing was said of them. */
static int arrange(int argc, char **argv, char **words)
{
	static char option[] = "-l", list[64];
	int count = 0, first = 1;

	words[count++] = argv[0];
	for (unsigned mode = PERF_RING; argc > 1 && mode_names[mode]; mode++)
		if (strcmp(argv[1], mode_names[mode]) == 0)
			conf.mode = mode;
	first += conf.mode != PERF_NONE;
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
	int rc = modes[conf.mode](&conf);

	if (rc == 0)
		return 0;
	plx_app_fail(&app);
	return rc == -EINVAL ? 2 : 1;
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
