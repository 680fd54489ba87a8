/* SPDX-License-Identifier: BSD-3-Clause */
/* What is behind a listening socket: its connections, and the queue if it has one. */
#ifndef NETIO_LISTENER_H
#define NETIO_LISTENER_H

#include "accept.h"
#include "point.h"
#include "queue.h"

/* Connections that have ended, and whose messages nobody has taken yet: each has the buffers that
 * they came in. */
#define LISTENER_ENDED_MAX 64

struct netio_listener {
	struct acceptor acceptor; /* first */
	struct netio_listen_attr attr;
	struct queue *queue;       /* NULL: messages go to the callback */
	struct plx_poller *poller; /* tries again what the queue had no room for */
	uint32_t holding;          /* connections with such */
	uint32_t ended;            /* of these, those without a link */

	/* Connections that have ended with messages in the queue, first in first out: how many the
	 * queue had had by then. */
	uint64_t ended_at[LISTENER_ENDED_MAX];
	uint32_t ended_first, ended_count;
};

/* One connection. */
struct receiver {
	struct accepted accepted; /* first */
	struct netio_recv_socket pub;
	struct intake intake;
	bool queued; /* some of its messages went into the queue */
};

/* Connections; receiver.c. */
extern const struct acceptor_owner listener_owner;

/* Whether one more connection may be taken: who connects, sends and goes, again and again, does not
 * take more memory each time. */
bool listener_has_room(struct acceptor *acceptor);

static inline struct receiver *receiver_of(struct netio_recv_socket *socket)
{
	return plx_container_of(socket, struct receiver, pub);
}

static inline struct netio_listener *receiver_listener(const struct receiver *receiver)
{
	return (struct netio_listener *)receiver->accepted.session.acceptor;
}

#endif
