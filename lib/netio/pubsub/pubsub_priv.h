/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing; files in the order that a message passes them:
 *
 *   publish.c          a message: measured, and given to the outbox of each subscriber
 *   match.c, table.c   who gets it: table.h
 *   publication.c      a message sent by reference, and when it is released
 *   point/outbox.c     what happens to it for one subscriber
 *
 * around that path:
 *
 *   publish_socket.c   the two publish sockets, and connections of their subscribers
 *   requests.c         subscriptions of subscribers
 *   absent.c           subscribers whose connection was lost
 *   block.c            subscribers that block their publisher
 *   miss.c             subscribers that begin to miss messages
 *
 * Subscribing:
 *
 *   subscribe.c        the subscribe socket, and connections to its publishers
 *   interest.c         requests to it, and its answers */
#ifndef PUBSUB_PRIV_H
#define PUBSUB_PRIV_H

#include "accept.h"
#include "connection.h"
#include "outbox.h"
#include "table.h"

#include <netinet/in.h>

/* For trees of subscriptions: compare what they select. */
static inline int subscription_compare(const struct netio_subscription *one,
				       const struct netio_subscription *other)
{
	return compare_numbers(one->tag, other->tag) ?: compare_numbers(one->last, other->last)
		?: compare_numbers(one->mask, other->mask);
}

/* Publishing ---------------------------------------------------------------------------------- */

/* The publisher waits for a subscriber: from AGAIN until it has room. */
struct block {
	uint64_t since_ns; /* 0: it does not wait */
	uint64_t total_ns; /* of earlier ones */
	bool is_logged;
	/* Lax. It is left running when a short block ends, so that a publisher that waits often
	 * starts it once a second at most. */
	struct plx_timer timer;
};

#define REQUEST_BUFFERS 6 /* of each subscriber, for its requests */

struct subscriber {
	struct accepted accepted; /* first */
	struct netio_subscriber pub;
	struct outbox outbox; /* pages are allocated by the first subscription that needs them */
	void *by_id;          /* struct subscription, of tsearch */
	void *by_what;        /* the same, by what they select */
	uint32_t places;      /* used in the table */

	/* absent.c */
	uint64_t key;             /* the id that it chose; 0: none */
	struct in6_addr host;     /* its address; of IPv6 the /64 */
	struct subscriber *other; /* of a connected one: the absent one that it leaves, or takes
				     over from; of an absent one: that subscriber; may be NULL */
	bool is_back;             /* absent: `other` takes over */
	uint64_t absent_until_ns; /* 0: it is not absent */
	TAILQ_ENTRY(subscriber) of_absents;

	/* The last lookup that found it, and its index there. */
	uint64_t seen;
	uint32_t match;

	/* An answer that waits for the link, and requests that wait for the answer. */
	uint8_t answer[WIRE_LIST_BYTES + WIRE_LIST_MAX * WIRE_ANSWER_BYTES];
	uint32_t answer_bytes;    /* 0: none */
	uint64_t answer_behind;   /* sent after this page */
	uint64_t answer_order;    /* and after conflated messages up to this order; 0: none */
	struct plx_buf *requests; /* a chain */
	uint32_t refusals_logged; /* a bit per enum wire_status */

	struct block block;
	uint64_t missed_ns[2]; /* the newest message that it missed, and the newest one that was
				  conflated; 0: none, or not logged yet */
};

struct subscription {
	struct subscriber *subscriber;
	uint32_t id;
	struct outbox_terms terms;
	struct netio_subscription what;
	unsigned pair_count;
	struct table_pair pairs[]; /* flexible */
};

struct match {
	struct subscriber *subscriber;
	struct outbox_terms terms; /* of the subscription that applies */
};

/* A message that some subscribers have not got yet. */
struct pending {
	netio_tag_t tag;
	uint64_t key;                    /* 0: copied */
	struct publication *publication; /* NULL: copied */
	TAILQ_ENTRY(pending) link;
	bool taken; /* by other subscribers, or dropped for them */
	uint32_t count;
	struct match missing[]; /* flexible */
};

TAILQ_HEAD(pending_queue, pending);

/* A message sent by reference, in the headroom of its buffer. */
struct publication {
	struct netio_publish_core *core;
	struct plx_buf *buf; /* its header and views of its pieces; shared by all links */
	uint64_t key;
	uint32_t refs; /* links that have it, plus the publisher */
	int status;
	STAILQ_ENTRY(publication) link; /* of `done` */
};

struct netio_publish_core {
	struct acceptor acceptor;              /* first; its socket is one of the next two */
	struct netio_publish_socket *buffered; /* one of the two is set; both NULL: released */
	struct netio_unbuffered_publish_socket *unbuffered;
	struct netio_buffered_attr outbox_attr;
	struct netio_publish_attr attr; /* checked */

	struct table table;
	uint64_t version; /* of the table */
	uint64_t lookups;
	struct match *matches; /* room for all subscribers */
	uint32_t match_count;
	uint32_t places; /* used by subscriptions in the table */

