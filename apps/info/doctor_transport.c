/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether links can be made, and over what. */
#include "doctor_priv.h"

#include <rdma/fabric.h>

/* What links to other hosts run on by default. Drivers behind it need hardware that a host may
 * lack. */
static const struct info_driver *default_driver(const struct info_fabric *fabric)
{
	for (unsigned i = 0; i < fabric->driver_count; i++) {
		if (!fabric->drivers[i].same_host)
			return &fabric->drivers[i];
	}
	return NULL;
}

void doctor_check_drivers(struct report *report)
{
	const struct info_fabric *fabric = &report->info->fabric;
	const struct info_driver *driver = default_driver(fabric);

	if (!driver || driver->available)
		return;
	doctor_find(
		report, INFO_PROBLEM, "no-provider",
		"no program starts without --provider naming another driver, such as shm, which "
		"reaches this host alone",
		"driver %s: libfabric %u.%u has no connected endpoints with provider '%s' here",
		driver->name, FI_MAJOR(fabric->version), FI_MINOR(fabric->version),
		driver->provider);
	doctor_suggest(report,
		       "fi_info -l   # is it there? and is FI_PROVIDER set in the environment?");
}

static bool has_active_port(const struct info_device *device)
{
	for (unsigned i = 0; i < device->port_count; i++) {
		if (device->ports[i].active)
			return true;
	}
	return false;
}

static void check_device(struct report *report, const struct info_device *device)
{
	if (!device->usable) {
		doctor_find(report, INFO_PROBLEM, "rdma-driver",
			    "without it the device cannot be used, and messages take the way over "
			    "tcp",
			    "RDMA device %s has no user-space driver, or /dev/infiniband is closed",
			    device->name);
		doctor_suggest(report, "sudo apt-get install ibverbs-providers && ibv_devinfo");
	}
	if (!has_active_port(device)) {
		doctor_find(report, INFO_ADVICE, "rdma-port",
			    "the device is there and cannot be reached", "no port of %s is active",
			    device->name);
		doctor_suggest(report,
			       "ibv_devinfo -d %s   # then: ip link set DEV up, or the cable",
			       device->name);
	}
}

void doctor_check_rdma(struct report *report)
{
	const struct info_rdma *rdma = &report->info->rdma;

	for (unsigned i = 0; i < rdma->device_count; i++)
		check_device(report, &rdma->devices[i]);
}
