/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#ifndef SHM_CQ_H
#define SHM_CQ_H

#include "list.h"
#include "queue.h"
#include "segment.h"

#include <assert.h>
#include <rdma/fi_domain.h>

#define SHM_CQ_SIZE     1024
#define SHM_CQ_SIZE_MAX (1u << 20)

struct shm_domain;
struct shm_ep;

static_assert(((FI_REMOTE_CQ_DATA | FI_SEND | FI_RECV | FI_MSG) >> 32) == 0, "in 32 bits of flags");

/* A completion that waits to be read. err: 0, or it is one for fi_cq_readerr. */
struct shm_completion {
	void *context;
	uint32_t flags;
	int err;
	size_t length;
	void *buf;
	uint64_t data;
	size_t overlong; /* olen */
};

struct shm_cq {
	struct fid_cq fid;
	struct shm_list link; /* in the domain's list */
	struct shm_domain *domain;
	enum fi_cq_format format;
	/* Free-running. Receives, sends and cancelled receives stop at `size`; what failed comes on
	 * top, and has room as each endpoint brought as much as it can have posted. */
	struct shm_completion *queue;
	uint32_t head, tail, mask, size;
	uint32_t reserved; /* by endpoints */
	uint32_t refs;     /* bound endpoints */

	/* Receiving endpoints. */
	struct shm_list active, belled; /* enum shm_listed */
	uint32_t active_count;
	struct shm_ep **slots; /* by bell bit; those beyond BELL_BITS by next_slot */
	uint32_t next_slot;    /* where to look for a free one */
	uint32_t slots_used;   /* those from there on were never used */
	uint32_t sweep;        /* the slot to look at next */
	uint32_t polls;        /* free-running */
	struct bell *bell;
	int bell_fd; /* given to peers */

	struct queue_wait wait; /* sockets of its endpoints, and fi_cq_signal */
};

int shm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq_out,
		void *context);
/* Room for so many completions more that cannot be put off. Return: 0; -FI_ENOMEM. */
int cq_reserve(struct shm_cq *cq, uint32_t count);
void cq_unreserve(struct shm_cq *cq, uint32_t count);
/* A receiving endpoint gets its bell bit, in ep->slot. */
void cq_attach(struct shm_cq *cq, struct shm_ep *ep);
void cq_detach(struct shm_cq *cq, struct shm_ep *ep);
ssize_t cq_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source);

static inline bool cq_has_room(const struct shm_cq *cq)
{
	return cq->tail - cq->head < cq->size;
}

/* The place of one more completion, also beyond the size for what was reserved. Who takes it sets
 * every field: one that is put together elsewhere and copied is loaded in wider pieces than it was
 * stored in, and waits for that. */
static inline struct shm_completion *cq_push(struct shm_cq *cq)
{
	return &cq->queue[cq->tail++ & cq->mask];
}

/* cq_sleep.c ------------------------------------------------------------------------------- */

/* Its socket is what the queue is woken by, from connected to hung up. */
int cq_watch(struct shm_cq *cq, struct shm_ep *ep);
void cq_unwatch(struct shm_cq *cq, struct shm_ep *ep);
int cq_arm(struct shm_cq *cq); /* fi_trywait */
int cq_signal(struct fid_cq *fid);
ssize_t cq_sleep_read(struct fid_cq *fid, void *buf, size_t count, const void *condition,
		      int timeout_ms);
ssize_t cq_sleep_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
			   const void *condition, int timeout_ms);

#endif
