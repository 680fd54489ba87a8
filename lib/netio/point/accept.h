/* SPDX-License-Identifier: BSD-3-Clause */
/* The accepting end of sessions that carry NetIO: the greeting in their HELLO, and what sockets are
 * told. What follows a struct acceptor or a struct accepted in a greater struct is its owner's. */
#ifndef NETIO_ACCEPT_H
#define NETIO_ACCEPT_H

#include "netio_wire.h"
#include "point.h"
#include "session.h"

struct acceptor;
struct accepted;

/* What its owner is told and asked. */
struct acceptor_owner {
	/* First: ACCEPTOR_SESSION, and the rest as it likes. Its create asks has_room once more, as
	 * others may have come since their HELLOs; its ended begins with accepted_note_end. */
	struct plx_acceptor_owner session;
	enum wire_role role; /* of those that it takes */
	/* Whether it takes one more. */
	bool (*has_room)(struct acceptor *acceptor);
	/* The rest of the link's only while the socket is there. */
	notify_fn *notify;
	/* In place of notify, which it calls by accepted_notify. NULL: notify alone. */
	void (*on[NOTICE_TYPES])(struct accepted *accepted, const struct notice *notice);
	/* Return: NULL; or what is wrong with it, constant text: the link ends. */
	const char *(*received)(struct accepted *accepted, struct plx_buf *message);
	void (*writable)(struct accepted *accepted);
	/* The loop ends: the _fini of the socket. */
	void (*fini)(struct acceptor *acceptor);
};

struct acceptor {
	struct plx_acceptor session; /* first; its owner is a struct acceptor_owner */
	void *socket;                /* the user's; NULL: gone */
	struct netio_eventloop
		*evloop;               /* NULL: it takes links here for a socket of another lcore */
	struct spread *spread;         /* NULL: all links are of this lcore; spread.h */
	struct plx_listener *listener; /* NULL: does not listen */
	uint64_t message_max;          /* that it accepts */
	uint64_t next_id;
	struct plx_log_limit log_limit;
	char provider[64];
};

struct accepted {
	struct plx_accepted session; /* first */
	void *cb_object;             /* what callbacks get for it; set by create */
	uint64_t id;                 /* counts up from 1 */
	uint64_t message_max;        /* that the peer accepts */
	const char *closed_why;      /* why this side closed it; constant text; NULL: by its user */
	enum plx_link_reason reason; /* why the link has ended */
	char why[200];
	char peer[PLX_ADDRESS_MAX];
	char provider[64];
};

static inline struct accepted *accepted_first(const struct acceptor *acceptor)
{
	return (struct accepted *)LIST_FIRST(&acceptor->session.links);
}

static inline struct accepted *accepted_next(const struct accepted *accepted)
{
	return (struct accepted *)LIST_NEXT(&accepted->session, links);
}

/* Check what sockets that listen have in common. Return: 0; -EINVAL. */
int acceptor_check(const char *provider, uint64_t message_max);

/* acceptor: zeroed. provider: may be NULL. */
void acceptor_init(struct acceptor *acceptor, struct netio_eventloop *evloop, void *socket,
		   const struct acceptor_owner *owner, const char *provider, uint64_t message_max);

/* what: the function, for the error text; acceptor: may be NULL; attr->link: sizes and counts, the
 * rest is filled in. Return: 0; -EINVAL; -EALREADY; as plx_link_listen; logged. */
int acceptor_listen(struct acceptor *acceptor, const char *what, const char *host, unsigned port,
		    struct plx_listen_attr *attr);

/* The socket is gone: close all without loss, and free it then. */
void acceptor_release(struct acceptor *acceptor);

/* All of a loop that ends. */
void acceptor_release_all(struct netio_eventloop *evloop);

/* Stop listening, and close all of a loop, whose sockets stay; also what this lcore has of sockets
 * of other loops. */
void acceptor_close_all(struct netio_eventloop *evloop);
bool acceptor_any_open(const struct netio_eventloop *evloop);

/* Call the user's callback, if the socket is there. */
void accepted_notify(struct accepted *accepted, const struct notice *notice);

/* This side ends it; the link tells when. why: constant text. */
void accepted_fail(struct accepted *accepted, const char *why);

/* Its link has ended: keep what callbacks get for it. */
void accepted_note_end(struct accepted *accepted, struct plx_link *link,
		       enum plx_link_reason reason, const char *text);

const char *acceptor_on_hello(struct plx_acceptor *session, struct plx_link *link,
			      const uint8_t *hello, uint32_t length);
void accepted_on_opened(struct plx_accepted *session);
void accepted_on_closed(struct plx_accepted *session);

#define ACCEPTOR_SESSION \
	.hello = acceptor_on_hello, .opened = accepted_on_opened, .closed = accepted_on_closed

#endif
