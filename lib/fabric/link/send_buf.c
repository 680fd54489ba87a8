/* SPDX-License-Identifier: BSD-3-Clause */
/* Send by reference: hot path. */
#include "tx.h"

/* Whether the header may be written to the buffer's own headroom. A message forwarded inside its
 * delivery has the library's reference in addition to the sender's, but nobody reads its old header
 * again. */
static bool headroom_is_ours(const struct plx_link *link, const struct plx_buf *buf)
{
	bool sent_on = buf == link->home->delivering &&
		       atomic_load_explicit(&buf->refs, memory_order_acquire) == 2;

	return plx_buf_headroom(buf) >= FRAME_HEADER_BYTES && (sent_on || plx_buf_unshared(buf));
}

/* Gather the next frame's payload into iov[1...], at most `room` bytes. Return: its bytes. */
static uint32_t gather(struct plx_link *link, struct tx_message *m, uint32_t room,
		       struct iovec *iov, void **desc, int *count)
{
	uint32_t length = 0;

	*count = 1;
	while (m->segment && length < room && *count < (int)link->iov_max) {
		uint32_t piece = m->segment->len - m->offset;

		if (piece > room - length)
			piece = room - length;
		if (piece) {
			iov[*count].iov_base = m->segment->data + m->offset;
			iov[*count].iov_len = piece;
			desc[*count] = set_desc(link->set, m->segment->zone_index);
			(*count)++;
		}
		length += piece;
		m->offset += piece;
		if (m->offset == m->segment->len) {
			m->segment = m->segment->next;
			m->offset = 0;
		}
	}
	return length;
}

/* Send one frame of the current message. Return: 0; -EAGAIN; -ENOTCONN the link has ended. */
static int send_frame(struct plx_link *link, struct tx_message *m)
{
	bool whole = m->left == m->total && m->total <= link->peer_frame_max;
	bool first = m->left == m->total && !whole;
	uint32_t prefix = first ? FRAME_TOTAL_BYTES : 0;
	uint32_t room = link->peer_frame_max;
	struct tx_message before = *m;
	struct iovec iov[LINK_IOV_MAX];
	void *desc[LINK_IOV_MAX];
	int count;

	if (tx_frames_left(link) == 0)
		return -EAGAIN;

	struct plx_op *op = tx_take_op(link, LINK_TX_CONTROL);

	if (!op)
		return -EAGAIN;

	uint32_t length = gather(link, m, room - prefix, iov, desc, &count);

	if (whole && length < m->total) { /* more pieces than one operation takes */
		whole = false;
		first = true;
		prefix = FRAME_TOTAL_BYTES;
		*m = before;
		length = gather(link, m, room - prefix, iov, desc, &count);
	}

	uint8_t *header = op->header;
	bool in_place = !first && count == 2 && iov[1].iov_base == m->head->data &&
			headroom_is_ours(link, m->head) && before.segment == m->head &&
			before.offset == 0;

	if (in_place)
		header = m->head->data - FRAME_HEADER_BYTES;
	tx_write_header(link, header,
			whole   ? FRAME_DATA
			: first ? FRAME_DATA_FIRST
				: FRAME_DATA_NEXT,
			0, prefix + length);
	if (first)
		put64(header + FRAME_HEADER_BYTES, m->total);
	iov[0] = (struct iovec){header, FRAME_HEADER_BYTES + prefix};
	desc[0] = set_desc(link->set, link->ops_zone);
	if (in_place) {
		iov[0].iov_len += length;
		desc[0] = desc[1];
		count = 1;
	}
	m->left -= length;
	if (m->left == 0) { /* completions are in order: the last frame's is the message's */
		op->buf = m->head;
		op->bounced = m->bounced;
		op->sent = m->sent;
		op->sent_arg = m->sent_arg;
	}

	int rc = tx_submit(link, op, iov, desc, count, m->written ? FI_INJECT_COMPLETE : 0);

	if (plx_unlikely(rc)) {
		tx_give_op(link, op);
		*m = before;
		return rc;
	}
	tx_count_frame(link);
	return 0;
}

/* Send frames of a message until there is no room. Return: 0 all are sent; -EAGAIN; -ENOTCONN. */
static int send_frames(struct plx_link *link, struct tx_message *m)
{
	int rc;

	do {
		rc = send_frame(link, m);
	} while (rc == 0 && m->left);
	return rc;
}

