/* SPDX-License-Identifier: BSD-3-Clause */
/* Received frames: hot path. Every field is checked against the received length and this side's
 * grants before use; an invalid frame ends its link. */
#include "receive.h"

/* Post a receive so that the payload starts at a cache line, with the header before it. A message
 * that is forwarded then has headroom for its next header. */
static inline int post(struct plx_link *link, struct plx_op *op, struct plx_buf *buf)
{
	void *desc = link->driver->needs_mr ? set_find_desc(link->set, buf->zone_index) : NULL;

	return (int)fi_recv(link->ep, buf->data - FRAME_HEADER_BYTES, link_frame_bytes(link), desc,
			    0, &op->context);
}

/* Whole messages are accepted while open until FIN, except inside a message in several frames. */
void receive_set_whole_end(struct plx_link *link)
{
	bool accepts = link->state >= LINK_OPEN && link->state < LINK_REFUSING && !link->peer_fin &&
		       !link->partial.total;

	link->rx_whole_end = accepts ? (uint32_t)link->message_max + 1 : 0;
}

/* Post a buffer for every idle receive, as far as the pool has any. Return: 0; -ENOMEM, or the
 * provider's error. */
static int post_idle(struct plx_link *link)
{
	while (link->rx_idle) {
		struct plx_op *op = link->rx_idle;

		op->buf = plx_buf_get(link->rx_pool);
		if (!op->buf)
			return -ENOMEM;

		int rc = post(link, op, op->buf);
		if (rc) {
			plx_buf_unref(op->buf);
			op->buf = NULL;
			return rc;
		}
		link->rx_posted++;
		link->rx_idle = op->next;
	}
	return 0;
}

int receive_post_all(struct plx_link *link)
{
	int rc = post_idle(link);

	if (rc == 0)
		return 0;
	return plx_fail(EIO, "%s: posting receives failed: %s", link->set->label, fi_strerror(-rc));
}

/* The provider no longer has this receive: it returned it unused, or its frame was processed. */
PLX_NOINLINE void receive_take_back(struct plx_op *op)
{
	struct plx_link *link = op->link;

	link->rx_posted--;
	plx_buf_unref(op->buf);
	op->buf = NULL;
	op->next = link->rx_idle;
	link->rx_idle = op;
}

/* Long messages that the user kept. Each holds back the credit of its last frame, so the window
 * bounds their number however long they are kept. Return: how many came back. */
static uint32_t long_messages_back(struct plx_link *link)
{
	uint32_t back = 0;

	for (uint32_t i = 0; i < link->rx_long_kept;) {
		if (plx_buf_unshared(link->rx_long[i])) {
			plx_buf_unref(link->rx_long[i]);
			link->rx_long[i] = link->rx_long[--link->rx_long_kept];
			back++;
		} else {
			i++;
		}
	}
	return back;
}

/* Post buffers that the user has returned, and grant their frames again. */
void receive_refill(struct plx_link *link)
{
	uint32_t before = link->rx_posted;

	if (link->disconnected) { /* nothing arrives now, and returned receives are idle too */
		link->want &= ~WANT_REFILL;
		return;
	}
	post_idle(link);

	uint32_t back = link->rx_posted - before;

	link->rx_kept -= back;
	back += long_messages_back(link);
	if (link->rx_kept + link->rx_long_kept == 0)
		link->want &= ~WANT_REFILL;
	if (back)
		receive_grant(link, back);
}

/* The user kept the buffer: grant its frame once it is back. */
static PLX_NOINLINE void finish_kept(struct plx_op *op)
{
	struct plx_link *link = op->link;

	receive_take_back(op);
	link->rx_kept++;
	if (link->state == LINK_DEAD)
		return;
	receive_grant(link, 0); /* the peer has one credit less: others may be due by now, too */
	link_schedule(link, WANT_REFILL);
}

/* EAGAIN: post later. libfabric's tcp 2.1 also returns it on an ended connection. ENOTCONN: the
 * event follows, after frames that arrived before. See tx_not_sent. */
