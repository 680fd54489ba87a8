/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a completion queue: what wakes it, and the way to sleep. */
#include "shm.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WOKEN_AT_ONCE 16 /* sockets that one look at the epoll brings */
#define BYTES_AT_ONCE 4  /* taken from one of them, in one call */

/* What wakes it ---------------------------------------------------------------------------- */

int cq_watch(struct shm_cq *cq, struct shm_ep *ep)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = ep};

	if (!queue_can_sleep(&cq->q.wait))
		return 0;
	return epoll_ctl(cq->q.wait.epoll_fd, EPOLL_CTL_ADD, ep->base.source.fd, &event) ? -errno
											 : 0;
}

void cq_unwatch(struct shm_cq *cq, struct shm_ep *ep)
{
	if (queue_can_sleep(&cq->q.wait) && ep->base.source.fd >= 0)
		epoll_ctl(cq->q.wait.epoll_fd, EPOLL_CTL_DEL, ep->base.source.fd, NULL);
}

/* Take away the bytes that woke us, or some of them: the rest wakes us again. */
static void clear_doorbell(struct shm_ep *ep)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct mmsghdr all[BYTES_AT_ONCE];
	int got;

	for (int i = 0; i < BYTES_AT_ONCE; i++)
		all[i].msg_hdr = (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
	got = recvmmsg(ep->base.source.fd, all, BYTES_AT_ONCE, MSG_DONTWAIT, NULL);
	/* What is empty is the end. */
	if (got > 0 ? all[got - 1].msg_len > 0 : got < 0 && errno == EAGAIN)
		progress_activate(ep);
	else
		ep_incoming(&ep->base.source);
}

/* See what has woken, or would wake, the queue. */
static void clear_wakes(struct shm_cq *cq)
{
	struct epoll_event events[WOKEN_AT_ONCE];
	int count = epoll_wait(cq->q.wait.epoll_fd, events, WOKEN_AT_ONCE, 0);
	uint64_t value;

	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			clear_doorbell(events[i].data.ptr);
		else
			cq->q.is_signalled |= read(cq->q.wait.signal_fd, &value, sizeof(value)) > 0;
	}
}

/* The way to sleep ------------------------------------------------------------------------- */

bool shm_cq_is_idle(struct prov_cq *q)
{
	struct shm_cq *cq = (struct shm_cq *)q;

	clear_wakes(cq);
	return !q->is_signalled && q->head == q->tail && progress_arm(cq);
}
