/* SPDX-License-Identifier: BSD-3-Clause */
/* A link that says what a test likes, at either end of a socket. */
#ifndef NETIO_RAW_LINK_H
#define NETIO_RAW_LINK_H

#include "plx_fabric.h"

static struct plx_link *raw; /* NULL: not open */
static unsigned raw_closed, raw_messages;
static bool raw_echoes;

static inline void raw_open(struct plx_link *link, void *user)
{
	raw = link;
}

static inline void raw_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	raw_messages++;
	if (raw_echoes)
		plx_link_send(link, message->data, message->len);
}

static inline void raw_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			     void *user)
{
	raw_closed++;
	raw = NULL;
}

static const struct plx_link_events raw_events = {
	.on_open = raw_open,
	.on_message = raw_message,
	.on_close = raw_close,
};

#endif
