/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips over libfabric's shared memory, as a reference for two processes of one host. */
#include "raw_endpoint.h"

const struct raw_program raw_program = {
	.provider = "shm",
	.address_is_a_name = true,
	.kind = &raw_rdm,
	.serve = raw_trips_serve,
	.ping = raw_trips_ping,
};
