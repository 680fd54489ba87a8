/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that arrived: hot path. Every field of a frame is checked against what was received and
 * against what this side allowed before it is used; a frame that breaks the rules ends its link. */
#include "fabric_priv.h"

/* A frame lies right before where its payload begins, which is a cache line's start; so a message
 * that is sent on finds headroom for the next header where this one's was. */
static int post(struct plx_op *op)
{
	struct plx_link *link = op->link;
	struct plx_buf *buf = op->buf;
	ssize_t rc = fi_recv(link->ep, buf->data - FRAME_HEADER_BYTES, link->rx_buf_bytes,
			     set_desc(link->set, buf->zone_index), 0, &op->context);

	if (rc)
		return (int)rc;
	link->rx_posted++;
	return 0;
}

static void set_idle(struct plx_op *op)
{
	op->next = op->link->rx_idle;
	op->link->rx_idle = op;
}

/* Fill every receive without a buffer, as far as the pool goes. Return: 0; -ENOMEM or the
 * provider's error where one cannot be posted. */
static int post_idle(struct plx_link *link)
{
	while (link->rx_idle) {
		struct plx_op *op = link->rx_idle;

		op->buf = plx_buf_get(link->rx_pool);
		if (!op->buf)
			return -ENOMEM;

		int rc = post(op);
		if (rc) {
			plx_buf_unref(op->buf);
			op->buf = NULL;
			return rc;
		}
		link->rx_idle = op->next;
	}
	return 0;
}

int receive_post_all(struct plx_link *link)
{
	int rc = post_idle(link);

	return rc ? plx_fail(EIO, "%s: posting receives failed: %s", link->set->label,
			     fi_strerror(-rc))
		  : 0;
}

/* The provider gave a receive back unused. */
void receive_take_back(struct plx_op *op)
{
	op->link->rx_posted--;
	plx_buf_unref(op->buf);
	op->buf = NULL;
	set_idle(op);
}

/* Allow the peer more, and tell it once that at least doubles what it has left: twice a window
 * while all of it is in use, and each time where the user keeps all buffers but one. In a dialogue
 * every frame back carries the news, and no frame is sent for it alone. */
static void grant(struct plx_link *link, uint32_t frames, uint32_t bytes)
{
	link->rx_frames_granted += frames;
	link->rx_bytes_granted += bytes;

	uint32_t untold = link->rx_frames_granted - link->rx_frames_told;

	if (untold && untold >= link->rx_frames_told - link->rx_frames)
		link_attend(link, WANT_CREDIT);
}

/* Long messages that the user kept: each holds back the credit of its last frame, so that however
 * long they are kept their number is bounded by the window. Return: how many came back. */
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

/* Look whether buffers that the user kept are back: post them, and grant their frames again. */
void receive_refill(struct plx_link *link)
{
	uint32_t before = link->rx_posted;

	post_idle(link);

	uint32_t back = link->rx_posted - before;

	link->rx_kept -= back;
	back += long_messages_back(link);
	if (link->rx_kept + link->rx_long_kept == 0)
		link->want &= (uint16_t)~WANT_REFILL;
	if (back)
		grant(link, back, 0);
}

static void deliver(struct plx_link *link, struct plx_buf *message)
{
	link->stats.messages_received++;
	link->stats.bytes_received += message->len;
	if (!link->events->on_message)
		return;
	link->set->home->delivering = message;
	link->events->on_message(link, message, link->user);
	link->set->home->delivering = NULL;
}

static void retire(struct plx_op *op)
{
	plx_buf_unref(op->buf);
	op->buf = NULL;
	set_idle(op);
}

/* The frame is done with: use the receive again. A buffer that the user kept stays out until it is
 * dropped, and its frame is not granted before; its bytes are, as they are not this side's burden.
 */
