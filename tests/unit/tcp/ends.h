/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a plx_tcp connection, with access to its internals. */
#ifndef TCP_TEST_ENDS_H
#define TCP_TEST_ENDS_H

#define TESTED tcp_kind

#include "prov/pair.h"
#include "tcp.h"

static struct side *const a = &pair.a, *const b = &pair.b; /* a connects, b accepts */

static inline struct tcp_ep *tcp_of(const struct side *side)
{
	return (struct tcp_ep *)side->ep;
}

/* The next completion of one of their queues, while the other end progresses too. */
static inline struct fi_cq_err_entry end_complete(struct fid_cq *cq)
{
	return cq_next(cq, cq == a->rx_cq || cq == a->tx_cq ? b->rx_cq : a->rx_cq);
}

/* Prepare to sleep on that queue, as often as needed. */
static inline void go_to_sleep(struct side *side, struct fid_cq *cq)
{
	wait_doing(trywait(side, cq) == 0, fi_cq_read(cq, NULL, 0));
}

#endif
