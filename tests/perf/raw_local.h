/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes that share a piece of memory and nothing else: what a message between them costs
 * before there is any transport. The server makes the memory and an eventfd for each side, and
 * hands them over on a UNIX socket; nothing of it has a name in a file system. */
#ifndef RAW_LOCAL_H
#define RAW_LOCAL_H

#include "raw_common.h"

#define RAW_LOCAL_BYTES ((size_t)256 << 10)
#define RAW_LOCAL_SIZE  64         /* of every message */
#define RAW_LOCAL_END   UINT64_MAX /* number of a message that ends the server */

struct raw_local {
	int socket;
	int memory;
	int own_event, peer_event;
	uint8_t *shared; /* RAW_LOCAL_BYTES, touched and zero at first */
};

/* Return: 0; -errno. Close it in any case. */
int raw_local_listen(const struct raw_options *options, struct raw_local *local);
int raw_local_connect(const struct raw_options *options, struct raw_local *local);
void raw_local_close(struct raw_local *local);

#endif
