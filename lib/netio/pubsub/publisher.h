/* SPDX-License-Identifier: BSD-3-Clause */
/* Both publish sockets. In the order in which a message passes them:
 *
 *     publish.c          a message: measured, and given to the outbox of each subscriber
 *     match.c, table.c   who gets it
 *     publication.c      one that is sent by reference, and when nobody needs it any more
 *     outbox.h           what becomes of it for one subscriber
 *
 * and around that path:
 *
 *     publish_socket.c   the sockets
 *     publisher.c        connections of subscribers
 *     requests.c         what they subscribe to */
#ifndef NETIO_PUBLISHER_H
#define NETIO_PUBLISHER_H

#include "accept.h"
#include "outbox.h"
#include "reference.h"
#include "table.h"

#include <sys/queue.h>

#define PUBLISHER_BUFFERS 6 /* of each subscriber, for its requests */

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
	struct plx_buf *requests[PUBLISHER_BUFFERS + 2];
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
	bool telling, freed;  /* they are being told: it is not freed yet; it is to be */
	struct plx_task tell; /* of them */
	struct netio_publish_stats stats;
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /* by all subscribers */
};

/* Subscribers; publisher.c. */
extern const struct acceptor_owner publisher_owner;

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
#define PUBLISHER_TELL(core, callback, args)                                 \
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
void requests_go_on(struct subscriber *subscriber);

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
void publish_tell_room(struct netio_publish_core *core);

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

#endif
