/* SPDX-License-Identifier: BSD-3-Clause */
/* What is behind a listening socket: its connections, and the queue if it has one. */
#ifndef NETIO_LISTENER_H
#define NETIO_LISTENER_H

#include "netio_priv.h"
#include "plx_ring.h"

struct receiver;

/* Connections that have ended, and whose messages nobody has taken yet: each has the buffers that
 * they came in. */
#define LISTENER_ENDED_MAX 64

struct netio_listener {
	struct netio_listen_socket *socket; /* NULL: gone */
	struct netio_eventloop *evloop;
	uintptr_t number;
	struct plx_listener *listener; /* NULL: does not listen */
	struct netio_listen_attr attr;
	uint64_t next_id;
	struct receiver *receivers;
	unsigned port;
	struct plx_ring *queue;    /* of struct netio_msg; NULL: they go to the callback */
	struct plx_poller *poller; /* tries again what the queue had no room for */
	uint32_t holding;          /* receivers with such */
	uint32_t ended;            /* of these, those without a link */

	/* Connections that have ended with messages in the queue, first in first out: how many the
	 * queue had had by then. */
	uint64_t queued;
	uint64_t ended_at[LISTENER_ENDED_MAX];
	uint32_t ended_first, ended_count;
	char provider[64];
	struct plx_log_limit log_limit;
	struct netio_listener *next, **prev_next; /* of the lcore's */
};

/* A message that arrived and is not all delivered: the queue is full. */
struct held {
	struct plx_buf *buf;
	const uint8_t *at; /* the next entry of a page; NULL: it is a message, or a page that was
			      not begun */
};

/* One connection. */
struct receiver {
	struct netio_recv_socket pub;
	struct plx_link *link; /* NULL: it has ended, and what it brought waits for the queue */
	struct netio_listener *listener;
	struct receiver *next, **prev_next;
	bool established;
	bool queued;         /* some of its messages went into the queue */
	bool finishing;      /* its end is being told */
	const char *failure; /* why this side ended it; constant text */
	struct plx_timer timer;
	uint64_t message_max; /* that the peer accepts */

	/* A message that comes in pieces. */
	struct plx_buf *partial; /* being put together; or one to use again */
	uint64_t partial_total;  /* 0: none */
	netio_tag_t partial_tag;
	bool partial_whole; /* it has come, and was not delivered yet */

	struct held *held; /* first in first out, round the end of held_max */
	uint32_t held_first, held_count, held_max;

	enum plx_link_reason reason; /* why the link has ended */
	char why[200];
	char peer[PLX_ADDRESS_MAX];
	char provider[64];
};

/* Take in what a link brought; receive.c. Return: 0; -EAGAIN the queue is full, and the rest is
 * held; -EPROTO with *wrong_out. */
int receiver_take(struct receiver *receiver, struct plx_buf *message, const char **wrong_out);

/* Try again what was held. Return: how many messages of the link were finished; -EPROTO. */
int receiver_go_on(struct receiver *receiver, const char **wrong_out);

/* Let go of what waits for the queue; of all that it holds. */
void receiver_drop_held(struct receiver *receiver);
void receiver_drop(struct receiver *receiver);

/* A connection; receiver.c. */
extern const struct plx_link_events receiver_events; /* with a listener's number as user */

/* This side ends it; the link tells when. why: constant text. */
void receiver_fail(struct receiver *receiver, const char *why);

/* Its last: tell of its end, and free it. Return: whether the listening socket is still there. */
bool receiver_finish(struct receiver *receiver);

/* Free it without a word. */
void receiver_destroy(struct receiver *receiver);

/* The listener of that number, of this lcore; NULL: its socket is gone. */
struct netio_listener *listener_find(uintptr_t number);

/* Whether one more connection may be taken: who connects, sends and goes, again and again, does not
 * take more memory each time. */
bool listener_has_room(struct netio_listener *listener);

/* Free a listener whose socket and connections are gone. */
void listener_free_if_done(struct netio_listener *listener);

/* All of a loop that ends. */
void listener_release_all(struct netio_eventloop *evloop);

/* Whether connections of sockets that are gone are still to be closed, on this lcore. */
bool listener_any_closing(void);

#endif