static void finish(struct plx_op *op, uint32_t frames, uint32_t bytes)
{
	struct plx_link *link = op->link;

	if (plx_unlikely(!plx_buf_unshared(op->buf))) {
		retire(op);
		link->rx_kept++;
		if (link->state == LINK_DEAD)
			return;
		grant(link, 0, bytes);
		link_attend(link, WANT_REFILL);
		return;
	}
	if (plx_unlikely(link->state == LINK_DEAD)) {
		retire(op);
		return;
	}
	plx_buf_reset(op->buf);

	int rc = post(op);

	if (plx_unlikely(rc)) {
		retire(op);
		/* A connection that the provider knows to be gone: its end will be told, behind
		 * what had arrived. See not_sent. */
		if (rc != -FI_ENOTCONN)
			link_end(link, PLX_LINK_LOCAL, "posting a receive failed: %s",
				 fi_strerror(-rc));
		return;
	}
	if (bytes | frames)
		grant(link, frames, bytes);
}

/* Whether the peer was allowed to send this message frame. */
static bool take_credit(struct plx_link *link, const struct frame_header *header)
{
	link->rx_frames++;
	link->rx_bytes += header->length;
	if ((int32_t)(link->rx_frames_granted - link->rx_frames) >= 0 &&
	    (int32_t)(link->rx_bytes_granted - link->rx_bytes) >= 0)
		return true;
	link_end(link, PLX_LINK_PROTOCOL, "the peer sent more than it was granted");
	return false;
}

/* What the peer allows us. Grants never go back, and never leap past any sane window. */
static bool take_grants(struct plx_link *link, const struct frame_header *header)
{
	uint32_t frames = header->granted_frames - link->tx_frames_granted;
	uint32_t bytes = header->granted_bytes - link->tx_bytes_granted;

	if (plx_likely((frames | bytes) == 0))
		return true;
	if (frames > 65536 || bytes > LINK_WINDOW_BYTES_MAX ||
	    header->granted_frames - link->tx_frames > 65536 ||
	    header->granted_bytes - link->tx_bytes > LINK_WINDOW_BYTES_MAX) {
		link_end(link, PLX_LINK_PROTOCOL, "the peer's credit makes no sense");
		return false;
	}
	link->tx_frames_granted = header->granted_frames;
	link->tx_bytes_granted = header->granted_bytes;
	if (plx_unlikely(link->state == LINK_CLOSING && !link->fin_sent)) /* slow, but not silent */
		plx_timer_start(&link->timer, link->attr.close_timeout_ns);
	if (link->want & (WANT_TX | WANT_WRITABLE | WANT_GRANTS))
		link_attend(link, link->want & WANT_GRANTS ? WANT_GRANTED : 0);
	return true;
}

static bool partial_begin(struct plx_link *link, uint64_t total, uint32_t first_bytes)
{
	struct plx_buf *partial = link->rx_partial;

	if (link->rx_partial_total) {
		link_end(link, PLX_LINK_PROTOCOL, "a message began inside another");
		return false;
	}
	if (total > link->message_max || total <= first_bytes) {
		link_end(link, PLX_LINK_PROTOCOL,
			 "the peer announced a message of %llu bytes; at most %llu are accepted",
			 (unsigned long long)total, (unsigned long long)link->message_max);
		return false;
	}
	if (partial && (!plx_buf_unshared(partial) || partial->room - PLX_BUF_HEADROOM < total)) {
		plx_buf_unref(partial);
		partial = link->rx_partial = NULL;
	}
	if (!partial)
		partial = link->rx_partial = plx_buf_alloc((uint32_t)total);
	if (!partial) {
		link_end(link, PLX_LINK_LOCAL, "no memory for a message of %llu bytes",
			 (unsigned long long)total);
		return false;
	}
	plx_buf_reset(partial);
	link->rx_partial_total = total;
	return true;
}

/* Return: whether the frame's credit may be granted again. */
static bool partial_add(struct plx_link *link, const uint8_t *data, uint32_t length)
{
	struct plx_buf *partial = link->rx_partial;

	if (!link->rx_partial_total || length > link->rx_partial_total - partial->len) {
		link_end(link, PLX_LINK_PROTOCOL, "a part of a message does not fit its length");
		return false;
	}
	memcpy(plx_buf_append(partial, length), data, length);
	if (partial->len < link->rx_partial_total)
		return true;
	link->rx_partial_total = 0;
	deliver(link, partial);
	if (plx_buf_unshared(partial))
		return true;
	link->rx_long[link->rx_long_kept++] = partial;
	link->rx_partial = NULL;
	link_attend(link, WANT_REFILL);
	return false;
}

