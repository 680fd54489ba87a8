/* SPDX-License-Identifier: BSD-3-Clause */
/* The round trip of a bare cache line between two processes that spin on it. No message between
 * their two CPUs can be faster. */
#include "raw_local.h"

const struct raw_program raw_program = {
	.provider = "memory",
	.address_is_a_name = true,
	.fixed_size = RAW_LOCAL_SIZE,
	.serve = raw_local_serve,
	.ping = raw_local_ping,
};
