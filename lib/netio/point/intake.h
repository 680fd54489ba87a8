/* SPDX-License-Identifier: BSD-3-Clause */
/* What a link brings: messages by themselves, or many in a page. */
#ifndef NETIO_INTAKE_H
#define NETIO_INTAKE_H

#include "netio_priv.h"

/* A message of the link that arrived and is not all delivered. */
struct held {
	struct plx_buf *buf;
	const uint8_t *at; /* the next entry of a page; NULL: it is a message, or a page that was
			      not begun */
};

struct intake {
	/* Take a message. Return: whether there was room; else it is offered again. */
	bool (*give)(struct intake *intake, const struct netio_msg *msg);
	/* Messages that come next were not sent. NULL: that is a mistake of the peer's. */
	void (*miss)(struct intake *intake, uint64_t count, uint32_t reasons);
	uint64_t source;      /* as netio_msg.source */
	uint64_t message_max; /* the longest that may come */

	/* What there was no room for: first in first out, round the end of held_max. Of one whose
	 * give never fails: NULL and 0. */
	struct held *held;
	uint32_t held_first, held_count, held_max;
	uint32_t *holding; /* counts intakes that hold something */
};

/* Fill in what is left out of the buffers of each link, and check. Return: 0; -EINVAL. */
int intake_check_buffers(uint32_t *bytes, uint32_t *count);

/* Pages and messages alike come in one piece where they fit into a buffer. */
void intake_link_attr(uint32_t buffer_bytes, uint32_t buffer_count, uint64_t message_max,
		      struct plx_link_attr *attr_out);

/* Return: 0; -EAGAIN no room, and the rest is held; -EPROTO with *wrong_out, a constant text. */
int intake_take(struct intake *intake, struct plx_buf *message, const char **wrong_out);

/* Try again what was held. Return: how many messages of the link were finished; -EPROTO. */
int intake_go_on(struct intake *intake, const char **wrong_out);

/* Let go of what waits for room. */
void intake_drop(struct intake *intake);

#endif
