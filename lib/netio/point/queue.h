/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of a listening socket: its lcore puts messages in, one other thread takes them. */
#ifndef NETIO_QUEUE_H
#define NETIO_QUEUE_H

#include "netio_priv.h"
#include "plx_ring.h"

#include <stdalign.h>

struct queue {
	struct plx_ring *ring; /* of struct netio_msg */
	int eventfd;
	bool by_fd; /* the taker's: it polls the descriptor, so arm that if nothing is left */
	_Atomic bool waits; /* the taker does; the lcore takes that away, and wakes it */
	alignas(PLX_CACHE_LINE) uint64_t pushed; /* the lcore's */
	uint64_t told;                           /* the same as of the last queue_wake */
};

/* count: of messages. Return: 0; -ENOMEM; -EMFILE, ... */
int queue_create(uint32_t count, struct queue **queue_out);

/* Release the messages that are left. No thread may wait. Accepts NULL. */
void queue_destroy(struct queue *queue);

/* Return: whether there was room. Thread: the lcore. */
static inline bool queue_push(struct queue *queue, const struct netio_msg *msg)
{
	if (!plx_ring_push(queue->ring, msg))
		return false;
	queue->pushed++;
	return true;
}

/* Wake the taker after messages were pushed: once a turn, as it costs a locked instruction. Thread:
 * the lcore. */
void queue_wake(struct queue *queue);

static inline void queue_wake_if_pushed(struct queue *queue)
{
	if (plx_unlikely(queue->pushed != queue->told))
		queue_wake(queue);
}

/* Thread of what follows: the taker. Return: 0; -EAGAIN nothing is left. */
int queue_take(struct queue *queue, struct netio_msg *msg_out);

/* Return: 0; -ETIMEDOUT; -EINTR. */
int queue_take_wait(struct queue *queue, struct netio_msg *msg_out, uint64_t timeout_ns);

/* A descriptor that is readable until queue_take finds nothing, and when more is pushed. */
int queue_fd(struct queue *queue);

#endif
