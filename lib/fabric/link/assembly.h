/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that come in parts. */
#ifndef FABRIC_ASSEMBLY_H
#define FABRIC_ASSEMBLY_H

#include "plx_mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct plx_fabric_lcore;
struct plx_link;

/* A message that comes in parts and is put together in memory of the heap. Zeroed: none. What has
 * come of all on an lcore is bounded by plx_fabric_conf.partial_bytes: at that bound the links of
 * messages that have stood still for a second end, and after 30 s those of all that stand still
 * although the peer may send. */
struct assembly {
	struct plx_buf *buf;   /* what has come of it, or a buffer that is kept for the next one */
	uint64_t total;        /* length of the message under way; 0: none */
	struct plx_link *link; /* NULL: it is in no list, and counts for nothing */
	uint64_t moved_ns;
	uint32_t charged; /* bytes that count */
	LIST_ENTRY(assembly) of_home;
};

int assembly_init(uint64_t partial_bytes);
void assembly_home_init(struct plx_fabric_lcore *home);

/* A message of total bytes begins; none may be under way. Return: 0; -ENOMEM. */
int assembly_begin(struct assembly *assembly, struct plx_link *link, uint64_t total);

/* The next part. Return: 0; -EPROTO it is longer than what is missing, or no message is under way;
 * -ENOMEM there is no room for it. */
int assembly_add(struct assembly *assembly, const void *data, uint32_t length);

static inline bool assembly_is_whole(const struct assembly *assembly)
{
	return assembly->total && assembly->buf->len == assembly->total;
}

/* The message was delivered: a user that keeps it has taken a reference to buf. The buffer is used
 * again if nobody has, and given back a tenth of a second later. */
void assembly_done(struct assembly *assembly);

/* Let go of what has come. Accepts a zeroed one. */
void assembly_drop(struct assembly *assembly);

#endif
