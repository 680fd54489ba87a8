/* SPDX-License-Identifier: BSD-3-Clause */
/* What all sends share: hot path. Providers may queue without limit and never refuse, so the
 * limits are ours: the peer's credit, and LINK_TX_OPS operations in flight. */
#include "tx.h"

/* No credit or no operation: a received frame or a completion follows. */
int tx_would_block(struct plx_link *link)
{
	link->stats.again++;
	link->want |= WANT_ON_WRITABLE;
	return -EAGAIN;
}

/* Return: 0; -ENOTCONN; -EMSGSIZE. */
int tx_check_sendable(const struct plx_link *link, uint64_t length)
{
	if (plx_unlikely(link->state != LINK_OPEN))
		return link_fail_closed(link);
	if (plx_unlikely(length > link->peer_message_max))
		return plx_fail(EMSGSIZE, "%llu bytes: %s accepts messages of at most %llu bytes",
				(unsigned long long)length, link->peer,
				(unsigned long long)link->peer_message_max);
	return 0;
}

bool tx_has_room(const struct plx_link *link)
{
	return !link->tx_current.head && tx_frames_left(link) &&
	       link->tx_free_count > LINK_TX_CONTROL;
}

/* Messages of one frame can be sent inline unless one is partly sent: up to INJECT_COPY_MAX bytes
 * on the stack, or any length if the driver has `claim`. */
void tx_set_inline_end(struct plx_link *link)
{
	uint64_t most = lesser(link->peer_frame_max, link->peer_message_max);

	link->tx_inline_end = 0;
	if (link->state != LINK_OPEN || link->tx_current.head)
		return;
	if (!link->driver->claim) {
		if (link->inject_max < FRAME_HEADER_BYTES)
			return;
		most = lesser(most, link->inject_max - FRAME_HEADER_BYTES);
	}
	link->tx_inline_end = (uint32_t)most + 1;
}

/* Operations --------------------------------------------------------------------------------- */

/* reserve: operations to leave unused: LINK_TX_CONTROL for messages, 0 for control frames. */
struct plx_op *tx_take_op(struct plx_link *link, uint32_t reserve)
{
	struct plx_op *op = link->tx_free;

	if (plx_unlikely(link->tx_free_count <= reserve))
		return NULL;
	link->tx_free = op->next;
	link->tx_free_count--;
	return op;
}

void tx_give_op(struct plx_link *link, struct plx_op *op)
{
	op->buf = op->bounced = NULL;
	op->sent = NULL;
	op->next = link->tx_free;
	link->tx_free = op;
	link->tx_free_count++;
}

static inline void unref(struct plx_buf **buf)
{
	plx_buf_unref(*buf);
}

void tx_finished(struct plx_link *link, struct plx_buf *buf, plx_link_sent_fn sent, void *arg,
		 int status)
{
	struct plx_buf *sent_buf PLX_CLEANUP(unref) = buf; /* also if a C++ callback throws */

	if (sent)
		sent(link, buf, status, arg);
}

/* The provider will never complete this operation, if it has it at all: its message has failed. */
void tx_fail_op(struct plx_op *op)
{
	struct plx_buf *buf = op->buf;

	op->buf = NULL;
	if (buf && op->sent)
		op->sent(op->link, buf, -ETIMEDOUT, op->sent_arg);
	/* Leak the buffer: the provider may still read it. */
}

/* The provider has completed a send. status: 0 or -errno. */
void tx_done(struct plx_op *op, int status)
{
	struct plx_link *link = op->link;
	struct plx_buf *buf = op->buf;
	plx_link_sent_fn sent = op->sent;

	tx_count_ops(link, -1);
	if (plx_unlikely(op->bounced != NULL))
		plx_buf_unref(op->bounced);
	tx_give_op(link, op);
	if (buf)
		tx_finished(link, buf, sent, op->sent_arg, status);
	tx_completed(link);
}

/* An operation has completed: continue what waited for one. */
void tx_completed(struct plx_link *link)
{
	if (plx_unlikely(link->state == LINK_DEAD)) /* close_reap does the rest */
		return;
	if (plx_unlikely(link->want & (WANT_TX | WANT_ON_WRITABLE | WANT_CONTROL)))
		link_schedule(link, link->want);
	if (plx_unlikely(link->state == LINK_CLOSING))
		close_step(link);
}

/* The provider has no room: the next completion frees some. If none is due, the loop retries each
 * turn. A broken connection counts as full: frames that arrived before must still be read, and an
 * event follows. */
int tx_not_sent(struct plx_link *link, ssize_t rc)
{
	if (plx_unlikely(rc != -FI_EAGAIN && rc != -FI_ENOTCONN)) {
		close_now(link, PLX_LINK_LOCAL, "sending failed: %s", fi_strerror((int)-rc));
		return -ENOTCONN;
	}
	if (!link->tx_inflight)
		link_schedule(link, 0);
	return -EAGAIN;
}

/* A frame has requested its completion. */
void tx_signalled(struct plx_link *link)
{
	uint32_t every = link->driver->signal_every;

	link->injects_left = every ? every - 1 : UINT32_MAX;
}

static ssize_t send_msg(struct plx_link *link, struct plx_op *op, const struct iovec *iov,
			void **desc, int count, uint64_t flags)
{
	struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = (size_t)count, .context = &op->context};

	return fi_sendmsg(link->ep, &msg, FI_COMPLETION | flags);
}

/* Post a frame by reference. flags: of the operation, in addition to its completion. Return: 0;
 * -EAGAIN the provider's queue is full. If the provider fails, the link ends and the operation
 * counts as posted. */
int tx_submit(struct plx_link *link, struct plx_op *op, const struct iovec *iov, void **desc,
	      int count, uint64_t flags)
{
	ssize_t rc = flags      ? send_msg(link, op, iov, desc, count, flags)
		   : count == 1 ? fi_send(link->ep, iov[0].iov_base, iov[0].iov_len, desc[0], 0,
					  &op->context)
				: fi_sendv(link->ep, iov, desc, (size_t)count, 0, &op->context);

	if (plx_unlikely(rc))
		return tx_not_sent(link, rc);
	tx_count_ops(link, 1);
	tx_signalled(link);
	return 0;
}

/* Send an assembled frame: injected, or by reference. signalled: with a completion. Return: 0;
 * -EAGAIN. */
int tx_send_small(struct plx_link *link, const uint8_t *frame, uint32_t length, bool signalled)
{
	struct plx_buf *buf = NULL;
	struct plx_op *op;
	uint8_t *copy;
	void *desc;
	int rc;

	if (!signalled && tx_may_inject(link, length))
		return tx_inject(link, frame, length);
	op = tx_take_op(link, 0);
	if (!op)
		return -EAGAIN;
	if (length > sizeof(op->header)) /* otherwise its operation has room for the frame */
		buf = plx_buf_get(link->home->tx_pool);
	if (length > sizeof(op->header) && !buf) {
		tx_give_op(link, op);
		return -EAGAIN;
	}
	op->buf = buf;
	copy = memcpy(buf ? plx_buf_append(buf, length) : op->header, frame, length);
	desc = set_desc(link->set, buf ? buf->zone_index : link->ops_zone);
	rc = tx_submit(link, op, &(struct iovec){copy, length}, &desc, 1, 0);
	if (rc) {
		plx_buf_unref(buf);
		tx_give_op(link, op);
	}
	return rc;
}
