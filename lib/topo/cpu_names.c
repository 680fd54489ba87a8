/* SPDX-License-Identifier: BSD-3-Clause */
/* Names for CPUs in a core list: "all", "node:1", "near:eth0". */
#include "topo_priv.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_BYTES 64

/* Position of the name, for errors. */
struct place {
	const struct topo_given *given;
	const char *at;
	const struct plx_topo *topo;
};

/* The allowed CPUs of the node. */
static int node_cpus(const struct place *place, int node, struct plx_cpuset *cpus_out)
{
	const struct plx_cpuset *allowed = plx_topo_allowed(place->topo);
	struct plx_cpuset all = plx_topo_node_cpus(place->topo, node);
	char list[128], allowed_list[128];

	*cpus_out = topo_cpuset_and(&all, allowed);
	if (plx_cpuset_count(cpus_out))
		return 1;
	return topo_fail_at(
		place->given, place->at,
		"there is no CPU on NUMA node %d that this process may use (CPUs there: "
		"%s; allowed: %s); take another node, or widen the cpuset",
		node, plx_cpuset_format(&all, list, sizeof(list)),
		plx_cpuset_format(allowed, allowed_list, sizeof(allowed_list)));
}

static int parse_node(const struct place *place, const char **at, struct plx_cpuset *cpus_out)
{
	size_t digits = strspn(*at, "0123456789");
	unsigned long node = strtoul(*at, NULL, 10); /* ULONG_MAX on overflow */

	if (!digits)
		return topo_fail_expected(place->given, *at, "the number of a NUMA node",
					  "as in node:0");
	*at += digits;
	return node_cpus(place, node < INT_MAX ? (int)node : INT_MAX, cpus_out);
}

static int parse_near(const struct place *place, const char **at, struct plx_cpuset *cpus_out)
{
	const char *device = *at;
	size_t len = strcspn(device, ",()@ \t\n\v\f\r");
	char name[DEVICE_BYTES];
	int node = -ENODEV;

	if (!len)
		return topo_fail_expected(place->given, device, "a device",
					  "as in near:eth0, near:mlx5_0 or near:0000:3b:00.0");
	*at += len;
	if (len < sizeof(name)) {
		memcpy(name, device, len);
		name[len] = '\0';
		node = plx_topo_device_node(place->topo, name);
	}
	if (node == -ENODEV)
		return topo_fail_at(place->given, device,
				    "there is no such device; give a network interface, an RDMA "
				    "device, or a PCI address with its domain, as in 0000:3b:00.0");
	if (node < 0 && plx_topo_node_count(place->topo) == 1)
		node = plx_topo_node_id(place->topo, 0);
	if (node >= 0)
		return node_cpus(place, node, cpus_out);
	return topo_fail_at(place->given, device,
			    "the system does not know which NUMA node the device is near; give "
			    "node:N, or CPUs");
}

int topo_parse_cpu_name(const struct topo_given *given, const char **at,
			const struct plx_topo *topo, struct plx_cpuset *cpus_out)
{
	const struct place place = {given, *at, topo};

	if (strncmp(*at, "all", 3) == 0) {
		*at += 3;
		*cpus_out = *plx_topo_allowed(topo);
		return 1;
	}
	if (strncmp(*at, "node:", 5) == 0) {
		*at += 5;
		return parse_node(&place, at, cpus_out);
	}
	if (strncmp(*at, "near:", 5) == 0) {
		*at += 5;
		return parse_near(&place, at, cpus_out);
	}
	return 0;
}
