/* SPDX-License-Identifier: BSD-3-Clause */
#include "netio_callbacks.h"

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

#define SMALL_PAGES .page_bytes = 1024, .page_count = 4

static void init_publisher(struct netio_publish_socket *socket, uint32_t subscriptions_max)
{
	const struct netio_publish_attr attr = {
		.provider = provider_used, .subscriptions_max = subscriptions_max, SMALL_PAGES};

	assert_works(netio_publish_socket_init(evloop, socket, &attr));
	socket->cb_connection_established = on_subscriber_up;
	socket->cb_connection_closed = on_subscriber_down;
	socket->cb_subscribed = on_subscriber_added;
	socket->cb_unsubscribed = on_subscriber_removed;
	socket->cb_buffers_available = on_publish_room;
	assert_works(netio_publish_listen(socket, "127.0.0.1", 0));
}

static void init_receivers(void)
{
	const struct netio_listen_attr attr = {
		.provider = provider_used, .buffer_bytes = 1024, .buffer_count = 4};
	const struct netio_publish_attr publish = {.provider = provider_used, SMALL_PAGES};

	assert_works(netio_listen_socket_init(evloop, &listening, &attr));
	listening.cb_connection_established = on_accepted;
	listening.cb_connection_closed = on_accepted_down;
	listening.cb_msg_received = on_message;
	listening.cb_send_completed = on_replied;
	listening.cb_buffers_available = on_reply_room;
	assert_works(netio_listen(&listening, "*", 0));
	init_publisher(&publishing, 0);
	init_publisher(&publishing_later, 1);
	init_publisher(&leaving, 0);
	assert_works(netio_unbuffered_publish_socket_init(evloop, &unbuffered, &publish));
	unbuffered.cb_connection_established = on_subscriber_up;
	unbuffered.cb_connection_closed = on_subscriber_down;
	unbuffered.cb_subscribed = on_subscriber_added;
	unbuffered.cb_unsubscribed = on_subscriber_removed;
	unbuffered.cb_buffers_available = on_unbuffered_room;
	unbuffered.cb_msg_published = on_taken;
	assert_works(netio_unbuffered_publish_listen(&unbuffered, "127.0.0.1", 0));
}

static void subscribe(unsigned to, netio_tag_t tag, enum netio_policy policy)
{
	const struct netio_subscription one = {.tag = tag, .policy = policy};

	assert_works(netio_subscribe_to(&subscribing, "127.0.0.1", to, &one));
}

static void init_subscriber(void)
{
	const struct netio_subscribe_attr attr = {
		.buffer_bytes = 1024,
		.buffer_count = 4,
		.connect = {.provider = provider_used, .reconnect_min_ns = PLX_NS_PER_MS}};

	assert_works(netio_subscribe_socket_init(evloop, &subscribing, &attr));
	subscribing.cb_connection_established = on_publisher_up;
	subscribing.cb_connection_closed = on_publisher_down;
	subscribing.cb_connection_refused = on_publisher_refused;
	subscribing.cb_subscribed = on_subscribed;
	subscribing.cb_subscription_refused = on_not_subscribed;
	subscribing.cb_subscription_lost = on_lost;
	subscribing.cb_subscription_resumed = on_resumed;
	subscribing.cb_unsubscribed = on_unsubscribed;
	subscribing.cb_gap = on_gap;
	subscribing.cb_msg_received = on_published;
	subscribe(netio_publish_socket_port(&publishing), TAG, NETIO_POLICY_DEFAULT);
	subscribe(netio_publish_socket_port(&publishing), TAG + 1, NETIO_POLICY_DEFAULT);
	subscribe(netio_publish_socket_port(&publishing), TAG + 2, NETIO_POLICY_DROP_NEW);
	subscribe(netio_publish_socket_port(&leaving), TAG, NETIO_POLICY_DEFAULT);
	subscribe(netio_unbuffered_publish_socket_port(&unbuffered), TAG, NETIO_POLICY_DEFAULT);
}

