/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: links with a handshake (private data in HELLO), reconnection, and a close that first
 * sends what waits. NetIO's sockets and services use them; programs use those, or plain links.
 * doc/design/session.md has the state machine.
 *
 *   connector.c   the side that connects and reconnects
 *   acceptor.c    the side that accepts, on one lcore
 *
 * An owner embeds struct plx_connector, plx_acceptor or plx_accepted as first member of its own
 * struct. Links deliver messages directly to the owner: its link events contain the functions below
 * (PLX_CONNECTOR_EVENTS, PLX_ACCEPTED_EVENTS), and its `user` is the connector or the accepted. */
#ifndef PLX_SESSION_H
#define PLX_SESSION_H

#include "list.h"
#include "plx_fabric.h"
#include "plx_lcore.h"

/* A session that settles closes after this time without progress. */
#define PLX_SESSION_SETTLE_NS (2 * PLX_NS_PER_S)

/* Connecting ------------------------------------------------------------------------------- */

struct plx_connector;

enum plx_connector_state {
	PLX_CONNECTOR_IDLE,
	PLX_CONNECTOR_LOOKING_UP, /* the name of its host */
	PLX_CONNECTOR_CONNECTING, /* until both HELLOs are accepted */
	PLX_CONNECTOR_OPEN,       /* `link` accepts messages */
	PLX_CONNECTOR_SETTLING,   /* closes when all that waits is sent */
	PLX_CONNECTOR_CLOSING,
	PLX_CONNECTOR_WAITING, /* reconnects later */
};

/* Callbacks of the owner. After a release only ended and free run. */
struct plx_connector_owner {
	/* Check the private data of the peer's HELLO. Return: NULL; or a constant text, with which
	 * the link is refused on both sides. */
	const char *(*hello)(struct plx_connector *connector, struct plx_link *link,
			     const uint8_t *hello, uint32_t length);
	void (*opened)(struct plx_connector *connector);
	/* Return: whether the owner notified the program: then the log level is info. */
	bool (*refused)(struct plx_connector *connector, enum plx_link_reason reason,
			const char *why);
	void (*closed)(struct plx_connector *connector, enum plx_link_reason reason,
		       const char *why);
	/* The link has ended; last chance to read from it. NULL: not needed. */
	void (*look_back)(struct plx_connector *connector, const struct plx_link *link);
	/* Before a close: send what waits. Return: whether nothing is left; otherwise the owner
	 * calls plx_connector_settled later. NULL: nothing ever waits. */
	bool (*settle)(struct plx_connector *connector);
	/* The link has ended, and all sends have completed. Before refused and closed. NULL: not
	 * needed. */
	void (*ended)(struct plx_connector *connector);
	/* After a release, when nothing refers to the connector. */
	void (*free)(struct plx_connector *connector);
};

struct plx_connector_attr {
	struct plx_link_attr
		link; /* events: with PLX_CONNECTOR_EVENTS; user: none; provider: copied */
	uint64_t reconnect_min_ns; /* default PLX_RECONNECT_MIN_NS; PLX_NEVER: one attempt */
	uint64_t reconnect_max_ns; /* default PLX_RECONNECT_MAX_NS, at least reconnect_min_ns */
};

struct plx_connector {
	struct plx_link *link; /* while open or settling; else NULL */
	const struct plx_connector_owner *owner;
	enum plx_connector_state state;
	bool quit;           /* closed by the owner: does not reconnect */
	bool released;       /* by the owner */
	bool freed;          /* free it when holds is 0 */
	unsigned holds;      /* > 0: its memory stays */
	bool refused_here;   /* this host refused the last attempt */
	uint32_t logged;     /* reasons logged since the last open, as bits */
	const char *failure; /* constant text: why this side ended the link; NULL: it did not */
	enum plx_link_reason failed_as;
	struct plx_link *current; /* the link in any state, or NULL */
	struct plx_connector_attr attr;
	struct plx_lookup lookup;
	struct plx_timer timer;            /* the next attempt, or the limit of settling */
	struct plx_backoff backoff;        /* reset by a link that lasts reconnect_max_ns */
	uint64_t opened_ns;                /* 0: not yet */
	LIST_ENTRY(plx_connector) closing; /* released ones of this lcore */
	char provider[64];
	char address[PLX_ADDRESS_MAX];
};

/* Check attr and fill in the defaults. Return: 0; -EINVAL. */
int plx_connector_check_attr(struct plx_connector_attr *attr);

/* attr: checked. */
void plx_connector_init(struct plx_connector *connector, const struct plx_connector_owner *owner,
			const struct plx_connector_attr *attr);

/* Connect an idle or waiting connector to "host:port". Later failures are reported and retried.
 * Return: 0; as plx_link_connect, and the connector is idle (see plx_connector_try_later). */
int plx_connector_open(struct plx_connector *connector, const char *address);

/* Connect a closed connector to its old address; failures are reported like those of any attempt.
 */
void plx_connector_open_again(struct plx_connector *connector);

/* Retry after the back-off, when plx_connector_open failed. */
void plx_connector_try_later(struct plx_connector *connector);

/* Close without loss; closed follows, from the loop. The connector is not idle. */
void plx_connector_close(struct plx_connector *connector);

/* Close the open link without loss, and reconnect. */
void plx_connector_renew(struct plx_connector *connector);

/* Abort the link. why: constant text, which closed receives. */
void plx_connector_fail(struct plx_connector *connector, enum plx_link_reason reason,
			const char *why);

/* The owner is being destroyed: the connector settles and closes alone, then free follows. */
void plx_connector_release(struct plx_connector *connector);

/* The connector's memory is about to be freed: its link closes without it. */
void plx_connector_fini(struct plx_connector *connector);

