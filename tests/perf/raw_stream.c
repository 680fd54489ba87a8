/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way messages over libfabric, as fast as the peer takes them: the upper bound for links of the
 * same provider.
 * The count is of received messages: after the last message the client sends a mark with their
 * number, and stops its clock when the server has confirmed all of them. So the time includes one
 * idle round trip, and no message in flight counts as received. Marks differ from messages by
 * size. */
#include "raw_endpoint.h"

#include <stdlib.h>

#define CQ_ENTRIES   256
#define BURST        64                  /* entries per queue read */
#define WINDOW_BYTES (UINT64_C(4) << 20) /* in flight and posted: they stay in a cache */
#define DEPTH_LEAST  4
#define DEPTH_MOST   128

/* Of the window and the receives: by size, unless given. */
static uint64_t depth(uint64_t chosen, uint64_t size)
{
	uint64_t fit = WINDOW_BYTES / size;

	if (chosen)
		return chosen;
	return fit < DEPTH_LEAST ? DEPTH_LEAST : fit > DEPTH_MOST ? DEPTH_MOST : fit;
}

/* Receiving -------------------------------------------------------------------------------- */

struct receiver {
	struct raw_endpoint *at;
	uint8_t *sent; /* the content of every message */
	uint64_t size;
	uint64_t got;      /* since the last mark */
	uint64_t expected; /* of messages; RAW_MARK_END: unknown, since a mark may overtake messages
			    */
	bool ended;
};

static int take_mark(struct receiver *receiver, const struct fi_cq_msg_entry *entry)
{
	unsigned index = raw_endpoint_index(receiver->at, entry->op_context);

	if (entry->len != raw_mark_bytes(receiver->size))
		return plx_fail(EPROTO, "a message of %zu B came, not %llu", entry->len,
				(unsigned long long)receiver->size);
	memcpy(&receiver->expected, receiver->at->buffers[index], sizeof(receiver->expected));
	receiver->ended = receiver->expected == RAW_MARK_END;
	return 0;
}

/* One at a time, so that each receive is reposted as soon as possible. */
static int take(struct receiver *receiver, const struct fi_cq_msg_entry *entries, ssize_t count)
{
	int rc = 0;

	for (ssize_t i = 0; i < count && !rc; i++) {
		unsigned index = raw_endpoint_index(receiver->at, entries[i].op_context);

		if (plx_unlikely(entries[i].len != receiver->size))
			rc = take_mark(receiver, &entries[i]);
		else if (plx_unlikely(receiver->got++ == 0))
			rc = raw_check_message(receiver->sent, receiver->at->buffers[index],
					       receiver->size, "the first message");
		if (plx_likely(!rc && !receiver->ended))
			rc = raw_endpoint_post(receiver->at, index);
	}
	return rc;
}

static int answer_mark(struct receiver *receiver)
{
	struct raw_mark mark = {.count = receiver->got};

	receiver->got = 0;
	receiver->expected = RAW_MARK_END;
	ssize_t sent = fi_inject(receiver->at->ep, &mark, raw_mark_bytes(receiver->size),
				 receiver->at->peer);
	return sent ? raw_failed(sent, "cannot answer") : 0;
}

static int receive_all(struct raw_endpoint *at, uint64_t size)
{
	struct receiver receiver = {
		.at = at, .sent = raw_message(size), .size = size, .expected = RAW_MARK_END};
	struct fi_cq_msg_entry entries[BURST];
	struct raw_wait wait = {0};
	int rc = receiver.sent ? 0 : -ENOMEM;

	while (!rc && !receiver.ended) {
		ssize_t n = fi_cq_read(at->cq, entries, BURST);

		if (plx_likely(n > 0)) {
			wait = (struct raw_wait){0};
			rc = take(&receiver, entries, n);
			if (plx_unlikely(!rc && receiver.expected == receiver.got))
				rc = answer_mark(&receiver);
		} else {
			rc = n == -FI_EAGAIN
				   ? raw_wait_over(&wait, RAW_PEER_NS, "a message from the peer")
				   : raw_endpoint_error(at, n);
		}
	}
	free(receiver.sent);
	return rc;
}

int raw_stream_serve(const struct raw_options *options)
{
	struct raw_endpoint at = {.cq_entries = CQ_ENTRIES};
	uint64_t size;
	int rc = raw_program.kind->listen(options, &at, &size);

	if (!rc)
		rc = raw_endpoint_post_all(
			&at, (unsigned)depth(options->posted, size),
			size > sizeof(struct raw_mark) ? size : sizeof(struct raw_mark));
	rc = rc ? rc : raw_program.kind->accept(&at);
	rc = rc ? rc : receive_all(&at, size);
	raw_endpoint_close(&at);
	return rc;
}

/* Sending ---------------------------------------------------------------------------------- */

