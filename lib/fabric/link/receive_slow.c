/* SPDX-License-Identifier: BSD-3-Clause */
/* Received frames off the fast path: parts of long messages, control frames, and unexpected
 * messages. */
#include "base_internal.h"
#include "receive.h"

/* A long message was delivered. Return: whether to grant the frame's credit again: its own buffer
 * was not kept. */
static bool given(struct plx_link *link)
{
	struct plx_buf *message = link->partial.buf;
	bool kept = !plx_buf_unshared(message);

	if (kept)
		link->rx_long[link->rx_long_kept++] = plx_buf_ref(message);
	assembly_done(&link->partial);
	if (!kept)
		return true;
	receive_grant(link, 0); /* as for a frame whose buffer is kept */
	link_schedule(link, WANT_REFILL);
	return false;
}

static bool give_whole(struct plx_link *link)
{
	link->partial.total = 0; /* it may be the last message, followed by FIN */
	receive_set_whole_end(link);
	receive_deliver(link, link->home, link->partial.buf);
	return given(link);
}

/* The C++ callback of a received frame has thrown: do what follows it. */
void receive_cut(struct plx_op *op)
{
	struct plx_link *link = op->link;
	bool delivered = link->home->delivering;
	bool is_long = delivered && link->home->delivering == link->partial.buf;

	link->home->delivering = NULL;
	receive_finish(op, is_long ? given(link) : delivered);
}

/* Return: whether to grant the frame's credit again once its buffer is free. */
static bool data_frame(struct plx_op *op, const struct frame_header *header)
{
	struct plx_link *link = op->link;
	const uint8_t *data = op->buf->data;
	uint32_t length = header->length;

	if (plx_unlikely(link->state < LINK_OPEN || link->peer_fin))
		return close_now(link, PLX_LINK_PROTOCOL,
				 link->peer_fin ? "a message after FIN"
						: "a message before its HELLO was answered");
	if (!receive_take_credit(link))
		return false;
	if (header->type == FRAME_DATA_FIRST) {
		data += FRAME_TOTAL_BYTES;
		length -= FRAME_TOTAL_BYTES;
		if (!assembly_begin(link, get64(op->buf->data), length))
			return false;
	}
	if (header->type != FRAME_DATA)
		return assembly_add(link, data, length) &&
		       (link->partial.buf->len < link->partial.total || give_whole(link));
	/* A whole message here, off the fast path, is unexpected. */
	if (link->partial.total)
		return close_now(link, PLX_LINK_PROTOCOL, "a message inside another");
	return close_now(link, PLX_LINK_PROTOCOL,
			 "the peer sent %u bytes; at most %llu are accepted", length,
			 (unsigned long long)link->message_max);
}

/* For frames of direct data placement. Return: whether the link has it; otherwise it ends. */
static bool has_direct(struct plx_link *link)
{
	const char *wrong = direct_not_agreed(link);

	return !wrong ||
	       close_now(link, PLX_LINK_PROTOCOL, "a frame of direct data placement: %s", wrong);
}

/* The peer reports a put, which uses credit like a message, with or without a frame. Return:
 * whether to grant that again. */
static bool put_notified(struct plx_link *link, uint64_t value)
{
	return has_direct(link) && receive_take_credit(link) && direct_on_put(link, value);
}

/* Return: whether to grant the frame's credit again once its buffer is free. */
static bool take_frame(struct plx_op *op, const struct frame_header *header)
{
	struct plx_link *link = op->link;

	switch (header->type) {
	case FRAME_DATA:
	case FRAME_DATA_FIRST:
	case FRAME_DATA_NEXT:
		return data_frame(op, header);
	case FRAME_PUT:
		return put_notified(link, get32(op->buf->data));
	case FRAME_HELLO:
		handshake_on_hello(link, op->buf->data, header->length);
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
	case FRAME_REVOKE:
		if (has_direct(link))
			region_on_revoke(link, get64(op->buf->data));
		break;
	case FRAME_REVOKED:
		if (has_direct(link))
			region_on_revoked(link, get64(op->buf->data));
		break;
	default: /* FRAME_CREDIT: its grant was taken already */
		break;
	}
	return false;
}

/* The event that it is connected may come later: keep the frame until then. */
static void keep_early(struct plx_op *op, size_t length)
{
	struct plx_op **end = &op->link->early;

	while (*end)
		end = &(*end)->next;
	*end = op;
	op->next = NULL;
	op->early_bytes = length;
	op->link->stats.frames_received--;
}

/* A C++ callback has thrown. */
static void early_cut(struct plx_op **op)
{
	if (!*op)
		return;
	link_schedule((*op)->link, WANT_EARLY);
	receive_cut(*op);
}

/* It is connected, or has ended. */
void receive_early(struct plx_link *link)
{
	struct plx_op *op PLX_CLEANUP(early_cut) = NULL;

	while ((op = link->early)) {
		link->early = op->next;
		receive_done(op, op->early_bytes);
	}
}

/* Any frame except a whole message on the fast path. */
PLX_NOINLINE void receive_slow(struct plx_op *op, size_t length)
{
	struct plx_link *link = op->link;
	struct frame_header header;
	bool credit = false;

	if (link->state == LINK_CONNECTING) {
		keep_early(op, length);
		return;
	}
	if (link->state >= LINK_REFUSING) {
		receive_finish(op, false);
		return;
	}

	const uint8_t *frame = op->buf->data - FRAME_HEADER_BYTES;
	const char *wrong = frame_read(frame, length, &header);

	if (!hello_is_whole(&link->hello) && (wrong || header.type != FRAME_HELLO))
		close_now(link, PLX_LINK_HELLO, "%s did not begin with HELLO: %s", link->peer,
			  wrong ?: "another frame came first");
	else if (wrong)
		close_now(link, PLX_LINK_PROTOCOL, "broken frame: %s", wrong);
	else if (receive_take_grants(link, &header))
		credit = take_frame(op, &header);
	receive_finish(op, credit);
}

/* The provider reports a put of the peer, without a frame. op: the receive it used, or NULL. */
void receive_slow_put(struct plx_link *link, struct plx_op *op, uint64_t value)
{
	bool good = false;

	liveness_heard(link, link->home->turn_ns);
	if (link->state < LINK_REFUSING)
		good = put_notified(link, value);
	if (op)
		receive_finish(op, good);
	else if (good)
		receive_grant(link, 1);
}
