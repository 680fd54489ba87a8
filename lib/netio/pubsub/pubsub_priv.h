/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing, in the order in which a message passes the files:
 *
 *   publish.c          a message: measured, and given to the outbox of each subscriber
 *   match.c, table.c   who gets it: table.h
 *   publication.c      one that is sent by reference, and when nobody needs it any more
 *   point/outbox.c     what becomes of it for one subscriber
 *
 * and around that path:
 *
 *   publish_socket.c   the two publish sockets
 *   subscriber.c       connections of subscribers
 *   requests.c         what they subscribe to
 *
 * Subscribing:
 *
 *   subscribe.c        the subscribe socket, and which publishers it has
 *   publisher.c        the connection to one publisher
 *   interest.c         what that is asked for, and what it answers */
#ifndef PUBSUB_PRIV_H
#define PUBSUB_PRIV_H

#include "accept.h"
#include "connection.h"
#include "outbox.h"
#include "table.h"

#include <sys/queue.h>

/* Publishing ---------------------------------------------------------------------------------- */

#define REQUEST_BUFFERS 6 /* of each subscriber, for its requests */

/* One subscriber. */
struct subscriber {
	struct accepted accepted; /* first */
	struct netio_subscriber pub;
	struct outbox outbox; /* has pages once a subscription has needed some */
	void *by_id;          /* struct subscription, of tsearch */
	void *by_filter;      /* the same */
	uint32_t places;      /* that they take */

	/* In the newest lookup that it was in. */
	uint64_t seen;
	uint32_t match;

	/* An answer that waits for the link, and requests that wait for it. */
	uint8_t answer[WIRE_LIST_BYTES + WIRE_LIST_MAX * WIRE_ANSWER_BYTES];
	uint32_t answer_bytes;  /* 0: none */
	uint64_t answer_behind; /* the page of that number */
	uint64_t answer_order;  /* behind those of `latest` up to that one, too; 0: none */
	uint32_t request_first, request_count;
	struct plx_buf *requests[REQUEST_BUFFERS + 2];
};

struct subscription {
	struct subscriber *subscriber;
	uint32_t id;
	struct outbox_terms terms;
	struct netio_subscription what;
	struct table_filter filter;
	unsigned pair_count;
	struct table_pair pairs[]; /* flexible */
};

struct match {
	struct subscriber *subscriber;
	struct outbox_terms terms; /* as of the subscription that decides */
};

/* A message that some have not got yet. */
struct pending {
	netio_tag_t tag;
	uint64_t key;                    /* 0 where it was copied */
	struct publication *publication; /* NULL: it was copied */
	TAILQ_ENTRY(pending) link;
	bool taken; /* by others, or it was dropped for them */
	uint32_t count;
	struct match missing[]; /* flexible */
};

TAILQ_HEAD(pending_queue, pending);

/* A message that is sent by reference. */
struct publication {
	struct netio_publish_core *core;
	uint64_t key;
	uint32_t refs; /* links that have it, and who publishes it */
	int status;
	struct publication *next; /* of those that are done, and not told yet; of the unused */
};

struct netio_publish_core {
	struct acceptor acceptor;              /* first; its socket is one of the next two */
	struct netio_publish_socket *buffered; /* one of the two; both NULL: gone */
	struct netio_unbuffered_publish_socket *unbuffered;
	struct outbox_attr outbox_attr;
	uint32_t subscriptions_max, subscriber_subscriptions_max, subscribers_max;
	enum netio_policy policy; /* of those that name none */
	uint64_t backlog_bytes;
	bool refuse_block;

	struct table table;
	uint64_t version; /* of the table */
	uint64_t lookups;
	struct match *matches; /* room for all subscribers */
	uint32_t match_count, match_room;
	uint32_t connections; /* greeted or not */
	uint32_t places;      /* that subscriptions take in the table */

	void *pending_tree;            /* struct pending, of tsearch */
	struct pending_queue pendings; /* first in first out */
	uint32_t pending_count;
	bool wants_room; /* somebody saw AGAIN, and was not told yet */

	struct references references;
	struct publication *done, **done_end; /* first in first out */
	struct publication *unused;
	bool reporting, freed;       /* they are being told: it is not freed yet; it is to be */
	struct plx_task report_task; /* of them */
	struct netio_publish_stats stats;
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /* by all subscribers */
};

