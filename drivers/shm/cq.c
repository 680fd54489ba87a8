/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: the queue itself, and the places of its endpoints. What fills it is
 * progress.c. */
#include "shm.h"

#include <stdlib.h>
#include <unistd.h>

/* Reading ---------------------------------------------------------------------------------- */

/* Hot path. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct shm_cq *cq = (struct shm_cq *)fid;

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

static int init(struct prov_cq *base)
{
	struct shm_cq *cq = (struct shm_cq *)base;

	TAILQ_INIT(&cq->active);
	TAILQ_INIT(&cq->belled);
	cq->slots = calloc(BELL_BITS, sizeof(struct shm_ep *));
	return cq->slots ? bell_create(&cq->bell, &cq->bell_fd) : -FI_ENOMEM;
}

static void fini(struct prov_cq *base)
{
	struct shm_cq *cq = (struct shm_cq *)base;

	if (cq->bell)
		close(cq->bell_fd);
	bell_unmap(cq->bell);
	free(cq->slots);
}

const struct prov_cq_ops shm_cq_ops = {
	.bytes = sizeof(struct shm_cq),
	.calls = PROV_CQ_CALLS(cq_read),
	.init = init,
	.fini = fini,
	.is_idle = shm_cq_is_idle,
};
