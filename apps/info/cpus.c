/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs, cores, nodes, and the kernel's settings for them. */
#include "info.h"

#include <string.h>

static void read_isolation(const char *root, struct info_cpus *cpus)
{
	char text[4096], list[256];

	plx_read_file(text, sizeof(text), "%s/sys/devices/system/cpu/isolated", root);
	info_parse_cpulist(text, &cpus->isolated);
	plx_read_file(text, sizeof(text), "%s/sys/devices/system/cpu/nohz_full", root);
	info_parse_cpulist(text, &cpus->nohz_full);
	plx_read_file(text, sizeof(text), "%s/proc/cmdline", root);
	if (info_find_value(text, "rcu_nocbs", true, list, sizeof(list)))
		info_parse_cpulist(list, &cpus->rcu_nocbs);
}

static void read_governors(const char *root, struct info_cpus *cpus)
{
	char governor[sizeof(cpus->governor)];

	PLX_CPUSET_FOREACH (cpu, &cpus->allowed) {
		if (!plx_read_file(governor, sizeof(governor),
				   "%s/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", root,
				   cpu))
			continue;
		if (strcmp(governor, "performance") != 0)
			plx_cpuset_add(&cpus->not_governed, cpu);
		if (cpus->governor[0] && strcmp(cpus->governor, governor) != 0)
			snprintf(cpus->governor, sizeof(cpus->governor), "mixed");
		else if (!cpus->governor[0])
			memcpy(cpus->governor, governor, sizeof(governor));
	}
}

/* Distinct cores or packages are counted by their first CPU. */
static bool is_first(const struct plx_topo *topo, const struct plx_cpuset *among, unsigned cpu,
		     int (*group)(const struct plx_topo *, unsigned))
{
	PLX_CPUSET_FOREACH (other, among) {
		if (other >= cpu)
			return true;
		if (group(topo, other) == group(topo, cpu))
			return false;
	}
	return true;
}

static void count_cores(const struct plx_topo *topo, struct info_cpus *cpus)
{
	PLX_CPUSET_FOREACH (cpu, &cpus->online) {
		cpus->core_count += is_first(topo, &cpus->online, cpu, plx_topo_cpu_core);
		cpus->package_count += is_first(topo, &cpus->online, cpu, plx_topo_cpu_package);
	}
	PLX_CPUSET_FOREACH (cpu, &cpus->allowed)
		if (is_first(topo, &cpus->allowed, cpu, plx_topo_cpu_core))
			plx_cpuset_add(&cpus->one_per_core, cpu);
}

static void read_nodes(const char *root, const struct plx_topo *topo, struct info_cpus *cpus)
{
	char meminfo[8192];

	for (unsigned i = 0; i < plx_topo_node_count(topo) && i < INFO_NODES_MAX; i++) {
		struct info_node *node = &cpus->nodes[cpus->node_count++];

		node->id = plx_topo_node_id(topo, i);
		node->cpus = plx_topo_node_cpus(topo, node->id);
		/* "Node 0 MemTotal:  131889 kB" */
		plx_read_file(meminfo, sizeof(meminfo), "%s/sys/devices/system/node/node%d/meminfo",
			      root, node->id);
		node->total_bytes = info_find_bytes(meminfo, "MemTotal");
		node->free_bytes = info_find_bytes(meminfo, "MemFree");
	}
}

void info_gather_cpus(const char *root, const struct plx_topo *topo, struct info_cpus *cpus)
{
	char text[4096]; /* the first CPU's paragraph */

	memset(cpus, 0, sizeof(*cpus));
	cpus->online = *plx_topo_cpus(topo);
	cpus->allowed = *plx_topo_allowed(topo);
	plx_read_file(text, sizeof(text), "%s/proc/cpuinfo", root);
	info_find_value(text, "model name", false, cpus->model, sizeof(cpus->model));
	count_cores(topo, cpus);
	read_nodes(root, topo, cpus);
	read_isolation(root, cpus);
	read_governors(root, cpus);
	info_gather_claims(root, cpus);
}
