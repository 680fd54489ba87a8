/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices: what the kernel has, what user space can use, and at which addresses. */
#include "info.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

static enum info_file look_at(const char *root, const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	if (access(whole, R_OK | W_OK) == 0)
		return INFO_FILE_OPEN;
	return access(whole, F_OK) == 0 ? INFO_FILE_CLOSED : INFO_FILE_MISSING;
}

void info_gather_rdma(const char *root, struct info_rdma *rdma)
{
	struct plx_rdma_device devices[INFO_DEVICES_MAX];

	memset(rdma, 0, sizeof(*rdma));
	rdma->device_total = plx_rdma_devices(root, devices, INFO_DEVICES_MAX);
	rdma->device_count = rdma->device_total < INFO_DEVICES_MAX ? rdma->device_total
								   : INFO_DEVICES_MAX;
	for (unsigned i = 0; i < rdma->device_count; i++)
		rdma->devices[i].seen = devices[i];
	rdma->cm = look_at(root, "/dev/infiniband/rdma_cm");
}

static void probe_device(struct info_device *device)
{
	device->error = info_probe_device(&device->seen, &device->details);
	device->usable = device->error == 0;
	device->unusable = device->usable ? NULL : info_hurdle(device->error);
}

void info_probe_rdma(struct info_rdma *rdma)
{
	struct ifaddrs *list;

	for (unsigned i = 0; i < rdma->device_count; i++)
		probe_device(&rdma->devices[i]);
	if (rdma->device_count == 0 || getifaddrs(&list) != 0)
		return;
	info_take_addresses(list, rdma);
	freeifaddrs(list);
}

/* Addresses -------------------------------------------------------------------------------- */

/* The port's interface, and those on top of it (VLANs, bonds) that have GIDs. */
static bool is_of_port(const struct info_device *device, unsigned i, const char *netdev)
{
	const struct plx_rdma_port *port = &device->seen.ports[i];

	if (strcmp(port->netdev, netdev) == 0)
		return true;
	for (unsigned k = 0; k < device->details.gid_count; k++) {
		const struct info_gid *gid = &device->details.gids[k];

		if (gid->port == port->number && strcmp(gid->netdev, netdev) == 0)
			return true;
	}
	return false;
}

/* Return: whether it is an IP address; link_local: it is not reachable from other networks. */
static bool address_text(const struct sockaddr *address, char *out, size_t size,
			 bool *link_local_out)
{
	const struct sockaddr_in *four = (const void *)address;
	const struct sockaddr_in6 *six = (const void *)address;

	*link_local_out = false;
	if (address && address->sa_family == AF_INET)
		return inet_ntop(AF_INET, &four->sin_addr, out, (socklen_t)size) != NULL;
	if (!address || address->sa_family != AF_INET6)
		return false;
	*link_local_out = IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
	return inet_ntop(AF_INET6, &six->sin6_addr, out, (socklen_t)size) != NULL;
}

static void add_address(const struct ifaddrs *entry, struct info_device *device)
{
	char text[INET6_ADDRSTRLEN];
	bool link_local;

	if (!address_text(entry->ifa_addr, text, sizeof(text), &link_local))
		return;
	for (unsigned i = 0; i < device->seen.port_count; i++) {
		if (!is_of_port(device, i, entry->ifa_name))
			continue;
		info_add_word(device->ports[i].addresses, sizeof(device->ports[i].addresses), " ",
			      text);
		device->has_address |= device->seen.ports[i].active && !link_local &&
				       (entry->ifa_flags & IFF_UP);
	}
}

void info_take_addresses(const struct ifaddrs *list, struct info_rdma *rdma)
{
	for (; list; list = list->ifa_next)
		for (unsigned i = 0; i < rdma->device_count; i++)
			add_address(list, &rdma->devices[i]);
}
