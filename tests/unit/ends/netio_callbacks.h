/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of netio.c and their callbacks. */
#ifndef ENDS_NETIO_CALLBACKS_H
#define ENDS_NETIO_CALLBACKS_H

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
static struct netio_buffered_send_socket buffered, buffered_refused;
static struct netio_publish_socket publishing, publishing_later;
static struct netio_publish_socket leaving; /* closes its connection, which opens again */
static struct netio_unbuffered_publish_socket unbuffered;
static struct netio_subscribe_socket subscribing;
static struct netio_push_socket pushing;
static struct netio_recv_socket *accepted;           /* the newest connection, until it closes */
static struct netio_subscriber *subscriber, *leaver; /* of `publishing` and of `leaving` */
static unsigned established, subscribed;
static uint64_t keys[256];
static const char *provider_used;

ENDS_RUN(on_init, "cb_init", NULL, void)
ENDS_RUN(on_signal, "netio signal", &fired, void *data)
ENDS_RUN(on_timer, "netio timer", &timer, void *data)
ENDS_RUN(on_post, "posted function", NULL, void *data)

static void on_fd(int fd, uint32_t events, void *data)
{
	char byte;

	if (read(fd, &byte, 1) == 1)
		ends_in("netio descriptor", &watch);
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
CONNECTED(on_buffered_up, struct netio_buffered_send_socket,
	  "cb_connection_established of a buffered socket", connection)
CLOSED(on_buffered_down, struct netio_buffered_send_socket,
       "cb_connection_closed of a buffered socket", connection)
CLOSED(on_buffered_refused, struct netio_buffered_send_socket,
       "cb_connection_refused of a buffered socket", connection)
CONNECTED(on_publisher_up, struct netio_publisher, "cb_connection_established of a publisher",
	  &subscribing)
CLOSED(on_publisher_down, struct netio_publisher, "cb_connection_closed of a publisher",
       &subscribing)
CLOSED(on_publisher_refused, struct netio_publisher, "cb_connection_refused of a publisher",
       &subscribing)
CONNECTED(on_receiver_up, struct netio_push_receiver, "cb_connection_established of a receiver",
	  &pushing)
CLOSED(on_receiver_down, struct netio_push_receiver, "cb_connection_closed of a receiver", &pushing)
CLOSED(on_receiver_refused, struct netio_push_receiver, "cb_connection_refused of a receiver",
       &pushing)

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

/* Of one of two publish sockets; NULL: another one's. */
static struct netio_subscriber **subscriber_of(const struct netio_subscriber *connection)
{
	return connection->socket == &publishing ? &subscriber
	     : connection->socket == &leaving    ? &leaver
						 : NULL;
}

static void on_subscriber_up(struct netio_subscriber *connection)
{
	if (subscriber_of(connection))
		*subscriber_of(connection) = connection;
	ends_in("cb_connection_established of a subscriber", connection->socket);
}

static void on_subscriber_down(struct netio_subscriber *connection, enum plx_link_reason reason,
			       const char *why)
{
	if (subscriber_of(connection))
		*subscriber_of(connection) = NULL;
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

ENDS_RUN(on_answer, "cb_msg_received of an answer", socket, struct netio_send_socket *socket,
	 const struct netio_msg *msg)
ENDS_RUN(on_buffered_answer, "cb_msg_received of a buffered socket", socket,
	 struct netio_buffered_send_socket *socket, const struct netio_msg *msg)
ENDS_RUN(on_pushed_answer, "cb_msg_received of a push socket", &pushing,
	 struct netio_push_receiver *receiver, const struct netio_msg *msg)
ENDS_RUN(on_published, "cb_msg_received of a subscribe socket", socket,
	 struct netio_subscribe_socket *socket, const struct netio_msg *msg)
ENDS_RUN(on_gap, "cb_gap", &subscribing, struct netio_publisher *publisher,
	 const struct netio_gap *gap)
ENDS_RUN(on_completed, "cb_send_completed", socket, struct netio_send_socket *socket, uint64_t key,
	 int status)
ENDS_RUN(on_replied, "cb_send_completed of a listening socket", &listening,
	 struct netio_recv_socket *socket, uint64_t key, int status)
ENDS_RUN(on_taken, "cb_msg_published", socket, struct netio_unbuffered_publish_socket *socket,
	 uint64_t key, int status)
ENDS_RUN(on_room, "cb_buffers_available", socket, struct netio_send_socket *socket)
ENDS_RUN(on_buffered_room, "cb_buffers_available of a buffered socket", socket,
	 struct netio_buffered_send_socket *socket)
ENDS_RUN(on_reply_room, "cb_buffers_available of a listening socket", &listening,
	 struct netio_recv_socket *socket)
ENDS_RUN(on_push_room, "cb_buffers_available of a push socket", socket,
	 struct netio_push_socket *socket)
ENDS_RUN(on_publish_room, "cb_buffers_available of a publish socket", socket,
	 struct netio_publish_socket *socket)
ENDS_RUN(on_unbuffered_room, "cb_buffers_available of an unbuffered publish socket", socket,
	 struct netio_unbuffered_publish_socket *socket)

/* Subscriptions ------------------------------------------------------------------------------ */

static void on_subscribed(struct netio_publisher *publisher, const struct netio_subscription *one)
{
	subscribed++;
	ends_in("cb_subscribed", &subscribing);
}

ENDS_RUN(on_unsubscribed, "cb_unsubscribed", &subscribing, struct netio_publisher *publisher,
	 const struct netio_subscription *one)
ENDS_RUN(on_not_subscribed, "cb_subscription_refused", &subscribing,
	 struct netio_publisher *publisher, const struct netio_subscription *one, const char *why)
ENDS_RUN(on_lost, "cb_subscription_lost", &subscribing, struct netio_publisher *publisher,
	 const struct netio_subscription *one, const char *why)
ENDS_RUN(on_resumed, "cb_subscription_resumed", &subscribing, struct netio_publisher *publisher,
	 const struct netio_subscription *one)
ENDS_RUN(on_subscriber_added, "cb_subscribed of a publish socket", one->socket,
	 struct netio_subscriber *one, const struct netio_subscription *to)
ENDS_RUN(on_subscriber_removed, "cb_unsubscribed of a publish socket", one->socket,
	 struct netio_subscriber *one, const struct netio_subscription *to)

#endif
