/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of a listening socket: greeted, answered, and ended. */
#include "listener.h"

#include "connection.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

#define HELLO_NS (2 * PLX_NS_PER_S) /* as on_hello_timeout says */

static struct receiver *receiver_of(struct netio_recv_socket *socket)
{
	return (struct receiver *)socket;
}

static void note_end(struct receiver *receiver, enum plx_link_reason reason, const char *text)
{
	receiver->reason = receiver->failure ? PLX_LINK_PROTOCOL : reason;
	snprintf(receiver->why, sizeof(receiver->why), "%s%s",
		 receiver->failure ? "the peer broke the protocol: " : "",
		 receiver->failure ? receiver->failure : text);
}

void receiver_fail(struct receiver *receiver, const char *why)
{
	if (receiver->failure)
		return;
	receiver->failure = why;
	receiver_drop_held(receiver); /* what is behind the fault */
	if (receiver->link)
		plx_link_abort(receiver->link);
	else
		note_end(receiver, PLX_LINK_PROTOCOL, why);
}

static void on_hello_timeout(struct plx_timer *timer, void *arg)
{
	receiver_fail(arg, "it did not greet within 2 s");
}

static bool receiver_create(struct netio_listener *listener, struct plx_link *link)
{
	struct receiver *receiver = calloc(1, sizeof(*receiver));

	if (!receiver)
		return false;
	/* Buffers of the link, and the long messages that hold back its credit. */
	receiver->held_max = 2 * listener->attr.buffer_count;
	if (listener->queue) {
		receiver->held = calloc(receiver->held_max, sizeof(*receiver->held));
		if (!receiver->held) {
			free(receiver);
			return false;
		}
	}
	receiver->pub = (struct netio_recv_socket){
		.listen_socket = listener->socket,
		.id = ++listener->next_id,
		.peer = receiver->peer,
		.provider = receiver->provider,
	};
	snprintf(receiver->peer, sizeof(receiver->peer), "%s", plx_link_peer(link));
	snprintf(receiver->provider, sizeof(receiver->provider), "%s", plx_link_provider(link));
	receiver->link = link;
	receiver->listener = listener;
	receiver->next = listener->receivers;
	receiver->prev_next = &listener->receivers;
	if (receiver->next)
		receiver->next->prev_next = &receiver->next;
	listener->receivers = receiver;
	plx_timer_init(&receiver->timer, on_hello_timeout, receiver);
	plx_timer_set_lax(&receiver->timer, true);
	plx_timer_start(&receiver->timer, HELLO_NS);
	plx_link_set_user(link, receiver);
	return true;
}

void receiver_destroy(struct receiver *receiver)
{
	plx_timer_stop(&receiver->timer);
	receiver_drop(receiver);
	*receiver->prev_next = receiver->next;
	if (receiver->next)
		receiver->next->prev_next = receiver->prev_next;
	free(receiver->held);
	free(receiver);
}

/* Its buffers are taken for as long as its messages are in the queue. */
static void note_queued(struct receiver *receiver)
{
	struct netio_listener *listener = receiver->listener;

	if (!receiver->queued || !listener->queue)
		return;
	if (listener->ended_count < LISTENER_ENDED_MAX)
		listener->ended_count++;
	listener->ended_at[(listener->ended_first + listener->ended_count - 1) %
			   LISTENER_ENDED_MAX] = listener->queued;
}

static void on_open(struct plx_link *link, void *user)
{
	struct netio_listener *listener = listener_find((uintptr_t)user);

	if (!listener || !listener_has_room(listener) || !receiver_create(listener, link)) {
		plx_link_set_user(link, NULL);
		plx_link_abort(link);
	}
}

static void greeted(struct receiver *receiver, const struct plx_buf *message)
{
	struct netio_listener *listener = receiver->listener;
	struct wire_greeting hello;
	const char *wrong = wire_greeting_read(message->data, message->len, WIRE_HELLO, &hello);
	uint8_t welcome[WIRE_GREETING_BYTES];

	if (wrong) {
		receiver_fail(receiver, wrong);
		return;
	}
	wire_greeting_write(welcome, &(struct wire_greeting){
					     .type = WIRE_WELCOME,
					     .version_min = WIRE_VERSION_MIN,
					     .version_max = WIRE_VERSION_MAX,
					     .role = WIRE_SENDER,
					     .message_max = listener->attr.message_max_bytes,
				     });
	if (plx_link_send(receiver->link, welcome, sizeof(welcome)) != 0) {
		receiver_fail(receiver, "there was no room for the first answer");
		return;
	}
	plx_timer_stop(&receiver->timer);
	receiver->message_max = hello.message_max;
	receiver->established = true;
	if (listener->socket->cb_connection_established)
		listener->socket->cb_connection_established(&receiver->pub);
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct receiver *receiver = user;
	const char *wrong;

	if (plx_unlikely(!receiver || !receiver->listener->socket || receiver->failure))
		return;
	if (plx_unlikely(!receiver->established))
		greeted(receiver, message);
	else if (plx_unlikely(receiver_take(receiver, message, &wrong) == -EPROTO))
		receiver_fail(receiver, wrong);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct receiver *receiver = user;

	if (receiver && receiver->established && receiver->listener->socket &&
	    receiver->listener->socket->cb_buffers_available)
		receiver->listener->socket->cb_buffers_available(&receiver->pub);
}

static void tell_end(struct receiver *receiver)
{
	struct netio_listener *listener = receiver->listener;

	if (receiver->established) {
		if (listener->socket->cb_connection_closed)
			listener->socket->cb_connection_closed(&receiver->pub, receiver->reason,
							       receiver->why);
	} else if (plx_log_allowed(&listener->log_limit, plx_loop_now_ns())) {
		plx_log(&netio_log, PLX_LOG_NOTICE, "%s connected, and was refused: %s",
			receiver->peer, receiver->why);
	}
}

bool receiver_finish(struct receiver *receiver)
{
	struct netio_listener *listener = receiver->listener;
	bool is_there;

	receiver->finishing = true;
	note_queued(receiver);
	if (listener->socket)
		tell_end(receiver);
	is_there = listener->socket != NULL;
	receiver_destroy(receiver);
	listener_free_if_done(listener);
	return is_there;
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct receiver *receiver = user;

	if (!receiver)
		return;
	receiver->link = NULL;
	note_end(receiver, reason, text);
	if (receiver->held_count == 0)
		receiver_finish(receiver);
	else
		receiver->listener->ended++;
}

const struct plx_link_events receiver_events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_close = on_close,
};

void netio_recv_socket_close(struct netio_recv_socket *socket)
{
	if (receiver_of(socket)->link)
		plx_link_close(receiver_of(socket)->link); /* closing already: the same */
}

int netio_replyv_tagged(struct netio_recv_socket *socket, netio_tag_t tag, const struct iovec *iov,
			size_t count)
{
	const struct receiver *receiver = receiver_of(socket);

	return message_sendv(receiver->link, receiver->message_max, tag, iov, count);
}

int netio_reply(struct netio_recv_socket *socket, const void *data, size_t len)
{
	return netio_replyv_tagged(socket, 0, &(struct iovec){(void *)data, len}, 1);
}
