/* SPDX-License-Identifier: BSD-3-Clause */
/* The leanest ping-pong on a connected libfabric endpoint (FI_EP_MSG): one completion queue,
 * polled; receives posted ahead; sends injected or without completion; nothing else. It is the
 * floor of every link on the same provider. With --idle event it sleeps on the queue's descriptor
 * whenever the queue is empty.
 * A buffer sent without completion is free again when the other side's next message arrives,
 * because that side answers only complete messages. Verbs queues a completion for every send, and
 * drops it when the queue is read for the next message.
 * The client sends first, as iWARP requires. */
#include "raw_msg.h"

#include <unistd.h>

#define OF_EVENTS 1 /* epoll data of the event queue; the completion queue's is 0 */

struct side {
	struct raw_msg msg;
	size_t size;
	bool inject;
	int epoll; /* -1: spins */
};

/* If only the event queue reports a lost peer. */
static int add_events(struct side *side)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = OF_EVENTS};
	int fd = -1;
	int rc = fi_control(&side->msg.eq->fid, FI_GETWAIT, &fd);

	if (rc)
		return raw_failed(rc, "the event queue has no descriptor");
	return epoll_ctl(side->epoll, EPOLL_CTL_ADD, fd, &event)
		     ? plx_fail(errno, "cannot sleep on the event queue: %s", strerror(errno))
		     : 0;
}

static int open_epoll(struct side *side)
{
	int fd = -1;
	int rc = fi_control(&side->msg.at.cq->fid, FI_GETWAIT, &fd);

	if (rc)
		return raw_failed(rc, "the completion queue has no descriptor");
	rc = raw_open_epoll(fd, EPOLLIN, "the completion queue", &side->epoll);
	if (!rc && side->msg.at.rdma)
		rc = add_events(side);
	return rc;
}

/* Until something may be in the queue. */
static int sleep_once(struct side *side)
{
	struct fid *fids[] = {&side->msg.at.cq->fid};
	struct epoll_event event = {0};
	int rc = fi_trywait(side->msg.at.fabric, fids, 1);

	if (rc == -FI_EAGAIN)
		return 0;
	if (rc)
		return raw_failed(rc, "cannot sleep on the completion queue");
	rc = raw_sleep(side->epoll, &event);
	return plx_likely(rc || event.data.u32 != OF_EVENTS) ? rc : raw_msg_gone(&side->msg);
}

/* Nothing has arrived yet. */
static inline int spin_once(struct side *side, struct raw_wait *wait)
{
	int rc = raw_wait_over(wait, RAW_PEER_NS, "a message from the peer");

	return plx_likely(rc || wait->spins % RAW_SPINS_CHECK) ? rc : raw_msg_gone(&side->msg);
}

static inline struct raw_endpoint *at_of(struct side *side)
{
	return &side->msg.at;
}

static int receive(struct side *side)
{
	struct raw_endpoint *at = &side->msg.at;
	struct fi_cq_msg_entry entry;
	struct raw_wait wait = {0};

	for (;;) {
		ssize_t n = fi_cq_read(at->cq, &entry, 1);

		if (plx_likely(n == 1))
			return plx_likely(entry.len == side->size)
				     ? (int)raw_endpoint_index(at, entry.op_context)
				     : plx_fail(EPROTO, "a message of %zu B came, not %zu",
						entry.len, side->size);
		if (n != -FI_EAGAIN)
			return raw_endpoint_error(at, n);
		int rc = side->epoll < 0 ? spin_once(side, &wait) : sleep_once(side);
		if (rc)
			return rc;
	}
}

static inline int transmit(struct side *side, const uint8_t *message, void *desc)
{
	struct fid_ep *ep = side->msg.at.ep;
	ssize_t rc = side->inject ? fi_inject(ep, message, side->size, 0)
				  : fi_send(ep, message, side->size, desc, 0, NULL);

	return plx_likely(rc == 0) ? 0 : raw_failed(rc, "cannot send");
}

#include "raw_trips.h"

/* Both sides, once the endpoint exists. */
static int prepare(const struct raw_options *options, struct side *side, uint64_t size)
{
	int rc = raw_endpoint_post_few(&side->msg.at, size);

	side->size = size;
	side->inject = size <= side->msg.at.inject_size;
	return rc || !options->sleeps ? rc : open_epoll(side);
}

static void close_side(struct side *side)
{
	raw_msg_close(&side->msg);
	if (side->epoll >= 0)
		close(side->epoll);
}

static int serve(const struct raw_options *options)
{
	struct side side = {.msg.at.may_rdma = true, .epoll = -1};
	uint64_t size;
	int rc = raw_msg_listen(options, &side.msg, &size);

	rc = rc ? rc : prepare(options, &side, size);
	rc = rc ? rc : raw_msg_accept(&side.msg);
	rc = rc ? rc : echo(&side);
	close_side(&side);
	return rc;
}

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct side side = {.msg.at.may_rdma = true, .epoll = -1};
	void *desc = NULL; /* of the message */
	int rc = raw_msg_connect(options, &side.msg);

	rc = rc ? rc : raw_endpoint_register(&side.msg.at, message, options->size, &desc);
	rc = rc ? rc : prepare(options, &side, options->size);
	rc = rc ? rc : trips(&side, message, desc, run);
	close_side(&side);
	return rc;
}

RAW_ROUND_TRIPS("raw-fi", "tcp", .choose_provider = true, .choose_idle = true, .choose_cq = true);
