/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a listening socket: its connections, and its queue if any. */
#ifndef NETIO_LISTENER_H
#define NETIO_LISTENER_H

#include "accept.h"
#include "point.h"
#include "queue.h"

/* The most closed connections with messages still in the queue. Each keeps its receive buffers
 * allocated. */
#define LISTENER_ENDED_MAX 64

struct netio_listener {
	struct acceptor acceptor; /* first */
	struct netio_listen_attr attr;
	struct queue *queue;       /* NULL: messages go to the callback */
	struct plx_poller *poller; /* retries messages that found the queue full */
	uint32_t holding;          /* connections with such messages */
	uint32_t ended;            /* of these, those without a link */

	/* For each closed connection with messages in the queue: the number of messages pushed by
	 * then. First in, first out. */
	uint64_t ended_at[LISTENER_ENDED_MAX];
	uint32_t ended_first, ended_count;
};

/* A connection. */
struct receiver {
	struct accepted accepted; /* first */
	struct netio_recv_socket pub;
	struct intake intake;
	bool queued; /* some of its messages are in the queue */
};

/* Connections; receiver.c. */
extern const struct acceptor_owner listener_owner;

/* Return whether one more connection may be accepted: a peer that repeatedly connects, sends and
 * closes must not take more memory each time. */
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
