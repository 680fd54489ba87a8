/* SPDX-License-Identifier: BSD-3-Clause */
/* Where devices are, by hwloc's I/O objects and by the kernel's files. */
#include "topo_priv.h"

#include <hwloc.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Devices as the system names them, without the PCI tree, whose walk takes ten times as long as all
 * the rest and tells the same, and without the libraries of GPUs, which would be started for it. */
static void set_device_scope(hwloc_topology_t hwloc)
{
	static const char *const left_out[] = {"x86",  "opencl", "cuda",     "nvml",
					       "rsmi", "gl",     "levelzero"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(left_out); i++)
		hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      left_out[i]);
	hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_OS_DEVICE,
				       HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
}

/* NULL: hwloc cannot. */
static hwloc_topology_t load_devices(void)
{
	hwloc_topology_t hwloc;

	if (hwloc_topology_init(&hwloc))
		return NULL;
	set_device_scope(hwloc);
	if (hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
	    hwloc_topology_load(hwloc) == 0)
		return hwloc;
	hwloc_topology_destroy(hwloc);
	return NULL;
}

/* A device of a package with several nodes, or of the whole host, is of none. */
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
	hwloc_topology_t hwloc;
	int node, of_kernel;

	if (!topo->this_host)
		return node_of(topo->hwloc, name);
	hwloc = load_devices();
	node = hwloc ? node_of(hwloc, name) : -ENODEV;
	if (hwloc)
		hwloc_topology_destroy(hwloc);
	if (node >= 0)
		return node;
	of_kernel = plx_device_node(name);
	return of_kernel == -ENODEV ? node : of_kernel;
}
