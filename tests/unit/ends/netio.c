/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <sys/epoll.h>
#include <unistd.h>

#define TAG 7

static struct netio_eventloop *const evloop = &ends_context.evloop;
static struct netio_signal fired;
static struct netio_timer timer;
static struct netio_fd watch;
static int ends[2];
static struct netio_listen_socket listening;
static struct netio_send_socket sending, to_close, connecting, refused;
static struct netio_buffered_send_socket buffered;
static struct netio_publish_socket publishing, publishing_later;
static struct netio_unbuffered_publish_socket unbuffered;
static struct netio_subscribe_socket subscribing;
static struct netio_push_socket pushing;
static struct netio_recv_socket *accepted; /* the newest connection, until it closes */
static struct netio_subscriber *subscriber;
static unsigned established, subscribed;
static uint64_t keys[4];
static const char *provider_used;

static void on_init(void)
{
	ends_in("cb_init", NULL);
}

static void on_signal(void *data)
{
	ends_in("netio signal", &fired);
}

static void on_timer(void *data)
{
	ends_in("netio timer", &timer);
}

static void on_fd(int fd, uint32_t events, void *data)
{
	char byte;

	if (read(fd, &byte, 1) == 1)
		ends_in("netio descriptor", &watch);
}

static void on_post(void *data)
{
	ends_in("posted function", NULL);
}

/* Connections -------------------------------------------------------------------------------- */

#define CONNECTED(name, type, callback, object) \
	static void name(type *connection)      \
	{                                       \
		established++;                  \
		ends_in(callback, object);      \
	}

#define CLOSED(name, type, callback, object)                                             \
	static void name(type *connection, enum plx_link_reason reason, const char *why) \
	{                                                                                \
		ends_in(callback, object);                                               \
	}

CONNECTED(on_sender_up, struct netio_send_socket, "cb_connection_established", connection)
CLOSED(on_sender_down, struct netio_send_socket, "cb_connection_closed", connection)
CLOSED(on_refused, struct netio_send_socket, "cb_connection_refused", connection)
CONNECTED(on_publisher_up, struct netio_publisher, "cb_connection_established of a publisher",
	  &subscribing)
CLOSED(on_publisher_down, struct netio_publisher, "cb_connection_closed of a publisher",
       &subscribing)
CONNECTED(on_receiver_up, struct netio_push_receiver, "cb_connection_established of a receiver",
	  &pushing)
CLOSED(on_receiver_down, struct netio_push_receiver, "cb_connection_closed of a receiver", &pushing)

static void on_accepted(struct netio_recv_socket *connection)
{
	accepted = connection;
	ends_in("cb_connection_established of a listening socket", &listening);
}

static void on_accepted_down(struct netio_recv_socket *connection, enum plx_link_reason reason,
			     const char *why)
{
	if (accepted == connection)
		accepted = NULL;
	ends_in("cb_connection_closed of a listening socket", &listening);
}

static void on_subscriber_up(struct netio_subscriber *connection)
{
	subscriber = connection;
	ends_in("cb_connection_established of a subscriber", connection->socket);
}

static void on_subscriber_down(struct netio_subscriber *connection, enum plx_link_reason reason,
			       const char *why)
{
	if (subscriber == connection)
		subscriber = NULL;
	ends_in("cb_connection_closed of a subscriber", connection->socket);
}

/* Messages ----------------------------------------------------------------------------------- */

static void on_message(struct netio_recv_socket *connection, const struct netio_msg *msg)
{
	static const char text[] = "answer";

	netio_reply(connection, msg->data, msg->len);
	netio_reply_ref(connection, text, sizeof(text), 1);
	ends_in("cb_msg_received of a listening socket", &listening);
}

static void on_answer(struct netio_send_socket *socket, const struct netio_msg *msg)
{
	ends_in("cb_msg_received of an answer", socket);
}

static void on_published(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	ends_in("cb_msg_received of a subscribe socket", socket);
}

static void on_completed(struct netio_send_socket *socket, uint64_t key, int status)
{
	ends_in("cb_send_completed", socket);
}

static void on_replied(struct netio_recv_socket *socket, uint64_t key, int status)
{
	ends_in("cb_send_completed of a listening socket", &listening);
}

static void on_room(struct netio_send_socket *socket)
{
	ends_in("cb_buffers_available", socket);
}

static void on_taken(struct netio_unbuffered_publish_socket *socket, uint64_t key, int status)
{
	ends_in("cb_msg_published", socket);
}