	TAILQ_HEAD(, subscriber) absents; /* the longest first */
	struct plx_timer absent_timer;

	void *pending_tree;            /* struct pending, of tsearch */
	struct pending_queue pendings; /* oldest first */
	uint32_t pending_count;
	bool wants_room; /* a caller got AGAIN and waits for a notice */
	struct plx_log_limit miss_limit;

	struct references references;
	STAILQ_HEAD(done_publications, publication) done; /* oldest first */
	bool reporting, freed;       /* callbacks are running: free it later; it must be freed */
	struct plx_task report_task; /* reports `done` */
	struct netio_publish_stats stats;
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /* by all subscribers */
};

static inline struct netio_publish_core *subscriber_core(const struct subscriber *subscriber)
{
	return (struct netio_publish_core *)subscriber->accepted.session.acceptor;
}

/* Return whether messages may be sent to it. */
static inline bool subscriber_is_there(const struct subscriber *subscriber)
{
	return subscriber->accepted.session.link && !subscriber->accepted.session.failure &&
	       !subscriber->accepted.session.closing &&
	       !subscriber->accepted.session.acceptor->released;
}

/* What the log says about the subscriber. who: a buffer. */
#define WHO "subscriber %s"
#define WHO_ARGS(subscriber, who)                                                    \
	plx_peer_format((subscriber)->accepted.peer, (subscriber)->accepted.program, \
			(subscriber)->accepted.pid, who)

/* Call a callback of either socket type, if the socket exists. args: in parentheses. */
#define PUBLISH_CALLBACK(core, callback, args)                               \
	do {                                                                 \
		if ((core)->buffered && (core)->buffered->callback)          \
			(core)->buffered->callback args;                     \
		else if ((core)->unbuffered && (core)->unbuffered->callback) \
			(core)->unbuffered->callback args;                   \
	} while (0)

/* requests.c: Return: NULL; or the error as text. */
const char *requests_received(struct accepted *accepted, struct plx_buf *message);
/* The link has room: send the answer, then handle the requests that wait. */
void requests_resume(struct subscriber *subscriber);
/* Drop its requests and answer. Its subscriptions go to the absent subscriber that it leaves, or
 * end. silently: without callbacks. */
void requests_drop(struct subscriber *subscriber, bool silently);
/* End one subscription, without a callback. Return: whether there was one. */
bool requests_end(struct subscriber *subscriber, const struct netio_subscription *what);
/* Move all subscriptions of an absent subscriber to another one. */
void requests_hand_over(struct subscriber *from, struct subscriber *to);

/* absent.c */
void absents_init(struct netio_publish_core *core);
void absent_drop_all(struct netio_publish_core *core);
/* Return: whether there was one. */
bool absent_drop_oldest(struct netio_publish_core *core);
/* The subscriber goes, and may come back: its subscriptions go to an absent one, unless memory is
 * short. Then call absent_begun. */
void absent_begin(struct subscriber *subscriber);
void absent_begun(struct subscriber *subscriber);
/* A subscriber has connected: if it is back, report what it missed. */
void absent_return(struct subscriber *subscriber, const struct wire_greeting *hello);
/* It subscribes to this. Return: whether it had it when its connection was lost. */
bool absent_resume(struct subscriber *subscriber, const struct netio_subscription *what);
/* It has subscribed to all that it wants. */
void absent_end(struct subscriber *subscriber);
/* A message of this tag does not go to a subscriber that is not there. */
void absent_miss(struct subscriber *subscriber, netio_tag_t tag);

/* publish_socket.c: The connection is lost. key: what it may come back with; 0: it does not. */
void subscriber_lose(struct subscriber *subscriber, uint64_t key);

/* publish_socket.c: No references remain. */
void publish_core_destroy(struct plx_acceptor *session);

/* absent.c: Make room in core->matches for one more subscriber. Return: false: no memory. */
bool match_make_room(struct netio_publish_core *core);

/* match.c: A table version, unique in this process, so that caches detect changes. */
uint64_t match_new_version(void);
/* Fill in core->matches. cache: may be NULL. */
void match_find(struct netio_publish_core *core, netio_tag_t tag,
		struct netio_subscription_cache *cache);

struct pending *pending_search(struct netio_publish_core *core, netio_tag_t tag, uint64_t key);

/* Find the pending message of tag and key. NULL: none. */
static inline struct pending *pending_find(struct netio_publish_core *core, netio_tag_t tag,
					   uint64_t key)
{
	return plx_likely(core->pending_count == 0) ? NULL : pending_search(core, tag, key);
}

/* The first `count` of core->matches miss it. Return: NULL: out of memory. */
struct pending *pending_create(struct netio_publish_core *core, netio_tag_t tag, uint64_t key,
			       uint32_t count);