/* Subscribers; subscriber.c. */
extern const struct acceptor_owner subscriber_owner;

static inline struct netio_publish_core *subscriber_core(const struct subscriber *subscriber)
{
	return (struct netio_publish_core *)subscriber->accepted.session.acceptor;
}

/* Whether messages may be sent to it. */
static inline bool subscriber_is_there(const struct subscriber *subscriber)
{
	return subscriber->accepted.session.link && !subscriber->accepted.session.failure &&
	       !subscriber->accepted.session.closing &&
	       !subscriber->accepted.session.acceptor->released;
}

/* Call a callback of the socket, of whichever kind, if it is there. args: in parentheses. */
#define PUBLISH_CALLBACK(core, callback, args)                               \
	do {                                                                 \
		if ((core)->buffered && (core)->buffered->callback)          \
			(core)->buffered->callback args;                     \
		else if ((core)->unbuffered && (core)->unbuffered->callback) \
			(core)->unbuffered->callback args;                   \
	} while (0)

/* requests.c */

/* Return: NULL; or what is wrong with it. */
const char *requests_received(struct subscriber *subscriber, struct plx_buf *message);

/* The link has room: for an answer, and so for the requests behind it. */
void requests_resume(struct subscriber *subscriber);

/* Nothing of it is wanted any more, and no answer is due. */
void requests_drop(struct subscriber *subscriber);

/* publish_socket.c */

/* The _fini of the one of the two. */
void publish_socket_fini(struct netio_publish_core *core);

/* Nothing refers to it any more. */
void publish_core_destroy(struct netio_publish_core *core);

/* match.c */

/* Of a table: different from all others of this process, so that a cache is not mistaken. */
uint64_t match_new_version(void);

/* Fill in core->matches. cache: may be NULL. */
void match_find(struct netio_publish_core *core, netio_tag_t tag,
		struct netio_subscription_cache *cache);

struct pending *pending_search(struct netio_publish_core *core, netio_tag_t tag, uint64_t key);

/* What some have not got yet. NULL: there is none. */
static inline struct pending *pending_find(struct netio_publish_core *core, netio_tag_t tag,
					   uint64_t key)
{
	return plx_likely(core->pending_count == 0) ? NULL : pending_search(core, tag, key);
}

/* The first `count` of core->matches miss it. Return: NULL: out of memory. */
struct pending *pending_create(struct netio_publish_core *core, netio_tag_t tag, uint64_t key,
			       uint32_t count);
void pending_destroy(struct netio_publish_core *core, struct pending *pending);

/* Leave those alone in pending->missing that want the tag still. */
void pending_match(struct netio_publish_core *core, struct pending *pending);

/* It will not be published again: count what was missed. */
void pending_give_up(struct netio_publish_core *core, struct pending *pending);

/* A subscriber is gone: nobody waits for it. */
void pending_forget(struct netio_publish_core *core, const struct subscriber *subscriber);

/* publish.c */

/* A subscriber has room, or is gone. */
void publish_report_room(struct netio_publish_core *core);

/* publication.c */

/* Set up what tells of publications. */
void publications_init(struct netio_publish_core *core);

/* All that are told of, or unused. */
void publications_free(struct netio_publish_core *core);

/* Return: one with one reference; NULL: out of memory. */
struct publication *publication_create(struct netio_publish_core *core, uint64_t key);

/* It was sent to nobody: nothing is told. */
void publication_drop(struct publication *publication);

/* After the last reference it is told from the loop that the message is published. */
void publication_unref(struct publication *publication);

/* Send it to one, with buf for all, made from the message if it is NULL. Its first piece is the
 * user's header, of at most 8 bytes, which is copied. Return: enum netio_status; -ENOMEM. */
int publication_send(struct publication *publication, struct outbox *outbox,
		     const struct message *message, struct plx_buf **buf);

/* Subscribing --------------------------------------------------------------------------------- */