/* Subscriptions ------------------------------------------------------------------------------ */

static void on_subscribed(struct netio_publisher *publisher, const struct netio_subscription *one)
{
	subscribed++;
	ends_in("cb_subscribed", &subscribing);
}

static void on_unsubscribed(struct netio_publisher *publisher, const struct netio_subscription *one)
{
	ends_in("cb_unsubscribed", &subscribing);
}

static void on_subscriber_added(struct netio_subscriber *one, const struct netio_subscription *to)
{
	ends_in("cb_subscribed of a publish socket", one->socket);
}

static void on_subscriber_removed(struct netio_subscriber *one, const struct netio_subscription *to)
{
	ends_in("cb_unsubscribed of a publish socket", one->socket);
}

/* The objects -------------------------------------------------------------------------------- */

static unsigned port(void)
{
	return netio_listen_socket_port(&listening);
}

static void init_sender(struct netio_send_socket *socket)
{
	const struct netio_connect_attr attr = {.provider = provider_used};

	assert_works(netio_send_socket_init(evloop, socket, &attr));
	socket->cb_connection_established = on_sender_up;
	socket->cb_connection_closed = on_sender_down;
	socket->cb_connection_refused = on_refused;
	socket->cb_send_completed = on_completed;
	socket->cb_buffers_available = on_room;
	socket->cb_msg_received = on_answer;
}

static void init_publisher(struct netio_publish_socket *socket)
{
	const struct netio_publish_attr attr = {.provider = provider_used};

	assert_works(netio_publish_socket_init(evloop, socket, &attr));
	socket->cb_connection_established = on_subscriber_up;
	socket->cb_connection_closed = on_subscriber_down;
	socket->cb_subscribed = on_subscriber_added;
	socket->cb_unsubscribed = on_subscriber_removed;
	assert_works(netio_publish_listen(socket, "127.0.0.1", 0));
}

static void init_receivers(void)
{
	const struct netio_listen_attr attr = {.provider = provider_used};
	const struct netio_publish_attr publish = {.provider = provider_used};

	assert_works(netio_listen_socket_init(evloop, &listening, &attr));
	listening.cb_connection_established = on_accepted;
	listening.cb_connection_closed = on_accepted_down;
	listening.cb_msg_received = on_message;
	listening.cb_send_completed = on_replied;
	assert_works(netio_listen(&listening, "*", 0));
	init_publisher(&publishing);
	init_publisher(&publishing_later);
	assert_works(netio_unbuffered_publish_socket_init(evloop, &unbuffered, &publish));
	unbuffered.cb_msg_published = on_taken;
	assert_works(netio_unbuffered_publish_listen(&unbuffered, "127.0.0.1", 0));
}

static void init_subscriber(void)
{
	const struct netio_subscribe_attr attr = {.connect.provider = provider_used};

	assert_works(netio_subscribe_socket_init(evloop, &subscribing, &attr));
	subscribing.cb_connection_established = on_publisher_up;
	subscribing.cb_connection_closed = on_publisher_down;
	subscribing.cb_subscribed = on_subscribed;
	subscribing.cb_unsubscribed = on_unsubscribed;
	subscribing.cb_msg_received = on_published;
	assert_works(netio_subscribe(&subscribing, "127.0.0.1",
				     netio_publish_socket_port(&publishing), TAG));
	assert_works(netio_subscribe(&subscribing, "127.0.0.1",
				     netio_publish_socket_port(&publishing), TAG + 1));
	assert_works(netio_subscribe(&subscribing, "127.0.0.1",
				     netio_unbuffered_publish_socket_port(&unbuffered), TAG));
}

static bool is_ready(void)
{
	return established == 6 && subscribed == 3 && accepted && subscriber;
}

