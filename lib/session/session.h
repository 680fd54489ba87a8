/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: links with private data in their HELLOs, which reconnect, and which close after what
 * waits is sent. NetIO's sockets, services and plx_session.h use them. State machine:
 * doc/design/session.md.
 *
 *   session.c     the public API (plx_session.h), on a connector
 *   link.c        what both sides share: failing a link, and closing it without loss
 *   connector.c   the side that connects and reconnects
 *   addresses.c   several addresses of a connector
 *   quiet.c       those that wait for a process of this host that is not up
 *   acceptor.c    the side that accepts, on one lcore
 *
 * An owner's structure starts with struct plx_connector, plx_acceptor or session_link. The link's
 * messages go to the owner directly: its table of link events names the functions below for the
 * rest, and the user of its links is the connector or the session. */
#ifndef SESSION_H
#define SESSION_H

#include "list.h"
#include "plx_fabric.h"
#include "plx_lcore.h"

#include <assert.h>

/* Both sides ---------------------------------------------------------------------------------- */

struct session_link;

/* Callbacks of its owner; NULL: not needed. */
struct session_link_owner {
	/* Before it closes: send what waits. Return: whether nothing is left; otherwise
	 * session_link_settled follows, or the link ends PLX_CLOSE_NS later. */
	bool (*settle)(struct session_link *session);
	/* This side has ended the link, or the owner is gone: deliver nothing more. */
	void (*failed)(struct session_link *session);
};

/* The link of a session on either side: an accepted one, or what a connector shares with one. */
struct session_link {
	struct plx_link *link; /* in any state; NULL: none, or it has ended */
	const struct session_link_owner *owner;
	struct plx_acceptor *acceptor; /* NULL: a connector's */
	bool closing;                  /* from this side */
	bool settling;                 /* waits until all is sent */
	bool late;                     /* accepted: that took too long */
	bool finishing;                /* its end is being reported */
	const char *failure;           /* why this side ended it: constant text; NULL: it did not */
	struct plx_timer timer;        /* the limit of a close; or a connector's next attempt */
	LIST_ENTRY(session_link) links; /* of its acceptor, or released connectors of the lcore */
};

LIST_HEAD(session_links, session_link);

/* End the link now; a link event follows. why: constant text. */
void session_link_fail(struct session_link *session, const char *why);
/* Close it without loss. */
void session_link_close(struct session_link *session);
/* The owner reports that all that waited is sent. */
void session_link_settled(struct session_link *session);
/* The peer of a released session of this lcore that is still closing; NULL: none. */
const char *session_closing(void);

/* The time is PLX_CLOSE_NS. */
#define SESSION_LATE "did not take all within 5 s; what it had not taken is lost"

/* How many links of this thread's lcore, of all libraries, were given up because their peers had
 * not taken everything within PLX_CLOSE_NS: they end with PLX_LINK_TIMEOUT. */
uint64_t session_late_count(void);

/* Connecting ---------------------------------------------------------------------------------- */

struct plx_connector;

enum plx_connector_state {
	PLX_CONNECTOR_IDLE,
	PLX_CONNECTOR_LOOKING_UP, /* the name of its host */
	PLX_CONNECTOR_CONNECTING, /* until both HELLOs are accepted */
	PLX_CONNECTOR_OPEN,       /* `link` accepts messages */
	PLX_CONNECTOR_CLOSING,    /* maybe settling first */
	PLX_CONNECTOR_WAITING,    /* reconnects later */
};

enum plx_quiet { PLX_QUIET_NOT, PLX_QUIET_FOLLOWS, PLX_QUIET_LEADS };

/* Callbacks of its owner. After a release only ended and free run. */
struct plx_connector_owner {
	struct session_link_owner base;
	/* Check the peer's HELLO (plx_link_hello). Return: NULL; or why both sides refuse:
	 * constant text. */
	const char *(*hello)(struct plx_connector *connector, struct plx_link *link);
	void (*opened)(struct plx_connector *connector);
	/* Return: whether the owner notified the program: then the log level is info. */
	bool (*refused)(struct plx_connector *connector, enum plx_link_reason reason,
			const char *why);
	void (*closed)(struct plx_connector *connector, enum plx_link_reason reason,
		       const char *why);
	/* The link has ended and returned all buffers: last chance to read from it. Before refused
	 * and closed; may be NULL. link: NULL: there was none. */
	void (*ended)(struct plx_connector *connector, const struct plx_link *link);
	/* After a release, when nothing refers to it. */
	void (*free)(struct plx_connector *connector);
};

