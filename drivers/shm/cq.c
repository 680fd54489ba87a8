/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: the queue itself, and the places of its endpoints. What fills it is
 * progress.c. */
#include "shm.h"

#include <stdlib.h>
#include <unistd.h>

static struct shm_cq *cq_of(struct fid_cq *fid)
{
	return (struct shm_cq *)fid;
}

/* Reading ---------------------------------------------------------------------------------- */

/* The formats are prefixes of each other. */
static inline void *write_entry(enum fi_cq_format format, const struct shm_completion *from,
				void *out)
{
	struct fi_cq_tagged_entry *entry = out;

	entry->op_context = from->context;
	if (format == FI_CQ_FORMAT_CONTEXT)
		return (char *)out + sizeof(struct fi_cq_entry);
	entry->flags = from->flags;
	entry->len = from->length;
	if (format == FI_CQ_FORMAT_MSG)
		return (char *)out + sizeof(struct fi_cq_msg_entry);
	entry->buf = from->buf;
	entry->data = from->data;
	if (format == FI_CQ_FORMAT_DATA)
		return (char *)out + sizeof(struct fi_cq_data_entry);
	entry->tag = 0;
	return entry + 1;
}

/* Hot path. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct shm_cq *cq = cq_of(fid);
	size_t done = 0;

	if (cq->head == cq->tail) /* the same few cache lines again, however large it is */
		cq->head = cq->tail = 0;
	if (cq->tail - cq->head < count || count == 0)
		progress_poll(cq);
	while (done < count && cq->head != cq->tail) {
		const struct shm_completion *completion = &cq->queue[cq->head & cq->mask];

		if (plx_unlikely(completion->err))
			return done ? (ssize_t)done : -FI_EAVAIL;
		buf = write_entry(cq->format, completion, buf);
		cq->head++;
		done++;
	}
	return plx_likely(done) ? (ssize_t)done : -FI_EAGAIN;
}

ssize_t cq_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	ssize_t done = cq_read(fid, buf, count);

	for (ssize_t i = 0; source && i < done; i++)
		source[i] = FI_ADDR_NOTAVAIL;
	return done;
}

static ssize_t cq_read_error(struct fid_cq *fid, struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct shm_cq *cq = cq_of(fid);
	const struct shm_completion *completion = &cq->queue[cq->head & cq->mask];

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

/* Endpoints -------------------------------------------------------------------------------- */

static uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

static int resize(struct shm_cq *cq, uint32_t capacity)
{
	struct shm_completion *queue = calloc(capacity, sizeof(*queue));
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

/* What waits to be read may be of endpoints that are gone, and keeps its place too. */
int cq_reserve(struct shm_cq *cq, uint32_t count)
{
	uint32_t waiting = cq->tail - cq->head;
	uint32_t least = (waiting > cq->size ? waiting : cq->size) + cq->reserved + count;
	int rc = 0;

	if (power_of_two(least) > cq->mask + 1)
		rc = resize(cq, power_of_two(least));
	if (rc == 0)
		cq->reserved += count;
	return rc;
}

void cq_unreserve(struct shm_cq *cq, uint32_t count)
{
	cq->reserved -= count;
}

/* A free place, near where the last one was; or, where all are taken, one to be shared. */
static uint32_t find_slot(struct shm_cq *cq)
{
	for (uint32_t i = 0; i < BELL_BITS; i++) {
		uint32_t slot = (cq->next_slot + i) % BELL_BITS;

		if (!cq->slots[slot])
			return slot;
	}
	return cq->next_slot % BELL_BITS;
}

void cq_attach(struct shm_cq *cq, struct shm_ep *ep)
{
	ep->slot = find_slot(cq);
	ep->next_slot = cq->slots[ep->slot];
	cq->slots[ep->slot] = ep;
	cq->next_slot = ep->slot + 1;
	if (cq->slots_used <= ep->slot)
		cq->slots_used = ep->slot + 1;
}

void cq_detach(struct shm_cq *cq, struct shm_ep *ep)
{
	struct shm_ep **at = &cq->slots[ep->slot];

	while (*at && *at != ep)
		at = &(*at)->next_slot;
	if (*at)
		*at = ep->next_slot;
}

/* Opening and closing ---------------------------------------------------------------------- */

static void cq_free(struct shm_cq *cq)
{
	queue_close_wait(&cq->wait);
	if (cq->bell_fd >= 0)
		close(cq->bell_fd);
	bell_unmap(cq->bell);
	free(cq->slots);
	free(cq->queue);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct shm_cq *cq = (struct shm_cq *)fid;

	if (cq->refs)
		return -FI_EBUSY;
	cq->domain->refs--;
	list_remove(&cq->link);
	cq_free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	return queue_control(&((struct shm_cq *)fid)->wait, command, arg);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = shm_no_bind,
	.control = cq_control,
	.ops_open = shm_no_ops_open,
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

static int check_attr(const struct fi_cq_attr *attr)
{
	if (attr->size > SHM_CQ_SIZE_MAX || attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_EINVAL;
	return queue_check_wait(attr->wait_obj);
}

static int cq_init(struct shm_cq *cq, const struct fi_cq_attr *attr)
{
	uint32_t size = attr->size ? (uint32_t)attr->size : SHM_CQ_SIZE;
	int rc;

	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr->format;
	cq->size = size;
	cq->wait = (struct queue_wait){.epoll_fd = -1, .signal_fd = -1};
	cq->bell_fd = -1;
	list_init(&cq->active);
	list_init(&cq->belled);
	cq->slots = calloc(BELL_BITS, sizeof(struct shm_ep *));
	rc = cq->slots ? resize(cq, power_of_two(size)) : -FI_ENOMEM;
	rc = rc ? rc : bell_create(&cq->bell, &cq->bell_fd);
	if (rc == 0 && attr->wait_obj != FI_WAIT_NONE)
		rc = queue_open_wait(&cq->wait, true);
	return rc;
}

int shm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq_out,
		void *context)
{
	struct shm_cq *cq;
	int rc = check_attr(attr);

	if (rc)
		return rc;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	rc = cq_init(cq, attr);
	if (rc) {
		cq_free(cq);
		return rc;
	}
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &cq_ops;
	cq->domain = (struct shm_domain *)domain;
	cq->domain->refs++;
	list_append(&cq->domain->cqs, &cq->link);
	*cq_out = &cq->fid;
	return 0;
}
