/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues of every provider: see prov_cq.h. */
#include "prov.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static const struct prov_cq_ops *ops_of(const struct prov_cq *cq)
{
	return cq->domain->fabric->prov->cq_ops;
}

static ssize_t cq_read_error(struct fid_cq *fid, struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct prov_cq *cq = (struct prov_cq *)fid;
	const struct prov_completion *completion = &cq->queue[cq->head & cq->mask];

	if (flags)
		return -FI_EBADFLAGS;
	if (cq->head == cq->tail || !completion->err)
		return -FI_EAGAIN;
	entry->op_context = completion->context;
	entry->flags = completion->flags;
	entry->len = completion->length;
	entry->buf = completion->buf;
	entry->data = completion->data;
	entry->tag = 0;
	entry->olen = completion->overlong;
	entry->err = completion->err;
	entry->prov_errno = completion->err;
	entry->err_data_size = 0;
	cq->head++;
	return 1;
}

static const char *cq_error_text(struct fid_cq *fid, int prov_errno, const void *err_data,
				 char *buf, size_t size)
{
	return queue_error_text(prov_errno, buf, size);
}

/* Peers have no addresses in an address vector. */
static ssize_t cq_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	ssize_t done = fi_cq_read(fid, buf, count);

	for (ssize_t i = 0; source && i < done; i++)
		source[i] = FI_ADDR_NOTAVAIL;
	return done;
}

/* Sleeping ----------------------------------------------------------------------------------- */

static bool take_signal(struct prov_cq *cq)
{
	bool was = cq->is_signalled;

	cq->is_signalled = false;
	return was;
}

int cq_arm(struct prov_cq *cq)
{
	bool is_idle;

	if (!queue_can_arm(&cq->wait))
		return -FI_EINVAL;
	is_idle = ops_of(cq)->is_idle(cq);
	return !take_signal(cq) && is_idle ? 0 : -FI_EAGAIN;
}

static ssize_t cq_sleep_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
				  const void *condition, int timeout_ms)
{
	struct prov_cq *cq = (struct prov_cq *)fid;
	uint64_t end_ns = queue_end_ns(timeout_ms);
	struct pollfd pollfd = {.fd = cq->wait.epoll_fd, .events = POLLIN};

	if (!queue_can_sleep(&cq->wait))
		return -FI_ENOSYS;
	for (;;) {
		ssize_t done = cq_read_from(fid, buf, count, source);
		int wait_ms = queue_left_ms(end_ns);
		bool is_idle;

		if (done != -FI_EAGAIN || wait_ms == 0)
			return done;
		is_idle = ops_of(cq)->is_idle(cq);
		if (take_signal(cq))
			return -FI_EAGAIN;
		if (is_idle && poll(&pollfd, 1, wait_ms) < 0)
			return errno == EINTR ? -FI_EAGAIN : -errno;
	}
}

static ssize_t cq_sleep_read(struct fid_cq *fid, void *buf, size_t count, const void *condition,
			     int timeout_ms)
{
	return cq_sleep_read_from(fid, buf, count, NULL, condition, timeout_ms);
}

