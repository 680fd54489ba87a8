/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices: what the kernel has, and what user space can do with it. */
#include "info.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#define CLASS_DIR "/sys/class/infiniband"

static int by_number(const void *a, const void *b)
{
	const struct info_port *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct info_device *)a)->name, ((const struct info_device *)b)->name);
}

static void read_port(const char *root, const char *device, unsigned number, struct info_port *port)
{
	port->number = number;
	info_read(port->state, sizeof(port->state), "%s" CLASS_DIR "/%s/ports/%u/state", root,
		  device, number);
	info_read(port->link_layer, sizeof(port->link_layer),
		  "%s" CLASS_DIR "/%s/ports/%u/link_layer", root, device, number);
	info_read(port->rate, sizeof(port->rate), "%s" CLASS_DIR "/%s/ports/%u/rate", root, device,
		  number);
	port->active = strstr(port->state, "ACTIVE") != NULL;
}

static void read_ports(const char *root, struct info_device *device)
{
	DIR *ports = info_open_dir("%s" CLASS_DIR "/%s/ports", root, device->name);
	int number;

	while (device->port_count < INFO_PORTS_MAX && (number = info_next_number(ports)))
		read_port(root, device->name, (unsigned)number,
			  &device->ports[device->port_count++]);
	info_close_dir(ports);
	qsort(device->ports, device->port_count, sizeof(device->ports[0]), by_number);
}

static void read_device(const char *root, const char *name, struct info_device *device)
{
	char node[16];

	snprintf(device->name, sizeof(device->name), "%.63s", name);
	info_read(node, sizeof(node), "%s" CLASS_DIR "/%s/device/numa_node", root, name);
	device->node_id = node[0] ? (int)strtol(node, NULL, 10) : -1;
	read_ports(root, device);
}

void info_gather_rdma(const char *root, struct info_rdma *rdma)
{
	DIR *devices = info_open_dir("%s" CLASS_DIR, root);
	const char *name;

	memset(rdma, 0, sizeof(*rdma));
	while (rdma->device_count < INFO_DEVICES_MAX && (name = info_next_name(devices)))
		read_device(root, name, &rdma->devices[rdma->device_count++]);
	info_close_dir(devices);
	qsort(rdma->devices, rdma->device_count, sizeof(rdma->devices[0]), by_name);
}

void info_mark_usable(struct info_rdma *rdma)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; list && i < count; i++) {
		for (unsigned k = 0; k < rdma->device_count; k++) {
			if (strcmp(rdma->devices[k].name, ibv_get_device_name(list[i])) == 0)
				rdma->devices[k].usable = true;
		}
	}
	if (list)
		ibv_free_device_list(list);
}
