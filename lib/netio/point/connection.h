/* SPDX-License-Identifier: BSD-3-Clause */
/* The connecting side of NetIO sessions: the greeting in their HELLO, and notices to sockets. An
 * owner's structure starts with struct netio_connection. */
#ifndef NETIO_CONNECTION_H
#define NETIO_CONNECTION_H

#include "point.h"
#include "session.h"

struct netio_connection;

/* Callbacks of its owner: suspect and messages only while the socket exists. */
struct connection_owner {
	struct plx_connector_owner session; /* first; starts with CONNECTION_SESSION */
	enum wire_role role;
	void (*suspect)(struct netio_connection *connection, bool suspect);
	/* Return: NULL; the error as constant text, which closes the link. */
	const char *(*received)(struct netio_connection *connection, struct plx_buf *message);
	void (*writable)(struct netio_connection *connection);
	/* The peer has granted more credit. NULL: not needed. */
	void (*credit)(struct netio_connection *connection);
};

/* Checked attributes. */
struct connection_attr {
	struct plx_connector_attr session;
	uint64_t message_max; /* accepted here */
	char provider[64];    /* "": none */
};

struct netio_connection {
	struct plx_connector session;     /* first; its owner is a struct connection_owner */
	void *socket;                     /* NULL: released */
	struct netio_connection **handle; /* the socket's pointer to this; may be NULL */
	void *cb_object;                  /* passed to callbacks: the socket, unless it has a hub */
	uint64_t source;                  /* netio_msg.source of answers; 0 without a hub */
	uint64_t message_max;             /* accepted by the peer */
	uint64_t accepted_max;            /* accepted here */
	struct netio_eventloop *evloop;
	LIST_ENTRY(netio_connection) link, peers; /* of the loop; of the hub */
};

/* Check attr, which may be NULL, and fill in defaults. Return: 0; -EINVAL. */
int connection_check_attr(const struct netio_connect_attr *attr, struct connection_attr *out);
/* handle: the socket's pointer to this; set here, and cleared on release; may be NULL. */
void connection_init(struct netio_connection *connection, struct netio_eventloop *evloop,
		     void *socket, struct netio_connection **handle,
		     const struct connection_owner *owner, const struct connection_attr *attr);
/* Return: 0; -EINVAL; -EALREADY; -ENOTCONN; logged. */
int connection_open(struct netio_connection *connection, const char *host, unsigned port);
int connection_close(struct netio_connection *connection);
/* The socket is released: close without loss, then free it. */
void connection_release(struct netio_connection *connection);

/* A socket with several connections, each to another address. Its structure starts with this. */
struct hub {
	void *socket; /* NULL: released */
	struct netio_eventloop *evloop;
	void (*end)(struct hub *hub); /* the loop or the socket ends */
	struct connection_attr attr;
	uint64_t newest_id;
	LIST_HEAD(hub_connections, netio_connection) connections;
	LIST_ENTRY(hub) link; /* of the lcore's */
};

/* hub: zeroed, with attr. */
void hub_init(struct hub *hub, struct netio_eventloop *evloop, void *socket,
	      void (*end)(struct hub *hub));
/* Find the connection to this address, except released ones; NULL: none. what: the caller, for the
 * error text; hub: may be NULL. Return: 0; -EINVAL. */
int hub_find(const struct hub *hub, const char *what, const char *host, unsigned port,
	     char address[PLX_ADDRESS_MAX], struct netio_connection **connection_out);
/* Initialize a connection of the hub; its `source` is its id. */
void hub_add(struct hub *hub, struct netio_connection *connection,
	     const struct connection_owner *owner, void *cb_object, const char *address);

/* Fill in the fields of a connection's public struct that come from its open link; and empty them,
 * before that link is freed. */
#define SHOW_PEER(pub, open_link)                                  \
	do {                                                       \
		(pub)->provider = plx_link_provider(open_link);    \
		(pub)->choice = plx_link_choice(open_link);        \
		(pub)->program = plx_link_peer_program(open_link); \
		(pub)->pid = plx_link_peer_pid(open_link);         \
	} while (0)

#define HIDE_PEER(pub)                                                 \
	do {                                                           \
		(pub)->provider = (pub)->choice = (pub)->program = ""; \
		(pub)->pid = 0;                                        \
	} while (0)

#define CONNECTION_SESSION .hello = connection_on_hello, .refused = notify_refused

/* Call a callback of the user's socket. session: of a struct netio_connection. */
#define NOTIFY(kind, session, callback, ...)                                          \
	do {                                                                          \
		struct netio_connection *its = (struct netio_connection *)(session);  \
		CALL_USER((const struct kind *)its->socket, callback, its->cb_object, \
			  ##__VA_ARGS__);                                             \
	} while (0)

/* Define functions for connection_owner that call the callbacks of one class of sockets. */
#define DEFINE_NOTIFY(kind)                                                                    \
	static void notify_opened(struct plx_connector *session)                               \
	{                                                                                      \
		NOTIFY(kind, session, cb_connection_established);                              \
	}                                                                                      \
                                                                                               \
	static bool notify_refused(struct plx_connector *session, enum plx_link_reason reason, \
				   const char *why)                                            \
	{                                                                                      \
		const struct kind *to = ((struct netio_connection *)session)->socket;          \
		bool is_set = to && to->cb_connection_refused;                                 \
                                                                                               \
		NOTIFY(kind, session, cb_connection_refused, reason, why);                     \
		return is_set;                                                                 \
	}                                                                                      \
                                                                                               \
	static void notify_closed(struct plx_connector *session, enum plx_link_reason reason,  \
				  const char *why)                                             \
	{                                                                                      \
		NOTIFY(kind, session, cb_connection_closed, reason, why);                      \
	}                                                                                      \
                                                                                               \
	static void notify_suspect(struct netio_connection *connection, bool suspect)          \
	{                                                                                      \
		NOTIFY(kind, connection, cb_connection_suspect, suspect);                      \
	}

/* Define connection_owner.received for answers. */
#define DEFINE_ANSWERED(kind)                                                              \
	static const char *on_received(struct netio_connection *connection,                \
				       struct plx_buf *message)                            \
	{                                                                                  \
		struct netio_msg msg;                                                      \
		const char *wrong = message_read(message, connection->accepted_max, &msg); \
                                                                                           \
		if (wrong)                                                                 \
			return wrong;                                                      \
		msg.source = connection->source;                                           \
		NOTIFY(kind, connection, cb_msg_received, &msg);                           \
		return NULL;                                                               \
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

/* A loop ends: release its connecting sockets. */
void connection_release_all(struct netio_eventloop *evloop);
/* Close all connections with this role; the loop's sockets stay. Return: whether any is open. */
bool connection_close_all(struct netio_eventloop *evloop, enum wire_role role);

const char *connection_on_hello(struct plx_connector *session, struct plx_link *link);

#endif