/* Return: whether the frame's credit may be granted again once its buffer is free. */
static bool data_frame(struct plx_op *op, const struct frame_header *header)
{
	struct plx_link *link = op->link;
	struct plx_buf *buf = op->buf;

	if (plx_unlikely(link->state < LINK_OPEN || link->peer_fin)) {
		link_end(link, PLX_LINK_PROTOCOL,
			 link->peer_fin ? "a message after FIN" : "a message before HELLO");
		return false;
	}
	if (plx_unlikely(!take_credit(link, header)))
		return false;
	if (plx_likely(header->type == FRAME_DATA)) {
		if (link->rx_partial_total) {
			link_end(link, PLX_LINK_PROTOCOL, "a message inside another");
			return false;
		}
		if (header->length > link->message_max) {
			link_end(link, PLX_LINK_PROTOCOL,
				 "the peer sent %u bytes; at most %llu "
				 "are accepted",
				 header->length, (unsigned long long)link->message_max);
			return false;
		}
		buf->len = header->length;
		deliver(link, buf);
		return true;
	}
	if (header->type == FRAME_DATA_FIRST) {
		uint32_t length = header->length - FRAME_TOTAL_BYTES;

		return partial_begin(link, frame_total_read(buf->data), length) &&
		       partial_add(link, buf->data + FRAME_TOTAL_BYTES, length);
	}
	return partial_add(link, buf->data, header->length);
}

static void hello_frame(struct plx_link *link, const struct plx_buf *buf,
			const struct frame_header *header)
{
	struct frame_hello hello;
	const char *wrong = hello_read(buf->data, header->length, &hello);

	if (wrong) {
		link_end(link, PLX_LINK_HELLO, "HELLO of %s: %s", link->peer, wrong);
		return;
	}
	if (link->hello_received) {
		link_end(link, PLX_LINK_PROTOCOL, "a second HELLO");
		return;
	}
	link->hello_received = true;
	link->tx_window = link->tx_frames_granted;
	link->peer_frame_max = hello.rx_buf_bytes - FRAME_HEADER_BYTES;
	link->peer_message_max = hello.message_max < LINK_MESSAGE_MAX_LIMIT
				       ? hello.message_max
				       : LINK_MESSAGE_MAX_LIMIT;
	liveness_agree(link, &hello);
	link_try_open(link);
}

static void control_frame(struct plx_op *op, const struct frame_header *header)
{
	struct plx_link *link = op->link;

	switch (header->type) {
	case FRAME_HELLO:
		hello_frame(link, op->buf, header);
		break;
	case FRAME_FIN:
		close_on_fin(link, header->flags & FRAME_FLAG_ACK);
		break;
	case FRAME_FIN_ACK:
		close_on_fin_ack(link);
		break;
	case FRAME_HEARTBEAT:
		link->stats.heartbeats_received++;
		break;
	default: /* FRAME_CREDIT is done: its grants were taken */
		break;
	}
}

/* One receive of the provider has completed. */
void receive_done(struct plx_op *op, size_t length)
{
	struct plx_link *link = op->link;
	struct frame_header header;
	uint32_t frames = 0, bytes = 0;

	link->rx_posted--;
	link->stats.frames_received++;
	liveness_heard(link);
	if (plx_unlikely(link->state == LINK_DEAD)) {
		finish(op, 0, 0);
		return;
	}

	const char *wrong = frame_read(op->buf->data - FRAME_HEADER_BYTES, length, &header);

	if (plx_unlikely(!link->hello_received && (wrong || header.type != FRAME_HELLO))) {
		link_end(link, PLX_LINK_HELLO, "%s did not begin with HELLO: %s", link->peer,
			 wrong ? wrong : "another frame came first");
	} else if (plx_unlikely(wrong != NULL)) {
		link_end(link, PLX_LINK_PROTOCOL, "broken frame: %s", wrong);
	} else if (plx_likely(take_grants(link, &header))) {
		if (header.type >= FRAME_DATA && header.type <= FRAME_DATA_NEXT) {
			bytes = header.length;
			frames = data_frame(op, &header);
		} else {
			control_frame(op, &header);
		}
	}
	finish(op, frames, bytes);
}
