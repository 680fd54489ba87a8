/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of a listening socket: messages go to the callback or the queue, and can be
 * answered. */
#include "listener.h"

#include <stdlib.h>

static struct netio_listen_socket *socket_of(const struct receiver *receiver)
{
	return receiver_listener(receiver)->acceptor.socket;
}

/* Messages ------------------------------------------------------------------------------------ */

static bool give_to_callback(struct intake *intake, const struct netio_msg *msg)
{
	struct receiver *receiver = plx_container_of(intake, struct receiver, intake);
	struct netio_listen_socket *socket = socket_of(receiver);

	if (plx_likely(socket) && socket->cb_msg_received)
		socket->cb_msg_received(&receiver->pub, msg);
	return true;
}

static bool give_to_queue(struct intake *intake, const struct netio_msg *msg)
{
	struct receiver *receiver = plx_container_of(intake, struct receiver, intake);
	struct netio_listener *listener = receiver_listener(receiver);

	plx_buf_ref(msg->buf);
	if (!queue_push(listener->queue, msg)) {
		plx_buf_unref(msg->buf);
		return false;
	}
	receiver->queued = true;
	return true;
}

static const char *on_received(struct accepted *accepted, struct plx_buf *message)
{
	struct receiver *receiver = (struct receiver *)accepted;
	const char *wrong;

	return intake_take(&receiver->intake, message, &wrong) == -EPROTO ? wrong : NULL;
}

/* Connections --------------------------------------------------------------------------------- */

static struct receiver *make_receiver(struct netio_listener *listener)
{
	/* The link's buffers, plus long messages that hold back its credit. */
	uint32_t held_max = listener->queue ? 2 * listener->attr.buffer_count : 0;
	struct receiver *receiver = calloc(1, sizeof(*receiver) + held_max * sizeof(struct held));

	if (receiver)
		receiver->intake = (struct intake){
			.give = listener->queue ? give_to_queue : give_to_callback,
			.message_max = listener->acceptor.message_max,
			.held = receiver->held,
			.held_max = held_max,
			.holding = &listener->holding,
		};
	return receiver;
}

static struct plx_accepted *on_create(struct plx_acceptor *session)
{
	struct netio_listener *listener = (struct netio_listener *)session;
	struct receiver *receiver;

	if (!listener_has_room(&listener->acceptor) || !spread_enter(&listener->acceptor))
		return NULL;
	receiver = make_receiver(listener);
	if (receiver)
		return &receiver->accepted.session;
	spread_leave(&listener->acceptor);
	return NULL;
}

static void on_opened(struct plx_accepted *session)
{
	struct receiver *receiver = (struct receiver *)session;
	struct accepted *accepted = &receiver->accepted;

	accepted_note_open(accepted);
	receiver->intake.source = accepted->id;
	receiver->pub = (struct netio_recv_socket){
		.listen_socket = socket_of(receiver),
		.id = accepted->id,
		.peer = accepted->peer,
		.provider = accepted->provider,
	};
	CALL_USER(socket_of(receiver), cb_connection_established, &receiver->pub);
}

static void on_suspect(struct accepted *accepted, bool suspect)
{
	struct receiver *receiver = (struct receiver *)accepted;

	CALL_USER(socket_of(receiver), cb_connection_suspect, &receiver->pub, suspect);
}

static void on_writable(struct accepted *accepted)
{
	struct receiver *receiver = (struct receiver *)accepted;

	CALL_USER(socket_of(receiver), cb_buffers_available, &receiver->pub);
}

static void on_failed(struct plx_accepted *session)
{
	intake_drop(&((struct receiver *)session)->intake);
}

static bool on_ended(struct plx_accepted *session, struct plx_link *link,
		     enum plx_link_reason reason, const char *text)
{
	struct receiver *receiver = (struct receiver *)session;

	accepted_note_end(&receiver->accepted, link, reason, text);
	if (receiver->intake.held_count == 0)
		return true;
	receiver_listener(receiver)->ended++;
	return false;
}

/* Its buffers stay allocated while its messages are in the queue. */
static void note_queued(struct netio_listener *listener)
{
	if (listener->ended_count < LISTENER_ENDED_MAX)
		listener->ended_count++;
	listener->ended_at[(listener->ended_first + listener->ended_count - 1) %
			   LISTENER_ENDED_MAX] = listener->queue->pushed;
}

static void on_closed(struct plx_accepted *session)
{
	struct receiver *receiver = (struct receiver *)session;

	if (receiver->queued)
		note_queued(receiver_listener(receiver));
	CALL_USER(socket_of(receiver), cb_connection_closed, &receiver->pub,
		  receiver->accepted.reason, receiver->accepted.why);
}

static void on_free(struct plx_accepted *session)
{
	struct receiver *receiver = (struct receiver *)session;

	spread_leave(&receiver_listener(receiver)->acceptor);
	intake_drop(&receiver->intake);
	free(receiver);
}

static void on_free_listener(struct plx_acceptor *session)
{
	spread_forget((struct acceptor *)session);
	free(session);
}

static void on_fini(struct acceptor *acceptor)
{
	netio_listen_socket_fini(acceptor->socket);
}

const struct acceptor_owner listener_owner = {
	.session = {.hello = acceptor_on_hello,
		    .create = on_create,
		    .opened = on_opened,
		    .failed = on_failed,
		    .ended = on_ended,
		    .closed = on_closed,
		    .free = on_free,
		    .free_acceptor = on_free_listener},
	.role = WIRE_SENDER,
	.has_room = listener_has_room,
	.suspect = on_suspect,
	.received = on_received,
	.writable = on_writable,
	.fini = on_fini,
};

void netio_recv_socket_close(struct netio_recv_socket *socket)
{
	ASSERT_OWNER(receiver_of(socket)->accepted.session.acceptor->lcore);
	plx_accepted_close(&receiver_of(socket)->accepted.session);
}

/* Answers ------------------------------------------------------------------------------------- */

int netio_replyv_tagged(struct netio_recv_socket *socket, netio_tag_t tag, const struct iovec *iov,
			size_t count)
{
	const struct accepted *accepted = &receiver_of(socket)->accepted;

	ASSERT_OWNER(accepted->session.acceptor->lcore);
	return message_sendv(accepted->session.link, accepted->message_max, tag, iov, count);
}

int netio_reply(struct netio_recv_socket *socket, const void *data, size_t len)
{
	return netio_replyv_tagged(socket, 0, &(struct iovec){(void *)data, len}, 1);
}
