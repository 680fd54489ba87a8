/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices: whether they can be opened and reached, and from which nodes. */
#include "doctor_priv.h"

#include <string.h>

#define NAMES_BYTES 128

typedef bool device_test(const struct info_device *device);

/* The names of devices that pass, "mlx5_0, mlx5_1". Return: the first one; NULL: none. */
static const struct info_device *find_devices(const struct info_rdma *rdma, device_test *passes,
					      char names[NAMES_BYTES])
{
	const struct info_device *first = NULL;

	names[0] = '\0';
	for (unsigned i = 0; i < rdma->device_count; i++) {
		const struct info_device *device = &rdma->devices[i];

		if (!passes(device))
			continue;
		first = first ? first : device;
		info_add_word(names, NAMES_BYTES, ", ", device->seen.name);
	}
	return first;
}

/* Opening ---------------------------------------------------------------------------------- */

/* By the error of info_probe_device; the last one is for all others. */
static const struct {
	int error;
	const char *id, *seen, *command;
} hurdles[] = {
	{-ENXIO, "rdma-module", "the kernel module ib_uverbs is not loaded",
	 "sudo modprobe ib_uverbs   # at every boot: echo ib_uverbs | sudo tee "
	 "/etc/modules-load.d/rdma.conf"},
	{-ENOENT, "rdma-file", "there is no file for it in /dev/infiniband",
	 "sudo udevadm trigger --subsystem-match=infiniband_verbs   # for a container: "
	 "--device=/dev/infiniband"},
	{-EACCES, "rdma-permission", "this user may not open its file in /dev/infiniband",
	 "sudo chmod a+rw /dev/infiniband/uverbs*   # for good: KERNEL==\"uverbs*\", "
	 "MODE=\"0666\" in /etc/udev/rules.d/90-rdma.rules; or the file's group"},
	{-ENODEV, "rdma-driver", "there is no user-space driver for it",
	 "sudo apt-get install ibverbs-providers && ibv_devinfo"},
	{-EOPNOTSUPP, "rdma-build", "this build of Pollux has no RDMA, as libibverbs was missing",
	 "sudo apt-get install libibverbs-dev   # Fedora: rdma-core-devel; then build Pollux "
	 "again"},
	{0, "rdma-open", "it is there and cannot be opened",
	 "ibv_devinfo -v; sudo dmesg | tail   # what the kernel says of it"},
};

/* The index of what keeps user space from the device. */
static size_t hurdle_of(int error)
{
	size_t i = 0;

	while (i + 1 < PLX_ARRAY_LEN(hurdles) && hurdles[i].error != (error ? error : -ENODEV))
		i++;
	return i;
}

const char *info_hurdle(int error)
{
	return hurdles[hurdle_of(error)].seen;
}

static void check_open(struct report *report)
{
	const struct info_rdma *rdma = &report->info->rdma;

	for (size_t i = 0; i < PLX_ARRAY_LEN(hurdles); i++) {
		char names[NAMES_BYTES] = "";

		for (unsigned k = 0; k < rdma->device_count; k++)
			if (!rdma->devices[k].usable && hurdle_of(rdma->devices[k].error) == i)
				info_add_word(names, NAMES_BYTES, ", ", rdma->devices[k].seen.name);
		if (!names[0])
			continue;
		doctor_find(report, INFO_PROBLEM, hurdles[i].id,
			    "user space cannot use the device, and messages take the way over tcp",
			    hurdles[i].command, "RDMA device %s: %s", names, hurdles[i].seen);
	}
}

static void check_cm(struct report *report)
{
	const struct info_rdma *rdma = &report->info->rdma;
	bool closed = rdma->cm == INFO_FILE_CLOSED;

	if (rdma->device_count == 0 || rdma->cm == INFO_FILE_OPEN)
		return;
	doctor_find(report, INFO_PROBLEM, "rdma-cm",
		    "connections over RDMA devices are made through it: none can be, and messages "
		    "take the way over tcp",
		    closed ? "sudo chmod a+rw /dev/infiniband/rdma_cm   # for good: "
			     "KERNEL==\"rdma_cm\", MODE=\"0666\" in "
			     "/etc/udev/rules.d/90-rdma.rules"
			   : "sudo modprobe rdma_ucm   # at every boot: echo rdma_ucm | sudo tee "
			     "/etc/modules-load.d/rdma.conf; for a container: "
			     "--device=/dev/infiniband/rdma_cm",
		    "%s",
		    closed ? "this user may not open /dev/infiniband/rdma_cm"
			   : "there is no /dev/infiniband/rdma_cm, which the kernel module "
			     "rdma_ucm makes");
}

/* Reachability ----------------------------------------------------------------------------- */

static bool is_active(const struct info_device *device)
{
	return plx_rdma_is_active(&device->seen);
}

/* The remedy for an inactive port. States are those of the InfiniBand Architecture Specification
 * (PortInfo's PortState and PortPhysicalState), which the kernel uses for all transports. */
