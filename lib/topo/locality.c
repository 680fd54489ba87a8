/* SPDX-License-Identifier: BSD-3-Clause */
/* Locate devices by small files of sysfs. */
#include "topo_priv.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel writes "-1" if the node is unknown. */
static int parse_node(const char *text)
{
	char *end;
	long node = strtol(text, &end, 10);

	return end != text && *end == '\0' && node >= 0 && node <= INT_MAX ? (int)node : -1;
}

int topo_read_node(const char *root, const char *folder, const char *name, const char *device)
{
	char text[16];

	plx_read_file(text, sizeof(text), "%s%s/%s%s/numa_node", root, folder, name, device);
	if (parse_node(text) < 0) /* a virtio device: its parent is the PCI device */
		plx_read_file(text, sizeof(text), "%s%s/%s%s/../numa_node", root, folder, name,
			      device);
	return parse_node(text);
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
		return topo_read_node(root, "/sys/class/net", name, "/device");
	if (exists(root, "/sys/bus/pci/devices", name))
		return topo_read_node(root, "/sys/bus/pci/devices", name, "");
	return -ENODEV;
}

int plx_device_node(const char *name)
{
	return topo_kernel_node("", name);
}