enum interest_state {
	INTEREST_NEW,       /* to be asked for, when there is a connection */
	INTEREST_REQUESTED, /* the answer is due */
	INTEREST_ACTIVE,    /* the publisher has it */
	INTEREST_ENDING,    /* its end is to be asked for */
	INTEREST_ENDED,     /* the answer to that is due; or nobody had been asked for it */
};

/* A subscription. */
struct interest {
	struct netio_subscription what;
	enum interest_state state;
	bool was_lost;        /* the publisher had it, and then the connection ended */
	bool loss_unreported; /* which is to be told */
	bool answer_due;      /* to what asked for it */
	uint32_t id;          /* its place in `interests` */
	TAILQ_ENTRY(interest) link;
};

TAILQ_HEAD(interest_queue, interest);

/* One publisher. */
struct publisher {
	struct netio_connection connection; /* first */
	struct netio_publisher pub;
	struct netio_subscribe_core *core; /* NULL: the socket is gone */
	struct intake intake;
	uint64_t number;            /* of messages on this connection, that came or were missed */
	LIST_ENTRY(publisher) link; /* of the socket's */

	void *by_what;               /* struct interest, of tsearch; without those that end */
	struct interest **interests; /* by id; NULL: unused */
	uint32_t interest_room, interest_count;
	uint32_t unused_from;             /* no id below it is unused */
	bool is_full;                     /* the link takes no requests now */
	struct interest_queue to_request; /* INTEREST_NEW and INTEREST_ENDING */
	struct interest_queue to_end;     /* INTEREST_ENDED that nobody had been asked for */
	struct plx_task report_task;      /* of those */
	unsigned port;
	char host[PLX_ADDRESS_MAX];
	char address[PLX_ADDRESS_MAX];
};

struct netio_subscribe_core {
	struct netio_subscribe_socket *socket;
	struct netio_eventloop *evloop;
	struct netio_connect_attr connect; /* checked; its provider is `provider` */
	struct plx_link_attr link_attr;
	uint64_t next_id;
	struct netio_subscribe_stats stats;
	LIST_HEAD(publisher_list, publisher) all;
	LIST_ENTRY(netio_subscribe_core) link; /* of the lcore's */
	char provider[64];
};

/* NULL: there is none of that address. */
struct publisher *publisher_find(const struct netio_subscribe_core *core, const char *address);

/* Return: NULL: out of memory. */
struct publisher *publisher_create(struct netio_subscribe_core *core, const char *host,
				   unsigned port, const char *address);

/* Connect it, if it is not about to be. Return: 0; as netio_connect. */
int publisher_open(struct publisher *publisher);

/* The socket is gone, or needs nothing of it any more. */
void publisher_release(struct publisher *publisher);

/* interest.c ---------------------------------------------------------------------------------- */

static inline struct netio_subscribe_socket *publisher_socket(const struct publisher *publisher)
{
	return publisher->core ? publisher->core->socket : NULL;
}

/* Call a callback of the socket, if it is there. args: in parentheses. */
#define SUBSCRIBE_CALLBACK(publisher, callback, args)                            \
	do {                                                                     \
		struct netio_subscribe_socket *to = publisher_socket(publisher); \
		if (to && to->callback)                                          \
			to->callback args;                                       \
	} while (0)

/* what: checked. Return: 0; -EEXIST; -ENOMEM. */
int publisher_subscribe(struct publisher *publisher, const struct netio_subscription *what);

/* The same undone at once, before it was asked for. */
void publisher_forget(struct publisher *publisher, const struct netio_subscription *what);

/* Return: 0; -ENOENT. */
int publisher_unsubscribe(struct publisher *publisher, const struct netio_subscription *what);

/* Send as many requests as the link takes. */
void publisher_send_requests(struct publisher *publisher);

/* Return: NULL; or what is wrong with them. */
const char *publisher_handle_answers(struct publisher *publisher, const struct plx_buf *message);

/* Tell of those in to_end. */
void publisher_report_ended(struct publisher *publisher);

/* The connection has ended: what the publisher knew of them is gone. */
void publisher_reset(struct publisher *publisher);
void publisher_report_lost(struct publisher *publisher, const char *why);

/* Free all. */
void publisher_free_interests(struct publisher *publisher);

/* All of a loop that ends; subscribe.c. */
void subscribe_release_all(struct netio_eventloop *evloop);

#endif
