/* SPDX-License-Identifier: BSD-3-Clause */
/* The connecting end of sessions that carry NetIO: the greeting in their HELLO, and what sockets
 * are told. What follows a struct netio_connection in a greater struct is its owner's. */
#ifndef NETIO_CONNECTION_H
#define NETIO_CONNECTION_H

#include "netio_wire.h"
#include "point.h"
#include "session.h"

struct netio_connection;

/* What its owner is told. Notices and messages only while the socket is there. */
struct connection_owner {
	/* First: CONNECTION_SESSION; and look_back, settle and ended, if needed. */
	struct plx_connector_owner session;
	notify_fn *notify;
	/* In place of notify, which it calls by connection_notify. NULL: notify alone. Not for
	 * NOTICE_REFUSED. */
	void (*on[NOTICE_TYPES])(struct netio_connection *connection, const struct notice *notice);
	/* Return: NULL; or what is wrong with it, constant text: the link ends. */
	const char *(*received)(struct netio_connection *connection, struct plx_buf *message);
	void (*writable)(struct netio_connection *connection);
	/* The peer has granted more. NULL: it is not asked for. */
	void (*credit)(struct netio_connection *connection);
	/* Nothing refers to it any more. */
	void (*free)(struct netio_connection *connection);
};

struct netio_connection {
	struct plx_connector session;     /* first; its owner is a struct connection_owner */
	void *socket;                     /* NULL: gone */
	struct netio_connection **handle; /* in the socket; may be NULL */
	uint64_t message_max;             /* that the peer accepts */
	struct netio_eventloop *evloop;
	unsigned holds; /* its memory stays */
	bool freed;     /* but is to be freed */
	struct netio_connect_attr attr;

	/* May be set after connection_init: what callbacks get for it, if not the socket;
	 * netio_msg.source of answers; what it connects as, if not WIRE_SENDER; and the sizes of
	 * its link (0: the defaults). */
	void *cb_object;
	uint64_t source;
	enum wire_role role;
	struct plx_link_attr link_attr;
	struct netio_connection *next, **prev_next; /* of the loop's */
};

/* Check attr and fill in what is left out. Return: 0; -EINVAL. */
int connection_check_attr(const struct netio_connect_attr *attr, struct netio_connect_attr *out);

/* handle: of the socket; is set, and cleared when it is released; may be NULL. attr: checked. */
void connection_init(struct netio_connection *connection, struct netio_eventloop *evloop,
		     void *socket, struct netio_connection **handle,
		     const struct connection_owner *owner, const struct netio_connect_attr *attr);

/* Return: 0; -EINVAL; -EALREADY; -ENOTCONN; logged. */
int connection_open(struct netio_connection *connection, const char *host, unsigned port);
int connection_close(struct netio_connection *connection);

/* The socket is gone: close without loss, and free it then. */
void connection_release(struct netio_connection *connection);

/* Call the user's callback, if the socket is there. Return: whether it has one. */
bool connection_notify(struct netio_connection *connection, const struct notice *notice);

/* Keep its memory while callbacks that may end the socket run, where it is not open. */
void connection_hold(struct netio_connection *connection);
void connection_unhold(struct netio_connection *connection);

/* Define what receives answers for one kind of sockets, as connection_owner.received. */
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

/* Define how one kind of sockets connects, disconnects and ends. */
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

/* All of a loop that ends. */
void connection_release_all(struct netio_eventloop *evloop);

/* Close all of that role of a loop, whose sockets stay. */
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
