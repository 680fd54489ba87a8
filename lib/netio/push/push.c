/* SPDX-License-Identifier: BSD-3-Clause */
/* Push messages: hot path. Each is copied once, into a buffer kept until its receiver is done. */
#include "push.h"

#include <assert.h>

static_assert(sizeof(struct push_message) <= PLX_BUF_HEADROOM, "messages fit into headrooms");

/* Receivers by credit: a list per value and a bit per list, for choices in constant time. */
static void take_out(struct push_receiver *receiver)
{
	struct netio_push_core *core = receiver->core;
	uint32_t place = receiver->place;

	if (place == 0)
		return;
	TAILQ_REMOVE(&core->at[place], receiver, peers);
	if (TAILQ_EMPTY(&core->at[place]))
		core->used[place / 64] &= ~(UINT64_C(1) << place % 64);
	receiver->place = 0;
}

static uint32_t place_of(const struct push_receiver *receiver)
{
	const struct netio_push_core *core = receiver->core;
	uint32_t credit;

	if (!receiver->is_open || receiver->is_full ||
	    (plx_unlikely(receiver->is_suspect) && core->open > core->suspect))
		return 0;
	credit = plx_link_credit(receiver->connection.session.link);
	return credit < PUSH_CREDIT_MAX ? credit : PUSH_CREDIT_MAX;
}

/* Insert after those with equal credit, so that they take turns. */
void push_place(struct push_receiver *receiver)
{
	struct netio_push_core *core = receiver->core;
	uint32_t place = place_of(receiver);

	if (place == receiver->place && place < PUSH_CREDIT_MAX)
		return;
	take_out(receiver);
	if (place == 0)
		return;
	receiver->place = place;
	TAILQ_INSERT_TAIL(&core->at[place], receiver, peers);
	core->used[place / 64] |= UINT64_C(1) << place % 64;
}

/* Skips receivers that accept only shorter messages. */
static struct push_receiver *first_that_accepts(const struct push_peers *equals, uint64_t length)
{
	struct push_receiver *receiver = TAILQ_FIRST(equals);

	while (receiver && receiver->connection.message_max < length)
		receiver = TAILQ_NEXT(receiver, peers);
	return receiver;
}

struct push_receiver *push_choose(struct netio_push_core *core, uint64_t length)
{
	for (int word = PLX_ARRAY_LEN(core->used) - 1; word >= 0; word--) {
		uint64_t used = core->used[word];

		while (used) {
			uint32_t bit = 63 - (uint32_t)__builtin_clzll(used);
			struct push_receiver *receiver = first_that_accepts(
				&core->at[word * 64 + bit], length);

			if (plx_likely(receiver != NULL))
				return receiver;
			used &= ~(UINT64_C(1) << bit);
		}
	}
	return NULL;
}

static struct push_message *make(struct netio_push_core *core, netio_tag_t tag,
				 const struct iovec *iov, size_t count, uint64_t length)
{
	uint32_t total = WIRE_MESSAGE_BYTES + (uint32_t)length;
	struct plx_buf *buf = total <= PUSH_SHORT_BYTES ? plx_buf_get(core->pool) : NULL;
	struct push_message *message;

	buf = buf ?: plx_buf_alloc(total);
	if (plx_unlikely(!buf))
		return NULL;
	wire_message_write(plx_buf_append(buf, total), tag);
	message_copy(&(struct message){.iov = iov, .count = count}, buf->data + WIRE_MESSAGE_BYTES);
	message = (struct push_message *)buf->base;
	message->buf = buf;
	return message;
}

void push_drop_all(struct push_queue *queue)
{
	while (queue->count)
		plx_buf_unref(push_take_first(queue)->buf);
}

/* Return: 0; -EAGAIN this side has no room; -ENOTCONN it is closing; -ENOMEM. */
static int send_to(struct push_receiver *receiver, struct push_message *message)
{
	struct plx_link *link = receiver->connection.session.link;
	struct plx_buf *buf = message->buf;
	int rc;

	if (plx_likely(buf->len <= PUSH_SHORT_BYTES)) {
		rc = plx_link_send(link, buf->data, buf->len);
	} else {
		rc = plx_link_send_buf(link, plx_buf_ref(buf), NULL, NULL);
		if (plx_unlikely(rc))
			plx_buf_unref(buf);
	}
	if (plx_likely(rc == 0)) {
		push_append(&receiver->in_flight, message);
		receiver->stats.handed++;
		push_place(receiver);
	} else if (rc == -EAGAIN) {
		receiver->is_full = true;
		push_place(receiver);
	} else if (rc == -ENOTCONN) {
		push_leave(receiver);
	}
	return rc;
}

static uint64_t length_of(const struct push_message *message)
{
	return message->buf->len - WIRE_MESSAGE_BYTES;
}

/* Send to the chosen receiver, or the next best. Return: 0; -EAGAIN none has room; -ENOMEM. */
static int send_to_best(struct push_receiver *receiver, struct push_message *message)
{
	struct netio_push_core *core = receiver->core;
	int rc;

	do {
		rc = send_to(receiver, message);
		if (plx_likely(rc == 0) || rc == -ENOMEM)
			return rc;
		receiver = push_choose(core, length_of(message));
	} while (receiver);
	return -EAGAIN;
}

void push_send_waiting(struct netio_push_core *core)
{
	while (core->waiting.count && core->open) {
		struct push_message *message = push_take_first(&core->waiting);
		struct push_receiver *receiver = push_choose(core, length_of(message));

		if (length_of(message) > core->message_max) {
			push_append(&core->oversized, message);
		} else if (!receiver || send_to_best(receiver, message) != 0) {
			STAILQ_INSERT_HEAD(&core->waiting.list, message, link);
			core->waiting.count++;
			return;
		} else {
			core->stats.handed_again++;
		}
	}
}

static int again(struct netio_push_core *core)
{
	if (core->open == core->ending) /* the last one has just disconnected */
		return netio_fail_closed();
	core->again_pending = true;
	core->stats.again++;
	return NETIO_STATUS_AGAIN;
}

int netio_pushv_tagged(struct netio_push_socket *socket, netio_tag_t tag, const struct iovec *iov,
		       size_t count)
{
	struct netio_push_core *core = socket->core;
	struct push_receiver *receiver;
	struct push_message *message;
	uint64_t length;
	int rc;

	ASSERT_LOOP(core, core->hub.evloop);
	if (plx_unlikely(!core || core->open == core->ending))
		return netio_fail_closed();
	if (plx_unlikely(!message_measure(iov, count, core->message_max, &length)))
		return message_refuse(iov, count, core->message_max,
				      "netio_sendv_ref of a send socket");
	receiver = push_choose(core, length);
	if (plx_unlikely(core->waiting.count || !receiver))
		return again(core);
	message = make(core, tag, iov, count, length);
	if (plx_unlikely(!message))
		return -ENOMEM;
	rc = send_to_best(receiver, message);
	if (plx_unlikely(rc)) {
		plx_buf_unref(message->buf);
		return rc == -EAGAIN ? again(core) : rc;
	}
	core->stats.messages++;
	return NETIO_STATUS_OK;
}

int netio_push(struct netio_push_socket *socket, const void *data, size_t len)
{
	return netio_pushv_tagged(socket, 0, &(struct iovec){(void *)data, len}, 1);
}
