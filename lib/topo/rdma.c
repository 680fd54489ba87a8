/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices from sysfs: Documentation/ABI/stable/sysfs-class-infiniband. */
#include "topo_priv.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS "/sys/class/infiniband"
#define NET   "/sys/class/net"
#define VERBS "/sys/class/infiniband_verbs"

/* Names in a folder, from scandir. */
struct names {
	struct dirent **entries;
	int count;
};

static int is_plain(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static struct names list_names(const char *root, const char *folder)
{
	char path[PATH_MAX];
	struct names names = {NULL, 0};

	if ((size_t)snprintf(path, sizeof(path), "%s%s", root, folder) < sizeof(path))
		names.count = scandir(path, &names.entries, is_plain, versionsort);
	return names.count < 0 ? (struct names){NULL, 0} : names;
}

static void free_names(struct names *names)
{
	for (int i = 0; i < names->count; i++)
		free(names->entries[i]);
	free(names->entries);
}

/* A name that does not fit cannot be a kernel name. */
static bool copy_name(char *out, size_t size, const char *name)
{
	size_t len = strlen(name);
	bool fits = len < size;

	memcpy(out, fits ? name : "", fits ? len + 1 : 1);
	return fits;
}

/* The first name in a folder whose `file` has that text. */
static bool find_name(const char *root, const char *folder, const char *file, const char *text,
		      char *out, size_t size)
{
	struct names names = list_names(root, folder);
	char content[PLX_RDMA_NAME_BYTES];
	bool found = false;

	for (int i = 0; i < names.count && !found; i++) {
		const char *name = names.entries[i]->d_name;

		plx_read_file(content, sizeof(content), "%s%s/%s/%s", root, folder, name, file);
		found = strcmp(content, text) == 0 && copy_name(out, size, name);
	}
	free_names(&names);
	return found;
}

/* The interface of a port ------------------------------------------------------------------ */

/* InfiniBand: IPoIB interfaces belong to the same PCI function; dev_port counts from 0. */
static bool netdev_of_function(const char *root, const char *device, struct plx_rdma_port *port)
{
	char folder[PLX_RDMA_NAME_BYTES + 64], number[16];

	snprintf(folder, sizeof(folder), CLASS "/%s/device/net", device);
	snprintf(number, sizeof(number), "%u", port->number - 1);
	return find_name(root, folder, "dev_port", number, port->netdev, sizeof(port->netdev));
}

/* iWARP: the GID is the interface's MAC address, padded with zeros: "02a1:b2c3:d4e5:...". */
static bool netdev_of_mac(const char *root, const char *device, struct plx_rdma_port *port)
{
	char gid[48], mac[18];

	plx_read_file(gid, sizeof(gid), "%s" CLASS "/%s/ports/%u/gids/0", root, device,
		      port->number);
	if (strlen(gid) < 14)
		return false;
	snprintf(mac, sizeof(mac), "%.2s:%.2s:%.2s:%.2s:%.2s:%.2s", gid, gid + 2, gid + 5, gid + 7,
		 gid + 10, gid + 12);
	return find_name(root, NET, "address", mac, port->netdev, sizeof(port->netdev));
}

static void find_netdev(const char *root, const struct plx_rdma_device *device,
			struct plx_rdma_port *port)
{
	const char *name = device->name;

	/* RoCE: each GID has an interface; use the first GID's. rxe reports it per device. */
	if (!plx_read_file(port->netdev, sizeof(port->netdev),
			   "%s" CLASS "/%s/ports/%u/gid_attrs/ndevs/0", root, name, port->number) &&
	    !plx_read_file(port->netdev, sizeof(port->netdev), "%s" CLASS "/%s/parent", root,
			   name) &&
	    !netdev_of_function(root, name, port) && device->transport == PLX_RDMA_IWARP)
		netdev_of_mac(root, name, port);
}

static void read_port(const char *root, const struct plx_rdma_device *device, const char *number,
		      struct plx_rdma_port *port)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s" CLASS "/%s/ports/%s", root, device->name, number);
	*port = (struct plx_rdma_port){.number = (unsigned)strtoul(number, NULL, 10)};
	plx_read_file(port->state, sizeof(port->state), "%s/state", folder);
	plx_read_file(port->phys_state, sizeof(port->phys_state), "%s/phys_state", folder);
	plx_read_file(port->link_layer, sizeof(port->link_layer), "%s/link_layer", folder);
	plx_read_file(port->rate, sizeof(port->rate), "%s/rate", folder);
	port->active = strstr(port->state, "ACTIVE") != NULL;
	port->speed_gbps = strtod(port->rate, NULL);
	find_netdev(root, device, port);
}

static void read_ports(const char *root, struct plx_rdma_device *device)
{
	char folder[PLX_RDMA_NAME_BYTES + 64];

	snprintf(folder, sizeof(folder), CLASS "/%s/ports", device->name);
	struct names names = list_names(root, folder);

	for (int i = 0; i < names.count && device->port_count < PLX_RDMA_PORTS_MAX; i++)
		read_port(root, device, names.entries[i]->d_name,
			  &device->ports[device->port_count++]);
	free_names(&names);
}

/* "1: CA", "4: RNIC"; the kernel's enum rdma_node_type. */
static enum plx_rdma_transport read_transport(const char *root, const char *name)
{
	static const enum plx_rdma_transport of_type[] = {
		[1] = PLX_RDMA_IB,    [2] = PLX_RDMA_IB,    [3] = PLX_RDMA_IB,
		[4] = PLX_RDMA_IWARP, [5] = PLX_RDMA_USNIC, [6] = PLX_RDMA_USNIC,
		[7] = PLX_RDMA_OWN,
	};
	char text[32];

	plx_read_file(text, sizeof(text), "%s" CLASS "/%s/node_type", root, name);
	unsigned long type = strtoul(text, NULL, 10);

	return type < PLX_ARRAY_LEN(of_type) ? of_type[type] : PLX_RDMA_UNKNOWN;
}

static int node_of(const char *root, const struct plx_rdma_device *device)
{
	int node = topo_read_node(root, CLASS, device->name, "/device");

	for (unsigned i = 0; i < device->port_count && node < 0; i++) {
		if (device->ports[i].netdev[0])
			node = topo_read_node(root, NET, device->ports[i].netdev, "/device");
	}
	return node;
}

bool topo_rdma_read(const char *root, const char *name, struct plx_rdma_device *device)
{
	*device = (struct plx_rdma_device){.node = -1};
	if (!copy_name(device->name, sizeof(device->name), name))
		return false;
	device->transport = read_transport(root, name);
	read_ports(root, device);
	find_name(root, VERBS, "ibdev", name, device->uverbs, sizeof(device->uverbs));
	device->node = node_of(root, device);
	return true;
}

unsigned plx_rdma_devices(const char *root, struct plx_rdma_device *devices, unsigned max)
{
	unsigned count = 0;

	root = root ? root : "";
	struct names names = list_names(root, CLASS);

	for (int i = 0; i < names.count; i++) {
		if (count >= max || topo_rdma_read(root, names.entries[i]->d_name, &devices[count]))
			count++;
	}
	free_names(&names);
	return count;
}

bool plx_rdma_is_active(const struct plx_rdma_device *device)
{
	for (unsigned i = 0; i < device->port_count; i++) {
		if (device->ports[i].active)
			return true;
	}
	return false;
}

const char *plx_rdma_transport_name(enum plx_rdma_transport transport)
{
	static const char *const names[] = {"unknown", "InfiniBand", "iWARP", "usNIC", "its own"};

	return (unsigned)transport < PLX_ARRAY_LEN(names) ? names[transport] : names[0];
}
