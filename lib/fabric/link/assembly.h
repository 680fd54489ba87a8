/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that arrive in several frames. */
#ifndef FABRIC_ASSEMBLY_H
#define FABRIC_ASSEMBLY_H

#include "plx_mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct plx_fabric_lcore;
struct plx_link;

/* A message that arrives in several frames and is assembled in heap memory. Zeroed: none. The bytes
 * of all assemblies of an lcore are bounded by plx_fabric_conf.partial_bytes. At that bound, links
 * end whose messages have stalled for 1 s. A message that stalls for 30 s although the peer has
 * credit always ends its link. */
struct assembly {
	struct plx_buf *buf;   /* the bytes so far, or an empty buffer for the next message */
	uint64_t total;        /* length of the current message; 0: none */
	struct plx_link *link; /* NULL: in no list, not charged */
	uint64_t moved_ns;
	uint32_t charged; /* bytes charged to the lcore */
	LIST_ENTRY(assembly) of_home;
};

int assembly_init(uint64_t partial_bytes);
void assembly_home_init(struct plx_fabric_lcore *home);

/* Start a message of total bytes; none may be in progress. Return: 0; -ENOMEM. */
int assembly_begin(struct assembly *assembly, struct plx_link *link, uint64_t total);

/* Append a frame's payload. Return: 0; -EPROTO more bytes than the message has left, or no message
 * in progress; -ENOMEM no room. */
int assembly_add(struct assembly *assembly, const void *data, uint32_t length);

static inline bool assembly_is_whole(const struct assembly *assembly)
{
	return assembly->total && assembly->buf->len == assembly->total;
}

/* The message was delivered: a user that keeps it holds a reference to buf. An unshared buffer is
 * reused, or freed after 0.1 s. */
void assembly_done(struct assembly *assembly);

/* Discard the bytes so far. Accepts a zeroed assembly. */
void assembly_drop(struct assembly *assembly);

#endif