/* Keep its memory while callbacks run that may release it when it has no link. closed and refused
 * run like that. */
void plx_connector_hold(struct plx_connector *connector);
void plx_connector_unhold(struct plx_connector *connector);

/* The owner reports that a part, or all, of what waits is sent. */
void plx_connector_progressed(struct plx_connector *connector);
void plx_connector_settled(struct plx_connector *connector);

const char *plx_connector_on_hello(struct plx_link *link, void *user);
void plx_connector_on_open(struct plx_link *link, void *user);
void plx_connector_on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			    void *user);

#define PLX_CONNECTOR_EVENTS                                                  \
	.on_hello = plx_connector_on_hello, .on_open = plx_connector_on_open, \
	.on_close = plx_connector_on_close

/* Accepting -------------------------------------------------------------------------------- */

struct plx_acceptor;
struct plx_accepted;

/* Callbacks of its owner; failed, settle, ended and free_acceptor may be NULL. */
struct plx_acceptor_owner {
	/* As for a connector; also checks whether there is room for another link. */
	const char *(*hello)(struct plx_acceptor *acceptor, struct plx_link *link,
			     const uint8_t *hello, uint32_t length);
	/* Zeroed memory that begins with a struct plx_accepted; NULL: the link is dropped. */
	struct plx_accepted *(*create)(struct plx_acceptor *acceptor);
	void (*opened)(struct plx_accepted *accepted);
	/* This side aborts the link, or the owner released the acceptor: deliver nothing more. */
	void (*failed)(struct plx_accepted *accepted);
	/* Before a close: send what waits. Return: whether nothing is left; otherwise the owner
	 * calls plx_accepted_settled later. */
	bool (*settle)(struct plx_accepted *accepted);
	/* The link has ended, and all sends have completed. Return: whether the owner is done;
	 * otherwise it calls plx_accepted_finish later. A released acceptor does not wait. */
	bool (*ended)(struct plx_accepted *accepted, struct plx_link *link,
		      enum plx_link_reason reason, const char *text);
	/* The last notice, unless the acceptor was released. NULL: not needed. */
	void (*closed)(struct plx_accepted *accepted);
	/* Nothing refers to it. */
	void (*free)(struct plx_accepted *accepted);
	void (*free_acceptor)(struct plx_acceptor *acceptor);
};

/* Accepts on one lcore. Acceptors of several lcores share a number if they share listeners. */
struct plx_acceptor {
	const struct plx_acceptor_owner *owner;
	uintptr_t number;
	uint32_t lcore;
	bool released; /* by the owner */
	LIST_HEAD(plx_accepted_list, plx_accepted) links;
	LIST_ENTRY(plx_acceptor) all; /* of the process */
};

struct plx_accepted {
	struct plx_link *link; /* NULL: ended */
	struct plx_acceptor *acceptor;
	bool closing;           /* by this side */
	bool settling;          /* closes when all is sent */
	bool finishing;         /* its last callbacks are running */
	const char *failure;    /* constant text: the peer's error that made this side abort */
	struct plx_timer timer; /* the limit of settling */
	LIST_ENTRY(plx_accepted) links;
};

/* A number not used before in this process. Thread: any. */
uintptr_t plx_acceptor_new_number(void);

/* acceptor: zeroed. Thread: any. The functions below run on the acceptor's lcore. */
void plx_acceptor_init(struct plx_acceptor *acceptor, const struct plx_acceptor_owner *owner,
		       uintptr_t number, uint32_t lcore);

/* The acceptor has no links, and gets none after this. Thread: any, while its lcore does not use
 * it. */
void plx_acceptor_fini(struct plx_acceptor *acceptor);

/* Iterate over the calling lcore's acceptors, of all owners, in no order; after NULL: the first. */
struct plx_acceptor *plx_acceptor_next(const struct plx_acceptor *after);

/* Listen for this acceptor and for others with its number. attr: events with PLX_ACCEPTED_EVENTS,
 * no user. Return: as plx_link_listen. */
int plx_acceptor_listen(const struct plx_acceptor *acceptor, const char *address,
			const struct plx_listen_attr *attr, struct plx_listener **listener_out);

/* The owner is being destroyed: close all links without loss, then call free_acceptor, perhaps
 * before this returns. */
void plx_acceptor_release(struct plx_acceptor *acceptor);

/* Close all without loss. */
void plx_acceptor_close_all(struct plx_acceptor *acceptor);

/* Abort the link; its last callbacks follow. why: constant text. */
void plx_accepted_fail(struct plx_accepted *accepted, const char *why);

/* Close it without loss. */
void plx_accepted_close(struct plx_accepted *accepted);

/* The owner reports that a part, or all, of what waits is sent. */
void plx_accepted_progressed(struct plx_accepted *accepted);
void plx_accepted_settled(struct plx_accepted *accepted);

/* Run the last callbacks and free it. Return: whether its acceptor still exists unreleased. */
bool plx_accepted_finish(struct plx_accepted *accepted);

const char *plx_accepted_on_hello(struct plx_link *link, void *user);
void plx_accepted_on_open(struct plx_link *link, void *user);
void plx_accepted_on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			   void *user);

#define PLX_ACCEPTED_EVENTS                                                 \
	.on_hello = plx_accepted_on_hello, .on_open = plx_accepted_on_open, \
	.on_close = plx_accepted_on_close

/* Both ------------------------------------------------------------------------------------- */

/* Whether released connectors or acceptors of this lcore have links that are still closing; and how
 * often settling sessions of this lcore made progress. */
bool plx_session_any_closing(void);
uint64_t plx_session_progress(void);

/* Inside lib/session. note: a settling session made progress. */
extern struct plx_log_component *const session_log;
bool connector_any_closing(void);
void session_note_progress(void);

#endif
