/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues, and the progress that a read makes: send queued bytes, check sockets. */
#ifndef TCP_CQ_H
#define TCP_CQ_H

#include "../prov/prov.h"

struct tcp_ep;
TAILQ_HEAD(tcp_eps, tcp_ep);

struct tcp_cq {
	struct prov_cq q;
	struct block *stage; /* receive buffer; NULL: there was no memory */
	/* Endpoints whose sockets are read each poll; only the epoll set watches the others. */
	struct tcp_eps hot;
	uint32_t hot_count;
	struct tcp_eps waiting; /* with bytes that were read but found no room in the queue */
	uint32_t polls;         /* modulo 2^32 */
};

extern const struct prov_cq_ops tcp_cq_ops;

/* poll.c ------------------------------------------------------------------------------------- */

void poll_sends(struct tcp_cq *cq);    /* first step of each read of the queue */
void poll_cq(struct tcp_cq *cq);       /* ... and the second, if the queue has too little */
bool poll_is_idle(struct prov_cq *cq); /* see struct prov_cq_ops */
int poll_begin(struct tcp_ep *ep);     /* connected: polled from now on; or -errno */
void poll_end(struct tcp_ep *ep);      /* closed or hung up: accepts one that is not polled */
void poll_heat(struct tcp_ep *ep);     /* read it each poll, from the next one on */
bool poll_blocked(
	struct tcp_ep *ep);        /* its socket has no room: whether the set reports when it has */
void poll_wait(struct tcp_ep *ep); /* it stalled: continue once there is a receive or room */

#endif
