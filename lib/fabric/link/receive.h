/* SPDX-License-Identifier: BSD-3-Clause */
/* Received frames: whole messages (receive.c, hot path), and all others (receive_slow.c). */
#ifndef PLX_RECEIVE_H
#define PLX_RECEIVE_H

#include "tx.h"

/* receive_slow.c */
void receive_slow(struct plx_op *op, size_t length);

/* receive.c */
void receive_finish(struct plx_op *op, bool credit);
void receive_granted(struct plx_link *link);

/* Grant the peer more. Advertise it once that at least doubles the peer's remaining credit: twice
 * per window while the peer uses all of it, and each time if the user keeps all buffers except one.
 * In request-response traffic the responses carry the grants, and no frame is sent for them
 * alone. */
static inline void receive_grant(struct plx_link *link, uint32_t frames)
{
	link->rx_frames_granted += frames;

	uint32_t pending = link->rx_frames_granted - link->rx_frames_advertised;

	if (pending && pending >= link->rx_frames_advertised - link->rx_frames)
		link_schedule(link, WANT_CREDIT);
}

/* home: the link's. */
static inline void receive_deliver(struct plx_link *link, struct plx_fabric_lcore *home,
				   struct plx_buf *message)
{
	link->stats.messages_received++;
	link->stats.bytes_received += message->len;
	home->delivering = message;
	link->on_message(link, message, link->user);
	home->delivering = NULL;
}

/* Count a message frame. Return: whether the peer had credit for it. */
static inline bool receive_take_credit(struct plx_link *link)
{
	link->rx_frames++;
	if (plx_likely((int32_t)(link->rx_frames_granted - link->rx_frames) >= 0))
		return true;
	return close_now(link, PLX_LINK_PROTOCOL, "the peer sent more than it was granted");
}

/* Take the peer's grant. Grants never decrease, and never exceed LINK_WINDOW_FRAMES_MAX. */
static inline bool receive_take_grants(struct plx_link *link, const struct frame_header *header)
{
	uint32_t frames = header->granted_frames - link->tx_frames_granted;

	if (frames == 0)
		return true;
	/* The rest is no larger, so nothing here wraps. */
	if (plx_unlikely(frames > LINK_WINDOW_FRAMES_MAX - tx_frames_left(link)))
		return close_now(link, PLX_LINK_PROTOCOL, "the peer's credit makes no sense");
	link->tx_frames_granted = header->granted_frames;
	if (link->want & (WANT_TX | WANT_ON_WRITABLE | WANT_GRANTS))
		receive_granted(link);
	return true;
}

#endif