void pending_destroy(struct netio_publish_core *core, struct pending *pending);
/* Keep only those in pending->missing that still want the tag. */
void pending_match(struct netio_publish_core *core, struct pending *pending);
/* It will not be published again: count the misses. */
void pending_give_up(struct netio_publish_core *core, struct pending *pending);
/* A subscriber is disconnected: it misses all pending messages, for that reason. */
void pending_forget(struct netio_publish_core *core, struct subscriber *subscriber,
		    enum netio_gap_reason reason);

/* block.c: The subscriber has no room, and the publisher waits for it. */
void block_begin(struct subscriber *subscriber);
/* The subscriber has room, or is disconnected. */
void block_end(struct subscriber *subscriber);
/* Return: how long the publisher has waited for it in all. */
uint64_t block_total_ns(const struct subscriber *subscriber);
void block_init(struct subscriber *subscriber);
void block_fini(struct subscriber *subscriber);

/* miss.c: The subscriber misses messages. */
void miss_note(struct subscriber *subscriber, enum netio_gap_reason reason);

/* publish.c: A subscriber has room or is disconnected. */
void publish_report_room(struct netio_publish_core *core);

/* publication.c: Start to report completed ones; free all. */
void publications_init(struct netio_publish_core *core);
void publications_free(struct netio_publish_core *core);
/* The first piece is the user's header of at most 8 bytes, which is copied. Return: a publication
 * with one reference; NULL: out of memory. */
struct publication *publication_create(struct netio_publish_core *core, uint64_t key,
				       const struct message *message);
/* It was sent to no subscriber: do not report it. */
void publication_drop(struct publication *publication);
/* After the last reference, the loop reports the message as published. */
void publication_unref(struct publication *publication);
/* Send it to one subscriber. Return: enum netio_status; -ENOMEM. */
int publication_send(struct publication *publication, struct outbox *outbox);

/* Subscribing --------------------------------------------------------------------------------- */

enum interest_state {
	INTEREST_NEW,       /* not requested yet */
	INTEREST_REQUESTED, /* waiting for the answer */
	INTEREST_ACTIVE,    /* the publisher has it */
	INTEREST_REFUSED,   /* waiting for the back-off */
	INTEREST_ENDING,    /* its end must be requested */
	INTEREST_ENDED,     /* waiting for that answer; or it was never requested */
};

struct interest {
	struct netio_subscription what;
	enum interest_state state;
	bool was_lost;   /* active before the connection ended */
	bool loss_due;   /* to be reported */
	bool answer_due; /* to the subscribe request */
	uint32_t id;     /* its index in `interests` */
	TAILQ_ENTRY(interest) link;
};

TAILQ_HEAD(interest_queue, interest);

struct publisher {
	struct netio_connection connection; /* first */
	struct netio_publisher pub;
	struct intake intake;
	uint64_t key;    /* random: the publisher knows it again by that */
	uint64_t number; /* of messages received or missed of this incarnation */

	void *by_what;               /* struct interest, of tsearch; ending ones excluded */
	struct interest **interests; /* by id; NULL: unused */
	uint32_t interest_room, interest_count;
	uint32_t unused_from;             /* all ids below are in use */
	bool is_full;                     /* the link takes no requests now */
	struct interest_queue to_request; /* INTEREST_NEW and INTEREST_ENDING */
	struct interest_queue to_end;     /* INTEREST_ENDED, never requested */
	struct plx_task report_task;      /* reports to_end */

	struct interest_queue to_retry; /* INTEREST_REFUSED */
	struct plx_timer retry_timer;   /* requests them again; runs while there are any */
	struct plx_backoff retry;       /* reset when the publisher accepts one */
	uint32_t refusals_logged;       /* of this connection: a bit per enum wire_status */
};

struct netio_subscribe_core {
	struct hub hub; /* first; its connections are the publishers */
	struct netio_subscribe_stats stats;
};

/* subscribe.c: The publisher does not know what was missed. */
void publisher_note_unknown(struct publisher *publisher);

/* interest.c ---------------------------------------------------------------------------------- */

void publisher_init_interests(struct publisher *publisher);
/* Request nothing again. */
void publisher_stop_retrying(struct publisher *publisher);
/* what: checked. Return: 0; -EEXIST; -ENOMEM. */
int publisher_subscribe(struct publisher *publisher, const struct netio_subscription *what);
/* Return: 0; -ENOENT. */
int publisher_unsubscribe(struct publisher *publisher, const struct netio_subscription *what);
/* Send requests while the link takes them. */
void publisher_send_requests(struct publisher *publisher);
/* Return: NULL; or the error as text. */
const char *publisher_handle_answers(struct publisher *publisher, const struct plx_buf *message);
/* Report those in to_end. */
void publisher_report_ended(struct publisher *publisher);
/* The connection has ended, and the publisher has forgotten the subscriptions: report the loss and
 * request them again. */
void publisher_lose_all(struct publisher *publisher, const char *why);
/* Free all. */
void publisher_free_interests(struct publisher *publisher);

#endif
