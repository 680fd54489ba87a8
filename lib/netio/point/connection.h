/* SPDX-License-Identifier: BSD-3-Clause */
/* The connecting side of NetIO sessions: the greeting in their HELLO, and notices to sockets. An
 * owner's structure starts with struct netio_connection. */
#ifndef NETIO_CONNECTION_H
#define NETIO_CONNECTION_H

#include "netio_wire.h"
#include "point.h"
#include "session.h"

struct netio_connection;

/* Callbacks of its owner. Notices and messages only while the socket exists. */
struct connection_owner {
	/* First: CONNECTION_SESSION; and look_back, settle and ended if needed. */
	struct plx_connector_owner session;
	notify_fn *notify;
	/* Replaces notify, and calls it through connection_notify. NULL: only notify. Not for
	 * NOTICE_REFUSED. */
	void (*on[NOTICE_TYPES])(struct netio_connection *connection, const struct notice *notice);
	/* Return: NULL; the error as constant text, which closes the link. */
	const char *(*received)(struct netio_connection *connection, struct plx_buf *message);
	void (*writable)(struct netio_connection *connection);
	/* The peer has granted more credit. NULL: not needed. */
	void (*credit)(struct netio_connection *connection);
	/* No references remain. */
	void (*free)(struct netio_connection *connection);
};

struct netio_connection {
	struct plx_connector session;     /* first; its owner is a struct connection_owner */
	void *socket;                     /* NULL: released */
	struct netio_connection **handle; /* the socket's pointer to this; may be NULL */
	uint64_t message_max;             /* accepted by the peer */
	struct netio_eventloop *evloop;
	unsigned holds; /* > 0: its memory stays */
	bool freed;     /* free it when holds is 0 */
	struct netio_connect_attr attr;

	/* May be set after connection_init: the object passed to callbacks instead of the socket;
	 * netio_msg.source of answers; the role, if not WIRE_SENDER; the link's sizes (0:
	 * defaults). */
	void *cb_object;
	uint64_t source;
	enum wire_role role;
	struct plx_link_attr link_attr;
	struct netio_connection *next, **prev_next; /* the loop's connections */
};

/* Check attr and fill in defaults. Return: 0; -EINVAL. */
int connection_check_attr(const struct netio_connect_attr *attr, struct netio_connect_attr *out);

/* handle: the socket's pointer to this; set here, and cleared on release; may be NULL. attr:
 * checked. */
void connection_init(struct netio_connection *connection, struct netio_eventloop *evloop,
		     void *socket, struct netio_connection **handle,
		     const struct connection_owner *owner, const struct netio_connect_attr *attr);

/* Return: 0; -EINVAL; -EALREADY; -ENOTCONN; logged. */
int connection_open(struct netio_connection *connection, const char *host, unsigned port);
int connection_close(struct netio_connection *connection);

/* The socket is released: close without loss, then free it. */
void connection_release(struct netio_connection *connection);

/* Call the user's callback if the socket exists. Return: whether it has one. */
bool connection_notify(struct netio_connection *connection, const struct notice *notice);

/* Keep its memory while callbacks run that may release the socket, if it is not open. */
void connection_hold(struct netio_connection *connection);
void connection_unhold(struct netio_connection *connection);

/* Define connection_owner.received for answers to one class of sockets. */
#define DEFINE_ANSWERED(name, kind)                                                           \
	static const char *name(struct netio_connection *connection, struct plx_buf *message) \
	{                                                                                     \
		const struct kind *to = connection->socket;                                   \
		struct netio_msg msg;                                                         \
		const char *wrong = message_read(message, connection->attr.message_max_bytes, \
						 &msg);                                       \
                                                                                              \
		if (wrong)                                                                    \
			return wrong;                                                         \
		msg.source = connection->source;                                              \
		if (to->cb_msg_received)                                                      \
			to->cb_msg_received(connection->cb_object, &msg);                     \
		return NULL;                                                                  \
	}

/* Define connect, disconnect and fini of one class of sockets. */
#define DEFINE_CONNECTING(kind, connect, disconnect)                         \
	int connect(struct kind *socket, const char *host, unsigned port)    \
	{                                                                    \
		ASSERT_LOOP(socket->connection, socket->connection->evloop); \
		return connection_open(socket->connection, host, port);      \
	}                                                                    \
                                                                             \
	int disconnect(struct kind *socket)                                  \
	{                                                                    \
		ASSERT_LOOP(socket->connection, socket->connection->evloop); \
		return connection_close(socket->connection);                 \
	}                                                                    \
                                                                             \
	void kind##_fini(struct kind *socket)                                \
	{                                                                    \
		ASSERT_LOOP(socket->connection, socket->connection->evloop); \
		connection_release(socket->connection);                      \
	}

/* Release all connections of a loop that ends. */
void connection_release_all(struct netio_eventloop *evloop);

/* Close all connections with this role; the loop's sockets stay. */
void connection_close_all(struct netio_eventloop *evloop, enum wire_role role);
bool connection_any_open(const struct netio_eventloop *evloop, enum wire_role role);

const char *connection_on_hello(struct plx_connector *session, struct plx_link *link,
				const uint8_t *hello, uint32_t length);
void connection_on_opened(struct plx_connector *session);
bool connection_on_refused(struct plx_connector *session, enum plx_link_reason reason,
			   const char *why);
void connection_on_closed(struct plx_connector *session, enum plx_link_reason reason,
			  const char *why);
void connection_on_free(struct plx_connector *session);

#define CONNECTION_SESSION                                                \
	.hello = connection_on_hello, .opened = connection_on_opened,     \
	.refused = connection_on_refused, .closed = connection_on_closed, \
	.free = connection_on_free

#endif