struct plx_connector_attr {
	struct plx_link_attr link; /* with PLX_CONNECTOR_EVENTS and no user; provider: copied */
	uint64_t reconnect_min_ns; /* default PLX_RECONNECT_MIN_NS; PLX_NEVER: one attempt */
	uint64_t reconnect_max_ns; /* default PLX_RECONNECT_MAX_NS, at least reconnect_min_ns */
};

struct plx_connector {
	struct session_link base; /* its link from connecting on */
	struct plx_link *link;    /* while open or settling; else NULL */
	const struct plx_connector_owner *owner;
	enum plx_connector_state state;
	bool quit;            /* closed by the owner: does not reconnect */
	bool released;        /* by the owner */
	bool freed;           /* free it when holds is 0 */
	unsigned holds;       /* > 0: its memory stays */
	bool refused_here;    /* this host refused the last attempt */
	enum plx_quiet quiet; /* see quiet.c */
	uint32_t quiet_lcore;
	LIST_ENTRY(plx_connector) of_quiet;
	uint64_t busy_ns; /* the peer has no room for that long; 0: it did not say */
	uint32_t logged;  /* reasons logged since the last open, as bits */
	enum plx_link_reason failed_as;
	struct plx_connector_attr attr;
	struct plx_lookup lookup;
	struct plx_backoff backoff;  /* reset by a link that lasts reconnect_max_ns */
	uint64_t opened_ns;          /* 0: not yet */
	struct addresses *addresses; /* the owner's; NULL: it has one */
	char provider[64];
	char address[PLX_ADDRESS_MAX]; /* of this attempt, or of the last one */
};

/* Check attr and fill in the defaults. Return: 0; -EINVAL. */
int plx_connector_check_attr(struct plx_connector_attr *attr);
/* attr: checked. */
void plx_connector_init(struct plx_connector *connector, const struct plx_connector_owner *owner,
			const struct plx_connector_attr *attr);
/* Connect to "host:port", the first of its addresses, while it is idle or waiting. Failures that
 * may pass, such as a missing route, are reported from the loop and retried. Return: 0; as
 * plx_link_connect for mistakes of the caller, and it is idle. */
int plx_connector_open(struct plx_connector *connector, const char *address);
/* Connect a closed one to the same address. Failures are reported as for any attempt. */
void plx_connector_open_again(struct plx_connector *connector);
/* Close without loss; closed follows, from the loop. Not while it is idle. */
void plx_connector_close(struct plx_connector *connector);
/* Close its open link without loss, and reconnect. */
void plx_connector_renew(struct plx_connector *connector);
/* End the link now. why: constant text for closed. */
void plx_connector_fail(struct plx_connector *connector, enum plx_link_reason reason,
			const char *why);
/* The owner is done with it: close without loss; free follows. */
void plx_connector_release(struct plx_connector *connector);
/* The same, but its memory may be freed at once: the link closes without it. */
void plx_connector_fini(struct plx_connector *connector);
/* Keep its memory while callbacks may release it without a link, as around closed and refused. A
 * cleanup ends the hold, in case a C++ callback throws:
 *     struct plx_connector *ref PLX_CLEANUP(plx_connector_unhold) = plx_connector_hold(it); */
struct plx_connector *plx_connector_hold(struct plx_connector *connector);
void plx_connector_unhold(struct plx_connector **held);

const char *plx_connector_on_hello(struct plx_link *link, void *user);
void plx_connector_on_open(struct plx_link *link, void *user);
void plx_connector_on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			    void *user);

#define PLX_CONNECTOR_EVENTS                                                  \
	.on_hello = plx_connector_on_hello, .on_open = plx_connector_on_open, \
	.on_close = plx_connector_on_close

/* Accepting ----------------------------------------------------------------------------------- */

struct plx_acceptor;