static void up(const char *provider)
{
	const struct netio_buffered_attr buffered_attr = {.connect.provider = provider,
							  .page_bytes = 4096};
	const struct netio_push_attr push_attr = {.connect.provider = provider};

	provider_used = provider;
	established = subscribed = 0;
	accepted = NULL;
	subscriber = NULL;
	assert_works(netio_signal_init(evloop, &fired));
	fired.cb = on_signal;
	assert_works(netio_timer_init(evloop, &timer));
	timer.cb = on_timer;
	assert_int_equal(pipe(ends), 0);
	watch.cb = on_fd;
	assert_works(netio_fd_init(evloop, &watch, ends[0], EPOLLIN));
	evloop->cb_init = on_init;
	init_receivers();
	init_subscriber();
	init_sender(&sending);
	init_sender(&to_close);
	init_sender(&connecting);
	init_sender(&refused);
	assert_works(netio_connect(&sending, "127.0.0.1", port()));
	assert_works(netio_connect(&to_close, "127.0.0.1", port()));
	assert_works(netio_buffered_send_socket_init(evloop, &buffered, &buffered_attr));
	assert_works(netio_buffered_connect(&buffered, "127.0.0.1", port()));
	assert_works(netio_push_socket_init(evloop, &pushing, &push_attr));
	pushing.cb_connection_established = on_receiver_up;
	pushing.cb_connection_closed = on_receiver_down;
	assert_works(netio_push_connect(&pushing, "127.0.0.1", port()));
	established++; /* the buffered socket says nothing */
	ends_turn_until(is_ready);
}

static void publish_all(void)
{
	static char text[] = "text";
	struct iovec iov = {text, sizeof(text)};

	netio_buffered_publish(&publishing, TAG, text, sizeof(text), 0, NULL);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(keys); i++) {
		keys[i] = i;
		netio_unbuffered_publishv(&unbuffered, TAG, &iov, 1, &keys[i], 0, NULL);
	}
	netio_buffered_send(&buffered, text, sizeof(text));
	netio_buffered_flush(&buffered);
	netio_push(&pushing, text, sizeof(text));
}

static void kick(void)
{
	static char text[] = "text";
	struct iovec iov = {text, sizeof(text)};

	netio_signal_fire(&fired);
	assert_works(netio_timer_start_us(&timer, 1));
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_works(netio_post(evloop, on_post, NULL));
	publish_all();
	assert_works(netio_sendv_ref(&sending, 0, &iov, 1, 1));
	while (netio_send(&sending, text, sizeof(text)) == 0)
		continue;
	assert_works(netio_connect(&connecting, "127.0.0.1", port()));
	assert_works(netio_connect(&refused, "127.0.0.1", 1));
	assert_works(netio_disconnect(&to_close));
	assert_works(netio_unsubscribe(&subscribing, "127.0.0.1",
				       netio_publish_socket_port(&publishing), TAG + 1));
	assert_works(netio_subscribe(&subscribing, "127.0.0.1",
				     netio_publish_socket_port(&publishing_later), TAG));
	assert_works(netio_push_connect(&pushing, "127.0.0.2", port()));
}

/* The calls ---------------------------------------------------------------------------------- */

static int terminate(void)
{
	netio_terminate(evloop);
	return 0;
}

static int run(void)
{
	return netio_run(evloop);
}

static int drain(void)
{
	return netio_drain(evloop, PLX_NEVER);
}

static int loop_fini(void)
{
	return netio_eventloop_fini(evloop);
}

static int fini(void)
{
	return netio_fini(&ends_context);
}

/* Handles of NetIO accept a second fini. */
#define FINISH(name, function, object) \
	static int name(void)          \
	{                              \
		function(&object);     \
		ends_ended(&object);   \
		return 0;              \
	}

FINISH(finish_signal, netio_signal_fini, fired)
FINISH(stop_timer, netio_timer_stop, timer)
FINISH(finish_fd, netio_fd_fini, watch)
FINISH(finish_sender, netio_send_socket_fini, sending)
FINISH(finish_buffered, netio_buffered_send_socket_fini, buffered)
FINISH(finish_listening, netio_listen_socket_fini, listening)
FINISH(finish_publishing, netio_publish_socket_fini, publishing)
FINISH(finish_unbuffered, netio_unbuffered_publish_socket_fini, unbuffered)
FINISH(finish_subscribing, netio_subscribe_socket_fini, subscribing)
FINISH(finish_pushing, netio_push_socket_fini, pushing)

static int disconnect(void)
{
	return netio_disconnect(&sending);
}

static int disconnect_buffered(void)
{
	return netio_buffered_disconnect(&buffered);
}

static int close_accepted(void)
{
	if (!accepted || !port()) /* it ends with its socket */
		return 1;
	netio_recv_socket_close(accepted);
	return 0;
}

static int close_subscriber(void)
{
	if (!subscriber || !netio_publish_socket_port(&publishing))
		return 1;
	netio_subscriber_close(subscriber);
	return 0;
}

static int unsubscribe(void)
{
	unsigned at = netio_publish_socket_port(&publishing);

	return at ? netio_unsubscribe(&subscribing, "127.0.0.1", at, TAG) : 1;
}

