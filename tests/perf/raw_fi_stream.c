/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way messages over connected libfabric endpoints (FI_EP_MSG). */
#include "raw_endpoint.h"

const struct raw_program raw_program = {
	.provider = "tcp",
	.choices = "provider window posted",
	.kind = &raw_msg,
	.serve = raw_stream_serve,
	.stream = raw_stream_send,
};
