/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: how they are read, opened and closed. What fills them is poll.c. */
#include "tcp.h"

#include <stdlib.h>

static struct tcp_cq *cq_of(struct fid_cq *fid)
{
	return (struct tcp_cq *)fid;
}

/* Hot path. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct tcp_cq *cq = cq_of(fid);

	cq_rewind(&cq->q);
	poll_sends(cq);
	if (cq->q.tail - cq->q.head < count || count == 0)
		poll_cq(cq);
	return cq_take(&cq->q, buf, count);
}

/* Opening and closing ---------------------------------------------------------------------- */

static void free_cq(struct tcp_cq *cq)
{
	cq_fini(&cq->q);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct tcp_cq *cq = (struct tcp_cq *)fid;

	if (cq->q.refs)
		return -FI_EBUSY;
	block_put(&((struct tcp_domain *)cq->q.domain)->blocks, cq->stage);
	cq->q.domain->refs--;
	list_remove(&cq->link);
	free_cq(cq);
	return 0;
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = prov_no_bind,
	.control = cq_control,
	.ops_open = prov_no_ops_open,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_read_from,
	.readerr = cq_read_error,
	.sread = cq_sleep_read,
	.sreadfrom = cq_sleep_read_from,
	.signal = cq_signal,
	.strerror = cq_error_text,
};

/* Sockets are found by its epoll descriptor, whether it can be waited for or not. */
static int init(struct tcp_cq *cq, struct prov_domain *domain, const struct fi_cq_attr *attr)
{
	int rc = cq_init(&cq->q, domain, attr);

	if (rc == 0 && cq->q.wait.epoll_fd < 0)
		rc = queue_open_wait(&cq->q.wait, false);
	if (rc)
		return rc;
	cq->stage = block_get(&((struct tcp_domain *)domain)->blocks);
	return cq->stage ? 0 : -FI_ENOMEM;
}

int tcp_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **cq_out,
		void *context)
{
	struct tcp_domain *domain = (struct tcp_domain *)fid;
	struct tcp_cq *cq = calloc(1, sizeof(*cq));
	int rc;

	if (!cq)
		return -FI_ENOMEM;
	rc = init(cq, &domain->base, attr);
	if (rc) {
		free_cq(cq);
		return rc;
	}
	list_init(&cq->hot);
	list_init(&cq->waiting);
	cq->q.is_idle = poll_is_idle;
	cq->q.fid.fid.ops = &cq_fid_ops;
	cq->q.fid.fid.context = context;
	cq->q.fid.ops = &cq_ops;
	domain->base.refs++;
	list_append(&domain->cqs, &cq->link);
	*cq_out = &cq->q.fid;
	return 0;
}
