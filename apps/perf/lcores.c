/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcores: one CPU each. Most measurements are between two. */
#include "perf.h"
#include "plx_lcore.h"

#include <sched.h>
#include <string.h>

/* Whether a word is an EAL option that selects lcores, or might be. */
static bool chooses_lcores(const char *word)
{
	int i = plx_option_find(plx_eal_options, word);
	const char *name = i < 0 ? "" : plx_eal_options[i].name;

	return strcmp(name, "lcores") == 0 || strcmp(name, "coremask") == 0 ||
	       strcmp(name, "config") == 0;
}

const char *perf_two_lcores(char *out, size_t size)
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

bool perf_lcores_chosen(int count, char **words)
{
	for (int i = 0; i < count; i++)
		if (chooses_lcores(words[i]))
			return true;
	return false;
}

int perf_check_pinned(void)
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

int perf_second_lcore(const struct perf_conf *conf, uint32_t *id_out)
{
	const char *advice = conf->mode == PERF_RING ? ", or --on one" : "";
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
