/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way messages over libfabric's shared memory, as a reference. */
#include "raw_endpoint.h"

const struct raw_program raw_program = {
	.provider = "shm",
	.choices = "window posted",
	.address_is_a_name = true,
	.kind = &raw_rdm,
	.serve = raw_stream_serve,
	.stream = raw_stream_send,
};
