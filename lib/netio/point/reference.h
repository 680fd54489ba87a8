/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that are sent from where they lie. */
#ifndef NETIO_REFERENCE_H
#define NETIO_REFERENCE_H

#include "netio_priv.h"

#define REFERENCE_PREFIX_MAX 8

/* Buffers for headers, and for views of the pieces; more come from the heap. Zeroed at first. */
struct references {
	struct plx_pool *heads, *views; /* NULL: nothing was sent by reference yet */
};

/* The header of a message, prefix_bytes of prefix, and behind it what iov shows. Its headroom is
 * the caller's until it is sent. Return: 0; -ENOMEM. */
int references_make(struct references *references, netio_tag_t tag, const void *prefix,
		    size_t prefix_bytes, const struct iovec *iov, size_t count,
		    struct plx_buf **message_out);

/* When all that can come back has. */
void references_fini(struct references *references);

#endif
