/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection.h"

#include <stdio.h>

static const struct connection_owner *owner_of(const struct netio_connection *connection)
{
	return (const struct connection_owner *)connection->session.owner;
}

/* The link must accept the pages and messages that the greeting announces. */
const char *connection_on_hello(struct plx_connector *session, struct plx_link *link)
{
	struct netio_connection *connection = (struct netio_connection *)session;
	struct wire_greeting answer;
	const char *wrong = wire_peer_greeting(link, WIRE_WELCOME, &answer);
	uint64_t accepted = plx_link_message_max(link);

	if (wrong)
		return wrong;
	if (answer.role != owner_of(connection)->role)
		return wire_wrong_role(answer.role);
	if (accepted < answer.message_max + WIRE_MESSAGE_BYTES ||
	    accepted < NETIO_PAGE_BYTES_MIN + WIRE_PAGE_OVERHEAD)
		return "the link takes shorter messages than the HELLO says";
	connection->message_max = answer.message_max;
	return NULL;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct netio_connection *connection = user;
	const char *wrong;

	if (!connection->socket || connection->session.base.failure)
		return;
	wrong = owner_of(connection)->received(connection, message);
	if (wrong)
		plx_connector_fail(&connection->session, PLX_LINK_PROTOCOL, wrong);
}

static void on_writable(struct plx_link *link, void *user)
{
	owner_of(user)->writable(user);
}

static void on_suspect(struct plx_link *link, bool suspect, void *user)
{
	const struct netio_connection *connection = user;

	if (connection->socket && connection->session.state == PLX_CONNECTOR_OPEN)
		owner_of(connection)->suspect(user, suspect);
}

static void on_credit(struct plx_link *link, void *user)
{
	const struct netio_connection *connection = user;

	if (connection->session.link)
		owner_of(connection)->credit(user);
}

#define EVENTS                                                                      \
	PLX_CONNECTOR_EVENTS, .on_message = on_message, .on_writable = on_writable, \
		.on_suspect = on_suspect

static const struct plx_link_events events = {EVENTS};
static const struct plx_link_events events_with_credit = {EVENTS, .on_credit = on_credit};

int connection_check_attr(const struct netio_connect_attr *attr, struct connection_attr *out)
{
	int rc;

	attr = attr ?: &(struct netio_connect_attr){0};
	*out = (struct connection_attr){
		.session = {.link.provider = attr->provider,
			    .link.connect_timeout_ns = attr->connect_timeout_ns,
			    .reconnect_min_ns = attr->reconnect_min_ns,
			    .reconnect_max_ns = attr->reconnect_max_ns},
		.message_max = attr->message_max_bytes ?: MESSAGE_MAX_DEFAULT,
	};
	out->session.link.message_max_bytes = out->message_max + WIRE_MESSAGE_BYTES;
	snprintf(out->provider, sizeof(out->provider), "%s", attr->provider ?: "");
	rc = message_check_max(out->message_max);
	return rc ?: plx_connector_check_attr(&out->session);
}

void connection_init(struct netio_connection *connection, struct netio_eventloop *evloop,
		     void *socket, struct netio_connection **handle,
		     const struct connection_owner *owner, const struct connection_attr *attr)
{
	struct plx_connector_attr session = attr->session;

	netio_exit_uses(evloop, socket);
	if (handle)
		*handle = connection;
	*connection = (struct netio_connection){
		.socket = socket,
		.cb_object = socket,
		.handle = handle,
		.evloop = evloop,
		.accepted_max = attr->message_max,
	};
	LIST_INSERT_HEAD(&evloop->connections, connection, link);
	session.link.provider = attr->provider;
	session.link.events = owner->credit ? &events_with_credit : &events;
	wire_greet(&session.link, &(struct wire_greeting){.type = WIRE_HELLO,
							  .role = (uint8_t)owner->role,
							  .message_max = attr->message_max});
	plx_connector_init(&connection->session, &owner->session, &session);
}