struct sender {
	struct raw_endpoint *at;
	struct raw_flow *flow;
	uint8_t *message;
	uint64_t size;
	uint64_t window;
	uint64_t batch;     /* sends per completion */
	uint64_t under_way; /* sends not covered by a completion */
	uint64_t number;    /* sends since the last one with a completion */
	bool inject;
	bool answered; /* a mark came back */
	struct raw_mark answer;
};

/* Let the provider progress. Return: 0; -errno, also if nothing progresses for too long. */
static int look(struct sender *sender, struct raw_wait *wait, const char *what)
{
	struct fi_cq_msg_entry entries[BURST];
	ssize_t n = fi_cq_read(sender->at->cq, entries, BURST);

	for (ssize_t i = 0; i < n; i++) {
		if (!(entries[i].flags & FI_RECV)) {
			sender->under_way -= sender->batch;
			continue;
		}
		unsigned index = raw_endpoint_index(sender->at, entries[i].op_context);
		memcpy(&sender->answer, sender->at->buffers[index], sizeof(sender->answer));
		sender->answered = true;
		int rc = raw_endpoint_post(sender->at, index);
		if (rc)
			return rc;
	}
	if (n < 0 && n != -FI_EAGAIN)
		return raw_endpoint_error(sender->at, n);
	return raw_wait_over(wait, RAW_PEER_NS, what);
}

/* Every batch-th send has a completion, which covers the ones before it. */
static ssize_t try_send_large(struct sender *sender)
{
	struct iovec iov = {sender->message, sender->size};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = sender->at->peer};
	bool last = sender->number + 1 == sender->batch;

	if (sender->under_way >= sender->window)
		return -FI_EAGAIN;
	ssize_t rc = fi_sendmsg(sender->at->ep, &msg, last ? FI_COMPLETION : 0);
	if (!rc) {
		sender->number = last ? 0 : sender->number + 1;
		sender->under_way++;
	}
	return rc;
}

static inline ssize_t try_send(struct sender *sender)
{
	if (sender->inject)
		return fi_inject(sender->at->ep, sender->message, sender->size, sender->at->peer);
	return try_send_large(sender);
}

static int wait_for_room(struct sender *sender)
{
	struct raw_wait wait = {0};
	ssize_t sent;

	sender->flow->again++;
	do {
		int rc = look(sender, &wait, "the peer to take a message");
		if (rc)
			return rc;
		sent = try_send(sender);
	} while (sent == -FI_EAGAIN);
	return sent ? raw_failed(sent, "cannot send") : 0;
}

static int send_some(void *side, uint64_t count)
{
	struct sender *sender = side;
	int rc = 0;

	for (uint64_t i = 0; i < count && plx_likely(!rc); i++) {
		ssize_t sent = try_send(sender);

		if (plx_unlikely(sent))
			rc = sent == -FI_EAGAIN ? wait_for_room(sender)
						: raw_failed(sent, "cannot send");
	}
	/* Relaxed: see raw_run_add. */
	if (!rc && atomic_load_explicit(&raw_stop, memory_order_relaxed))
		return plx_fail(EINTR, "stopped while sending");
	return rc;
}

static int send_mark(struct sender *sender, uint64_t count)
{
	struct raw_mark mark = {.count = count};

	return raw_endpoint_send(sender->at, &mark, raw_mark_bytes(sender->size), NULL);
}

/* Until the server has all of them. */
static int settle(void *side, uint64_t count)
{
	struct sender *sender = side;
	struct raw_wait wait = {0};
	int rc = send_mark(sender, count);

	while (!rc && !sender->answered)
		rc = look(sender, &wait, "the server's count");
	if (!rc && sender->answer.count != count)
		rc = plx_fail(EBADMSG, "the server got %llu messages of %llu",
			      (unsigned long long)sender->answer.count, (unsigned long long)count);
	sender->answered = false;
	return rc;
}

int raw_stream_send(const struct raw_options *options, struct raw_flow *flow)
{
	struct raw_endpoint at = {.cq_entries = CQ_ENTRIES};
	uint64_t window = depth(options->window, options->size);
	struct sender sender = {
		.at = &at,
		.flow = flow,
		.message = raw_message(options->size),
		.size = options->size,
		.window = window,
		.batch = window >= DEPTH_LEAST ? window / DEPTH_LEAST : 1,
	};
	int rc = sender.message ? raw_program.kind->connect(options, &at) : -ENOMEM;

	sender.inject = options->size <= at.inject_size;
	rc = rc ? rc : raw_endpoint_post_few(&at, sizeof(struct raw_mark));
	rc = rc ? rc : raw_flow_send(options, flow, send_some, settle, &sender);
	rc = rc ? rc : send_mark(&sender, RAW_MARK_END);
	raw_endpoint_close(&at);
	free(sender.message);
	return rc;
}
