/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces libibverbs.c if Pollux was built without libibverbs. */
#include "info.h"

int info_probe_device(const struct plx_rdma_device *device, struct info_details *details_out)
{
	return plx_fail(EOPNOTSUPP,
			"RDMA device %s: this build of Pollux cannot open it, because libibverbs "
			"was missing; install libibverbs-dev (Debian) or rdma-core-devel (Fedora), "
			"and build Pollux again",
			device->name);
}
