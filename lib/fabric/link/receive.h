/* SPDX-License-Identifier: BSD-3-Clause */
/* What frames that arrived are taken with: those that are whole messages (receive.c, hot path), and
 * all others (receive_slow.c). */
#ifndef PLX_RECEIVE_H
#define PLX_RECEIVE_H

#include "tx.h"

/* receive_slow.c */
void receive_slow(struct plx_op *op, size_t length);

/* receive.c */
void receive_finish(struct plx_op *op, bool credit);
void receive_granted(struct plx_link *link);

/* Allow the peer more, and tell it once that at least doubles what it has left: twice a window
 * while all of it is in use, and each time where the user keeps all buffers but one. In a dialogue
 * every frame back carries the news, and no frame is sent for it alone. */
static inline void receive_grant(struct plx_link *link, uint32_t frames)
{
	link->rx_frames_granted += frames;

	uint32_t pending = link->rx_frames_granted - link->rx_frames_advertised;

	if (pending && pending >= link->rx_frames_advertised - link->rx_frames)
		link_schedule(link, WANT_CREDIT);
}

static inline void receive_deliver(struct plx_link *link, struct plx_buf *message)
{
	link->stats.messages_received++;
	link->stats.bytes_received += message->len;
	link->home->delivering = message;
	link->on_message(link, message, link->user);
	link->home->delivering = NULL;
}

/* Whether the peer was allowed to send this message frame. */
static inline bool receive_take_credit(struct plx_link *link)
{
	link->rx_frames++;
	if (plx_likely((int32_t)(link->rx_frames_granted - link->rx_frames) >= 0))
		return true;
	close_now(link, PLX_LINK_PROTOCOL, "the peer sent more than it was granted");
	return false;
}

/* What the peer allows us. Grants never go back, and never leap past any sane window. */
static inline bool receive_take_grants(struct plx_link *link, const struct frame_header *header)
{
	uint32_t frames = header->granted_frames - link->tx_frames_granted;

	if (frames == 0)
		return true;
	/* What is left now is not more than that either, so nothing here wraps. */
	if (plx_unlikely(frames > LINK_WINDOW_FRAMES_MAX - tx_frames_left(link))) {
		close_now(link, PLX_LINK_PROTOCOL, "the peer's credit makes no sense");
		return false;
	}
	link->tx_frames_granted = header->granted_frames;
	if (link->want & (WANT_TX | WANT_ON_WRITABLE | WANT_GRANTS | WANT_MORE_TIME))
		receive_granted(link);
	return true;
}

#endif
