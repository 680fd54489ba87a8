/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips over connected libfabric endpoints (FI_EP_MSG). */
#include "raw_endpoint.h"

const struct raw_program raw_program = {
	.provider = "tcp",
	.choices = "provider idle cq",
	.kind = &raw_msg,
	.serve = raw_trips_serve,
	.ping = raw_trips_ping,
};
