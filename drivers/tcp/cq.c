/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: how they are read, slept on, opened and closed. What fills them is poll.c. */
#include "tcp.h"

#include <errno.h>
#include <poll.h>
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

static ssize_t cq_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	ssize_t done = cq_read(fid, buf, count);

	for (ssize_t i = 0; source && i < done; i++)
		source[i] = FI_ADDR_NOTAVAIL;
	return done;
}

static ssize_t sleep_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
			       const void *condition, int timeout_ms)
{
	struct tcp_cq *cq = cq_of(fid);
	uint64_t end_ns = queue_end_ns(timeout_ms);
	struct pollfd pollfd = {.fd = cq->q.wait.epoll_fd, .events = POLLIN};

	if (!queue_can_sleep(&cq->q.wait))
		return -FI_ENOSYS;
	for (;;) {
		ssize_t done = cq_read_from(fid, buf, count, source);
		int wait_ms = queue_left_ms(end_ns);

		if (done != -FI_EAGAIN || wait_ms == 0)
			return done;
		if (poll_was_signalled(cq))
			return -FI_EAGAIN; /* fi_cq_signal */
		if (poll_is_idle(cq) && poll(&pollfd, 1, wait_ms) < 0)
			return -errno;
	}
}

static ssize_t sleep_read(struct fid_cq *fid, void *buf, size_t count, const void *condition,
			  int timeout_ms)
{
	return sleep_read_from(fid, buf, count, NULL, condition, timeout_ms);
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
	.sread = sleep_read,
	.sreadfrom = sleep_read_from,
	.signal = cq_signal,
	.strerror = cq_error_text,
};

/* Sockets are found by its epoll descriptor, whether it can be waited for or not. */
static int init(struct tcp_cq *cq, struct prov_domain *domain, const struct fi_cq_attr *attr)
{
	int rc = cq_init(&cq->q, domain, attr);

	if (rc == 0 && cq->q.wait.epoll_fd < 0)
		rc = queue_open_wait(&cq->q.wait, false);
	return rc;
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
	cq->q.arm = poll_arm;
	cq->q.fid.fid.ops = &cq_fid_ops;
	cq->q.fid.fid.context = context;
	cq->q.fid.ops = &cq_ops;
	domain->base.refs++;
	list_append(&domain->cqs, &cq->link);
	*cq_out = &cq->q.fid;
	return 0;
}
