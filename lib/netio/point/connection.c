/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection.h"

#include <stdio.h>
#include <stdlib.h>

#define CONNECT_NS_DEFAULT (5 * PLX_NS_PER_S)

/* The user's attributes that the session needs. */
static struct plx_connector_attr session_attr(const struct netio_connect_attr *attr)
{
	return (struct plx_connector_attr){
		.link.provider = attr->provider,
		.reconnect_min_ns = attr->reconnect_min_ns,
		.reconnect_max_ns = attr->reconnect_max_ns,
	};
}

int connection_check_attr(const struct netio_connect_attr *attr, struct netio_connect_attr *out)
{
	struct plx_connector_attr session;
	int rc;

	*out = attr ? *attr : (struct netio_connect_attr){0};
	out->message_max_bytes = out->message_max_bytes ?: MESSAGE_MAX_DEFAULT;
	out->connect_timeout_ns = out->connect_timeout_ns ?: CONNECT_NS_DEFAULT;
	rc = message_check_max(out->message_max_bytes);
	if (rc)
		return rc;
	session = session_attr(out);
	rc = plx_connector_check_attr(&session);
	out->reconnect_min_ns = session.reconnect_min_ns;
	out->reconnect_max_ns = session.reconnect_max_ns;
	return rc;
}

static const struct connection_owner *owner_of(const struct netio_connection *connection)
{
	return (const struct connection_owner *)connection->session.owner;
}

/* Notices ------------------------------------------------------------------------------------ */

void connection_hold(struct netio_connection *connection)
{
	connection->holds++;
}

void connection_unhold(struct netio_connection *connection)
{
	if (--connection->holds == 0 && connection->freed)
		owner_of(connection)->free(connection);
}

bool connection_notify(struct netio_connection *connection, const struct notice *notice)
{
	return connection->socket &&
	       owner_of(connection)->notify(connection->socket, connection->cb_object, notice);
}

/* Return: whether the user has a callback for it; true if the owner handles it. */
static bool report(struct netio_connection *connection, struct notice notice)
{
	const struct connection_owner *owner = owner_of(connection);
	bool is_told = true;

	connection_hold(connection);
	if (owner->on[notice.type])
		owner->on[notice.type](connection, &notice);
	else
		is_told = connection_notify(connection, &notice);
	connection_unhold(connection);
	return is_told;
}

/* The link ---------------------------------------------------------------------------------- */

/* The link must accept the pages and messages that the greeting announces. */
const char *connection_on_hello(struct plx_connector *session, struct plx_link *link,
				const uint8_t *hello, uint32_t length)
{
	struct netio_connection *connection = (struct netio_connection *)session;
	struct wire_greeting answer;
	const char *wrong = wire_greeting_read(hello, length, WIRE_WELCOME, &answer);
	uint64_t accepted = plx_link_message_max(link);

	if (!wrong && answer.role != connection->role)
		wrong = wire_wrong_role(answer.role);
	if (!wrong && (accepted < answer.message_max + WIRE_MESSAGE_BYTES ||
		       accepted < NETIO_PAGE_BYTES_MIN + WIRE_PAGE_OVERHEAD))
		wrong = "the link takes shorter messages than the HELLO says";
	if (!wrong)
		connection->message_max = answer.message_max;
	return wrong;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct netio_connection *connection = user;
	const char *wrong;

	if (!connection->socket || connection->session.failure)
		return;
	wrong = owner_of(connection)->received(connection, message);
	if (wrong)
		plx_connector_fail(&connection->session, PLX_LINK_PROTOCOL, wrong);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct netio_connection *connection = user;

	owner_of(connection)->writable(connection);
}

static void on_suspect(struct plx_link *link, bool suspect, void *user)
{
	struct netio_connection *connection = user;

	if (connection->socket && connection->session.state == PLX_CONNECTOR_OPEN)
		report(connection, (struct notice){.type = NOTICE_SUSPECT, .suspect = suspect});
}

static void on_credit(struct plx_link *link, void *user)
{
	struct netio_connection *connection = user;

	if (connection->session.link)
		owner_of(connection)->credit(connection);
}

static const struct plx_link_events events = {
	PLX_CONNECTOR_EVENTS,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_suspect = on_suspect,
};

static const struct plx_link_events events_with_credit = {
	PLX_CONNECTOR_EVENTS,     .on_message = on_message, .on_writable = on_writable,
	.on_suspect = on_suspect, .on_credit = on_credit,
};

/* Session callbacks --------------------------------------------------------------------------- */

static struct netio_connection *of(struct plx_connector *session)
{
	return (struct netio_connection *)session;
}

