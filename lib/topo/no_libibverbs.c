/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of rdma_verbs.c, if libibverbs was missing when Pollux was built. */
#include "plx_topo.h"

int plx_rdma_probe(const struct plx_rdma_device *device, struct plx_rdma_details *details_out)
{
	return plx_fail(EOPNOTSUPP,
			"RDMA device %s: this build of Pollux cannot open it, because libibverbs "
			"was missing; install libibverbs-dev (Debian) or rdma-core-devel (Fedora), "
			"and build Pollux again",
			device->name);
}
