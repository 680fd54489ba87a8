/* SPDX-License-Identifier: BSD-3-Clause */
/* The taker may sleep without missing a message:
 *
 *     the lcore                              the taker
 *     W1 push                                W3 set `waits`
 *     W2 clear `waits`:                      W4 try once more; then wait for the eventfd
 *        write the eventfd if it was set
 *
 * W2 and W3 are read-modify-writes of one word, so one comes first. If W2 does, W3 reads from it or
 * from a later one, and W4 finds the message. If W3 does, W2 writes. The eventfd is read before W3,
 * never between W4 and the wait. tests/model/sleep.pml checks this with WAITER. */
#include "listener.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#ifndef QUEUE_STEP
#define QUEUE_STEP() ((void)0) /* tests insert a delay here */
#endif

int queue_create(uint32_t count, struct queue **queue_out)
{
	struct plx_ring_attr attr = {
		.kind = PLX_RING_SPSC,
		.capacity = count,
		.element_bytes = sizeof(struct netio_msg),
	};
	struct queue *queue = aligned_alloc(PLX_CACHE_LINE, sizeof(*queue));
	int rc;

	if (!queue)
		return plx_fail(ENOMEM, "out of memory");
	*queue = (struct queue){.eventfd = -1};
	rc = plx_ring_create(&attr, &queue->ring);
	/* Starts readable: a thread that polls before its first take looks once, and arms it. */
	if (rc == 0)
		queue->eventfd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rc == 0 && queue->eventfd < 0)
		rc = plx_fail(errno, "a queue needs an eventfd: %s; look at ulimit -n",
			      strerror(errno));
	if (rc)
		queue_destroy(queue);
	else
		*queue_out = queue;
	return rc;
}

void queue_destroy(struct queue *queue)
{
	struct netio_msg msg;

	if (!queue)
		return;
	while (queue->ring && plx_ring_pop(queue->ring, &msg))
		netio_msg_release(&msg);
	plx_ring_destroy(queue->ring);
	if (queue->eventfd >= 0)
		close(queue->eventfd);
	free(queue);
}

void queue_wake(struct queue *queue)
{
	const uint64_t one = 1;
	ssize_t bytes;

	queue->told = queue->pushed;
	QUEUE_STEP();
	if (!atomic_exchange_explicit(&queue->waits, false, memory_order_acq_rel)) /* W2 -> W3 */
		return;
	QUEUE_STEP();
	bytes = write(queue->eventfd, &one, sizeof(one));
	(void)bytes; /* cannot fail: the count is below 2^64 - 1 */
}

/* Return: whether a message arrived meanwhile. */
static bool arm(struct queue *queue, struct netio_msg *msg_out)
{
	uint64_t count;
	ssize_t bytes = read(queue->eventfd, &count, sizeof(count));

	(void)bytes; /* usually nothing was written */
	QUEUE_STEP();
	atomic_exchange_explicit(&queue->waits, true, memory_order_acq_rel); /* W3 <- W2 */
	QUEUE_STEP();
	return plx_ring_pop(queue->ring, msg_out); /* W4 */
}

int queue_take(struct queue *queue, struct netio_msg *msg_out)
{
	if (plx_ring_pop(queue->ring, msg_out))
		return 0;
	return queue->by_fd && arm(queue, msg_out) ? 0 : -EAGAIN;
}

/* Return: 0 look again; -ETIMEDOUT; -EINTR. */
static int wait_until(const struct queue *queue, uint64_t until_ns)
{
	uint64_t left_ns = plx_time_since(plx_now_ns(), until_ns);
	struct timespec left = {
		.tv_sec = (time_t)(left_ns / PLX_NS_PER_S),
		.tv_nsec = (long)(left_ns % PLX_NS_PER_S),
	};
	struct pollfd fd = {.fd = queue->eventfd, .events = POLLIN};

	if (left_ns == 0)
		return -ETIMEDOUT;
	return ppoll(&fd, 1, until_ns == PLX_NEVER ? NULL : &left, NULL) < 0 ? -errno : 0;
}

int queue_take_wait(struct queue *queue, struct netio_msg *msg_out, uint64_t timeout_ns)
{
	uint64_t until_ns = plx_time_add(plx_now_ns(), timeout_ns);
	int rc = 0;

	while (!plx_ring_pop(queue->ring, msg_out) && !arm(queue, msg_out)) {
		rc = wait_until(queue, until_ns);
		if (rc)
			return rc;
	}
	return 0;
}

int queue_fd(struct queue *queue)
{
	queue->by_fd = true;
	return queue->eventfd;
}
