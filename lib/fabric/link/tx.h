/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending frames: credit, headers, operations, and the calls of the provider. */
#ifndef PLX_TX_H
#define PLX_TX_H

#include "fabric_link.h"

static inline uint32_t tx_frames_left(const struct plx_link *link)
{
	return link->tx_frames_granted - link->tx_frames;
}

/* Write the next frame's header. Every header carries this side's grant. */
static inline void tx_write_header(const struct plx_link *link, uint8_t *out, uint8_t type,
				   uint8_t flags, uint32_t length)
{
	struct frame_header header = {
		.type = type,
		.flags = flags,
		.length = length,
		.granted_frames = link->rx_frames_granted,
	};

	frame_write(out, &header);
}

/* A frame was sent, with its grant. */
static inline void tx_header_sent(struct plx_link *link)
{
	link->rx_frames_advertised = link->rx_frames_granted;
	link->want &= ~WANT_CREDIT;
	link->stats.frames_sent++;
	link->set->has_sent = true;
	liveness_sent(link);
}

static inline void tx_count_frame(struct plx_link *link)
{
	link->tx_frames++;
	tx_header_sent(link);
}

/* The provider has `more` additional operations. */
static inline void tx_count_ops(struct plx_link *link, int more)
{
	link->tx_inflight += (uint32_t)more;
	link->set->tx_inflight += (uint32_t)more;
}

static inline void tx_count_message(struct plx_link *link, uint64_t length)
{
	link->stats.messages_sent++;
	link->stats.bytes_sent += length;
}

void tx_set_inline_end(struct plx_link *link);
int tx_would_block(struct plx_link *link);
int tx_check_sendable(const struct plx_link *link, uint64_t length);
struct plx_op *tx_take_op(struct plx_link *link, uint32_t reserve);
void tx_give_op(struct plx_link *link, struct plx_op *op);
void tx_finished(struct plx_link *link, struct plx_buf *buf, plx_link_sent_fn sent, void *arg,
		 int status);
int tx_submit(struct plx_link *link, struct plx_op *op, const struct iovec *iov, void **desc,
	      int count, uint64_t flags);
int tx_send_small(struct plx_link *link, const uint8_t *frame, uint32_t length, bool signalled);
int tx_not_sent(struct plx_link *link, ssize_t rc);
void tx_completed(struct plx_link *link);
void tx_signalled(struct plx_link *link);

/* Whether a frame may be injected. Every signal_every-th frame is sent with a completion instead.
 * That bounds what a peer that does not read can pile up in a provider that never refuses, and
 * shows failures that a provider hides for injected frames. */
static inline bool tx_may_inject(const struct plx_link *link, size_t length)
{
	return length <= link->inject_max && link->injects_left;
}

/* Inject a frame: copy it into the provider. Return: 0; -EAGAIN; -ENOTCONN. */
static inline int tx_inject(struct plx_link *link, const uint8_t *frame, size_t length)
{
	ssize_t rc = fi_inject(link->ep, frame, length, 0);

	if (plx_unlikely(rc))
		return tx_not_sent(link, rc);
	link->injects_left--;
	return 0;
}

#endif
