/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for queues of either kind; and completion queues: opening them, and completions that have
 * not been read. The provider fills them. */
#ifndef PROV_CQ_H
#define PROV_CQ_H

#include <assert.h>
#include <list.h>
#include <plx_base.h>
#include <plx_watch.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>

#define PROV_CQ_SIZE     1024
#define PROV_CQ_SIZE_MAX (1u << 20)

struct prov_domain;
struct prov_fabric;

/* Waiting: queue.c --------------------------------------------------------------------------- */

/* How a queue learns that it has work. A descriptor that is not open is -1. */
struct queue_wait {
	int epoll_fd;              /* its own set, and its wait object if it has one */
	int signal_fd;             /* an eventfd in it; its data is NULL */
	struct plx_watch_set *set; /* it shares this one instead; NULL: it does not */
	struct plx_watch nested;   /* epoll_fd in `set` */
};

/* All zero otherwise. */
#define QUEUE_WAIT_NONE (struct queue_wait){.epoll_fd = -1, .signal_fd = -1, .nested.fd = -1}

/* Whether the wait object is supported. Return: 0; -FI_ENOSYS. */
int queue_check_wait(enum fi_wait_obj wait_obj);
/* Return: 0; -errno: call queue_close_wait for the descriptors that were opened. */
int queue_open_wait(struct queue_wait *wait, bool with_signal);
void queue_close_wait(struct queue_wait *wait);
/* Share a set. nests: its own one lies in it from now on; otherwise it is closed. Return: 0;
 * -errno. */
int queue_join(struct queue_wait *wait, struct plx_watch_set *set, bool nests);

/* Add to its set, or change the events. Return: 0; -errno. */
int queue_watch(const struct queue_wait *wait, struct plx_watch *watch, uint32_t events);
void queue_unwatch(const struct queue_wait *wait, struct plx_watch *watch); /* accepts fd -1 */

/* Whether it was opened with FI_WAIT_FD. */
static inline bool queue_can_sleep(const struct queue_wait *wait)
{
	return wait->signal_fd >= 0;
}

/* Whether something wakes its owner: fi_trywait works. */
static inline bool queue_can_arm(const struct queue_wait *wait)
{
	return queue_can_sleep(wait) || wait->set;
}

/* FI_GETWAIT and FI_GETWAITOBJ; otherwise -FI_ENOSYS. */
int queue_control(const struct queue_wait *wait, int command, void *arg);

/* CLOCK_MONOTONIC. */
uint64_t queue_now_ns(void);
/* The end of a wait that starts now; timeout_ms < 0: never. */
uint64_t queue_end_ns(int timeout_ms);
/* Time left for poll(2), rounded up; 0: over; -1: unlimited. */
int queue_left_ms(uint64_t end_ns);

/* For fi_cq_strerror and fi_eq_strerror. buf may be NULL. */
const char *queue_error_text(int err, char *buf, size_t size);

/* Completion queues: cq.c -------------------------------------------------------------------- */

static_assert(((FI_REMOTE_CQ_DATA | FI_SEND | FI_RECV | FI_MSG) >> 32) == 0, "in 32 bits of flags");

/* A completion that has not been read. err: 0, or an error for fi_cq_readerr. */
struct prov_completion {
	void *context;
	uint32_t flags;
	int err;
	size_t length;
	void *buf;
	uint64_t data;
	size_t overlong; /* olen */
};

struct prov_ep;
TAILQ_HEAD(prov_eps, prov_ep);