static void init_buffered(struct netio_buffered_send_socket *socket, unsigned to)
{
	const struct netio_buffered_attr attr = {.connect.provider = provider_used, SMALL_PAGES};

	assert_works(netio_buffered_send_socket_init(evloop, socket, &attr));
	socket->cb_connection_established = on_buffered_up;
	socket->cb_connection_closed = on_buffered_down;
	socket->cb_connection_refused = on_buffered_refused;
	socket->cb_buffers_available = on_buffered_room;
	socket->cb_msg_received = on_buffered_answer;
	if (to)
		assert_works(netio_buffered_connect(socket, "127.0.0.1", to));
}

static bool is_ready(void)
{
	return established == 7 && subscribed == 5 && accepted && subscriber && leaver;
}

static void up(const char *provider)
{
	const struct netio_push_attr push_attr = {.connect.provider = provider};

	provider_used = provider;
	established = subscribed = 0;
	accepted = NULL;
	subscriber = leaver = NULL;
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
	init_buffered(&buffered, port());
	init_buffered(&buffered_refused, 0);
	assert_works(netio_push_socket_init(evloop, &pushing, &push_attr));
	pushing.cb_connection_established = on_receiver_up;
	pushing.cb_connection_closed = on_receiver_down;
	pushing.cb_connection_refused = on_receiver_refused;
	pushing.cb_buffers_available = on_push_room;
	pushing.cb_msg_received = on_pushed_answer;
	assert_works(netio_push_connect(&pushing, "127.0.0.1", port()));
	ends_turn_until(is_ready);
}

#define UNTIL_FULL(call)    \
	while ((call) == 0) \
		continue;

/* All run out of room; then some messages are dropped. */
static void send_all(void)
{
	static char text[] = "text";
	struct iovec iov = {text, sizeof(text)};

	assert_works(netio_sendv_ref(&sending, 0, &iov, 1, 1));
	UNTIL_FULL(netio_send(&sending, text, sizeof(text)))
	UNTIL_FULL(netio_buffered_send(&buffered, text, sizeof(text)))
	UNTIL_FULL(netio_push(&pushing, text, sizeof(text)))
	UNTIL_FULL(netio_reply(accepted, text, sizeof(text)))
	UNTIL_FULL(netio_buffered_publish(&publishing, TAG, text, sizeof(text), 0, NULL))
	for (unsigned i = 0; i < PLX_ARRAY_LEN(keys); i++) {
		keys[i] = i;
		netio_buffered_publish(&publishing, TAG + 2, text, sizeof(text), 0, NULL);
		netio_unbuffered_publishv(&unbuffered, TAG, &iov, 1, &keys[i], 0, NULL);
	}
}

static void kick(void)
{
	netio_signal_fire(&fired);
	assert_works(netio_timer_start_us(&timer, 1));
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_works(netio_post(evloop, on_post, NULL));
	send_all();
	assert_works(netio_connect(&connecting, "127.0.0.1", port()));
	assert_works(netio_connect(&refused, "127.0.0.1", 1));
	assert_works(netio_buffered_connect(&buffered_refused, "127.0.0.1", 1));
	assert_works(netio_disconnect(&to_close));
	assert_works(netio_unsubscribe(&subscribing, "127.0.0.1",
				       netio_publish_socket_port(&publishing), TAG + 1));
	for (netio_tag_t tag = TAG; tag < TAG + 2; tag++) /* it takes one */
		subscribe(netio_publish_socket_port(&publishing_later), tag, NETIO_POLICY_DEFAULT);
	subscribe(1, TAG, NETIO_POLICY_DEFAULT);
	netio_subscriber_close(leaver);
	assert_works(netio_push_connect(&pushing, "127.0.0.2", port()));
	assert_works(netio_push_connect(&pushing, "127.0.0.1", 1));
}

/* The calls ---------------------------------------------------------------------------------- */

ENDS_CALL(netio_terminate, evloop)

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

ENDS_FINISH(finish_signal, netio_signal_fini, fired)
ENDS_FINISH(stop_timer, netio_timer_stop, timer)
ENDS_FINISH(finish_fd, netio_fd_fini, watch)
ENDS_FINISH(finish_sender, netio_send_socket_fini, sending)
ENDS_FINISH(finish_buffered, netio_buffered_send_socket_fini, buffered)
ENDS_FINISH(finish_listening, netio_listen_socket_fini, listening)
ENDS_FINISH(finish_publishing, netio_publish_socket_fini, publishing)
ENDS_FINISH(finish_unbuffered, netio_unbuffered_publish_socket_fini, unbuffered)
ENDS_FINISH(finish_subscribing, netio_subscribe_socket_fini, subscribing)
ENDS_FINISH(finish_pushing, netio_push_socket_fini, pushing)

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