static void suggest_link(struct report *report, const char *name, const struct plx_rdma_port *port)
{
	bool is_ib = strcmp(port->link_layer, "InfiniBand") == 0;

	if (is_ib && (port->state[0] == '2' || port->state[0] == '3'))
		doctor_suggest(
			report,
			"sudo systemctl start opensm   # on one host of the network: port %u "
			"of %s has a link, and waits for a subnet manager",
			port->number, name);
	else if (port->phys_state[0] == '3' && port->netdev[0])
		doctor_suggest(report, "sudo ip link set %s up   # port %u is switched off",
			       port->netdev, port->number);
	else if (port->phys_state[0] == '2')
		doctor_suggest(report,
			       "ibv_devinfo -d %s   # port %u sees no other end: the cable, or the "
			       "switch's port",
			       name, port->number);
	else
		doctor_suggest(report,
			       "ibv_devinfo -d %s   # then: ip link set %s up, or the cable", name,
			       port->netdev[0] ? port->netdev : "DEV");
}

static void report_port(struct report *report, const struct plx_rdma_device *device,
			enum info_severity severity)
{
	const struct plx_rdma_port *port = &device->ports[0];
	char seen[96] = "";

	if (port->state[0])
		snprintf(seen, sizeof(seen), " (port %u: %s, %s)", port->number,
			 info_state_word(port->state), info_state_word(port->phys_state));
	doctor_find(report, severity, "rdma-port", "the device is there and cannot be reached",
		    NULL, "no port of %s is active%s", device->name, seen);
	suggest_link(report, device->name, port);
}

/* An unconnected port next to a connected one may be intended. */
static void check_ports(struct report *report)
{
	const struct info_rdma *rdma = &report->info->rdma;
	char names[NAMES_BYTES];
	bool other = find_devices(rdma, is_active, names) != NULL;

	for (unsigned i = 0; i < rdma->device_count; i++)
		if (!is_active(&rdma->devices[i]))
			report_port(report, &rdma->devices[i].seen,
				    other ? INFO_NOTE : INFO_ADVICE);
}

static bool lacks_address(const struct info_device *device)
{
	return is_active(device) && !device->has_address && device->seen.transport != PLX_RDMA_OWN;
}

static bool has_address(const struct info_device *device)
{
	return device->has_address;
}

static const char *first_netdev(const struct info_device *device)
{
	for (unsigned i = 0; i < device->seen.port_count; i++)
		if (device->seen.ports[i].active && device->seen.ports[i].netdev[0])
			return device->seen.ports[i].netdev;
	return NULL;
}

static void check_address(struct report *report)
{
	const struct info_rdma *rdma = &report->info->rdma;
	char names[NAMES_BYTES];
	bool other = find_devices(rdma, has_address, names) != NULL;
	const struct info_device *first = find_devices(rdma, lacks_address, names);
	const char *netdev = first ? first_netdev(first) : NULL;

	if (!first)
		return;
	doctor_find(report, other ? INFO_NOTE : INFO_ADVICE, "rdma-address",
		    "connections find a device by the IP address of its network interface: without "
		    "one no link is made over it",
		    "sudo modprobe ib_ipoib   # then: ip addr add ADDRESS/24 dev ib0",
		    "RDMA device %s: its interface%s%s has no IP address, link-local ones aside",
		    names, netdev ? " " : "", netdev ? netdev : "");
	if (netdev)
		doctor_suggest(report, "sudo ip addr add ADDRESS/24 dev %s", netdev);
}

/* Locality --------------------------------------------------------------------------------- */

/* The CPUs of a node that this process may use. */
static struct plx_cpuset allowed_on(const struct info_cpus *cpus, int node_id,
				    struct plx_cpuset *online_out)
{
	*online_out = (struct plx_cpuset){0};
	for (unsigned i = 0; i < cpus->node_count; i++)
		if (cpus->nodes[i].id == node_id)
			*online_out = cpus->nodes[i].cpus;
	return plx_cpuset_and(online_out, &cpus->allowed);
}

/* The first active device with a known node; NULL if an allowed CPU is on any such node. */
static const struct info_device *find_apart(const struct info *info, struct plx_cpuset *there_out)
{
	const struct info_device *apart = NULL;

	for (unsigned i = 0; i < info->rdma.device_count; i++) {
		const struct info_device *device = &info->rdma.devices[i];
		struct plx_cpuset there, allowed;

		if (!is_active(device) || device->seen.node < 0)
			continue;
		allowed = allowed_on(&info->cpus, device->seen.node, &there);
		if (plx_cpuset_count(&allowed))
			return NULL;
		if (!apart) {
			apart = device;
			*there_out = there;
		}
	}
	return apart;
}

static void check_node(struct report *report)
{
	struct plx_cpuset there;
	char allowed[LIST_BYTES], list[LIST_BYTES];
	const struct info_device *device = find_apart(report->info, &there);

	if (!device || report->info->cpus.node_count < 2)
		return;
	plx_cpuset_format(&there, list, sizeof(list));
	doctor_find(
		report, INFO_ADVICE, "rdma-node",
		"lcores here reach the device, and it their memory, through the link between "
		"the nodes: every message waits for that",
		NULL,
		"RDMA device %s is on NUMA node %d (CPUs %s), and none of the allowed CPUs (%s) "
		"is",
		device->seen.name, device->seen.node, list,
		plx_cpuset_format(&report->info->cpus.allowed, allowed, sizeof(allowed)));
	if (plx_cpuset_count(&there))
		doctor_suggest(report, "taskset -c %s plx-info   # or widen the cgroup's cpuset",
			       list);
}

void doctor_check_rdma(struct report *report)
{
	check_open(report);
	check_cm(report);
	check_ports(report);
	check_address(report);
	check_node(report);
}
