/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues, and what one read of them does: send what is queued, look at sockets. */
#ifndef TCP_CQ_H
#define TCP_CQ_H

#include "../prov/prov.h"

struct tcp_ep;
TAILQ_HEAD(tcp_eps, tcp_ep);

struct tcp_cq {
	struct prov_cq q;
	struct block *stage; /* what is received into; NULL: there was no memory */
	/* Endpoints whose sockets are read each poll; all others are in the epoll set alone. */
	struct tcp_eps hot;
	uint32_t hot_count;
	struct tcp_eps waiting; /* with bytes that were read, and found no room in the queue */
	uint32_t polls;         /* modulo 2^32 */
};

extern const struct prov_cq_ops tcp_cq_ops;

/* poll.c ------------------------------------------------------------------------------------- */

void poll_sends(struct tcp_cq *cq);    /* what each read of the queue does first */
void poll_cq(struct tcp_cq *cq);       /* ... and then, where too little is in it */
bool poll_is_idle(struct prov_cq *cq); /* see struct prov_cq_ops */
int poll_begin(struct tcp_ep *ep);     /* connected: from here on it is polled; or -errno */
void poll_end(struct tcp_ep *ep);      /* closed, or hung up: accepts one that is not polled */
void poll_heat(struct tcp_ep *ep);     /* read it each poll, from the next one on */
bool poll_blocked(
	struct tcp_ep *ep);        /* its socket has no room: whether the set tells when it has */
void poll_wait(struct tcp_ep *ep); /* it stalled: go on once there is a receive, or room */

#endif
