/* SPDX-License-Identifier: BSD-3-Clause */
/* The subscribe socket: which publishers it has, and what is asked of each. */
#include "pubsub_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* Of this lcore. */
static __thread LIST_HEAD(feeds_list, netio_feeds) all;

/* Return: 0; -EINVAL. */
static int check_attr(const struct netio_subscribe_attr *attr, struct netio_feeds *feeds)
{
	uint32_t bytes = attr->buffer_bytes, count = attr->buffer_count;
	int rc = connection_check_attr(&attr->connect, &feeds->connect);

	if (rc == 0)
		rc = intake_check_buffers(&bytes, &count);
	if (rc)
		return rc;
	if (attr->connect.provider)
		snprintf(feeds->provider, sizeof(feeds->provider), "%s", attr->connect.provider);
	feeds->connect.provider = attr->connect.provider ? feeds->provider : NULL;
	intake_link_attr(bytes, count, feeds->connect.message_max_bytes, &feeds->link_attr);
	return 0;
}

int netio_subscribe_socket_init(struct netio_eventloop *evloop,
				struct netio_subscribe_socket *socket,
				const struct netio_subscribe_attr *attr)
{
	const struct netio_subscribe_attr defaults = {0};
	struct netio_feeds *feeds;
	int rc;

	*socket = (struct netio_subscribe_socket){0};
	rc = netio_check(evloop, "netio_subscribe_socket_init");
	if (rc)
		return rc;
	feeds = calloc(1, sizeof(*feeds));
	if (!feeds)
		return netio_fail(plx_fail(ENOMEM, "netio_subscribe_socket_init: out of memory"));
	rc = check_attr(attr ? attr : &defaults, feeds);
	if (rc) {
		free(feeds);
		return netio_fail(rc);
	}
	feeds->socket = socket;
	feeds->evloop = evloop;
	LIST_INSERT_HEAD(&all, feeds, link);
	socket->feeds = feeds;
	return 0;
}

void netio_subscribe_socket_fini(struct netio_subscribe_socket *socket)
{
	struct netio_feeds *feeds = socket->feeds;

	ASSERT_LOOP(feeds, feeds->evloop);
	socket->feeds = NULL;
	if (!feeds)
		return;
	while (!LIST_EMPTY(&feeds->all))
		feed_release(LIST_FIRST(&feeds->all));
	LIST_REMOVE(feeds, link);
	free(feeds);
}

void netio_subscribe_stats(const struct netio_subscribe_socket *socket,
			   struct netio_subscribe_stats *stats_out)
{
	ASSERT_LOOP(socket->feeds, socket->feeds->evloop);
	*stats_out = (struct netio_subscribe_stats){0};
	if (socket->feeds)
		*stats_out = socket->feeds->stats;
}

void feeds_release_all(struct netio_eventloop *evloop)
{
	struct netio_feeds *feeds, *next;

	for (feeds = LIST_FIRST(&all); feeds; feeds = next) {
		next = LIST_NEXT(feeds, link);
		if (feeds->evloop == evloop)
			netio_subscribe_socket_fini(feeds->socket);
	}
}

/* Subscriptions ------------------------------------------------------------------------------- */

static int check_subscription(const char *what, const struct netio_subscription *subscription)
{
	unsigned long long tag = subscription->tag, last = subscription->last,
			   mask = subscription->mask;

	if (last && mask)
		return plx_fail(EINVAL, "%s: a range and a mask; give one of them", what);
	if (last && last < tag)
		return plx_fail(EINVAL,
				"%s: a range from %#llx to %#llx; give the lesser tag first", what,
				tag, last);
	if (mask && tag & ~mask)
		return plx_fail(EINVAL, "%s: tag %#llx has bits that mask %#llx leaves out", what,
				tag, mask);
	if ((unsigned)subscription->delivery > NETIO_DELIVERY_BUFFERED)
		return plx_fail(EINVAL, "%s: delivery %d; give one of enum netio_delivery", what,
				(int)subscription->delivery);
	if ((unsigned)subscription->policy >= NETIO_POLICY_COUNT)
		return plx_fail(EINVAL, "%s: policy %d; give one of enum netio_policy", what,
				(int)subscription->policy);
	return 0;
}

/* One form for what is the same. */
static struct netio_subscription in_short(const struct netio_subscription *subscription)
{
	struct netio_subscription what = *subscription;

	if (what.last == what.tag)
		what.last = 0;
	if (what.mask == UINT64_MAX)
		what.mask = 0;
	return what;
}

/* Return: 0; -EINVAL; the feed may be NULL. */
static int find(const char *what, const struct netio_subscribe_socket *socket, const char *host,
		unsigned port, const struct netio_subscription *subscription,
		char address[PLX_ADDRESS_MAX], struct feed **feed_out)
{
	int rc;

	if (!socket->feeds)
		return plx_fail(EINVAL, "%s: the socket is not set up", what);
	rc = check_subscription(what, subscription);
	if (rc == 0)
		rc = netio_address(what, host, port, address);
	if (rc == 0)
		*feed_out = feed_find(socket->feeds, address);
	return rc;
}

/* One that is new, and cannot be used, goes again. */
static int subscribe_at(struct feed *feed, const struct netio_subscription *subscription)
{
	int rc = feed_subscribe(feed, subscription);

	if (rc == -EEXIST && feed->connection.session.state == PLX_CONNECTOR_IDLE)
		return feed_open(feed); /* which was not to be tried again */
	if (rc == 0) {
		rc = feed_open(feed);
		if (rc == 0)
			return 0;
		feed_forget(feed, subscription);
	}
	if (feed->want_count == 0 && feed->connection.session.state == PLX_CONNECTOR_IDLE)
		feed_release(feed);
	return rc;
}

int netio_subscribe_to(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		       const struct netio_subscription *subscription)
{
	char address[PLX_ADDRESS_MAX];
	struct netio_subscription what;
	struct feed *feed = NULL;
	int rc = find("netio_subscribe", socket, host, port, subscription, address, &feed);

	ASSERT_LOOP(socket->feeds, socket->feeds->evloop);
	if (rc)
		return netio_fail(rc);
	if (!feed)
		feed = feed_create(socket->feeds, host, port, address);
	if (!feed)
		return netio_fail(plx_fail(ENOMEM, "netio_subscribe: out of memory"));
	what = in_short(subscription);
	rc = subscribe_at(feed, &what);
	return rc ? netio_fail(rc) : 0;
}

int netio_subscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		    netio_tag_t tag)
{
	return netio_subscribe_to(socket, host, port, &(struct netio_subscription){.tag = tag});
}

int netio_unsubscribe_from(struct netio_subscribe_socket *socket, const char *host, unsigned port,
			   const struct netio_subscription *subscription)
{
	char address[PLX_ADDRESS_MAX];
	struct netio_subscription what = in_short(subscription);
	struct feed *feed = NULL;
	int rc = find("netio_unsubscribe", socket, host, port, subscription, address, &feed);

	ASSERT_LOOP(socket->feeds, socket->feeds->evloop);
	if (rc == 0)
		rc = feed ? feed_unsubscribe(feed, &what)
			  : plx_fail(ENOENT, "netio_unsubscribe: nothing is subscribed to at %s",
				     address);
	return rc ? netio_fail(rc) : 0;
}

int netio_unsubscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		      netio_tag_t tag)
{
	return netio_unsubscribe_from(socket, host, port, &(struct netio_subscription){.tag = tag});
}
