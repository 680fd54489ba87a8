/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes that only share memory: the cost of a message without any transport. The server
 * creates the memory and an eventfd for each side, and passes them over a UNIX socket; nothing has
 * a name in a file system. */
#ifndef RAW_LOCAL_H
#define RAW_LOCAL_H

#include "raw_common.h"

#define RAW_LOCAL_BYTES ((size_t)256 << 10)
#define RAW_LOCAL_SIZE  64         /* of every message */
#define RAW_LOCAL_END   UINT64_MAX /* number of the message that ends the server */

struct raw_local {
	int socket;
	int memory;
	int own_event, peer_event;
	uint8_t *shared; /* RAW_LOCAL_BYTES, touched and initially zero */
};

/* Return: 0; -errno. Close it in either case. */
int raw_local_listen(const struct raw_options *options, struct raw_local *local);
int raw_local_connect(const struct raw_options *options, struct raw_local *local);
void raw_local_close(struct raw_local *local);

#endif
