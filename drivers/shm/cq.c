/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: the queue and its endpoints' slots. progress.c fills it. */
#include "shm.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Hot path. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct shm_cq *cq = (struct shm_cq *)fid;

	cq_rewind(&cq->q);
	if (cq->q.tail - cq->q.head < count || count == 0)
		progress_poll(cq);
	if (plx_unlikely(count == 0))
		return cq_take_none(&cq->q);
	return cq_take(&cq->q, buf, count);
}

/* The next free slot; if all are taken, one to share. */
void cq_attach(struct shm_cq *cq, struct shm_ep *ep)
{
	for (uint32_t i = 0; i < BELL_BITS && cq->slots[cq->next_slot % BELL_BITS]; i++)
		cq->next_slot++;
	ep->slot = cq->next_slot++ % BELL_BITS;
	ep->next_slot = cq->slots[ep->slot];
	cq->slots[ep->slot] = ep;
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

#define WOKEN_AT_ONCE 16 /* sockets per epoll_wait */
#define BYTES_AT_ONCE 4  /* taken from one socket per call */

/* Take some of the wake-up bytes; any that remain wake us again. */
static void take_bytes(struct shm_ep *ep, uint32_t events)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct mmsghdr all[BYTES_AT_ONCE];
	int got;

	for (int i = 0; i < BYTES_AT_ONCE; i++)
		all[i].msg_hdr = (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
	got = recvmmsg(ep->base.source.fd, all, BYTES_AT_ONCE, MSG_DONTWAIT, NULL);
	/* An empty message is the end. */
	if (got > 0 ? all[got - 1].msg_len > 0 : got < 0 && errno == EAGAIN)
		progress_activate(ep);
	else
		ep_incoming(&ep->base.source, events);
}

void cq_forget_doorbell(struct shm_ep *ep)
{
	if (ep->has_rung)
		LIST_REMOVE(ep, rung_link);
	ep->has_rung = false;
}

/* The message that woke us comes first: its byte may wait until the next sleep, or until a thread
 * that stays awake looks again. */
void cq_doorbell_rang(struct plx_watch *doorbell, uint32_t events)
{
	struct shm_ep *ep = plx_container_of(doorbell, struct shm_ep, doorbell);

	if (events != EPOLLIN || ep->has_rung) {
		cq_forget_doorbell(ep);
		take_bytes(ep, events);
		return;
	}
	progress_activate(ep);
	LIST_INSERT_HEAD(&rx_cq_of(ep)->rung, ep, rung_link);
	ep->has_rung = true;
}

static void answer_doorbells(struct shm_cq *cq)
{
	struct shm_ep *ep, *after;

	LIST_FOREACH_SAFE (ep, &cq->rung, rung_link, after) {
		cq_forget_doorbell(ep);
		take_bytes(ep, EPOLLIN);
	}
}

void cq_clear_wakes(struct shm_cq *cq)
{
	struct epoll_event events[WOKEN_AT_ONCE];
	uint64_t value;
	int count;

	if (cq->q.wait.set) { /* its owner looks for them */
		answer_doorbells(cq);
		return;
	}
	count = epoll_wait(cq->q.wait.epoll_fd, events, WOKEN_AT_ONCE, 0);
	for (int i = 0; i < count; i++) {
		struct plx_watch *doorbell = events[i].data.ptr;

		if (doorbell)
			take_bytes(plx_container_of(doorbell, struct shm_ep, doorbell),
				   events[i].events);
		else
			cq->q.is_signalled |= read(cq->q.wait.signal_fd, &value, sizeof(value)) > 0;
	}
}

static bool is_idle(struct prov_cq *q)
{
	struct shm_cq *cq = (struct shm_cq *)q;

	cq_clear_wakes(cq);
	return !q->is_signalled && q->head == q->tail && progress_arm(cq);
}

static int init(struct prov_cq *base)
{
	struct shm_cq *cq = (struct shm_cq *)base;
	int rc;

	cq->slots = calloc(BELL_BITS, sizeof(struct shm_ep *));
	rc = cq->slots ? bell_create(&cq->bell, &cq->bell_fd) : -FI_ENOMEM;
	if (rc == 0 && base->wait.epoll_fd < 0)
		rc = queue_open_wait(&base->wait, false);
	return rc;
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
	.read = cq_read,
	.init = init,
	.fini = fini,
	.is_idle = is_idle,
};
