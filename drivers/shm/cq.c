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

/* Hot path. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct shm_cq *cq = cq_of(fid);

	cq_rewind(&cq->q);
	if (cq->q.tail - cq->q.head < count || count == 0)
		progress_poll(cq);
	return cq_take(&cq->q, buf, count);
}

/* Endpoints -------------------------------------------------------------------------------- */

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

static void free_cq(struct shm_cq *cq)
{
	cq_fini(&cq->q);
	if (cq->bell_fd >= 0)
		close(cq->bell_fd);
	bell_unmap(cq->bell);
	free(cq->slots);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct shm_cq *cq = (struct shm_cq *)fid;

	if (cq->q.refs)
		return -FI_EBUSY;
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

static int init(struct shm_cq *cq, struct shm_domain *domain, const struct fi_cq_attr *attr)
{
	int rc;

	cq->bell_fd = -1;
	rc = cq_init(&cq->q, &domain->base, attr);
	if (rc)
		return rc;
	list_init(&cq->active);
	list_init(&cq->belled);
	cq->q.is_idle = shm_cq_is_idle;
	cq->q.fid.fid.ops = &cq_fid_ops;
	cq->q.fid.ops = &cq_ops;
	cq->slots = calloc(BELL_BITS, sizeof(struct shm_ep *));
	return cq->slots ? bell_create(&cq->bell, &cq->bell_fd) : -FI_ENOMEM;
}

int shm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq_out,
		void *context)
{
	struct shm_cq *cq = calloc(1, sizeof(*cq));
	int rc;

	if (!cq)
		return -FI_ENOMEM;
	rc = init(cq, (struct shm_domain *)domain, attr);
	if (rc) {
		free_cq(cq);
		return rc;
	}
	cq->q.fid.fid.context = context;
	cq->q.domain->refs++;
	list_append(&((struct shm_domain *)domain)->cqs, &cq->link);
	*cq_out = &cq->q.fid;
	return 0;
}
