/* SPDX-License-Identifier: BSD-3-Clause */
/* Serve a client's input in turns: hot path. A client that has used up its turn waits, with its
 * input in the receive buffers. That input takes up the client's window, so it is bounded, and only
 * this client is held up. */
#include "rpc_service.h"

#include <stdlib.h>

/* The retry hint when a client's backlog is full. */
#define BUSY_RETRY_NS PLX_NS_PER_MS

static inline void begin_turn(struct peer *peer)
{
	uint64_t now_ns = plx_loop_now_ns();

	if (peer->turn_at_ns == now_ns)
		return;
	peer->turn_at_ns = now_ns;
	peer->turn_count = 0;
	peer->turn_ns = 0;
}

/* Return whether the client may start another request in this turn and takes its replies. */
static inline bool may_serve(const struct peer *peer)
{
	const struct plx_rpc_service *service = peer->local->service;

	return !peer->session.failure && !peer->paused &&
	       peer->turn_count < service->attr.turn_max && peer->turn_ns < service->attr.turn_ns &&
	       !rpc_tx_is_full(&peer->tx);
}

/* The link's window bounds short ones. */
static inline uint64_t long_bytes(const struct plx_buf *message)
{
	return message->len > RPC_BATCH_BYTES ? message->len : 0;
}

/* Remove and return the oldest. */
static struct backlog *take_first(struct peer *peer)
{
	struct backlog *first = STAILQ_FIRST(&peer->backlog);

	STAILQ_REMOVE_HEAD(&peer->backlog, link);
	peer->backlog_bytes -= long_bytes(first->message);
	return first;
}

static void backlog_free(struct backlog *backlog)
{
	plx_buf_unref(backlog->message);
	free(backlog);
}

void turns_resume(struct peer *peer)
{
	if (!STAILQ_EMPTY(&peer->backlog) && !rpc_tx_is_full(&peer->tx) && !peer->paused)
		turn_wait(&peer->rest, peer->session.link, false);
	else
		turn_end(&peer->rest);
}

/* It is the oldest still. */
static void put_back(struct peer *peer, struct backlog *first, size_t offset)
{
	first->offset = offset;
	STAILQ_INSERT_HEAD(&peer->backlog, first, link);
	peer->backlog_bytes += long_bytes(first->message);
	turns_resume(peer);
}

/* Queue the rest of a message. */
static PLX_NOINLINE void defer(struct peer *peer, struct plx_buf *message, size_t offset)
{
	struct backlog *last = malloc(sizeof(*last));

	if (!last) {
		peer_reject(peer, "there is no memory for what it sent");
		return;
	}
	*last = (struct backlog){
		.message = plx_buf_ref(message), .offset = offset, .arrived_ns = plx_loop_now_ns()};
	STAILQ_INSERT_TAIL(&peer->backlog, last, link);
	peer->backlog_bytes += long_bytes(message);
	counter_add(&peer->local->counts.deferred, 1);
	turns_resume(peer);
}

/* A message being served. */
struct serving {
	struct peer *peer;
	struct plx_buf *message;
	size_t offset;          /* of the next record */
	struct backlog *waited; /* holds the message; NULL: it has just arrived */
};

/* The peer's turn is over, or the message; or a C++ callback threw. */
static inline PLX_ALWAYS_INLINE void stop_serving(const struct serving *serving)
{
	struct backlog *waited = serving->waited;
	struct peer *peer = serving->peer;
	bool is_done = serving->offset == serving->message->len || peer->session.failure;

	if (plx_likely(is_done && !waited))
		return;
	if (is_done)
		backlog_free(waited);
	else if (waited)
		put_back(peer, waited, serving->offset);
	else
		defer(peer, serving->message, serving->offset);
}

/* Serve a message from the offset. If its records are left, they are queued, and the peer may serve
 * no more in this turn. */
static void serve(struct peer *peer, struct plx_buf *message, size_t offset, struct backlog *waited)
{
	struct serving serving PLX_CLEANUP(stop_serving) = {peer, message, offset, waited};
	struct rpc_record record;
	const char *wrong = NULL;
	uint32_t before;

	begin_turn(peer);
	peer->local->message = message;
	before = peer->turn_count;
	while (plx_likely(!wrong && may_serve(peer)) &&
	       rpc_record_next(message->data, message->len, &serving.offset, &record, &wrong)) {
		wrong = serve_record(peer, &record);
		if (plx_unlikely(!turn_goes_on(peer->turn)))
			break;
	}
	if (plx_unlikely(wrong != NULL))
		peer_reject(peer, wrong);
	if (plx_unlikely(peer->local->service->is_self_test_only))
		selftest_charge(peer, peer->turn_count - before);
}

int turns_go_on(struct turn_rest *rest)
{
	struct peer *peer = plx_container_of(rest, struct peer, rest);
	int work = 0;

	begin_turn(peer);
	for (; !STAILQ_EMPTY(&peer->backlog) && may_serve(peer) && !turn_is_over(peer->turn);
	     work++) {
		struct backlog *first = take_first(peer);

		peer->arrived_ns = first->arrived_ns;
		serve(peer, first->message, first->offset, first);
	}
	rpc_tx_flush(&peer->tx);
	/* on_writable or the timer resumes a client that is held up. */
	turns_resume(peer);
	return work;
}

/* A long message must be a single record. Return: NULL, or the error as text. */
static PLX_NOINLINE const char *wrong_long(const struct peer *peer, const struct plx_buf *buf)
{
	const struct rpc_header *header = (const struct rpc_header *)buf->data;

	if (buf->len > peer->local->service->attr.request_max + RPC_RECORD_BYTES + RPC_KEY_BYTES)
		return "it sent more than a request may have";
	if (le32toh(header->length) != buf->len - RPC_RECORD_BYTES)
		return "it sent a long message that is not one record";
	return NULL;
}

/* If the backlog is at its limit, refuse a long request at once, ahead of those that wait. Return:
 * whether it was handled. */
static PLX_NOINLINE bool refuse_long(struct peer *peer, const struct plx_buf *message)
{
	struct rpc_record record;
	const char *wrong;
	size_t offset = 0;

	if (peer->backlog_bytes + message->len <= peer->local->service->attr.waiting_max ||
	    !rpc_record_next(message->data, message->len, &offset, &record, &wrong) ||
	    record.header.kind != RPC_REQUEST)
		return false;
	reply_refusal(peer, record.header.call, PLX_RPC_BUSY, BUSY_RETRY_NS);
	rpc_tx_flush(&peer->tx);
	return true;
}

void turns_receive(struct peer *peer, struct plx_buf *message)
{
	bool is_long = message->len > RPC_BATCH_BYTES;
	const char *wrong = plx_unlikely(is_long) ? wrong_long(peer, message) : NULL;

	if (plx_unlikely(wrong != NULL)) {
		peer_reject(peer, wrong);
		return;
	}
	if (plx_unlikely(!STAILQ_EMPTY(&peer->backlog) || peer->paused)) {
		if (!is_long || !refuse_long(peer, message))
			defer(peer, message, 0);
		return;
	}
	peer->arrived_ns = plx_loop_now_ns();
	serve(peer, message, 0, NULL);
	rpc_tx_flush(&peer->tx);
}

void turns_clear(struct peer *peer)
{
	while (!STAILQ_EMPTY(&peer->backlog))
		backlog_free(take_first(peer));
	turn_end(&peer->rest);
}