/* Its memory is used again at once. */
static int renew_sender(void)
{
	finish_sender();
	if (netio_send_socket_init(evloop, &sending, NULL) == 0)
		netio_connect(&sending, "127.0.0.1", port());
	return 0;
}

static void finish_sockets(void)
{
	finish_sender();
	finish_buffered();
	finish_listening();
	finish_publishing();
	finish_unbuffered();
	finish_subscribing();
	finish_pushing();
}

static int finish_all(void)
{
	finish_signal();
	stop_timer();
	finish_fd();
	finish_sockets();
	return 0;
}

static void down(bool is_up)
{
	finish_signal();
	stop_timer();
	if (is_up) /* else plx_lcores_fini has freed it */
		finish_fd();
	close(ends[0]);
	close(ends[1]);
	netio_send_socket_fini(&to_close);
	netio_send_socket_fini(&connecting);
	netio_send_socket_fini(&refused);
	netio_buffered_send_socket_fini(&buffered_refused);
	netio_publish_socket_fini(&publishing_later);
	netio_publish_socket_fini(&leaving);
	finish_sockets();
}

static const struct ends_call calls[] = {
	{"netio_terminate", ENDS_DEFERS, call_netio_terminate},
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
	{"all of these", ENDS_WORKS, finish_all},
	{"a new socket in its place", ENDS_WORKS, renew_sender},
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
	{"cb_connection_established of a buffered socket", 0},
	{"cb_connection_closed of a buffered socket", NETIO_DRAIN},
	{"cb_connection_refused of a buffered socket", 0},
	{"cb_connection_established of a publisher", ENDS_RUNS},
	{"cb_connection_closed of a publisher", ENDS_RUNS | NETIO_DRAIN},
	{"cb_connection_refused of a publisher", 0},
	{"cb_connection_established of a receiver", ENDS_RUNS},
	{"cb_connection_closed of a receiver", NETIO_DRAIN},
	{"cb_connection_refused of a receiver", 0},
	{"cb_connection_established of a listening socket", ENDS_RUNS},
	{"cb_connection_closed of a listening socket", ENDS_RUNS | NETIO_DRAIN},
	{"cb_connection_established of a subscriber", ENDS_RUNS},
	{"cb_connection_closed of a subscriber", ENDS_RUNS | NETIO_DRAIN},
	{"cb_msg_received of a listening socket", ENDS_RUNS | NETIO_DRAIN},
	{"cb_msg_received of an answer", ENDS_RUNS},
	{"cb_msg_received of a buffered socket", ENDS_RUNS},
	{"cb_msg_received of a push socket", ENDS_RUNS},
	{"cb_msg_received of a subscribe socket", ENDS_RUNS},
	{"cb_gap", ENDS_RUNS},
	{"cb_send_completed", ENDS_RUNS | NETIO_DRAIN},
	{"cb_send_completed of a listening socket", ENDS_RUNS},
	{"cb_buffers_available", ENDS_RUNS},
	{"cb_buffers_available of a buffered socket", ENDS_RUNS},
	{"cb_buffers_available of a listening socket", ENDS_RUNS},
	{"cb_buffers_available of a push socket", ENDS_RUNS},
	{"cb_buffers_available of a publish socket", ENDS_RUNS},
	{"cb_buffers_available of an unbuffered publish socket", 0},
	{"cb_msg_published", ENDS_RUNS | NETIO_DRAIN},
	{"cb_subscribed", ENDS_RUNS},
	{"cb_subscription_refused", ENDS_RUNS},
	{"cb_subscription_lost", ENDS_RUNS},
	{"cb_subscription_resumed", ENDS_RUNS},
	{"cb_unsubscribed", ENDS_RUNS},
	{"cb_subscribed of a publish socket", ENDS_RUNS},
	{"cb_unsubscribed of a publish socket", ENDS_RUNS},
};

ENDS_PART(ends_netio, "NetIO");
