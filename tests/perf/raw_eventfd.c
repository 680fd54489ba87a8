/* SPDX-License-Identifier: BSD-3-Clause */
/* The round trip between two sleeping processes: each waits in epoll_wait for its eventfd, which
 * the other writes when a message is in shared memory. This is the cost of waking a process, and
 * the floor for every transport that supports sleeping. */
#include "raw_local.h"

const struct raw_program raw_program = {
	.provider = "memory",
	.idle = "event",
	.address_is_a_name = true,
	.fixed_size = RAW_LOCAL_SIZE,
	.serve = raw_local_serve,
	.ping = raw_local_ping,
};
