/* SPDX-License-Identifier: BSD-3-Clause */
/* The subscribe socket: its publishers and its subscriptions. */
#include "pubsub_priv.h"

#include <stdlib.h>

/* Return: 0; -EINVAL. */
static int check_attr(const struct netio_subscribe_attr *attr, struct hub *hub)
{
	uint32_t bytes = attr->buffer_bytes, count = attr->buffer_count;
	int rc = hub_check_attr(hub, &attr->connect);

	if (rc == 0)
		rc = intake_check_buffers(&bytes, &count);
	if (rc == 0)
		intake_link_attr(bytes, count, hub->attr.message_max, &hub->attr.session.link);
	return rc;
}

static void on_fini(struct hub *hub)
{
	netio_subscribe_socket_fini(hub->socket);
}

int netio_subscribe_socket_init(struct netio_eventloop *evloop,
				struct netio_subscribe_socket *socket,
				const struct netio_subscribe_attr *attr)
{
	static const struct netio_subscribe_attr defaults;
	struct netio_subscribe_core *core;
	int rc;

	*socket = (struct netio_subscribe_socket){0};
	rc = netio_check(evloop, "netio_subscribe_socket_init");
	if (rc)
		return rc;
	core = calloc(1, sizeof(*core));
	if (!core)
		return netio_fail(ENOMEM, "netio_subscribe_socket_init: out of memory");
	rc = netio_logged(check_attr(attr ?: &defaults, &core->hub));
	if (rc) {
		free(core);
		return rc;
	}
	hub_init(&core->hub, evloop, socket, on_fini);
	socket->core = core;
	return 0;
}

void netio_subscribe_socket_fini(struct netio_subscribe_socket *socket)
{
	struct netio_subscribe_core *core = socket->core;

	ASSERT_LOOP(core, core->hub.evloop);
	socket->core = NULL;
	if (!core)
		return;
	while (!LIST_EMPTY(&core->hub.connections))
		publisher_release((struct publisher *)LIST_FIRST(&core->hub.connections));
	LIST_REMOVE(&core->hub, link);
	free(core);
}

void netio_subscribe_stats(const struct netio_subscribe_socket *socket,
			   struct netio_subscribe_stats *stats_out)
{
	ASSERT_LOOP(socket->core, socket->core->hub.evloop);
	*stats_out = (struct netio_subscribe_stats){0};
	if (socket->core)
		*stats_out = socket->core->stats;
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

/* Use one form for equal subscriptions. */
static struct netio_subscription normalize(const struct netio_subscription *subscription)
{
	struct netio_subscription what = *subscription;

	if (what.last == what.tag)
		what.last = 0;
	if (what.mask == UINT64_MAX)
		what.mask = 0;
	return what;
}

/* Return: 0; -EINVAL; the publisher may be NULL. */
static int find(const char *what, const struct netio_subscribe_socket *socket, const char *host,
		unsigned port, const struct netio_subscription *subscription,
		char address[PLX_ADDRESS_MAX], struct publisher **publisher_out)
{
	struct netio_connection *connection = NULL;
	int rc = socket->core ? check_subscription(what, subscription) : 0;

	if (rc == 0)
		rc = hub_find((struct hub *)socket->core, what, host, port, address, &connection);
	*publisher_out = (struct publisher *)connection;
	return rc;
}

/* Releases a new publisher if subscribing fails. */
static int subscribe_at(struct publisher *publisher, const struct netio_subscription *subscription)
{
	int rc = publisher_subscribe(publisher, subscription);

	if (rc == -EEXIST && publisher->connection.session.state == PLX_CONNECTOR_IDLE)
		return publisher_open(publisher); /* reconnecting was off */
	if (rc == 0) {
		rc = publisher_open(publisher);
		if (rc == 0)
			return 0;
		publisher_forget(publisher, subscription);
	}
	if (publisher->interest_count == 0 &&
	    publisher->connection.session.state == PLX_CONNECTOR_IDLE)
		publisher_release(publisher);
	return rc;
}

int netio_subscribe_to(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		       const struct netio_subscription *subscription)
{
	char address[PLX_ADDRESS_MAX];
	struct netio_subscription what;
	struct publisher *publisher = NULL;
	int rc = find("netio_subscribe", socket, host, port, subscription, address, &publisher);

	ASSERT_LOOP(socket->core, socket->core->hub.evloop);
	if (rc)
		return netio_logged(rc);
	publisher = publisher ?: publisher_create(socket->core, address);
	if (!publisher)
		return netio_fail(ENOMEM, "netio_subscribe: out of memory");
	what = normalize(subscription);
	return netio_logged(subscribe_at(publisher, &what));
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
	struct netio_subscription what = normalize(subscription);
	struct publisher *publisher = NULL;
	int rc = find("netio_unsubscribe", socket, host, port, subscription, address, &publisher);

	ASSERT_LOOP(socket->core, socket->core->hub.evloop);
	if (rc)
		return netio_logged(rc);
	if (!publisher)
		return netio_fail(ENOENT, "netio_unsubscribe: nothing is subscribed to at %s",
				  address);
	return netio_logged(publisher_unsubscribe(publisher, &what));
}

int netio_unsubscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		      netio_tag_t tag)
{
	return netio_unsubscribe_from(socket, host, port, &(struct netio_subscription){.tag = tag});
}
