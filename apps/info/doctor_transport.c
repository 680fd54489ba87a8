/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether links work, and on which transport. */
#include "doctor_priv.h"

#include <rdma/fabric.h>

/* The default driver for links to other hosts. Drivers after it need hardware that a host may
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
