/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages sent by copy: hot path. The small ones cost no buffer and no completion. */
#include "fabric_priv.h"

static void copy_in(uint8_t *to, const struct iovec *iov, int count)
{
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* As one frame, without a buffer and without a completion: written where the driver sends it from,
 * or put together on the stack and injected. The header comes last: it lies in the line that the
 * peer is looking at, which is written in one go then. Return: 0; -EAGAIN; -ENOTCONN; -EMSGSIZE it
 * is too long for that. */
static int send_at_once(struct plx_link *link, const struct iovec *iov, int count, uint32_t length)
{
	uint8_t copy[FRAME_HEADER_BYTES + INJECT_COPY_MAX];
	uint8_t *place, *frame;
	int rc = 0;

	if (tx_frames_left(link) == 0 || tx_bytes_left(link) < length || link->tx_current.head)
		return tx_would_block(link);
	place = tx_claim(link, FRAME_HEADER_BYTES + length);
	if (plx_unlikely(!place && length > INJECT_COPY_MAX))
		return -EMSGSIZE;
	frame = place ? place : copy;
	copy_in(frame + FRAME_HEADER_BYTES, iov, count);
	tx_write_header(link, frame, FRAME_DATA, 0, length);
	if (place)
		tx_commit(link, FRAME_HEADER_BYTES + length);
	else
		rc = tx_inject(link, frame, FRAME_HEADER_BYTES + length);
	if (plx_likely(rc == 0)) {
		tx_count_frame(link, length);
		tx_count_message(link, length);
	} else if (rc == -EAGAIN) {
		tx_would_block(link);
	}
	return rc;
}

/* Whether to try that. */
static bool may_go_at_once(const struct plx_link *link, size_t length)
{
	return length <= link->peer_frame_max &&
	       (link->set->driver->claim ||
		(length <= INJECT_COPY_MAX && FRAME_HEADER_BYTES + length <= link->inject_max));
}

struct plx_buf *plx_link_buf(struct plx_link *link, uint32_t room_bytes)
{
	return room_bytes <= TX_BUF_BYTES ? plx_buf_get(link->set->home->tx_pool)
					  : plx_buf_alloc(room_bytes);
}

static int send_copied(struct plx_link *link, const struct iovec *iov, int count, size_t length)
{
	if (!send_has_room(link))
		return tx_would_block(link);

	struct plx_fabric_lcore *home = link->set->home;
	struct plx_buf *buf = length <= TX_BUF_BYTES ? plx_buf_get(home->tx_pool)
						     : spare_get(home, (uint32_t)length);

	if (!buf) {
		if (length > TX_BUF_BYTES)
			return -ENOMEM;
		link_attend(link, 0); /* the lcore's buffers are all out: look again each turn */
		return tx_would_block(link);
	}
	copy_in(plx_buf_append(buf, (uint32_t)length), iov, count);

	int rc = plx_link_send_buf(link, buf, NULL, NULL);

	if (rc)
		plx_buf_unref(buf);
	return rc;
}

static int send_copy(struct plx_link *link, const struct iovec *iov, int count, size_t length)
{
	int rc = tx_check_sendable(link, length);

	if (plx_unlikely(rc))
		return rc;
	if (may_go_at_once(link, length)) {
		rc = send_at_once(link, iov, count, (uint32_t)length);
		if (plx_likely(rc != -EMSGSIZE))
			return rc;
	}
	return send_copied(link, iov, count, length);
}

int plx_link_send(struct plx_link *link, const void *data, size_t len)
{
	return send_copy(link, &(struct iovec){(void *)data, len}, 1, len);
}

int plx_link_sendv(struct plx_link *link, const struct iovec *iov, int count)
{
	size_t length = 0;

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
