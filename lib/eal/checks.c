/* SPDX-License-Identifier: BSD-3-Clause */
/* Check options against the topology and the lcores. */
#include "eal_priv.h"

#include <unistd.h>

#define MB (UINT64_C(1) << 20)

int eal_check_main_lcore(const struct plx_eal_conf *conf, const struct plx_lcore_map *map,
			 uint32_t *lcore_out)
{
	struct plx_cpuset ids = {0};
	char allowed[128];

	*lcore_out = map->places[0].lcore_id;
	if (!conf->main_lcore && !conf->origin[OPT_MAIN_LCORE])
		return 0;
	for (uint32_t i = 0; i < map->count; i++)
		plx_cpuset_add(&ids, map->places[i].lcore_id);
	if (!plx_cpuset_has(&ids, conf->main_lcore))
		return plx_fail(EINVAL,
				"%s %u: not one of the lcores (%s); give one of them, or add it to "
				"-l",
				eal_conf_origin(conf, OPT_MAIN_LCORE), conf->main_lcore,
				plx_cpuset_format(&ids, allowed, sizeof(allowed)));
	*lcore_out = conf->main_lcore;
	return 0;
}

static bool node_exists(const struct plx_topo *topo, unsigned node)
{
	for (unsigned i = 0; i < plx_topo_node_count(topo); i++)
		if (plx_topo_node_id(topo, i) == (int)node)
			return true;
	return false;
}

static uint64_t host_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int eal_check_memory(const struct plx_eal_conf *conf, const struct plx_topo *topo,
		     unsigned *count_out)
{
	const char *option = eal_conf_origin(conf, OPT_SOCKET_MEM);
	uint64_t total = 0;

	*count_out = 0;
	for (unsigned node = 0; node < PLX_EAL_NODES_MAX; node++) {
		if (!conf->node_bytes[node])
			continue;
		if (!node_exists(topo, node))
			return plx_fail(EINVAL,
					"%s: there is no NUMA node %u to take memory on; this host "
					"has %u, the first is node %d",
					option, node, plx_topo_node_count(topo),
					plx_topo_node_id(topo, 0));
		if (__builtin_add_overflow(total, conf->node_bytes[node], &total) ||
		    total > host_bytes())
			return plx_fail(EINVAL, "%s: more memory than this host has (%llu MB)",
					option, (unsigned long long)(host_bytes() / MB));
		*count_out = node + 1;
	}
	return 0;
}