static PLX_NOINLINE void not_posted(struct plx_op *op, int rc)
{
	struct plx_link *link = op->link;

	if (rc == -FI_EAGAIN)
		finish_kept(op);
	else
		receive_take_back(op);
	if (rc != -FI_EAGAIN && rc != -FI_ENOTCONN)
		close_now(link, PLX_LINK_LOCAL, "posting a receive failed: %s", fi_strerror(-rc));
}

/* The frame was processed: post its receive again. credit: and grant its frame. */
static inline void finish_with(struct plx_link *link, struct plx_op *op, struct plx_buf *buf,
			       bool credit)
{
	int rc;

	if (plx_unlikely(!plx_buf_unshared(buf))) {
		finish_kept(op);
		return;
	}
	if (plx_unlikely(link->state == LINK_DEAD)) {
		receive_take_back(op);
		return;
	}
	plx_buf_reset(buf);
	rc = post(link, op, buf);
	if (plx_unlikely(rc))
		not_posted(op, rc);
	else if (credit)
		receive_grant(link, 1);
}

/* The same out of line, for rare frames. */
PLX_NOINLINE void receive_finish(struct plx_op *op, bool credit)
{
	finish_with(op->link, op, op->buf, credit);
}

/* Continue what waits for the peer's grant. */
PLX_NOINLINE void receive_granted(struct plx_link *link)
{
	link_schedule(link, link->want & WANT_GRANTS ? WANT_ON_CREDIT : 0);
}

/* A receive has completed. It counts as posted until receive_take_back. */
static inline PLX_ALWAYS_INLINE void received(struct plx_fabric_lcore *home, struct plx_op *op,
					      size_t length)
{
	struct plx_link *link = op->link;
	struct plx_buf *buf = op->buf;
	struct frame_header header;

	link->stats.frames_received++;
	liveness_heard(link, home->turn_ns);
	if (plx_unlikely(length - FRAME_HEADER_BYTES >= link->rx_whole_end ||
			 !frame_read_whole(buf->data - FRAME_HEADER_BYTES, length, &header))) {
		receive_slow(op, length);
		return;
	}
	buf->len = header.length;
	if (plx_unlikely(!receive_take_grants(link, &header) || !receive_take_credit(link))) {
		receive_finish(op, false);
		return;
	}
	receive_deliver(link, home, buf);
	finish_with(link, op, buf, true);
}

void receive_done(struct plx_op *op, size_t length)
{
	received(op->link->home, op, length);
}

/* The peer used RDMA write with immediate data; without a grant it can still write 0 bytes. TCP
 * does not show which peer it was. */
static void unexpected_imm_data(struct plx_set *set)
{
	if (plx_log_allowed(&set->log_limit, plx_loop_now_ns()))
		log_warning("%s: a peer reports a write to memory, but nothing was granted",
			    set->label);
}

/* Here, so that receiving is inlined. */
int receive_completions(struct plx_set *set, ssize_t count)
{
	if (plx_unlikely(count < 0))
		return cq_read_errors(set);

	struct plx_set *cut PLX_CLEANUP(completions_end) = set;
	const struct fi_cq_msg_entry *entry = set->read.entries.msg;
	struct plx_fabric_lcore *home = set->home;

	if (plx_likely(count > 0)) {
		set->read.end = entry + count;
	} else {
		entry = set->read.next;
		count = 1;
	}
	do {
		struct plx_op *op = entry->op_context;
		size_t length = entry->len;

		set->read.next = ++entry;
		if (plx_unlikely(!op))
			unexpected_imm_data(set);
		else if (op->kind == OP_RECV)
			received(home, op, length);
		else if (plx_likely(op->kind == OP_SEND))
			tx_done(op, 0);
		else
			direct_done(op, length);
		if (plx_unlikely(!turn_goes_on(&home->budget))) {
			count = completions_keep(set, count);
			break;
		}
	} while (entry != set->read.end);
	cut = NULL;
	return (int)count;
}