/* Callbacks of its owner; ended and free_acceptor may be NULL. */
struct plx_acceptor_owner {
	struct session_link_owner base;
	/* As that of a connector; also checks that there is room for one more. */
	const char *(*hello)(struct plx_acceptor *acceptor, struct plx_link *link);
	/* Zeroed memory that starts with struct session_link. NULL: the link is dropped. */
	struct session_link *(*create)(struct plx_acceptor *acceptor);
	void (*opened)(struct session_link *accepted);
	/* The link has ended and returned all buffers. Return: whether that is all; otherwise
	 * plx_accepted_finish follows, which a released acceptor does not wait for. */
	bool (*ended)(struct session_link *accepted, struct plx_link *link,
		      enum plx_link_reason reason, const char *text);
	/* The last, while the acceptor is not released. NULL: not needed. */
	void (*closed)(struct session_link *accepted);
	/* Nothing refers to it. */
	void (*free)(struct session_link *accepted);
	void (*free_acceptor)(struct plx_acceptor *acceptor);
};

/* Accepts on one lcore. Those of several lcores have one number if they share listeners. */
struct plx_acceptor {
	const struct plx_acceptor_owner *owner;
	uintptr_t number;
	uint32_t lcore;
	bool released; /* by the owner */
	struct session_links links;
	LIST_ENTRY(plx_acceptor) all; /* of the process */
};

/* acceptor: zeroed. number: 0: a new one. Thread: any; of the following functions: the lcore's. */
void plx_acceptor_init(struct plx_acceptor *acceptor, const struct plx_acceptor_owner *owner,
		       uintptr_t number, uint32_t lcore);
/* No link finds it after this. It must have none. Thread: any, while the lcore does not use it. */
void plx_acceptor_fini(struct plx_acceptor *acceptor);
/* The calling lcore's next one, of any owner and in no order; after: NULL: the first. */
struct plx_acceptor *plx_acceptor_next(const struct plx_acceptor *after);
/* Listen for it, and for those of other lcores that have its number. attr: its events
 * with PLX_ACCEPTED_EVENTS, and no user. Return: as plx_link_listen. */
int plx_acceptor_listen(const struct plx_acceptor *acceptor, const char *address,
			const struct plx_listen_attr *attr, struct plx_listener **listener_out);
/* The owner is done with it: close all without loss; free_acceptor follows, maybe inside. */
void plx_acceptor_release(struct plx_acceptor *acceptor);
/* Close all without loss. */
void plx_acceptor_close_all(struct plx_acceptor *acceptor);
/* Report its end, and free it. Return: whether its acceptor exists and is not released. */
bool plx_accepted_finish(struct session_link *accepted);

const char *plx_accepted_on_hello(struct plx_link *link, void *user);
void plx_accepted_on_open(struct plx_link *link, void *user);
void plx_accepted_on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			   void *user);

#define PLX_ACCEPTED_EVENTS                                                 \
	.on_hello = plx_accepted_on_hello, .on_open = plx_accepted_on_open, \
	.on_close = plx_accepted_on_close

/* Inside lib/session --------------------------------------------------------------------------- */

extern struct plx_log_component *const session_log;
void session_log_late(const char *peer);
void session_note_late(void);
const char *connector_closing(void);
/* Several addresses of a connector, tried in turn. All that follow are for connectors with some. */
struct addresses {
	unsigned count, at; /* at: of this attempt, or of the last one */
	unsigned failed;    /* attempts since the last back-off */
	bool is_due;        /* the next attempt is for the next address */
	bool refused_here;  /* all of these attempts, by this host */
	uint64_t busy_ns;   /* the shortest of their busy_ns */
	struct {
		uint32_t logged; /* while it is not at that address */
		char text[PLX_ADDRESS_MAX];
	} each[];
};

/* list: "host:port,host:port". Return: 0, free it; -EINVAL; -ENOMEM. */
int addresses_parse(const char *list, struct addresses **out);
void addresses_opened(struct plx_connector *connector);
/* An attempt failed, or the link ended. Return: whether the next address follows at once. */
bool addresses_failed(struct plx_connector *connector);
/* Before an attempt: let it be for the next address if that is due. */
void addresses_turn(struct plx_connector *connector);

/* Nobody listens at its address of this host. Return: whether it leads: it must retry. */
bool quiet_join(struct plx_connector *connector);
/* It waits no longer. answered: somebody listens there; otherwise another one leads. */
void quiet_leave(struct plx_connector *connector, bool answered);

#endif
