/* SPDX-License-Identifier: BSD-3-Clause */
/* The leanest ping-pong over libfabric: one completion queue, polled; receives posted ahead; sends
 * injected or without completion; nothing else. It is the floor of every link on the same provider.
 * With --idle event it sleeps on the queue's descriptor whenever the queue is empty.
 * A buffer sent without completion is free again when the other side's next message arrives,
 * because that side answers only complete messages. Verbs queues a completion for every send, and
 * drops it when the queue is read for the next message.
 * The client sends first, as iWARP requires, and ends with an empty message. */
#include "raw_endpoint.h"

#include <unistd.h>

#define OF_EVENTS 1 /* epoll data of the event queue; the completion queue's is 0 */

struct side {
	struct raw_endpoint at;
	size_t size;
	int epoll; /* -1: spins */
};

/* If only the event queue reports a lost peer. */
static int add_events(struct side *side)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = OF_EVENTS};
	int fd = -1;
	int rc = fi_control(&side->at.eq->fid, FI_GETWAIT, &fd);

	if (rc)
		return raw_failed(rc, "the event queue has no descriptor");
	return epoll_ctl(side->epoll, EPOLL_CTL_ADD, fd, &event)
		     ? plx_fail(errno, "cannot sleep on the event queue: %s", strerror(errno))
		     : 0;
}

static int open_epoll(struct side *side)
{
	int fd = -1;
	int rc = fi_control(&side->at.cq->fid, FI_GETWAIT, &fd);

	if (rc)
		return raw_failed(rc, "the completion queue has no descriptor");
	rc = raw_open_epoll(fd, EPOLLIN, "the completion queue", &side->epoll);
	return rc || !side->at.rdma ? rc : add_events(side);
}

static int look_for_end(struct side *side)
{
	return raw_program.kind->gone ? raw_program.kind->gone(&side->at) : 0;
}

/* Until something may be in the queue. */
static int sleep_once(struct side *side)
{
	struct fid *fids[] = {&side->at.cq->fid};
	struct epoll_event event = {0};
	int rc = fi_trywait(side->at.fabric, fids, 1);

	if (rc == -FI_EAGAIN)
		return 0;
	if (rc)
		return raw_failed(rc, "cannot sleep on the completion queue");
	rc = raw_sleep(side->epoll, &event);
	return plx_likely(rc || event.data.u32 != OF_EVENTS) ? rc : look_for_end(side);
}

/* Nothing has arrived yet. */
static inline int spin_once(struct side *side, struct raw_wait *wait)
{
	int rc = raw_wait_over(wait, RAW_PEER_NS, "a message from the peer");

	return plx_likely(rc || wait->spins % RAW_SPINS_CHECK) ? rc : look_for_end(side);
}

/* Wait for a message of the right size. Return: the index of its buffer; -EPIPE once the client has
 * left; -errno. */
static int receive(struct side *side)
{
	struct fi_cq_msg_entry entry;
	struct raw_wait wait = {0};
	ssize_t n;

	while ((n = fi_cq_read(side->at.cq, &entry, 1)) == -FI_EAGAIN) {
		int rc = side->epoll < 0 ? spin_once(side, &wait) : sleep_once(side);
		if (rc)
			return rc;
	}
	if (plx_unlikely(n != 1))
		return raw_endpoint_error(&side->at, n);
	if (plx_likely(entry.len == side->size))
		return (int)raw_endpoint_index(&side->at, entry.op_context);
	return entry.len == 0
		     ? -EPIPE
		     : plx_fail(EPROTO, "a message of %zu B came, not %zu", entry.len, side->size);
}

/* Send, and repost the receive of the last message while this one is in flight. */
static inline int transmit(struct side *side, const uint8_t *message, void *desc, int last)
{
	int rc = raw_endpoint_send(&side->at, message, side->size, desc);

	return rc || last < 0 ? rc : raw_endpoint_post(&side->at, (unsigned)last);
}

static int echo(struct side *side)
{
	int last = -1;

	for (;;) {
		int index = receive(side);
		if (plx_unlikely(index < 0))
			return index == -EPIPE ? 0 : index;
		int rc = transmit(side, side->at.buffers[index], side->at.desc, last);
		if (plx_unlikely(rc))
			return rc;
		last = index;
	}
}

static int trips(struct side *side, uint8_t *message, void *desc, struct raw_run *run)
{
	uint64_t number = 0;
	int last = -1;
	bool more;

	do {
		raw_number(message, side->size, ++number);
		uint64_t sent = plx_tsc();
		int rc = transmit(side, message, desc, last);
		last = plx_likely(!rc) ? receive(side) : rc;
		uint64_t seen = plx_tsc_after_loads();
		rc = plx_likely(last >= 0)
			   ? raw_check_number(side->at.buffers[last], side->size, number)
			   : last;
		if (plx_unlikely(rc))
			return rc;
		more = raw_run_add(run, sent, seen);
	} while (more);
	raw_endpoint_send(&side->at, "", 0, NULL);
	return raw_check_message(message, side->at.buffers[last], side->size, "the last answer");
}

/* Both sides, once the endpoint exists. */
static int prepare(const struct raw_options *options, struct side *side, uint64_t size)
{
	int rc = raw_endpoint_post_few(&side->at, size);

	side->size = size;
	return rc || !options->sleeps ? rc : open_epoll(side);
}

static void close_side(struct side *side)
{
	raw_endpoint_close(&side->at);
	if (side->epoll >= 0)
		close(side->epoll);
}

int raw_trips_serve(const struct raw_options *options)
{
	struct side side = {.at.may_rdma = true, .epoll = -1};
	uint64_t size;
	int rc = raw_program.kind->listen(options, &side.at, &size);

	rc = rc ? rc : prepare(options, &side, size);
	rc = rc ? rc : raw_program.kind->accept(&side.at);
	rc = rc ? rc : echo(&side);
	close_side(&side);
	return rc;
}

int raw_trips_ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct side side = {.at.may_rdma = true, .epoll = -1};
	void *desc = NULL; /* of the message */
	int rc = raw_program.kind->connect(options, &side.at);

	rc = rc ? rc : raw_endpoint_register(&side.at, message, options->size, &desc);
	rc = rc ? rc : prepare(options, &side, options->size);
	rc = rc ? rc : trips(&side, message, desc, run);
	close_side(&side);
	return rc;
}