struct prov_cq {
	struct fid_cq fid;
	struct prov_domain *domain;
	bool is_signalled; /* fi_cq_signal was called and has not ended a sleep yet */
	enum fi_cq_format format;
	/* Modulo 2^32; head and tail restart at 0 when the queue is empty. Receives, sends and
	 * cancelled receives stop at `size`. Failures may exceed it: each endpoint reserved room
	 * for everything that it can post. */
	struct prov_completion *queue;
	uint32_t head, tail, mask, size;
	uint32_t reserved; /* by endpoints */
	uint32_t refs;     /* bound endpoints */
	/* Receiving endpoints: see prov_ep.h. */
	struct prov_eps hot, aside;
	uint32_t hot_count;
	struct queue_wait wait;
	LIST_ENTRY(prov_cq) link; /* in the domain's list */
	struct fi_ops_cq calls;   /* of fid: the provider's read, and cq.c's calls */
};

/* A provider's extension. Its queue starts with a struct prov_cq; the rest is zeroed. */
struct prov_cq_ops {
	size_t bytes; /* size of its queue */
	bool nests;   /* a shared set contains its own, for the fast path */
	ssize_t (*read)(struct fid_cq *fid, void *buf, size_t count); /* fi_cq_read */
	int (*init)(struct prov_cq *cq);  /* Return: 0; -FI_ENOMEM; -errno */
	void (*fini)(struct prov_cq *cq); /* also after init failed or was not called */
	/* Whether there is nothing to do; any later work wakes the queue. Sets is_signalled. */
	bool (*is_idle)(struct prov_cq *cq);
};

/* Entry of struct fi_ops_domain. */
int prov_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **cq_out,
		 void *context);

uint32_t power_of_two(uint32_t least); /* Return: at least `least`. */
/* Reserve room for `count` more completions that cannot be delayed. Return: 0; -FI_ENOMEM. */
int cq_reserve(struct prov_cq *cq, uint32_t count);
void cq_unreserve(struct prov_cq *cq, uint32_t count);

int cq_arm(struct prov_cq *cq); /* fi_trywait */

static inline bool cq_has_room(const struct prov_cq *cq)
{
	return cq->tail - cq->head < cq->size;
}

/* The place of one more completion; past the size for reserved ones. The caller sets every field in
 * place: copying a completion built elsewhere loads it in wider pieces than it was stored in, which
 * stalls store forwarding. */
static inline struct prov_completion *cq_push(struct prov_cq *cq)
{
	return &cq->queue[cq->tail++ & cq->mask];
}

/* Report the end of a send or a read. flags: of its completion. err: 0, or why it failed. */
static inline void cq_push_done(struct prov_cq *cq, void *context, uint64_t flags, int err)
{
	struct prov_completion *completion = cq_push(cq);

	completion->context = context;
	completion->flags = (uint32_t)flags;
	completion->err = err;
	completion->length = 0;
	completion->buf = NULL;
	completion->data = 0;
	completion->overlong = 0;
}

/* Call before a read: an empty queue reuses the same few cache lines, whatever its size. */
static inline void cq_rewind(struct prov_cq *cq)
{
	if (cq->head == cq->tail)
		cq->head = cq->tail = 0;
}

/* The formats are prefixes of one another. */
static inline void *cq_write_entry(enum fi_cq_format format, const struct prov_completion *from,
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

/* What fi_cq_read with count 0 returns after its progress. Return: 0; -FI_EAVAIL: a failure is
 * first. */
static inline ssize_t cq_take_none(const struct prov_cq *cq)
{
	return cq->head != cq->tail && cq->queue[cq->head & cq->mask].err ? -FI_EAVAIL : 0;
}

/* Take up to `count` queued completions. count: not 0. Return: their number; -FI_EAVAIL;
 * -FI_EAGAIN. */
static inline ssize_t cq_take(struct prov_cq *cq, void *buf, size_t count)
{
	size_t done = 0;

	while (done < count && cq->head != cq->tail) {
		const struct prov_completion *completion = &cq->queue[cq->head & cq->mask];

		if (plx_unlikely(completion->err))
			return done ? (ssize_t)done : -FI_EAVAIL;
		buf = cq_write_entry(cq->format, completion, buf);
		cq->head++;
		done++;
	}
	return plx_likely(done) ? (ssize_t)done : -FI_EAGAIN;
}

#endif
