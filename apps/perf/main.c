/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-perf: the cost of rings, pools and messages between lcores, compared with DPDK's if built
 * with it. */
#include "bench.h"

#include <sched.h>
#include <string.h>

static const char *const mode_names[] = {"ring", "pool", "hop", NULL};

const uint32_t perf_bursts[PERF_BURSTS] = {1, 8, 32, 256};

struct perf_conf perf_conf = {
	.capacity = 4096,
	.rounds = 7,
	.duration_ns = 30 * PLX_NS_PER_MS,
	.gap_us = 20,
};
static const char *kinds_text, *bursts_text;

static const char *const places[] = {"both", "one", "two", NULL};
static const char *const peers[] = {"dpdk", NULL};
static unsigned peer;

static const struct plx_option options[] = {
	PLX_UINT("rounds", "N", &perf_conf.rounds, 1, PERF_ROUNDS_MAX,
		 "interleaved repetitions; the result is the median (default 7)"),
	PLX_TIME("duration", "TIME", &perf_conf.duration_ns, 100 * PLX_NS_PER_US, 10 * PLX_NS_PER_S,
		 "length of one measurement in a round (default 30ms)"),
	PLX_CHOICE("compare", "dpdk", &peer, peers,
		   "ring, pool: add rows of DPDK, if built with it", .given = &perf_conf.compare,
		   .modes = 1 << PERF_RING | 1 << PERF_POOL),
	PLX_TEXT("bursts", "N,N,...", &bursts_text,
		 "ring, pool: some of 1, 8, 32, 256 (default all; pool: 1,32)",
		 .modes = 1 << PERF_RING | 1 << PERF_POOL),
	PLX_TEXT("kinds", "KIND,...", &kinds_text, "ring: some of spsc, mpsc, mpmc (default all)",
		 .modes = 1 << PERF_RING),
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

/* Turn a list of words into bits. */
static int parse_list(const char *option, const char *text, const char *const *words,
		      unsigned *bits_out)
{
	char copy[128], *rest = copy, *word;
	unsigned i;

	snprintf(copy, sizeof(copy), "%s", text);
	*bits_out = 0;
	while ((word = strsep(&rest, ","))) {
		if (plx_option_choice(option, word, words, &i) != 0)
			return -EINVAL;
		*bits_out |= 1U << i;
	}
	return 0;
}

static int check_lists(void)
{
	static const char *const kinds[] = {"spsc", "mpsc", "mpmc", NULL};
	static const char *const bursts[] = {"1", "8", "32", "256", NULL};
	int rc = 0;

	perf_conf.kinds = (1U << PERF_KINDS) - 1;
	perf_conf.bursts = perf_conf.mode == PERF_POOL ? 1 << 0 | 1 << 2 : (1U << PERF_BURSTS) - 1;
	if (kinds_text)
		rc = parse_list("--kinds", kinds_text, kinds, &perf_conf.kinds);
	if (rc == 0 && bursts_text)
		rc = parse_list("--bursts", bursts_text, bursts, &perf_conf.bursts);
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
	if (!perf_conf.compare || perf_dpdk)
		return 0;
	return plx_fail(EINVAL,
			"--compare dpdk: this program was built without DPDK; install "
			"libdpdk-dev, configure the build again (meson setup --reconfigure), "
			"and run apps/plx-perf-dpdk of the build folder");
}

static int check(void)
{
	return check_lists()
		       ?: check_bursts()
		       ?: check_dpdk()
		       ?: plx_app_check_file("--json", perf_conf.json_path)
		       ?: plx_app_check_file("--histogram", perf_conf.histogram_path);
}

static struct plx_eal_conf eal = {.idle = "poll"};

static const struct plx_app app = {
	.name = "plx-perf",
	.summary = "Measure rings, pools, and messages between lcores.",
	.eal = &eal,
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
	.options = options,
	.check = check,
	.modes = mode_names,
	.mode = &perf_conf.mode,
};

/* Lcores: one CPU each. Most measurements are between two ---------------------------------- */

/* A core list of two lcores, on the first two CPUs that this process may use. Return: out; NULL:
 * there is only one CPU. */
static const char *two_lcores(char *out, size_t size)
{
	cpu_set_t set;
	int found[2], count = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return NULL;
	for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			found[count++] = cpu;
	if (count < 2)
		return NULL;
	snprintf(out, size, "0@%d,1@%d", found[0], found[1]);
	return out;
}

/* Results name the CPU of each lcore. */
static int check_pinned(void)
{
	PLX_LCORE_FOREACH (id) {
		if (plx_lcore_cpu(id) == PLX_CPU_MAX)
			return plx_fail(EINVAL,
					"lcore %u is not pinned, and the kernel may move it while "
					"it is measured; give it one CPU with -l",
					id);
	}
	return 0;
}

int perf_second_lcore(uint32_t *id_out)
{
	const char *advice = perf_conf.mode == PERF_RING ? ", or --on one" : "";
	uint32_t home = plx_lcore_main();

	PLX_LCORE_FOREACH_WORKER (id) {
		if (plx_lcore_cpu(id) == plx_lcore_cpu(home))
			return plx_fail(
				EINVAL,
				"lcores %u and %u are both on CPU %u, where one waits while the "
				"other spins; give -l two CPUs%s",
				home, id, plx_lcore_cpu(id), advice);
		*id_out = id;
		return 0;
	}
	return plx_fail(EINVAL, "two lcores are needed, and there is one; give -l two CPUs%s",
			advice);
}

static int run(void)
{
	static int (*const modes[])(void) = {
		[PERF_RING] = perf_ring_run,
		[PERF_POOL] = perf_pool_run,
		[PERF_HOP] = perf_hop_run,
	};
	int rc = check_pinned() ?: modes[perf_conf.mode]();

	if (rc == 0)
		return 0;
	return rc == -EINVAL ? plx_app_fail_usage(&app) : plx_app_fail(&app);
}

int main(int argc, char **argv)
{
	char lcores[64];
	int status;

	eal.lcores = two_lcores(lcores, sizeof(lcores));
	status = plx_app_start(argc, argv, &app);
	return status == PLX_APP_RUN ? plx_app_finish(&app, run()) : status;
}
