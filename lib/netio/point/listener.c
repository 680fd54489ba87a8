/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening socket. Messages go to the callback or the queue, and can be answered. */
#include "listener.h"

#include <stdlib.h>

#define QUEUE_COUNT_MAX (1u << 24)

static struct netio_listen_socket *socket_of(const struct receiver *receiver)
{
	return receiver_listener(receiver)->acceptor.socket;
}

static bool give_to_callback(struct intake *intake, const struct netio_msg *msg)
{
	struct receiver *receiver = plx_container_of(intake, struct receiver, intake);

	CALL_USER(socket_of(receiver), cb_msg_received, &receiver->pub, msg);
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

static bool give_first_to_queue(struct intake *intake, const struct netio_msg *msg)
{
	struct receiver *receiver = plx_container_of(intake, struct receiver, intake);
	struct netio_msg copy = *msg;

	copy.buf = msg->len <= LISTENER_COPY_BYTES_MAX ? plx_buf_alloc((uint32_t)msg->len) : NULL;
	if (!copy.buf)
		return give_to_queue(intake, msg);
	copy.data = memcpy(plx_buf_append(copy.buf, (uint32_t)msg->len), msg->data, msg->len);
	if (!queue_push(receiver_listener(receiver)->queue, &copy)) {
		plx_buf_unref(copy.buf);
		return false;
	}
	if (++receiver->copies == LISTENER_COPIES_MAX)
		intake->give = give_to_queue;
	return true;
}

static const char *on_received(struct accepted *accepted, struct plx_buf *message)
{
	return intake_take(&((struct receiver *)accepted)->intake, message);
}

static void on_went_on(struct intake *intake, const char *wrong)
{
	struct receiver *receiver = plx_container_of(intake, struct receiver, intake);

	if (wrong)
		accepted_fail(&receiver->accepted, wrong);
	if (receiver->accepted.session.link || intake->held_count)
		return;
	receiver_listener(receiver)->ended--;
	plx_accepted_finish(&receiver->accepted.session);
}

/* Connections --------------------------------------------------------------------------------- */

/* Return whether one more connection may be accepted: a peer that repeatedly connects, sends and
 * closes must not take more memory each time. */
static bool has_room(struct acceptor *acceptor)
{
	struct netio_listener *listener = (struct netio_listener *)acceptor;
	const struct queue *queue = listener->queue;
	uint64_t taken = queue ? queue->pushed - plx_ring_depth(queue->ring) : 0;

	while (listener->ended_count && listener->ended_at[listener->ended_first] <= taken) {
		listener->ended_first = (listener->ended_first + 1) % LISTENER_ENDED_MAX;
		listener->ended_count--;
	}
	if (listener->ended + listener->ended_count < LISTENER_ENDED_MAX)
		return true;
	if (plx_log_allowed(&acceptor->log_limit, plx_loop_now_ns()))
		plx_log(netio_log, PLX_LOG_WARNING,
			"a connection is refused: nobody takes the messages of %d others, which "
			"have ended, from the queue",
			LISTENER_ENDED_MAX);
	return false;
}

static struct session_link *on_create(struct plx_acceptor *session)
{
	struct netio_listener *listener = (struct netio_listener *)session;
	struct receiver *receiver;

	if (!has_room(&listener->acceptor) || !spread_enter(&listener->acceptor))
		return NULL;
	receiver = calloc(1, sizeof(*receiver));
	if (!receiver) {
		spread_leave(&listener->acceptor);
		return NULL;
	}
	receiver->intake = (struct intake){
		.give = listener->queue ? give_first_to_queue : give_to_callback,
		.went_on = on_went_on,
		.outlives_link = listener->queue,
		.message_max = listener->acceptor.message_max,
		/* The link's buffers, plus long messages that hold back its credit. */
		.held_max = 2 * listener->link.rx_buf_count,
	};
	return (struct session_link *)receiver;
}

static void on_opened(struct session_link *session)
{
	struct receiver *receiver = (struct receiver *)session;
	struct accepted *accepted = &receiver->accepted;

	accepted_note_open(accepted);
	intake_open(&receiver->intake, session->link);
	receiver->intake.source = accepted->id;
	receiver->pub = (struct netio_recv_socket){
		.listen_socket = socket_of(receiver),
		.id = accepted->id,
		.peer = accepted->peer,
		.provider = accepted->provider,
		.choice = accepted->choice,
		.program = accepted->program,
		.pid = accepted->pid,
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

static void on_failed(struct session_link *session)
{
	intake_drop(&((struct receiver *)session)->intake);
}

static bool on_ended(struct session_link *session, struct plx_link *link,
		     enum plx_link_reason reason, const char *text)
{
	struct receiver *receiver = (struct receiver *)session;

	accepted_note_end(&receiver->accepted, link, reason, text);
	if (receiver->intake.held_count == 0)
		return true;
	receiver_listener(receiver)->ended++;
	return false;
}

static void on_closed(struct session_link *session)
{
	struct receiver *receiver = (struct receiver *)session;
	struct netio_listener *listener = receiver_listener(receiver);

	if (receiver->queued) { /* its buffers stay allocated while its messages are queued */
		if (listener->ended_count < LISTENER_ENDED_MAX)
			listener->ended_count++;
		listener->ended_at[(listener->ended_first + listener->ended_count - 1) %
				   LISTENER_ENDED_MAX] = listener->queue->pushed;
	}
	CALL_USER(socket_of(receiver), cb_connection_closed, &receiver->pub,
		  receiver->accepted.reason, receiver->accepted.why);
}

static void on_free(struct session_link *session)
{
	struct receiver *receiver = (struct receiver *)session;

	spread_leave(&receiver_listener(receiver)->acceptor);
	intake_drop(&receiver->intake);
	free(receiver);
}

static void on_free_listener(struct plx_acceptor *session)
{
	spread_forget((struct acceptor *)session);
	references_fini(&((struct netio_listener *)session)->references);
	free(session);
}

static void on_end(struct acceptor *acceptor)
{
	struct netio_listener *listener = (struct netio_listener *)acceptor;

	((struct netio_listen_socket *)acceptor->socket)->listener = NULL;
	plx_poller_remove(listener->poller);
	queue_destroy(listener->queue);
	listener->queue = NULL;
	acceptor_release(acceptor);
}

static const struct acceptor_owner owner = {
	.session = {ACCEPTOR_SESSION, .create = on_create, .opened = on_opened,
		    .base.failed = on_failed, .ended = on_ended, .closed = on_closed,
		    .free = on_free, .free_acceptor = on_free_listener},
	.role = WIRE_SENDER,
	.has_room = has_room,
	.suspect = on_suspect,
	.received = on_received,
	.writable = on_writable,
	.end = on_end,
};

/* The queue ----------------------------------------------------------------------------------- */

static int poll_queue(void *arg, uint64_t now_ns)
{
	queue_wake_if_pushed(((struct netio_listener *)arg)->queue);
	return 0;
}

static int arm_queue(void *arg, struct plx_sleep *sleep)
{
	return 0;
}

static void on_leave(void *arg)
{
	queue_wake_if_pushed(((struct netio_listener *)arg)->queue);
}

static int add_queue(struct netio_listener *listener)
{
	int rc = queue_create(listener->attr.queue_count, &listener->queue);

	if (rc)
		return rc;
	rc = plx_poller_add("netio queue", poll_queue, listener, &listener->poller);
	if (rc) {
		queue_destroy(listener->queue);
		return rc;
	}
	plx_poller_set_arm(listener->poller, arm_queue);
	plx_poller_set_leave(listener->poller, on_leave);
	return 0;
}

static struct queue *queue_of(const struct netio_listen_socket *socket, const char *what)
{
	struct queue *queue = socket->listener ? socket->listener->queue : NULL;

	if (plx_unlikely(!queue))
		plx_fail(EINVAL, "%s: the socket has no queue; set queue_count", what);
	return queue;
}

int netio_recv(struct netio_listen_socket *socket, struct netio_msg *msg_out)
{
	struct queue *queue = queue_of(socket, "netio_recv");

	return plx_likely(queue) ? queue_take(queue, msg_out) : -EINVAL;
}

int netio_recv_wait(struct netio_listen_socket *socket, struct netio_msg *msg_out,
		    uint64_t timeout_ns)
{
	struct queue *queue = queue_of(socket, "netio_recv_wait");

	if (!queue)
		return -EINVAL;
	if (plx_lcore_id() != PLX_LCORE_NONE)
		return plx_fail(EDEADLK,
				"netio_recv_wait: an lcore must not wait; call netio_recv, "
				"or watch netio_recv_fd");
	return queue_take_wait(queue, msg_out, timeout_ns);
}

int netio_recv_fd(struct netio_listen_socket *socket)
{
	struct queue *queue = queue_of(socket, "netio_recv_fd");

	return queue ? queue_fd(queue) : -EINVAL;
}

/* The socket ---------------------------------------------------------------------------------- */

/* Check and fill in defaults. */
static int check_attr(struct netio_listener *listener)
{
	struct netio_listen_attr *attr = &listener->attr;
	int rc;

	attr->message_max_bytes = attr->message_max_bytes ?: MESSAGE_MAX_DEFAULT;
	if (attr->spread && attr->queue_count)
		return plx_fail(EINVAL, "spread and queue_count: a queue takes messages of one "
					"lcore only; leave one of the two 0");
	rc = netio_check_range("queue_count", attr->queue_count, 0, QUEUE_COUNT_MAX)
		   ?: netio_check_enum("spread", attr->spread, NETIO_SPREAD_LEAST_LOAD + 1,
				       "netio_spread");
	return rc ?: intake_set_buffers(attr->buffer_bytes, attr->buffer_count,
					attr->message_max_bytes, &listener->link)
			     ?: acceptor_check(attr->provider, attr->message_max_bytes);
}

int netio_listen_socket_init(struct netio_eventloop *evloop, struct netio_listen_socket *socket,
			     const struct netio_listen_attr *attr)
{
	struct netio_listener *listener;
	int rc;

	*socket = (struct netio_listen_socket){0};
	listener = netio_allocate(evloop, "netio_listen_socket_init", sizeof(*listener), &rc);
	if (!listener)
		return rc;
	if (attr)
		listener->attr = *attr;
	attr = &listener->attr;
	rc = check_attr(listener);
	if (rc == 0 && attr->queue_count)
		rc = add_queue(listener);
	if (rc) {
		free(listener);
		return netio_logged(rc);
	}
	acceptor_init(&listener->acceptor, evloop, socket, &owner, attr->provider,
		      attr->message_max_bytes);
	if (attr->spread)
		rc = spread_create(&listener->acceptor, sizeof(*listener), attr->spread);
	if (rc)
		acceptor_release(&listener->acceptor);
	else
		socket->listener = listener;
	return netio_logged(rc);
}

int netio_listen(struct netio_listen_socket *socket, const char *host, unsigned port)
{
	struct netio_listener *listener = socket->listener;
	struct plx_listen_attr attr = {0};

	ASSERT_LOOP(listener, listener->acceptor.evloop);
	if (listener)
		attr.link = listener->link;
	return acceptor_listen((struct acceptor *)listener, "netio_listen", host, port, &attr);
}

unsigned netio_listen_socket_port(const struct netio_listen_socket *socket)
{
	ASSERT_LOOP(socket->listener, socket->listener->acceptor.evloop);
	return socket->listener ? plx_listener_port(socket->listener->acceptor.listener) : 0;
}

void netio_listen_socket_fini(struct netio_listen_socket *socket)
{
	ASSERT_LOOP(socket->listener, socket->listener->acceptor.evloop);
	if (socket->listener)
		on_end(&socket->listener->acceptor);
}

void netio_recv_socket_close(struct netio_recv_socket *socket)
{
	ASSERT_OWNER(receiver_of(socket)->accepted.session.acceptor->lcore);
	session_link_close(&receiver_of(socket)->accepted.session);
}

int netio_replyv_tagged(struct netio_recv_socket *socket, netio_tag_t tag, const struct iovec *iov,
			size_t count)
{
	const struct accepted *accepted = &receiver_of(socket)->accepted;

	ASSERT_OWNER(accepted->session.acceptor->lcore);
	return message_sendv(accepted->session.link, accepted->message_max, tag, iov, count,
			     "netio_replyv_ref");
}

int netio_reply(struct netio_recv_socket *socket, const void *data, size_t len)
{
	return netio_replyv_tagged(socket, 0, &(struct iovec){(void *)data, len}, 1);
}

static void on_sent(struct plx_link *link, struct plx_buf *message, int status, void *arg)
{
	struct receiver *receiver = arg;

	CALL_USER(socket_of(receiver), cb_send_completed, &receiver->pub, reference_key(message),
		  status);
}

int netio_replyv_ref(struct netio_recv_socket *socket, netio_tag_t tag, const struct iovec *iov,
		     size_t count, uint64_t key)
{
	struct receiver *receiver = receiver_of(socket);
	const struct accepted *accepted = &receiver->accepted;

	ASSERT_OWNER(accepted->session.acceptor->lcore);
	return references_send(&receiver_listener(receiver)->references, accepted->session.link,
			       accepted->message_max,
			       &(struct message){.tag = tag, .iov = iov, .count = count}, key,
			       on_sent, receiver);
}

int netio_reply_ref(struct netio_recv_socket *socket, const void *data, size_t len, uint64_t key)
{
	return netio_replyv_ref(socket, 0, &(struct iovec){(void *)data, len}, 1, key);
}
