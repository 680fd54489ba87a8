/* SPDX-License-Identifier: BSD-3-Clause */
/* A push socket: its receivers, ordered by credit, and their unfinished messages.
 *
 *   push.c            receivers by credit, and messages, which go to the one with most
 *   push_socket.c     the socket, their connections, and messages of closed connections */
#ifndef NETIO_PUSH_PRIV_H
#define NETIO_PUSH_PRIV_H

#include "connection.h"

#define PUSH_CREDIT_MAX  255 /* a higher credit counts as this */
#define PUSH_SHORT_BYTES 512 /* with wire header: sent as copies, mostly without a completion */
#define PUSH_SHORT_COUNT 1024

/* A message, stored in the headroom of its buffer, which is kept while a resend is possible. */
struct push_message {
	STAILQ_ENTRY(push_message) link;
	struct plx_buf *buf; /* wire header and payload */
};

STAILQ_HEAD(push_list, push_message);

struct push_queue {
	struct push_list list;
	uint32_t count;
};

struct push_receiver {
	struct netio_connection connection; /* first; its socket is NULL: released */
	struct netio_push_receiver pub;
	struct netio_push_core *core;
	bool is_open; /* the link accepts messages; no new ones while it is closing */
	bool is_suspect;
	bool is_full;                /* no room on this side; writable follows */
	struct push_queue in_flight; /* sent and unfinished; oldest first */
	struct netio_push_receiver_stats stats;

	uint32_t place; /* 0: not in the index */
	TAILQ_ENTRY(push_receiver) peers;
};

TAILQ_HEAD(push_peers, push_receiver);

struct netio_push_core {
	struct hub hub; /* first; its connections are the receivers */
	enum netio_push_promise promise;

	/* Of open receivers. */
	uint32_t open, suspect, ending;
	uint64_t message_max; /* the longest copy that any of them accepts */

	/* Receivers by credit. Equal ones take turns. Suspect ones only if all are. */
	uint64_t used[(PUSH_CREDIT_MAX + 1) / 64]; /* bit n: at[n] is not empty */
	struct push_peers at[PUSH_CREDIT_MAX + 1];

	/* Unfinished messages of failed receivers; longer than any receiver accepts. */
	struct push_queue waiting, oversized;
	bool again_pending; /* AGAIN was returned; cb_buffers_available follows */

	struct plx_pool *pool; /* for short messages */
	struct netio_push_stats stats;
};

/* push.c ------------------------------------------------------------------------------------- */

/* Put the receiver into the index by its link's state. */
void push_place(struct push_receiver *receiver);
/* The receiver with most credit that accepts this length; NULL: none has credit. */
struct push_receiver *push_choose(struct netio_push_core *core, uint64_t length);

static inline void push_append(struct push_queue *queue, struct push_message *message)
{
	STAILQ_INSERT_TAIL(&queue->list, message, link);
	queue->count++;
}

static inline struct push_message *push_take_first(struct push_queue *queue)
{
	struct push_message *message = STAILQ_FIRST(&queue->list);

	STAILQ_REMOVE_HEAD(&queue->list, link);
	queue->count--;
	return message;
}

/* Move all of `from` to the end of `to`. */
static inline void push_append_all(struct push_queue *to, struct push_queue *from)
{
	STAILQ_CONCAT(&to->list, &from->list);
	to->count += from->count;
	from->count = 0;
}

void push_drop_all(struct push_queue *queue);
/* Send waiting messages to receivers with room. */
void push_send_waiting(struct netio_push_core *core);

/* Send nothing to it from now on; push_socket.c. */
void push_leave(struct push_receiver *receiver);

#endif
