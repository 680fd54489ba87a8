/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-cat subscribe: messages of one or more publishers, and recv: messages that come to a
 * listening socket. Both report connections. */
#include "cat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct netio_subscribe_socket subscriber;
static unsigned subscriptions; /* that have not ended */

/* By netio_publisher.id, which counts from 1. They outlive the publishers, whose messages may still
 * wait for standard output. */
static struct source {
	char address[PLX_ADDRESS_MAX];
	char last_why[256];
} sources[PLX_APP_LIST_MAX + 1];

/* Attempts continue; a reason is reported when it changes. */
static bool is_news(const struct netio_publisher *publisher, const char *why)
{
	struct source *source = &sources[publisher->id];

	if (strcmp(why, source->last_why) == 0)
		return false;
	snprintf(source->last_why, sizeof(source->last_why), "%s", why);
	return true;
}

static void on_connection_refused(struct netio_publisher *publisher, enum plx_link_reason reason,
				  const char *why)
{
	if (is_news(publisher, why))
		cat_tell("%s; trying again", why);
}

static void on_connected(struct netio_publisher *publisher)
{
	struct source *source = &sources[publisher->id];

	source->last_why[0] = '\0';
	snprintf(source->address, sizeof(source->address), "%s", publisher->address);
	cat_tell_connected(publisher->address, publisher->program, publisher->pid,
			   publisher->provider, publisher->choice);
}

static void on_publisher_suspect(struct netio_publisher *publisher, bool suspect)
{
	cat_tell_suspect(publisher->address, suspect);
}

/* "0x1-0x9 at 127.0.0.1:12345", until the next call. */
static const char *name_of(const struct netio_publisher *publisher,
			   const struct netio_subscription *subscription)
{
	static char text[64 + PLX_ADDRESS_MAX];
	uint64_t tag = subscription->tag, mask = subscription->mask;
	uint64_t second = mask ? mask : subscription->last;
	int len = snprintf(text, sizeof(text), "0x%" PRIx64, tag);

	if (tag == 0 && subscription->last == UINT64_MAX)
		len = snprintf(text, sizeof(text), "all tags");
	else if (second)
		len = snprintf(text, sizeof(text), "0x%" PRIx64 "%c0x%" PRIx64, tag,
			       mask ? '/' : '-', second);
	snprintf(text + len, sizeof(text) - (size_t)len, " at %s", publisher->address);
	return text;
}

static void on_subscribed(struct netio_publisher *publisher,
			  const struct netio_subscription *subscription)
{
	cat_tell("subscribed to %s", name_of(publisher, subscription));
}

static void on_subscription_refused(struct netio_publisher *publisher,
				    const struct netio_subscription *subscription, const char *why)
{
	if (is_news(publisher, why))
		cat_tell("subscription to %s refused: %s", name_of(publisher, subscription), why);
}

/* The publisher never accepts it. */
static void on_subscription_ended(struct netio_publisher *publisher,
				  const struct netio_subscription *subscription)
{
	cat_fail("subscription to %s ended", name_of(publisher, subscription));
	if (--subscriptions == 0)
		cat_end();
}

static void on_lost(struct netio_publisher *publisher,
		    const struct netio_subscription *subscription, const char *why)
{
	cat_tell("subscription to %s lost: %s; trying again", name_of(publisher, subscription),
		 why);
}

static void on_resumed(struct netio_publisher *publisher,
		       const struct netio_subscription *subscription)
{
	cat_tell("subscription to %s resumed", name_of(publisher, subscription));
}

static void on_gap(struct netio_publisher *publisher, const struct netio_gap *gap)
{
	char why[NETIO_GAP_TEXT_BYTES];

	cat_stats_gap(gap->count);
	if (gap->count)
		cat_tell("missed %" PRIu64 " messages of %s: %s", gap->count, publisher->address,
			 netio_gap_reasons_format(gap->reasons, why));
	else
		cat_tell("may have missed messages of %s: it has restarted, or was out of reach "
			 "for too long",
			 publisher->address);
}

static void on_published(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	cat_output_message(msg, cat_conf.show_publisher ? sources[msg->source].address : NULL);
}

static int subscribe(const struct cat_address *publisher)
{
	for (unsigned i = 0; i < cat_conf.tag_count; i++)
		if (netio_subscribe_to(&subscriber, publisher->host, publisher->port,
				       &cat_conf.tags[i]) != 0)
			return -1;
	return 0;
}

int cat_subscribe_start(struct netio_eventloop *evloop)
{
	if (netio_subscribe_socket_init(evloop, &subscriber, NULL) != 0 ||
	    cat_output_start() != 0 || cat_stats_start(evloop) != 0)
		return -1;
	subscriber.cb_connection_established = on_connected;
	subscriber.cb_connection_refused = on_connection_refused;
	subscriber.cb_connection_suspect = on_publisher_suspect;
	subscriber.cb_subscribed = on_subscribed;
	subscriber.cb_subscription_refused = on_subscription_refused;
	subscriber.cb_unsubscribed = on_subscription_ended;
	subscriber.cb_subscription_lost = on_lost;
	subscriber.cb_subscription_resumed = on_resumed;
	subscriber.cb_gap = on_gap;
	subscriber.cb_msg_received = on_published;
	subscriptions = cat_conf.address_count * cat_conf.tag_count;
	for (unsigned i = 0; i < cat_conf.address_count; i++)
		if (subscribe(&cat_conf.addresses[i]) != 0)
			return -1;
	return 0;
}

/* recv ---------------------------------------------------------------------------------------- */

static struct netio_listen_socket receiver;

static void on_sender_established(struct netio_recv_socket *socket)
{
	cat_tell_connected(socket->peer, socket->program, socket->pid, socket->provider, NULL);
}

static void on_sender_closed(struct netio_recv_socket *socket, enum plx_link_reason reason,
			     const char *why)
{
	cat_tell("%s gone: %s", socket->peer, why);
}

static void on_sender_suspect(struct netio_recv_socket *socket, bool suspect)
{
	cat_tell_suspect(socket->peer, suspect);
}

static void on_received(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	cat_output_message(msg, NULL);
}

int cat_recv_start(struct netio_eventloop *evloop)
{
	if (netio_listen_socket_init(evloop, &receiver, NULL) != 0 || cat_output_start() != 0 ||
	    cat_stats_start(evloop) != 0)
		return -1;
	receiver.cb_connection_established = on_sender_established;
	receiver.cb_connection_closed = on_sender_closed;
	receiver.cb_connection_suspect = on_sender_suspect;
	receiver.cb_msg_received = on_received;
	if (netio_listen(&receiver, cat_conf.addresses->host, cat_conf.addresses->port) != 0)
		return -1;
	cat_tell("listening on %s:%u", cat_conf.addresses->host,
		 netio_listen_socket_port(&receiver));
	return 0;
}
