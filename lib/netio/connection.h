/* SPDX-License-Identifier: BSD-3-Clause */
/* The connecting end of a link that carries NetIO: greeted, tried again when it ends, and closed
 * behind the back of a socket that is gone. What stands in front of a struct netio_connection in a
 * greater struct is its owner's. */
#ifndef NETIO_CONNECTION_H
#define NETIO_CONNECTION_H

#include "netio_priv.h"
#include "wire.h"

struct netio_connection;

/* What its owner is told. All but settle and free only while the socket is there. */
struct connection_owner {
	void (*established)(struct netio_connection *connection);
	/* Return: whether the program has a callback for that. */
	bool (*refused)(struct netio_connection *connection, enum plx_link_reason reason,
			const char *why);
	void (*closed)(struct netio_connection *connection, enum plx_link_reason reason,
		       const char *why);
	/* Return: NULL; or what is wrong with it, constant text: the link ends. */
	const char *(*received)(struct netio_connection *connection, struct plx_buf *message);
	void (*writable)(struct netio_connection *connection);
	void (*suspect)(struct netio_connection *connection, bool suspect);
	/* The peer has granted more. NULL: it is not asked for. */
	void (*credit)(struct netio_connection *connection);
	/* The link has ended; it may be looked at for the last time. NULL: not needed. */
	void (*look_back)(struct netio_connection *connection, const struct plx_link *link);
	/* Before it closes: send what waits. Return: whether there is nothing left; else
	 * connection_settled follows. NULL: there never is. */
	bool (*settle)(struct netio_connection *connection);
	/* The link has ended, and all that was sent has come back. Before refused and closed. */
	void (*ended)(struct netio_connection *connection);
	/* Nothing refers to it any more. */
	void (*free)(struct netio_connection *connection);
};

enum connection_state {
	CONNECTION_IDLE,
	CONNECTION_OPENING,     /* until the peer's WELCOME */
	CONNECTION_ESTABLISHED, /* link may be sent on */
	CONNECTION_SETTLING,    /* to be closed when all that waits is sent */
	CONNECTION_CLOSING,
	CONNECTION_WAITING, /* to be opened again */
};

struct netio_connection {
	struct plx_link *link;            /* NULL: not to be sent on; established or settling */
	void *socket;                     /* NULL: gone */
	struct netio_connection **handle; /* in the socket */
	uint64_t message_max;             /* that the peer accepts */
	const struct connection_owner *owner;
	enum connection_state state;
	bool quit;         /* closed by the user: not to be opened again */
	bool refused_here; /* the last attempt, by a process of this host or the lack of one */
	uint32_t logged;   /* reasons of attempts that failed, as bits: since it was established */
	const char
		*failure; /* why this side ended it, and as what; constant text; NULL: it did not */
	enum plx_link_reason failed_as;
	struct plx_link *opening;
	struct netio_connect_attr attr;

	/* Behind connection_init, for who is not WIRE_SENDER: what it connects as, and the sizes of
	 * its link (0: the defaults). */
	enum wire_role role;
	struct plx_link_attr link_attr;
	struct plx_timer timer;     /* for the greeting, the next attempt, or pages to be taken */
	struct plx_backoff backoff; /* reset by a link that lasts */
	uint64_t established_ns;
	struct netio_connection *next, **prev_next; /* of the loop's; of this lcore's that close */
	char provider[64];
	char address[PLX_ADDRESS_MAX];
};

/* Check attr and fill in what is left out. Return: 0; -EINVAL. */
int connection_check_attr(const struct netio_connect_attr *attr, struct netio_connect_attr *out);

/* handle: of the socket; is set, and cleared when it is released. attr: checked. */
void connection_init(struct netio_connection *connection, struct netio_eventloop *evloop,
		     void *socket, struct netio_connection **handle,
		     const struct connection_owner *owner, const struct netio_connect_attr *attr);

/* Return: 0; -EINVAL; -EALREADY; -ENOTCONN; logged. */
int connection_open(struct netio_connection *connection, const char *host, unsigned port);
int connection_close(struct netio_connection *connection);

/* Open one that was closed by this side, at the same address. What fails is told as any attempt
 * that does, and tried again. */
void connection_open_again(struct netio_connection *connection);

/* The socket is gone: close without loss, and free it then. */
void connection_release(struct netio_connection *connection);

/* Some of what settle waits for is sent; all of it. */
void connection_settles(struct netio_connection *connection);
void connection_settled(struct netio_connection *connection);

/* All of a loop that ends. */
void connection_release_all(struct netio_eventloop *evloop);

/* Close all of that role of a loop, whose sockets stay. */
void connection_close_all(struct netio_eventloop *evloop, enum wire_role role);
bool connection_any_open(const struct netio_eventloop *evloop, enum wire_role role);

/* Whether some of this lcore's are still to be closed. */
bool connection_any_closing(void);

#endif
