/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs, cores, nodes, and the kernel's settings for them. */
#include "info.h"

#include <stdlib.h>
#include <string.h>

#define CPUINFO_BYTES (64u << 10)

static void read_model(const char *root, char *out, size_t size)
{
	/* One CPU's paragraph is enough; on a large host the file is long. */
	char *text = malloc(CPUINFO_BYTES);
	char path[256];
	FILE *file;

	out[0] = '\0';
	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
	file = text ? fopen(path, "re") : NULL;
	if (file) {
		text[fread(text, 1, CPUINFO_BYTES - 1, file)] = '\0';
		fclose(file);
		info_find_value(text, "model name", false, out, size);
	}
	free(text);
}

/* The CPUs of a boot parameter; flags may precede them, as in isolcpus=managed_irq,1-3. */
static void cpus_of_parameter(const char *cmdline, const char *name, struct plx_cpuset *cpus_out)
{
	char value[256];

	memset(cpus_out, 0, sizeof(*cpus_out));
	if (!info_find_value(cmdline, name, true, value, sizeof(value)))
		return;
	info_parse_cpulist(value + strcspn(value, "0123456789"), cpus_out);
}

static void read_isolation(const char *root, struct info_cpus *cpus)
{
	char cmdline[4096], text[1024];

	info_read(cmdline, sizeof(cmdline), "%s/proc/cmdline", root);
	cpus_of_parameter(cmdline, "rcu_nocbs", &cpus->rcu_nocbs);
	if (!info_read(text, sizeof(text), "%s/sys/devices/system/cpu/isolated", root))
		cpus_of_parameter(cmdline, "isolcpus", &cpus->isolated);
	else
		info_parse_cpulist(text, &cpus->isolated);
	if (!info_read(text, sizeof(text), "%s/sys/devices/system/cpu/nohz_full", root))
		cpus_of_parameter(cmdline, "nohz_full", &cpus->nohz_full);
	else
		info_parse_cpulist(text, &cpus->nohz_full);
}

static void read_governors(const char *root, struct info_cpus *cpus)
{
	char governor[sizeof(cpus->governor)];

	cpus->governor[0] = '\0';
	PLX_CPUSET_FOREACH (cpu, &cpus->allowed) {
		if (!info_read(governor, sizeof(governor),
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
	PLX_CPUSET_FOREACH (cpu, &cpus->allowed) {
		if (is_first(topo, &cpus->allowed, cpu, plx_topo_cpu_core))
			plx_cpuset_add(&cpus->one_per_core, cpu);
	}
}

static void read_nodes(const char *root, const struct plx_topo *topo, struct info_cpus *cpus)
{
	char meminfo[8192];

	for (unsigned i = 0; i < plx_topo_node_count(topo) && i < INFO_NODES_MAX; i++) {
		struct info_node *node = &cpus->nodes[cpus->node_count++];

		node->id = plx_topo_node_id(topo, i);
		node->cpus = plx_topo_node_cpus(topo, node->id);
		/* "Node 0 MemTotal:  131889 kB" */
		info_read(meminfo, sizeof(meminfo), "%s/sys/devices/system/node/node%d/meminfo",
			  root, node->id);
		node->total_bytes = info_find_bytes(meminfo, "MemTotal");
		node->free_bytes = info_find_bytes(meminfo, "MemFree");
	}
}

void info_gather_cpus(const char *root, const struct plx_topo *topo, struct info_cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	cpus->online = *plx_topo_cpus(topo);
	cpus->allowed = *plx_topo_allowed(topo);
	read_model(root, cpus->model, sizeof(cpus->model));
	count_cores(topo, cpus);
	read_nodes(root, topo, cpus);
	read_isolation(root, cpus);
	read_governors(root, cpus);
	info_gather_claims(root, cpus);
}
