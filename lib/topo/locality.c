/* SPDX-License-Identifier: BSD-3-Clause */
/* Locate devices: from sysfs for this host, from hwloc's I/O objects for another host. */
#include "topo_priv.h"

#include <hwloc.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A device of a whole host, or of a package with several nodes, has no node. */
static int node_of(hwloc_topology_t hwloc, const char *name)
{
	hwloc_obj_t device = NULL;

	while ((device = hwloc_get_next_osdev(hwloc, device))) {
		if (device->name && strcmp(device->name, name) == 0)
			break;
	}
	if (!device)
		return -ENODEV;
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(hwloc, device);

	if (!near || hwloc_bitmap_weight(near->nodeset) != 1)
		return -1;
	return hwloc_bitmap_first(near->nodeset);
}

static bool exists(const char *root, const char *folder, const char *name)
{
	char path[PATH_MAX];

	return (size_t)snprintf(path, sizeof(path), "%s%s/%s", root, folder, name) < sizeof(path) &&
	       access(path, F_OK) == 0;
}

int topo_kernel_node(const char *root, const char *name)
{
	struct plx_rdma_device rdma;

	if (!name[0] || name[0] == '.' || strchr(name, '/'))
		return -ENODEV;
	if (exists(root, "/sys/class/infiniband", name))
		return topo_rdma_read(root, name, &rdma) ? rdma.node : -1;
	if (exists(root, "/sys/class/net", name))
		return topo_read_node("%s/sys/class/net/%s/device", root, name);
	if (exists(root, "/sys/bus/pci/devices", name))
		return topo_read_node("%s/sys/bus/pci/devices/%s", root, name);
	return -ENODEV;
}

int plx_device_node(const char *name)
{
	return topo_kernel_node("", name);
}

int plx_topo_device_node(const struct plx_topo *topo, const char *name)
{
	return topo->this_host ? plx_device_node(name) : node_of(topo->hwloc, name);
}
