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
	void *desc; /* of the client's message */
	int epoll;  /* -1: spins */
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
	struct raw_wait stop = {.spins = RAW_SPINS_CHECK - 1};
	struct epoll_event event;
	int rc = fi_trywait(side->msg.at.fabric, fids, 1);

	if (rc == -FI_EAGAIN)
		return 0;
	if (rc)
		return raw_failed(rc, "cannot sleep on the completion queue");
	int n = epoll_wait(side->epoll, &event, 1, RAW_PEER_NS / PLX_NS_PER_MS);
	if (plx_likely(n == 1))
		return plx_likely(event.data.u32 != OF_EVENTS) ? 0 : raw_msg_gone(&side->msg);
	if (n == 0)
		return plx_fail(ETIMEDOUT, "waited in vain for a message from the peer");
	return errno == EINTR ? raw_wait_over(&stop, RAW_PEER_NS, "a message from the peer")
			      : plx_fail(errno, "epoll_wait: %s", strerror(errno));
}

/* Nothing has arrived yet. */
static inline int spin_once(struct side *side, struct raw_wait *wait)
{
	int rc = raw_wait_over(wait, RAW_PEER_NS, "a message from the peer");

	return plx_likely(rc || wait->spins % RAW_SPINS_CHECK) ? rc : raw_msg_gone(&side->msg);
}

/* Wait for a message. Returns the index of its buffer, or -errno. */
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

static int echo(struct side *side)
{
	int last = -1;

	for (;;) {
		int index = receive(side);
		if (plx_unlikely(index < 0))
			return index == -EPIPE ? 0 : index;
		int rc = transmit(side, side->msg.at.buffers[index], side->msg.at.desc);
		if (!rc && last >= 0)
			rc = raw_endpoint_post(&side->msg.at, (unsigned)last);
		if (plx_unlikely(rc))
			return rc;
		last = index;
	}
}

/* The previous trip's receive is reposted while this trip's message is in flight. */
static int trips(struct side *side, uint8_t *message, struct raw_run *run)
{
	struct raw_endpoint *at = &side->msg.at;
	uint64_t number = 0;
	int last = -1;
	bool more;

	do {
		raw_number(message, side->size, ++number);
		uint64_t sent = plx_tsc();
		int rc = transmit(side, message, side->desc);
		if (!rc && last >= 0)
			rc = raw_endpoint_post(at, (unsigned)last);
		last = plx_likely(!rc) ? receive(side) : rc;
		uint64_t seen = plx_tsc_after_loads();
		rc = plx_likely(last >= 0) ? raw_check_number(at->buffers[last], side->size, number)
					   : last;
		if (plx_unlikely(rc))
			return rc;
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_message(message, at->buffers[last], side->size, "the last answer");
}

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
	int rc = raw_msg_connect(options, &side.msg);

	rc = rc ? rc : raw_endpoint_register(&side.msg.at, message, options->size, &side.desc);
	rc = rc ? rc : prepare(options, &side, options->size);
	rc = rc ? rc : trips(&side, message, run);
	close_side(&side);
	return rc;
}

RAW_ROUND_TRIPS("raw-fi", "tcp", .choose_provider = true, .choose_idle = true, .choose_cq = true);