static int cq_signal(struct fid_cq *fid)
{
	struct prov_cq *cq = (struct prov_cq *)fid;
	uint64_t one = 1;

	if (!queue_can_sleep(&cq->wait))
		return -FI_ENOSYS;
	return write(cq->wait.signal_fd, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
}

static const struct fi_ops_cq cq_calls = {
	.size = sizeof(struct fi_ops_cq),
	.readfrom = cq_read_from,
	.readerr = cq_read_error,
	.sread = cq_sleep_read,
	.sreadfrom = cq_sleep_read_from,
	.signal = cq_signal,
	.strerror = cq_error_text,
};

/* Room ------------------------------------------------------------------------------------- */

uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

/* Not zeroed: with thousands of endpoints that takes milliseconds. */
static int resize(struct prov_cq *cq, uint32_t capacity)
{
	struct prov_completion *queue = malloc((size_t)capacity * sizeof(*queue));
	uint32_t count = cq->tail - cq->head;

	if (!queue)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		queue[i] = cq->queue[(cq->head + i) & cq->mask];
	free(cq->queue);
	cq->queue = queue;
	cq->mask = capacity - 1;
	cq->head = 0;
	cq->tail = count;
	return 0;
}

/* Unread completions may belong to closed endpoints; they keep their places. Return: the capacity
 * with room for `count` more. */
static uint32_t capacity_for(const struct prov_cq *cq, uint32_t count)
{
	uint32_t waiting = cq->tail - cq->head;

	return power_of_two((waiting > cq->size ? waiting : cq->size) + cq->reserved + count);
}

int cq_reserve(struct prov_cq *cq, uint32_t count)
{
	uint32_t capacity = capacity_for(cq, count);
	int rc = capacity > cq->mask + 1 ? resize(cq, capacity) : 0;

	if (rc == 0)
		cq->reserved += count;
	return rc;
}

void cq_unreserve(struct prov_cq *cq, uint32_t count)
{
	uint32_t capacity;

	cq->reserved -= count;
	capacity = capacity_for(cq, 0);
	if (capacity <= (cq->mask + 1) / 4)
		resize(cq, capacity); /* out of memory: keeps its capacity */
}

/* Opening and closing ----------------------------------------------------------------------- */

static int cq_control(struct fid *fid, int command, void *arg)
{
	return queue_control(&((struct prov_cq *)fid)->wait, command, arg);
}

static void cq_free(struct prov_cq *cq)
{
	ops_of(cq)->fini(cq);
	queue_close_wait(&cq->wait);
	free(cq->queue);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct prov_cq *cq = (struct prov_cq *)fid;

	if (cq->refs)
		return -FI_EBUSY;
	cq->domain->refs--;
	cq->domain->cq_count--;
	LIST_REMOVE(cq, link);
	cq_free(cq);
	return 0;
}

static struct fi_ops cq_fid_ops = PROV_FID_OPS(cq_close, PROV_REFUSED, cq_control);

/* If it fails, cq_free still follows. */
static int init(struct prov_cq *cq, struct prov_domain *domain, const struct fi_cq_attr *attr,
		void *context)
{
	int rc;

	cq->domain = domain;
	cq->wait = QUEUE_WAIT_NONE;
	TAILQ_INIT(&cq->hot);
	TAILQ_INIT(&cq->aside);
	fid_init(&cq->fid.fid, FI_CLASS_CQ, context, &cq_fid_ops);
	cq->calls = cq_calls;
	cq->calls.read = ops_of(cq)->read;
	cq->fid.ops = &cq->calls;
	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr->format;
	cq->size = attr->size ? (uint32_t)attr->size : PROV_CQ_SIZE;
	rc = resize(cq, power_of_two(cq->size));
	if (rc == 0 && attr->wait_obj != FI_WAIT_NONE)
		rc = queue_open_wait(&cq->wait, true);
	return rc ? rc : ops_of(cq)->init(cq);
}

/* A threshold is a hint: a wait may end at any completion (fi_cq(3)). */
static int check_waiting(const struct fi_cq_attr *attr)
{
	bool is_known = attr->wait_cond == FI_CQ_COND_NONE ||
			attr->wait_cond == FI_CQ_COND_THRESHOLD;

	if (attr->wait_obj != FI_WAIT_NONE && !is_known)
		return -FI_EINVAL;
	return queue_check_wait(attr->wait_obj);
}

int prov_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **cq_out,
		 void *context)
{
	struct prov_domain *domain = (struct prov_domain *)fid;
	struct prov_cq *cq;
	int rc = check_waiting(attr);

	if (rc)
		return rc;
	if (attr->flags & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	if (attr->size > PROV_CQ_SIZE_MAX || attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_EINVAL;
	cq = calloc(1, domain->fabric->prov->cq_ops->bytes);
	if (!cq)
		return -FI_ENOMEM;
	rc = init(cq, domain, attr, context);
	if (rc) {
		cq_free(cq);
		return rc;
	}
	domain->refs++;
	domain->cq_count++;
	LIST_INSERT_HEAD(&domain->cqs, cq, link);
	*cq_out = &cq->fid;
	return 0;
}
