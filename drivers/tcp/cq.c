/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: reading, opening and closing. poll.c fills them. */
#include "tcp.h"

/* Hot path. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct tcp_cq *cq = (struct tcp_cq *)fid;

	cq_rewind(&cq->q);
	poll_sends(cq);
	if (cq->q.tail - cq->q.head < count || count == 0)
		poll_cq(cq);
	return cq_take(&cq->q, buf, count);
}

/* Opening and closing ---------------------------------------------------------------------- */

static struct block_pool *blocks_of(const struct prov_cq *cq)
{
	return &((struct tcp_domain *)cq->domain)->blocks;
}

/* The epoll descriptor finds ready sockets even if the queue has no wait object. */
static int init(struct prov_cq *base)
{
	struct tcp_cq *cq = (struct tcp_cq *)base;

	TAILQ_INIT(&cq->hot);
	TAILQ_INIT(&cq->waiting);
	cq->stage = block_get(blocks_of(base));
	if (!cq->stage)
		return -FI_ENOMEM;
	return base->wait.epoll_fd < 0 ? queue_open_wait(&base->wait, false) : 0;
}

static void fini(struct prov_cq *base)
{
	block_put(blocks_of(base), ((struct tcp_cq *)base)->stage);
}

const struct prov_cq_ops tcp_cq_ops = {
	.bytes = sizeof(struct tcp_cq),
	.calls = PROV_CQ_CALLS(cq_read),
	.init = init,
	.fini = fini,
	.is_idle = poll_is_idle,
};