/* A provider that needs registered memory cannot send from other memory: copy the message in one
 * piece. Memory from pools never needs this. Return: the copy; NULL with an error text. */
struct plx_buf *send_buf_bounce(struct plx_link *link, const struct plx_buf *buf, uint64_t total)
{
	bool needs_mr = link->driver->needs_mr;
	struct plx_buf *copy = link_buf_get(link->home, (uint32_t)total, needs_mr);

	if (!copy)
		return NULL;
	plx_buf_copy_out(buf, 0, plx_buf_append(copy, (uint32_t)total), total);
	if (!needs_mr || set_has_message(link->set, copy))
		return copy;
	plx_buf_unref(copy);
	set_need_zone(link->set, PLX_ZONE_NONE);
	return NULL;
}

static PLX_NOINLINE int bounce(struct plx_link *link, struct tx_message *m)
{
	if (m->total > PLX_SEND_COPY_MAX + COPY_HEADER_MAX)
		return plx_fail(EMSGSIZE,
				"%llu bytes outside the memory of plx_mem_alloc: %s would copy "
				"them, which it does for at most %llu; allocate them there",
				(unsigned long long)m->total, link->set->label,
				(unsigned long long)PLX_SEND_COPY_MAX);
	m->segment = m->bounced = send_buf_bounce(link, m->head, m->total);
	return m->bounced ? 0 : -ENOMEM;
}

static inline PLX_ALWAYS_INLINE int send_buf(struct plx_link *link, struct plx_buf *buf,
					     plx_link_sent_fn sent, void *arg, bool written)
{
	uint64_t total = plx_buf_total(buf);
	int rc = tx_check_sendable(link, total);
	struct tx_message m = {
		.head = buf,
		.segment = buf,
		.left = total,
		.total = total,
		.sent = sent,
		.sent_arg = arg,
		.written = written,
	};

	if (plx_unlikely(rc))
		return rc;
	if (plx_unlikely(link->tx_current.head))
		return tx_would_block(link);
	if (plx_unlikely(link->driver->needs_mr && !set_has_message(link->set, buf))) {
		rc = bounce(link, &m);
		if (rc)
			return rc;
	}
	rc = send_frames(link, &m);
	if (plx_unlikely(rc)) {
		if (m.left == total) {
			plx_buf_unref(m.bounced);
			return rc == -EAGAIN ? tx_would_block(link) : rc;
		}
		link->tx_current = m; /* accepted: continues later, or fails with the link */
		link->want |= WANT_TX;
		tx_set_inline_end(link);
	}
	tx_count_message(link, total);
	return 0;
}

int plx_link_send_buf(struct plx_link *link, struct plx_buf *buf, plx_link_sent_fn sent, void *arg)
{
	ASSERT_OWNER(link->home->id);
	return send_buf(link, buf, sent, arg, false);
}

int link_send_written(struct plx_link *link, struct plx_buf *buf, plx_link_sent_fn sent, void *arg)
{
	ASSERT_OWNER(link->home->id);
	return send_buf(link, buf, sent, arg, link->driver->same_host);
}

void send_buf_continue(struct plx_link *link)
{
	if (!link->tx_current.head || send_frames(link, &link->tx_current) != 0)
		return;
	link->tx_current.head = NULL;
	link->want &= ~WANT_TX;
	tx_set_inline_end(link);
	if (link->state == LINK_CLOSING)
		close_step(link);
}

/* The link has ended inside a message: the rest is never sent. keeps: the provider keeps some
 * frames for good, so the buffer is leaked. */
void send_buf_fail(struct plx_link *link, bool keeps)
{
	struct tx_message m = link->tx_current;

	link->tx_cut = m.head != NULL;
	if (!m.head)
		return;
	link->tx_current.head = NULL;
	link->want &= ~WANT_TX;
	if (keeps && m.left != m.total) {
		if (m.sent)
			m.sent(link, m.head, -ETIMEDOUT, m.sent_arg);
		return;
	}
	plx_buf_unref(m.bounced);
	tx_finished(link, m.head, m.sent, m.sent_arg, -ECONNRESET);
}
