/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#ifndef SHM_CQ_H
#define SHM_CQ_H

#include "../prov/prov.h"
#include "ring/segment.h"

struct shm_domain;
struct shm_ep;
TAILQ_HEAD(shm_eps, shm_ep);

struct shm_cq {
	struct prov_cq q;

	/* Receiving endpoints. */
	struct shm_eps active, belled; /* enum shm_listed */
	uint32_t active_count;
	struct shm_ep **slots; /* by bell bit; past BELL_BITS they follow next_slot */
	uint32_t next_slot;    /* where to start looking for a free one */
	uint32_t slots_used;   /* slots from here on were never used */
	uint32_t sweep;        /* the slot to check next */
	uint32_t polls;        /* free-running */
	struct bell *bell;
	int bell_fd; /* passed to peers */
};

extern const struct prov_cq_ops shm_cq_ops;
/* Give a receiving endpoint its bell bit, in ep->slot. */
void cq_attach(struct shm_cq *cq, struct shm_ep *ep);
void cq_detach(struct shm_cq *cq, struct shm_ep *ep);

/* The endpoint's socket wakes the queue from connect to hang-up. */
int cq_watch(struct shm_cq *cq, struct shm_ep *ep);
void cq_unwatch(struct shm_cq *cq, struct shm_ep *ep);

#endif
