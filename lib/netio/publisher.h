/* SPDX-License-Identifier: BSD-3-Clause */
/* What is behind both publish sockets: subscribers, what they want, and what is published. */
#ifndef NETIO_PUBLISHER_H
#define NETIO_PUBLISHER_H

#include "accept.h"
#include "conflate.h"
#include "pages.h"
#include "reference.h"
#include "table.h"

#include <sys/queue.h>

#define PUBLISHER_BUFFERS 6 /* of each subscriber, for its requests */

/* One subscriber. */
struct subscriber {
	struct accepted accepted; /* first */
	struct netio_subscriber pub;
	struct pages *pages; /* NULL: none of its subscriptions has had messages in pages yet */
	void *by_id;         /* struct subscription, of tsearch */
	void *by_filter;     /* the same */
	uint32_t places;     /* that they take */

	/* Where it is slow. */
	bool may_miss;            /* all that it ever subscribed to is to drop the old */
	struct conflation latest; /* behind its pages */
	struct wire_gap gap;      /* that it is not told yet, where it has no pages */
	uint64_t missed[NETIO_GAP_REASON_COUNT];

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
	bool at_once;
	uint8_t policy;         /* enum netio_policy, not the default */
	uint64_t backlog_bytes; /* not 0 */
	struct netio_subscription what;
	struct table_filter filter;
	unsigned pair_count;
	struct table_pair pairs[]; /* flexible */
};

struct match {
	struct subscriber *subscriber;
	uint64_t backlog_bytes; /* as of the subscription that decides */
	uint8_t policy;
	bool at_once;
};

/* A message that some have not got yet. */
struct pending {
	netio_tag_t tag;
	uint64_t key;                    /* 0 where it was copied */
	struct publication *publication; /* NULL: it was copied */
	TAILQ_ENTRY(pending) link;
	uint32_t taken; /* by others */
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
	struct pages_attr pages_attr;
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
};

/* Subscribers; publisher.c. */
extern const struct acceptor_owner publisher_owner;

/* Make pages for it, if there are none. Return: 0; -ENOMEM. */
int subscriber_make_pages(struct subscriber *subscriber);

static inline struct netio_publish_core *subscriber_core(const struct subscriber *subscriber)
{
	return (struct netio_publish_core *)subscriber->accepted.acceptor;
}

/* Whether messages may be sent to it. */
static inline bool subscriber_is_there(const struct subscriber *subscriber)
{
	return subscriber->accepted.link && !subscriber->accepted.failure &&
	       !subscriber->accepted.closing && subscriber->accepted.acceptor->socket;
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

/* publish.c */

/* Of a table: different from all others of this process, so that a cache is not mistaken. */
uint64_t publish_new_version(void);

/* Leave those alone in pending->missing that want the tag still. */
void publish_match_again(struct netio_publish_core *core, struct pending *pending);

/* Fill in core->matches. cache: may be NULL. */
void publish_match(struct netio_publish_core *core, netio_tag_t tag,
		   struct netio_subscription_cache *cache);

/* Copy a message to one. length: of all pieces. Return: enum netio_status; PUBLISH_MISSED; -EINVAL;
 * -ENOMEM. */
int publish_copy_to(const struct match *match, netio_tag_t tag, const struct iovec *iov,
		    size_t count, uint64_t length);

/* What became of a message: to how many. */
struct publish_outcome {
	uint32_t taken, missing, too_big, missed, failed;
	uint32_t gone; /* subscribers that are, or are about to be */
	int error;     /* of the first that failed */
};

/* What became of it at one subscriber, of those up to it. Those that had no room come to stand at
 * the beginning of matches, and behind them those for which it is too long. */
void publish_note_other(struct publish_outcome *outcome, struct match *matches, uint32_t index,
			int rc);

static inline void publish_note(struct publish_outcome *outcome, struct match *matches,
				uint32_t index, int rc)
{
	if (plx_likely(rc == 0))
		outcome->taken++;
	else
		publish_note_other(outcome, matches, index, rc);
}

/* Tell these. */
void publish_tell_too_big(const struct publish_outcome *outcome, const struct match *matches);

/* There is no memory to remember those that had no room: they miss it. */
void publish_fail_missing(struct publish_outcome *outcome, const struct match *matches);

/* What became of it at all. taken_before: by how many, before NETIO_REENTRY.
 * Return: enum netio_status, of which AGAIN stands for PARTIAL, too. */
int publish_finish(struct netio_publish_core *core, const struct publish_outcome *outcome,
		   uint32_t taken_before);

/* slow.c */

#define PUBLISH_MISSED 1 /* it is lost for that subscriber, which is told */

/* A message for one whose link or pages have no room, as the policy says. Return: as
 * publish_copy_to. */
int slow_copy_to(const struct match *match, netio_tag_t tag, const struct iovec *iov,
		 uint64_t length);

/* Those of which only the latest waits: all are lost. Return: how many there were. */
uint32_t slow_clear(struct subscriber *subscriber);

/* Some pages have left: let the latest ones go into others. */
void slow_go_on(struct subscriber *subscriber);

/* It misses messages, and is to be told. */
void subscriber_misses(struct subscriber *subscriber, uint64_t count, enum netio_gap_reason reason);

/* Tell it where it has no pages. Return: whether there is nothing left to tell. */
bool subscriber_tell_gap(struct subscriber *subscriber);

/* pending.c */

/* What some have not got yet. NULL: there is none. */
struct pending *pending_find(struct netio_publish_core *core, netio_tag_t tag, uint64_t key);

/* Room for as many that miss it. Return: NULL: out of memory. */
struct pending *pending_create(struct netio_publish_core *core, netio_tag_t tag, uint64_t key,
			       uint32_t count);
void pending_destroy(struct netio_publish_core *core, struct pending *pending);

/* It will not be published again: count what was missed. */
void pending_give_up(struct netio_publish_core *core, struct pending *pending);

/* A subscriber is gone: nobody waits for it. */
void pending_forget(struct netio_publish_core *core, const struct subscriber *subscriber);

/* A subscriber has room, or is gone. */
void publish_tell_room(struct netio_publish_core *core);

/* publish_unbuffered.c */

/* Set up core->tell. */
void publish_start_telling(struct netio_publish_core *core);

/* All that are told of, or unused. */
void publications_free(struct netio_publish_core *core);

/* Behind the last reference it is told from the loop that the message is published. */
void publication_unref(struct publication *publication);

#endif