int connection_open(struct netio_connection *connection, const char *host, unsigned port)
{
	char address[PLX_ADDRESS_MAX];
	int rc;

	if (!connection)
		return netio_fail(EINVAL, "netio_connect: the socket is not set up");
	rc = netio_check_open(connection->evloop, "netio_connect");
	if (rc)
		return rc;
	if (connection->session.state != PLX_CONNECTOR_IDLE &&
	    (connection->session.state != PLX_CONNECTOR_WAITING || connection->session.quit))
		return netio_fail(EALREADY,
				  "netio_connect: it is connected to %s, or about to be; call "
				  "netio_disconnect, and wait until it is closed",
				  connection->session.address);
	rc = netio_address("netio_connect", host, port, address);
	return netio_logged(rc ?: plx_connector_open(&connection->session, address));
}

int connection_close(struct netio_connection *connection)
{
	if (!connection)
		return netio_fail(EINVAL, "netio_disconnect: the socket is not set up");
	if (connection->session.state == PLX_CONNECTOR_IDLE)
		return netio_fail(ENOTCONN, "netio_disconnect: it is not connected");
	plx_connector_close(&connection->session);
	return 0;
}

void connection_release(struct netio_connection *connection)
{
	if (!connection)
		return;
	if (connection->handle)
		*connection->handle = NULL;
	connection->socket = NULL;
	LIST_REMOVE(connection, link);
	plx_connector_release(&connection->session);
}

/* No callback runs in this loop, so the list does not change. */
bool connection_close_all(struct netio_eventloop *evloop, enum wire_role role)
{
	struct netio_connection *it;
	bool any_open = false;

	LIST_FOREACH (it, &evloop->connections, link) {
		if (owner_of(it)->role != role || it->session.state == PLX_CONNECTOR_IDLE)
			continue;
		any_open = true;
		if (!it->session.quit)
			plx_connector_close(&it->session);
	}
	return any_open;
}

/* Hubs ---------------------------------------------------------------------------------------- */

static LIST_HEAD(hubs, hub) hubs[PLX_LCORE_MAX]; /* by lcore */

void hub_init(struct hub *hub, struct netio_eventloop *evloop, void *socket,
	      void (*end)(struct hub *hub))
{
	netio_exit_uses(evloop, socket);
	hub->evloop = evloop;
	hub->socket = socket;
	hub->end = end;
	LIST_INSERT_HEAD(&hubs[evloop->lcore_id], hub, link);
}

int hub_find(const struct hub *hub, const char *what, const char *host, unsigned port,
	     char address[PLX_ADDRESS_MAX], struct netio_connection **connection_out)
{
	struct netio_connection *it;
	int rc = hub ? netio_address(what, host, port, address)
		     : plx_fail(EINVAL, "%s: the socket is not set up", what);

	if (rc)
		return rc;
	LIST_FOREACH (it, &hub->connections, peers)
		if (it->socket && strcmp(it->session.address, address) == 0)
			break;
	*connection_out = it;
	return 0;
}

void hub_add(struct hub *hub, struct netio_connection *connection,
	     const struct connection_owner *owner, void *cb_object, const char *address)
{
	connection_init(connection, hub->evloop, hub->socket, NULL, owner, &hub->attr);
	connection->cb_object = cb_object;
	connection->source = ++hub->newest_id;
	memcpy(connection->session.address, address, PLX_ADDRESS_MAX);
	LIST_INSERT_HEAD(&hub->connections, connection, peers);
}

void connection_release_all(struct netio_eventloop *evloop)
{
	struct netio_connection *connection, *next;
	struct hub *hub, *after;

	LIST_FOREACH_SAFE (hub, &hubs[evloop->lcore_id], link, after)
		if (hub->evloop == evloop)
			hub->end(hub);
	LIST_FOREACH_SAFE (connection, &evloop->connections, link, next)
		connection_release(connection);
}