void connection_on_opened(struct plx_connector *session)
{
	report(of(session), (struct notice){.type = NOTICE_ESTABLISHED});
}

bool connection_on_refused(struct plx_connector *session, enum plx_link_reason reason,
			   const char *why)
{
	return report(of(session),
		      (struct notice){.type = NOTICE_REFUSED, .reason = reason, .why = why});
}

void connection_on_closed(struct plx_connector *session, enum plx_link_reason reason,
			  const char *why)
{
	report(of(session), (struct notice){.type = NOTICE_CLOSED, .reason = reason, .why = why});
}

void connection_on_free(struct plx_connector *session)
{
	of(session)->freed = true;
	if (of(session)->holds == 0)
		owner_of(of(session))->free(of(session));
}

/* Opening ------------------------------------------------------------------------------------- */

void connection_init(struct netio_connection *connection, struct netio_eventloop *evloop,
		     void *socket, struct netio_connection **handle,
		     const struct connection_owner *owner, const struct netio_connect_attr *attr)
{
	struct plx_connector_attr session = session_attr(attr);

	if (handle)
		*handle = connection;
	*connection = (struct netio_connection){
		.socket = socket,
		.cb_object = socket,
		.handle = handle,
		.evloop = evloop,
		.attr = *attr,
		.role = WIRE_SENDER,
		.next = evloop->connections,
		.prev_next = &evloop->connections,
	};
	if (connection->next)
		connection->next->prev_next = &connection->next;
	evloop->connections = connection;
	plx_connector_init(&connection->session, &owner->session, &session);
}

static void describe_link(struct netio_connection *connection)
{
	struct plx_link_attr *attr = &connection->session.attr.link;

	*attr = connection->link_attr;
	attr->events = owner_of(connection)->credit ? &events_with_credit : &events;
	attr->protocol = PLX_PROTOCOL_NETIO;
	attr->connect_timeout_ns = connection->attr.connect_timeout_ns;
	if (attr->message_max_bytes == 0)
		attr->message_max_bytes = connection->attr.message_max_bytes + WIRE_MESSAGE_BYTES;
	attr->hello_length = WIRE_GREETING_BYTES;
	wire_greeting_write(attr->hello, &(struct wire_greeting){
						 .type = WIRE_HELLO,
						 .version_min = WIRE_VERSION_MIN,
						 .version_max = WIRE_VERSION_MAX,
						 .role = (uint8_t)connection->role,
						 .message_max = connection->attr.message_max_bytes,
					 });
}

int connection_open(struct netio_connection *connection, const char *host, unsigned port)
{
	char address[PLX_ADDRESS_MAX];
	int rc;

	if (!connection)
		return netio_fail(plx_fail(EINVAL, "netio_connect: the socket is not set up"));
	if (connection->session.state != PLX_CONNECTOR_IDLE &&
	    (connection->session.state != PLX_CONNECTOR_WAITING || connection->session.quit))
		return netio_fail(plx_fail(EALREADY,
					   "netio_connect: it is connected to %s, or about to be; "
					   "call netio_disconnect, and wait until it is closed",
					   connection->session.address));
	rc = netio_address("netio_connect", host, port, address);
	if (rc)
		return netio_fail(rc);
	describe_link(connection);
	rc = plx_connector_open(&connection->session, address);
	return rc ? netio_fail(rc) : 0;
}

/* Closing ------------------------------------------------------------------------------------- */

int connection_close(struct netio_connection *connection)
{
	if (!connection)
		return netio_fail(plx_fail(EINVAL, "netio_disconnect: the socket is not set up"));
	if (connection->session.state == PLX_CONNECTOR_IDLE)
		return netio_fail(plx_fail(ENOTCONN, "netio_disconnect: it is not connected"));
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
	*connection->prev_next = connection->next;
	if (connection->next)
		connection->next->prev_next = connection->prev_next;
	plx_connector_release(&connection->session);
}

void connection_release_all(struct netio_eventloop *evloop)
{
	while (evloop->connections)
		connection_release(evloop->connections);
}

/* No callback runs in this loop, so the list does not change. */
void connection_close_all(struct netio_eventloop *evloop, enum wire_role role)
{
	for (struct netio_connection *it = evloop->connections; it; it = it->next)
		if (it->role == role && it->session.state != PLX_CONNECTOR_IDLE)
			connection_close(it);
}

bool connection_any_open(const struct netio_eventloop *evloop, enum wire_role role)
{
	const struct netio_connection *it = evloop->connections;

	while (it && (it->role != role || it->session.state == PLX_CONNECTOR_IDLE))
		it = it->next;
	return it != NULL;
}
