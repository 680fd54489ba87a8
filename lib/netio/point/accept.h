/* SPDX-License-Identifier: BSD-3-Clause */
/* The accepting side of NetIO sessions: the greeting in their HELLO, and notices to sockets. An
 * owner's structure starts with struct acceptor or struct accepted. */
#ifndef NETIO_ACCEPT_H
#define NETIO_ACCEPT_H

#include "point.h"
#include "session.h"

struct acceptor;
struct accepted;

/* Callbacks of its owner. */
struct acceptor_owner {
	/* First; starts with ACCEPTOR_SESSION. create must check has_room again, since connections
	 * may have been accepted since the HELLO; opened and ended must start with
	 * accepted_note_open and accepted_note_end. */
	struct plx_acceptor_owner session;
	enum wire_role role; /* role of accepted peers */
	/* Whether it accepts one more. */
	bool (*has_room)(struct acceptor *acceptor);
	/* This and received: only while the acceptor is not released. */
	void (*suspect)(struct accepted *accepted, bool suspect);
	/* Return: NULL; the error as constant text, which closes the link. */
	const char *(*received)(struct accepted *accepted, struct plx_buf *message);
	void (*writable)(struct accepted *accepted);
	/* The loop or the socket ends: release the acceptor. */
	void (*end)(struct acceptor *acceptor);
};

struct acceptor {
	struct plx_acceptor session;    /* first; its owner is a struct acceptor_owner */
	void *socket;                   /* the user's socket; NULL: released */
	struct netio_eventloop *evloop; /* NULL: the socket is on another lcore */
	struct spread *spread;          /* NULL: all links are on this lcore */
	struct plx_listener *listener;  /* NULL: not listening */
	uint64_t message_max;           /* accepted length */
	uint64_t next_id;
	uint64_t incarnation, started_ns; /* of a publisher; else 0 */
	struct plx_log_limit log_limit;
	char provider[64];
};

struct accepted {
	struct session_link session; /* first */
	uint64_t id;                 /* counts from 1 */
	uint64_t message_max;        /* accepted by the peer */
	const char *closed_why;      /* why this side closed it; constant text; NULL: by its user */
	enum plx_link_reason reason; /* why the link has ended */
	char why[200];
	char peer[PLX_ADDRESS_MAX];
	char provider[64];
	const char *choice;
	char program[PLX_PROGRAM_BYTES];
	pid_t pid;
};

/* Check attributes common to listening sockets. Return: 0; -EINVAL. */
int acceptor_check(const char *provider, uint64_t message_max);
/* acceptor: zeroed. provider: may be NULL. */
void acceptor_init(struct acceptor *acceptor, struct netio_eventloop *evloop, void *socket,
		   const struct acceptor_owner *owner, const char *provider, uint64_t message_max);
/* what: the function, for the error text; acceptor: may be NULL; attr->link: sizes and counts only.
 * Return: 0; -EINVAL; -EALREADY; as plx_link_listen; logged. */
int acceptor_listen(struct acceptor *acceptor, const char *what, const char *host, unsigned port,
		    struct plx_listen_attr *attr);

/* The socket is released: close all without loss, then free it. */
void acceptor_release(struct acceptor *acceptor);
/* Release all acceptors of a loop that ends. */
void acceptor_release_all(struct netio_eventloop *evloop);
/* Stop listening and close all connections of a loop, and this lcore's connections of other loops'
 * sockets; the sockets stay. Return: whether any is open. */
bool acceptor_close_all(struct netio_eventloop *evloop);
/* Close from this side; a link event follows. why: constant text. */
void accepted_fail(struct accepted *accepted, const char *why);
/* The link is open, or has ended (NULL: this side ended it): store what callbacks receive. */
void accepted_note_open(struct accepted *accepted);
void accepted_note_end(struct accepted *accepted, const struct plx_link *link,
		       enum plx_link_reason reason, const char *text);

const char *acceptor_on_hello(struct plx_acceptor *session, struct plx_link *link);
#define ACCEPTOR_SESSION .hello = acceptor_on_hello

/* spread.c ------------------------------------------------------------------------------------ */

/* A listening socket that spreads its connections over lcores has a struct acceptor on each lcore,
 * all with the same number (session.h); the socket's own is one of them. These functions also
 * accept an acceptor that is not spread. */

/* Create the acceptors of the other lcores as copies of this one, which has `bytes`. Thread: the
 * lcore of the socket, as for all functions with `own`. Return: 0; -ENOMEM: release `own`. */
int spread_create(struct acceptor *own, size_t bytes, enum netio_spread how);
/* The socket listens: make attr place connections. */
void spread_listen(struct acceptor *own, struct plx_listen_attr *attr);
/* Accept no more; the other lcores close their connections. Return: whether any lcore has some. */
bool spread_close(struct acceptor *own);
/* The socket is released: the other lcores release their acceptors. */
void spread_release(struct acceptor *own);
/* Thread of the functions below: the lcore of the acceptor. */
bool spread_is_closed(const struct acceptor *acceptor);
/* Count one more connection. Return: false: refuse it. */
bool spread_enter(struct acceptor *acceptor);
/* A counted connection has ended. */
void spread_leave(struct acceptor *acceptor);
/* The acceptor is about to be freed. */
void spread_forget(struct acceptor *acceptor);

#endif
