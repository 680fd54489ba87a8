/* SPDX-License-Identifier: BSD-3-Clause */
/* Send by copy: hot path. Small messages need no buffer and no completion. */
#include "tx.h"

#define COPY_PIECES_MAX 4 /* of send_copy */

static inline size_t iov_bytes(const struct iovec *iov, int count)
{
	size_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

static inline void copy_in(uint8_t *to, const struct iovec *iov, int count)
{
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* Send one frame from the caller's memory; buf has room for what the provider does not take at
 * once. Return: 0; -EAGAIN. */
static int send_copied(struct plx_link *link, struct plx_buf *buf, const struct iovec *iov,
		       int count, size_t length, plx_link_sent_fn sent, void *arg)
{
	struct plx_op *op = tx_take_op(link, LINK_TX_CONTROL);
	struct iovec pieces[COPY_PIECES_MAX];
	ssize_t rc;

	if (!op)
		return -EAGAIN;
	op->buf = buf;
	op->sent = sent;
	op->sent_arg = arg;
	tx_write_header(link, op->header, FRAME_DATA, 0, (uint32_t)length);
	pieces[0] = (struct iovec){op->header, FRAME_HEADER_BYTES};
	memcpy(pieces + 1, iov, (size_t)count * sizeof(*iov));
	rc = link->driver->send_copy(link->ep, pieces, 1 + (size_t)count,
				     buf->data - FRAME_HEADER_BYTES, &op->context);
	if (rc) {
		tx_give_op(link, op);
		return tx_not_sent(link, rc);
	}
	tx_count_ops(link, 1);
	tx_signalled(link);
	tx_count_frame(link);
	tx_count_message(link, length);
	return 0;
}

static PLX_NOINLINE int send_in_buffer(struct plx_link *link, const struct iovec *iov, int count,
				       size_t length, plx_link_sent_fn sent, void *arg)
{
	bool headed = count > 1 && iov->iov_len <= COPY_HEADER_MAX;
	int rc = tx_check_sendable(link, length);

	if (plx_unlikely(rc))
		return rc;
	if (plx_unlikely(length - (headed ? iov->iov_len : 0) > PLX_SEND_COPY_MAX))
		return plx_fail(EMSGSIZE,
				"%zu bytes: copies of at most %llu bytes are sent; send longer "
				"messages by plx_link_send_buf, which copies nothing",
				length, (unsigned long long)PLX_SEND_COPY_MAX);
	if (!tx_has_room(link))
		return tx_would_block(link);

	struct plx_fabric_lcore *home = link->home;
	struct plx_buf *buf = length <= TX_BUF_BYTES
				    ? plx_buf_get(home->tx_pool)
				    : link_buf_get(home, (uint32_t)length, link->driver->needs_mr);

	if (!buf) {
		if (length > TX_BUF_BYTES)
			return -ENOMEM;
		link_schedule(link, 0); /* the lcore's buffers are all in use: retry each turn */
		return tx_would_block(link);
	}
	if (link->driver->send_copy && length <= link->peer_frame_max && count < COPY_PIECES_MAX) {
		rc = send_copied(link, buf, iov, count, length, sent, arg);
		rc = rc == -EAGAIN ? tx_would_block(link) : rc;
	} else {
		copy_in(plx_buf_append(buf, (uint32_t)length), iov, count);
		rc = plx_link_send_buf(link, buf, sent, arg);
	}
	if (rc)
		plx_buf_unref(buf);
	return rc;
}

static PLX_NOINLINE int send_piece_in_buffer(struct plx_link *link, const void *data, size_t length)
{
	return send_in_buffer(link, &(struct iovec){(void *)data, length}, 1, length, NULL, NULL);
}

/* The slow path. A single piece stays in registers, so nothing is stored for it before. */
static inline PLX_ALWAYS_INLINE int send_otherwise(struct plx_link *link, const struct iovec *iov,
						   int count, size_t length)
{
	return count == 1 ? send_piece_in_buffer(link, iov->iov_base, length)
			  : send_in_buffer(link, iov, count, length, NULL, NULL);
}

/* The header is written last: it may share a line with what the peer polls, which is then written
 * at once. */
static inline void write_frame(const struct plx_link *link, uint8_t *frame, const struct iovec *iov,
			       int count, size_t length)
{
	copy_in(frame + FRAME_HEADER_BYTES, iov, count);
	tx_write_header(link, frame, FRAME_DATA, 0, (uint32_t)length);
}

/* Send one frame without a buffer or completion: written to the driver's claimed memory, or
 * assembled on the stack and injected. Inlined, because most messages are one piece. */
static inline PLX_ALWAYS_INLINE int send_copy(struct plx_link *link, const struct iovec *iov,
					      int count, size_t length)
{
	uint8_t *place = NULL;

	if (plx_unlikely(length >= link->tx_inline_end))
		return send_otherwise(link, iov, count, length);
	if (plx_unlikely(tx_frames_left(link) == 0))
		return tx_would_block(link);
	if (link->driver->claim)
		place = link->driver->claim(link->ep, FRAME_HEADER_BYTES + length);
	if (place) {
		write_frame(link, place, iov, count, length);
		link->driver->commit(link->ep, FRAME_HEADER_BYTES + length);
	} else {
		uint8_t frame[FRAME_HEADER_BYTES + INJECT_COPY_MAX];
		int rc;

		/* Without claims, tx_inline_end bounds the length. */
		if (plx_unlikely(!link->injects_left ||
				 (link->driver->claim &&
				  !tx_may_inject(link, FRAME_HEADER_BYTES + length))))
			return send_otherwise(link, iov, count, length);
		write_frame(link, frame, iov, count, length);
		rc = tx_inject(link, frame, FRAME_HEADER_BYTES + length);
		if (plx_unlikely(rc))
			return rc == -EAGAIN ? tx_would_block(link) : rc;
	}
	tx_count_frame(link);
	tx_count_message(link, length);
	return 0;
}

int plx_link_send(struct plx_link *link, const void *data, size_t len)
{
	ASSERT_OWNER(link->home->id);
	return send_copy(link, &(struct iovec){(void *)data, len}, 1, len);
}

int plx_link_sendv(struct plx_link *link, const struct iovec *iov, int count)
{
	size_t length = 0;

	ASSERT_OWNER(link->home->id);
	if (count < 0 || count > 64)
		return plx_fail(EINVAL, "%d pieces: a message is sent in 0 to 64", count);
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > LINK_MESSAGE_MAX_LIMIT)
			return plx_fail(EMSGSIZE, "a piece of %zu bytes is longer than any message",
					iov[i].iov_len);
		length += iov[i].iov_len;
	}
	return send_copy(link, iov, count, length);
}

int link_send_copied(struct plx_link *link, const struct iovec *iov, int count,
		     plx_link_sent_fn sent, void *arg)
{
	ASSERT_OWNER(link->home->id);
	return send_in_buffer(link, iov, count, iov_bytes(iov, count), sent, arg);
}
