/* SPDX-License-Identifier: BSD-3-Clause */
/* What the unbuffered and the buffered send socket share: a connection, and messages in pages that
 * wait for it. Their structures start with struct sender. */
#ifndef NETIO_SENDER_H
#define NETIO_SENDER_H

#include "connection.h"
#include "outbox.h"

struct sender {
	struct netio_connection connection; /* first */
	struct outbox outbox;
};

static inline void sender_open(struct sender *sender)
{
	outbox_open(&sender->outbox, sender->connection.session.link,
		    sender->connection.message_max);
}

static inline bool sender_settle(struct session_link *session)
{
	return outbox_close(&((struct sender *)session)->outbox);
}

static inline void sender_ended(struct plx_connector *session, const struct plx_link *link)
{
	outbox_link_ended(&((struct sender *)session)->outbox);
}

/* For outbox_owner. */
static inline void sender_sent(struct outbox *outbox)
{
	struct sender *sender = plx_container_of(outbox, struct sender, outbox);

	if (plx_unlikely(outbox_is_done(outbox)))
		session_link_settled(&sender->connection.session.base);
}

#endif
