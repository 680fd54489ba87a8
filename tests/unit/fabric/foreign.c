/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's own TCP provider, so that links, sleep and direct data run over a provider that is
 * not Pollux's. For tests alone: its peers must be trusted, and a child inherits its sockets. */
#include "fixture.h"

extern const struct plx_fabric_driver plx_driver_shm;

static const struct plx_fabric_driver foreign_driver = {
	.name = "foreign",
	.summary = "libfabric's own TCP provider",
	.provider = "tcp",
	.direct = true,
	.tx_size = 256, /* both are the provider's defaults; it enforces only the second */
	.rx_size = 256,
	.cq_entries = 1024, /* beyond it they spill into a list and never overrun */
	.signal_every = 32, /* it queues without limit */
};

const struct plx_fabric_driver *const foreign_drivers[] = {
	&plx_driver_tcp,
	&plx_driver_shm,
	&foreign_driver,
	NULL,
};
