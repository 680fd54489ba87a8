/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a completion queue: what wakes it, and the way to sleep. */
#include "shm.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WOKEN_AT_ONCE 16 /* sockets that one look at the epoll brings */
#define BYTES_AT_ONCE 4  /* taken from one of them, in one call */

static struct shm_cq *cq_of(struct fid_cq *fid)
{
	return (struct shm_cq *)fid;
}

/* What wakes it ---------------------------------------------------------------------------- */

int cq_watch(struct shm_cq *cq, struct shm_ep *ep)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = ep};

	if (!queue_can_sleep(&cq->q.wait))
		return 0;
	return epoll_ctl(cq->q.wait.epoll_fd, EPOLL_CTL_ADD, ep->source.fd, &event) ? -errno : 0;
}

void cq_unwatch(struct shm_cq *cq, struct shm_ep *ep)
{
	if (queue_can_sleep(&cq->q.wait) && ep->source.fd >= 0)
		epoll_ctl(cq->q.wait.epoll_fd, EPOLL_CTL_DEL, ep->source.fd, NULL);
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
	got = recvmmsg(ep->source.fd, all, BYTES_AT_ONCE, MSG_DONTWAIT, NULL);
	/* What is empty is the end. */
	if (got > 0 ? all[got - 1].msg_len > 0 : got < 0 && errno == EAGAIN)
		progress_activate(ep);
	else
		ep_incoming(ep);
}

/* See what has woken, or would wake, the queue. Returns whether it was fi_cq_signal. */
static bool clear_wakes(struct shm_cq *cq)
{
	struct epoll_event events[WOKEN_AT_ONCE];
	int count = epoll_wait(cq->q.wait.epoll_fd, events, WOKEN_AT_ONCE, 0);
	bool signalled = false;
	uint64_t value;

	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			clear_doorbell(events[i].data.ptr);
		else
			signalled |= read(cq->q.wait.signal_fd, &value, sizeof(value)) > 0;
	}
	return signalled;
}

/* The way to sleep ------------------------------------------------------------------------- */

int cq_arm(struct prov_cq *q)
{
	struct shm_cq *cq = (struct shm_cq *)q;

	if (!queue_can_sleep(&cq->q.wait))
		return -FI_EINVAL;
	if (clear_wakes(cq) || cq->q.head != cq->q.tail)
		return -FI_EAGAIN;
	return progress_arm(cq) ? 0 : -FI_EAGAIN;
}

ssize_t cq_sleep_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
			   const void *condition, int timeout_ms)
{
	struct shm_cq *cq = cq_of(fid);
	uint64_t end_ns = queue_end_ns(timeout_ms);
	struct pollfd pollfd = {.fd = cq->q.wait.epoll_fd, .events = POLLIN};

	if (!queue_can_sleep(&cq->q.wait))
		return -FI_ENOSYS;
	for (;;) {
		ssize_t done = cq_read_from(fid, buf, count, source);
		int wait_ms = queue_left_ms(end_ns);

		if (done != -FI_EAGAIN || wait_ms == 0)
			return done;
		if (clear_wakes(cq))
			return -FI_EAGAIN; /* fi_cq_signal */
		if (cq->q.head == cq->q.tail && progress_arm(cq) && poll(&pollfd, 1, wait_ms) < 0)
			return -errno;
	}
}

ssize_t cq_sleep_read(struct fid_cq *fid, void *buf, size_t count, const void *condition,
		      int timeout_ms)
{
	return cq_sleep_read_from(fid, buf, count, NULL, condition, timeout_ms);
}