static int disconnect_receiver(void)
{
	return port() ? netio_push_disconnect(&pushing, "127.0.0.1", port()) : 1;
}

static void down(bool is_up)
{
	finish_signal();
	stop_timer();
	if (is_up) /* else plx_lcores_fini has freed it */
		finish_fd();
	close(ends[0]);
	close(ends[1]);
	finish_sender();
	netio_send_socket_fini(&to_close);
	netio_send_socket_fini(&connecting);
	netio_send_socket_fini(&refused);
	finish_buffered();
	finish_pushing();
	finish_subscribing();
	finish_publishing();
	netio_publish_socket_fini(&publishing_later);
	finish_unbuffered();
	finish_listening();
}

static const struct ends_call calls[] = {
	{"netio_terminate", ENDS_DEFERS, terminate},
	{"netio_run", ENDS_REFUSES, run},
	{"netio_drain", ENDS_REFUSES, drain},
	{"netio_fini", ENDS_REFUSES, fini},
	{"netio_eventloop_fini", ENDS_REFUSES, loop_fini},
	{"netio_signal_fini", ENDS_WORKS, finish_signal},
	{"netio_timer_stop", ENDS_WORKS, stop_timer},
	{"netio_fd_fini", ENDS_WORKS, finish_fd},
	{"netio_disconnect", ENDS_DEFERS, disconnect},
	{"netio_send_socket_fini", ENDS_WORKS, finish_sender},
	{"netio_buffered_send_socket_fini", ENDS_WORKS, finish_buffered},
	{"netio_listen_socket_fini", ENDS_WORKS, finish_listening},
	{"netio_buffered_disconnect", ENDS_DEFERS, disconnect_buffered},
	{"netio_recv_socket_close", ENDS_DEFERS, close_accepted},
	{"netio_publish_socket_fini", ENDS_WORKS, finish_publishing},
	{"netio_unbuffered_publish_socket_fini", ENDS_WORKS, finish_unbuffered},
	{"netio_subscriber_close", ENDS_DEFERS, close_subscriber},
	{"netio_unsubscribe", ENDS_DEFERS, unsubscribe},
	{"netio_subscribe_socket_fini", ENDS_WORKS, finish_subscribing},
	{"netio_push_disconnect", ENDS_DEFERS, disconnect_receiver},
	{"netio_push_socket_fini", ENDS_WORKS, finish_pushing},
};

#define NETIO_DRAIN (1u << ENDS_IN_NETIO_DRAIN)

static const struct ends_callback callbacks[] = {
	{"cb_init", 1u << ENDS_IN_NETIO_RUN},
	{"netio signal", ENDS_NETIO},
	{"netio timer", ENDS_NETIO},
	{"netio descriptor", ENDS_RUNS},
	{"posted function", ENDS_NETIO},
	{"cb_connection_established", ENDS_RUNS},
	{"cb_connection_closed", ENDS_RUNS | NETIO_DRAIN},
	{"cb_connection_refused", 0},
	{"cb_connection_established of a publisher", 0},
	{"cb_connection_closed of a publisher", NETIO_DRAIN},
	{"cb_connection_established of a receiver", 0},
	{"cb_connection_closed of a receiver", NETIO_DRAIN},
	{"cb_connection_established of a listening socket", ENDS_RUNS},
	{"cb_connection_closed of a listening socket", ENDS_RUNS | NETIO_DRAIN},
	{"cb_connection_established of a subscriber", 0},
	{"cb_connection_closed of a subscriber", NETIO_DRAIN},
	{"cb_msg_received of a listening socket", ENDS_RUNS | NETIO_DRAIN},
	{"cb_msg_received of an answer", ENDS_RUNS},
	{"cb_msg_received of a subscribe socket", ENDS_RUNS},
	{"cb_send_completed", ENDS_RUNS | NETIO_DRAIN},
	{"cb_send_completed of a listening socket", ENDS_RUNS},
	{"cb_buffers_available", ENDS_RUNS},
	{"cb_msg_published", ENDS_RUNS | NETIO_DRAIN},
	{"cb_subscribed", 0},
	{"cb_unsubscribed", ENDS_RUNS},
	{"cb_subscribed of a publish socket", 0},
	{"cb_unsubscribed of a publish socket", ENDS_RUNS},
};

const struct ends_part ends_netio = {
	"NetIO", up, kick, down, calls, PLX_ARRAY_LEN(calls), callbacks, PLX_ARRAY_LEN(callbacks),
};
