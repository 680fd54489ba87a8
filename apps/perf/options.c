/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of plx-perf, and checks of their combinations. */
#include "perf.h"
#include "plx_ring.h"
#include "ring_bench.h"

#include <string.h>

const uint32_t perf_bursts[PERF_BURSTS] = {1, 8, 32, 256};

struct perf_conf perf_conf = {
	.capacity = 4096,
	.rounds = 7,
	.duration_ns = 30 * PLX_NS_PER_MS,
	.gap_us = 20,
};
static const char *kinds_text, *bursts_text;
static bool kinds_given, bursts_given;

static const char *const places[] = {"both", "one", "two", NULL};
static const char *const peers[] = {"dpdk", NULL};
static unsigned peer;

const struct plx_option perf_options[] = {
	PLX_UINT("rounds", "N", &perf_conf.rounds, 1, PERF_ROUNDS_MAX,
		 "interleaved repetitions; the result is the median (default 7)"),
	PLX_TIME("duration", "TIME", &perf_conf.duration_ns, 100 * PLX_NS_PER_US, 10 * PLX_NS_PER_S,
		 "length of one measurement in a round (default 30ms)"),
	PLX_CHOICE("compare", "dpdk", &peer, peers,
		   "ring, pool: add rows of DPDK, if built with it", .given = &perf_conf.compare,
		   .modes = 1 << PERF_RING | 1 << PERF_POOL),
	PLX_TEXT("bursts", "N,N,...", &bursts_text,
		 "ring, pool: some of 1, 8, 32, 256 (default all; pool: 1,32)",
		 .given = &bursts_given, .modes = 1 << PERF_RING | 1 << PERF_POOL),
	PLX_TEXT("kinds", "KIND,...", &kinds_text, "ring: some of spsc, mpsc, mpmc (default all)",
		 .given = &kinds_given, .modes = 1 << PERF_RING),
	PLX_CHOICE("on", "one|two|both", &perf_conf.on, places,
		   "ring: on one lcore, from one to another, or both (the default)",
		   .modes = 1 << PERF_RING),
	PLX_UINT("capacity", "N", &perf_conf.capacity, 2, 1 << 24,
		 "ring: elements per ring (default 4096)", .modes = 1 << PERF_RING),
	PLX_UINT("gap-us", "N", &perf_conf.gap_us, 1, 1000000,
		 "hop: microseconds of quiet before each message of the row quiet (default 20)",
		 .modes = 1 << PERF_HOP),
	PLX_FLAG("with-idle-tcp", &perf_conf.with_idle_tcp,
		 "hop: add a row in which both lcores poll an idle tcp link",
		 .modes = 1 << PERF_HOP),
	PLX_TEXT("histogram", "FILE", &perf_conf.histogram_path,
		 "hop: write percentiles there in HdrHistogram's format", .modes = 1 << PERF_HOP),
	PLX_TEXT("json", "FILE", &perf_conf.json_path, "write the results there"),
	PLX_OPTIONS_END,
};

/* Checks ----------------------------------------------------------------------------------- */

/* Parse a list of names or numbers into bits. */
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

	perf_conf.kinds = (1U << PERF_KINDS) - 1;
	perf_conf.bursts = perf_conf.mode == PERF_POOL ? 1 << 0 | 1 << 2 : (1U << PERF_BURSTS) - 1;
	if (kinds_given)
		rc = parse_list("--kinds", kinds_text, kinds, PERF_KINDS, "spsc, mpsc, mpmc",
				&perf_conf.kinds);
	if (rc == 0 && bursts_given)
		rc = parse_list("--bursts", bursts_text, bursts, PERF_BURSTS,
				"1, 8, 32, 256, which this program is compiled for",
				&perf_conf.bursts);
	return rc;
}

static int check_bursts(void)
{
	for (unsigned i = 0; i < PERF_BURSTS && perf_conf.mode == PERF_RING; i++)
		if (perf_conf.bursts >> i & 1 && perf_bursts[i] >= perf_conf.capacity)
			return plx_fail(
				EINVAL,
				"--capacity %llu: a burst of %u needs more; give a greater one, "
				"or --bursts without %u",
				(unsigned long long)perf_conf.capacity, perf_bursts[i],
				perf_bursts[i]);
	return 0;
}

static int check_dpdk(void)
{
	if (!perf_conf.compare || ring_dpdk())
		return 0;
	return plx_fail(EINVAL,
			"--compare dpdk: this program was built without DPDK; install "
			"libdpdk-dev, configure the build again (meson setup --reconfigure), "
			"and run apps/plx-perf-dpdk of the build folder");
}

int perf_check(void)
{
	return check_lists()
		       ?: check_bursts()
		       ?: check_dpdk()
		       ?: plx_app_check_file("--json", perf_conf.json_path)
		       ?: plx_app_check_file("--histogram", perf_conf.histogram_path);
}
