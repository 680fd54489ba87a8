/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that arrive by a link, or many in a page, or in pieces; to the callback, or into the
 * queue. Nothing of a peer is believed before it was checked. */
#include "listener.h"

#include "wire.h"

/* Return: whether there was room. */
static bool give(struct receiver *receiver, const struct netio_msg *msg)
{
	struct netio_listener *listener = receiver->listener;

	if (listener->queue) {
		plx_buf_ref(msg->buf);
		if (plx_ring_push(listener->queue, msg)) {
			receiver->queued = true;
			listener->queued++;
			return true;
		}
		plx_buf_unref(msg->buf);
		return false;
	}
	if (listener->socket && listener->socket->cb_msg_received)
		listener->socket->cb_msg_received(&receiver->pub, msg);
	return true;
}

/* Pieces -------------------------------------------------------------------------------------- */

static const char *partial_begin(struct receiver *receiver, const struct wire_entry *entry)
{
	struct plx_buf *partial = receiver->partial;

	if (receiver->partial_total)
		return "a message that begins inside another";
	if (entry->total > receiver->listener->attr.message_max_bytes)
		return "a message that is longer than it may be";
	if (partial &&
	    (!plx_buf_unshared(partial) || partial->room - PLX_BUF_HEADROOM < entry->total)) {
		plx_buf_unref(partial);
		partial = NULL;
	}
	if (!partial)
		partial = plx_buf_alloc((uint32_t)entry->total);
	receiver->partial = partial;
	if (!partial)
		return "a message that there is no memory for";
	plx_buf_reset(partial);
	receiver->partial_total = entry->total;
	receiver->partial_tag = entry->tag;
	return NULL;
}

static const char *partial_add(struct receiver *receiver, const struct wire_entry *entry)
{
	struct plx_buf *partial = receiver->partial;

	if (!receiver->partial_total || entry->length > receiver->partial_total - partial->len)
		return "a piece that does not fit its message";
	memcpy(plx_buf_append(partial, entry->length), entry->payload, entry->length);
	receiver->partial_whole = partial->len == receiver->partial_total;
	return NULL;
}

/* last: the page that it ended in. Whoever keeps the message keeps that, too, which the sender may
 * not fill again before it is back: so what waits is bounded by what may be under way. */
static bool give_whole(struct receiver *receiver, struct plx_buf *last)
{
	struct plx_buf *partial = receiver->partial;
	struct netio_msg msg = {
		.data = partial->data,
		.len = partial->len,
		.tag = receiver->partial_tag,
		.source = receiver->pub.id,
		.buf = partial,
	};

	if (!partial->next)
		partial->next = plx_buf_ref(last);
	if (!give(receiver, &msg))
		return false;
	receiver->partial_whole = false;
	receiver->partial_total = 0;
	if (plx_buf_unshared(partial)) {
		plx_buf_reset(partial);
	} else {
		plx_buf_unref(partial);
		receiver->partial = NULL;
	}
	return true;
}

/* Pages --------------------------------------------------------------------------------------- */

/* Return: 0; -EPROTO. */
static int take_piece(struct receiver *receiver, const struct wire_entry *entry,
		      const char **wrong_out)
{
	const char *wrong = entry->flags & WIRE_FIRST ? partial_begin(receiver, entry) : NULL;

	if (!wrong)
		wrong = partial_add(receiver, entry);
	*wrong_out = wrong;
	return wrong ? -EPROTO : 0;
}

/* Entries from held->at on. Return: 0; -EAGAIN, with held->at where to go on; -EPROTO. */
static int take_entries(struct receiver *receiver, struct held *held, const char **wrong_out)
{
	const uint8_t *at = held->at, *end = held->buf->data + held->buf->len;
	struct netio_msg msg = {.source = receiver->pub.id, .buf = held->buf};
	struct wire_entry entry;

	for (;;) {
		held->at = at;
		if (plx_unlikely(receiver->partial_whole) && !give_whole(receiver, held->buf))
			return -EAGAIN;
		if (at == end)
			return 0;
		*wrong_out = wire_entry_read(&at, end, &entry);
		if (plx_unlikely(*wrong_out != NULL))
			return -EPROTO;
		if (plx_unlikely(entry.flags & (WIRE_FIRST | WIRE_NEXT))) {
			if (take_piece(receiver, &entry, wrong_out))
				return -EPROTO;
			continue;
		}
		if (plx_unlikely(receiver->partial_total)) {
			*wrong_out = "a message inside another";
			return -EPROTO;
		}
		msg.data = entry.payload;
		msg.len = entry.length;
		msg.tag = entry.tag;
		if (plx_unlikely(!give(receiver, &msg)))
			return -EAGAIN;
	}
}

