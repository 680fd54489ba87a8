/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a listening socket: its connections, and its queue if any. */
#ifndef NETIO_LISTENER_H
#define NETIO_LISTENER_H

#include "accept.h"
#include "plx_ring.h"

#include <stdalign.h>

/* The most closed connections with queued messages that lie in their receive buffers. Of each
 * connection the first short messages are copied instead: many clients send little and leave. */
#define LISTENER_ENDED_MAX      64
#define LISTENER_COPIES_MAX     16
#define LISTENER_COPY_BYTES_MAX 4096

struct netio_listener {
	struct acceptor acceptor; /* first */
	struct netio_listen_attr attr;
	struct plx_link_attr link; /* sizes of its connections' links */
	struct queue *queue;       /* NULL: messages go to the callback */
	struct plx_poller *poller; /* wakes the thread that takes its messages */
	struct references references;
	uint32_t ended; /* connections without a link, whose messages find no room in it */

	/* For each closed connection with queued messages: how many were pushed by then. A FIFO. */
	uint64_t ended_at[LISTENER_ENDED_MAX];
	uint32_t ended_first, ended_count;
};

struct receiver {
	struct accepted accepted; /* first */
	struct netio_recv_socket pub;
	struct intake intake;
	bool queued;     /* some of its receive buffers are in the queue */
	unsigned copies; /* of its first messages */
};

static inline struct receiver *receiver_of(const struct netio_recv_socket *socket)
{
	return plx_container_of(socket, struct receiver, pub);
}

static inline struct netio_listener *receiver_listener(const struct receiver *receiver)
{
	return (struct netio_listener *)receiver->accepted.session.acceptor;
}

/* The queue: its lcore pushes messages, one other thread takes them; queue.c ------------------ */

struct queue {
	struct plx_ring *ring; /* of struct netio_msg */
	int eventfd;
	bool by_fd;         /* the taker polls the descriptor: arm it when the queue is empty */
	_Atomic bool waits; /* set by the taker; the lcore clears it and wakes the taker */
	alignas(PLX_CACHE_LINE) uint64_t pushed; /* owned by the lcore */
	uint64_t told;                           /* pushed at the last queue_wake */
};

/* count: messages. Return: 0; -ENOMEM; -EMFILE, ... */
int queue_create(uint32_t count, struct queue **queue_out);
/* Release the remaining messages. No thread may be waiting. Accepts NULL. */
void queue_destroy(struct queue *queue);

/* Return: whether there was room. Thread: the lcore. */
static inline bool queue_push(struct queue *queue, const struct netio_msg *msg)
{
	if (!plx_ring_push(queue->ring, msg))
		return false;
	queue->pushed++;
	return true;
}

/* Wake the taker after pushes, once a turn: it costs a locked instruction. Thread: the lcore. */
void queue_wake(struct queue *queue);

static inline void queue_wake_if_pushed(struct queue *queue)
{
	if (plx_unlikely(queue->pushed != queue->told))
		queue_wake(queue);
}

/* Return: 0; -EAGAIN empty. Thread of this and the following: the taker. */
int queue_take(struct queue *queue, struct netio_msg *msg_out);
/* Return: 0; -ETIMEDOUT; -EINTR. */
int queue_take_wait(struct queue *queue, struct netio_msg *msg_out, uint64_t timeout_ns);
/* A descriptor that is readable until queue_take finds nothing, and again after a push. */
int queue_fd(struct queue *queue);

#endif