/* Return: as take_entries. */
static int take_message(struct receiver *receiver, struct held *held, const char **wrong_out)
{
	struct plx_buf *buf = held->buf;
	struct netio_msg msg = {.source = receiver->pub.id, .buf = buf};

	*wrong_out = wire_message_read(buf->data, buf->len, &msg.tag);
	if (plx_unlikely(*wrong_out != NULL))
		return -EPROTO;
	if (plx_unlikely(receiver->partial_total)) {
		*wrong_out = "a message inside another";
		return -EPROTO;
	}
	msg.data = buf->data + WIRE_MESSAGE_BYTES;
	msg.len = buf->len - WIRE_MESSAGE_BYTES;
	return give(receiver, &msg) ? 0 : -EAGAIN;
}

/* Begin a message of the link, or go on with it. */
static int take(struct receiver *receiver, struct held *held, const char **wrong_out)
{
	const struct plx_buf *buf = held->buf;

	if (held->at)
		return take_entries(receiver, held, wrong_out);
	if (buf->len == 0 || (buf->data[0] != WIRE_PAGE && buf->data[0] != WIRE_MESSAGE)) {
		*wrong_out = "what is neither a message nor a page";
		return -EPROTO;
	}
	if (buf->data[0] == WIRE_MESSAGE)
		return take_message(receiver, held, wrong_out);
	*wrong_out = wire_page_read(buf->data, buf->len);
	if (*wrong_out)
		return -EPROTO;
	held->at = buf->data + WIRE_PAGE_BYTES;
	return take_entries(receiver, held, wrong_out);
}

/* Held ---------------------------------------------------------------------------------------- */

/* The link bounds how many its user may keep: that many are held at most. */
static int hold(struct receiver *receiver, const struct held *held, const char **wrong_out)
{
	uint32_t last = receiver->held_first + receiver->held_count;

	if (receiver->held_count == receiver->held_max) {
		*wrong_out = "more than it was granted";
		return -EPROTO;
	}
	receiver->held[last % receiver->held_max] = *held;
	plx_buf_ref(held->buf);
	if (receiver->held_count++ == 0)
		receiver->listener->holding++;
	return -EAGAIN;
}

int receiver_take(struct receiver *receiver, struct plx_buf *message, const char **wrong_out)
{
	struct held held = {.buf = message};
	int rc;

	if (plx_unlikely(receiver->held_count))
		return hold(receiver, &held, wrong_out);
	rc = take(receiver, &held, wrong_out);
	return plx_unlikely(rc == -EAGAIN) ? hold(receiver, &held, wrong_out) : rc;
}

static void let_go_of_first(struct receiver *receiver)
{
	plx_buf_unref(receiver->held[receiver->held_first].buf);
	receiver->held_first = (receiver->held_first + 1) % receiver->held_max;
	if (--receiver->held_count == 0)
		receiver->listener->holding--;
}

int receiver_go_on(struct receiver *receiver, const char **wrong_out)
{
	int done = 0;

	while (receiver->held_count) {
		int rc = take(receiver, &receiver->held[receiver->held_first], wrong_out);

		if (rc == -EAGAIN)
			break;
		let_go_of_first(receiver);
		if (rc)
			return rc;
		done++;
	}
	return done;
}

void receiver_drop_held(struct receiver *receiver)
{
	while (receiver->held_count)
		let_go_of_first(receiver);
}

void receiver_drop(struct receiver *receiver)
{
	receiver_drop_held(receiver);
	plx_buf_unref(receiver->partial);
	receiver->partial = NULL;
}
