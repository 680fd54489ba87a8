/* SPDX-License-Identifier: BSD-3-Clause */
/* The outbox of one peer: what waits for it, and what happens to a message. Files in the order that
 * a message passes them:
 *
 *     policy.c       what happens to a message: sent, put into a page, dropped or conflated
 *     outbox_gap.c   dropped pages, and the gaps that are reported to the peer
 *     outbox.c       pages: being filled, waiting, in flight, free
 *     outbox_life.c  memory, and the link's open and close
 *
 * A page is free, being filled, waiting for the link, or in flight. A message longer than a page
 * takes several, linked into a chain. */
#ifndef NETIO_OUTBOX_H
#define NETIO_OUTBOX_H

#include "list.h"
#include "point.h"

/* The newest message of a tag, for a peer that is too slow for all messages. */
struct latest {
	netio_tag_t tag;
	uint64_t order;   /* increases in the order in which tags were added */
	uint64_t follows; /* for the owner: the page that precedes it */
	uint64_t length, room;
	uint8_t *data;
	TAILQ_ENTRY(latest) link;
};

TAILQ_HEAD(latest_queue, latest);

struct conflation {
	uint32_t count;
	void *by_tag; /* struct latest, of tsearch */
	struct latest_queue queue;
	uint64_t bytes; /* their total size */
	uint64_t order; /* of the newest */
};

struct outbox;

struct outbox_owner {
	/* A caller that got AGAIN can now have the pages it wanted. */
	void (*room)(struct outbox *outbox);
	/* A page was sent. */
	void (*sent)(struct outbox *outbox);
	/* The disconnect policy applies. This and the next: NULL: peers have no policies. */
	void (*too_slow)(struct outbox *outbox);
	/* The peer misses messages, which are counted already. */
	void (*missed)(struct outbox *outbox, enum netio_gap_reason reason);
};

/* State of callers that wait for free pages. */
struct outbox_room {
	uint32_t wanted;  /* pages that must be free; 0: no caller waits */
	bool is_paced;    /* few pages are filled ahead of the link: see outbox.c */
	uint64_t idle_ns; /* since when the link has had nothing to send, if paced */
	uint64_t number;  /* of the newest page at the last AGAIN */
};

/* Facts about a full page, stored in its headroom, which nothing else reads. */
struct page_note {
	struct plx_buf *page;
	uint64_t number;
	uint32_t messages; /* in the page */
	uint32_t pages;    /* in the chain */
	uint32_t bytes;    /* of the chain, if it waits */
	bool keeps;        /* contains messages that must not be dropped */
	TAILQ_ENTRY(page_note) link;
};

TAILQ_HEAD(page_queue, page_note);

struct outbox {
	/* The page being filled; all NULL without a page or connection. */
	PLX_ALIGNED_LINE uint8_t *at; /* of its next entry */
	uint8_t *end;                 /* limit for entries */
	uint8_t *flush_at;            /* past this, the page is sent */
	uint64_t message_max;         /* accepted by the peer */
	struct plx_buf *page;
	uint32_t messages;        /* in the page */
	uint32_t waiting_count;   /* pages that wait for the link */
	struct conflation latest; /* sent after all pages; its count is tested first */

	struct plx_link *link; /* NULL: no link */
	bool is_open;          /* accepts messages */
	bool is_closing;       /* closes after the conflated messages are in pages */
	bool urgent;           /* send the page as soon as the link takes it */
	bool keeps;            /* the page contains messages that must not be dropped */
	bool droppable;        /* new messages may be dropped */
	uint32_t keepers;      /* subscriptions whose messages must not be dropped */
	uint32_t limit;        /* maximum page length */
	uint32_t flush_bytes;  /* page length that triggers sending */
	struct plx_buf *free;  /* linked like a chain; the page that returned last is first */
	uint32_t free_count;
	uint32_t count; /* pages still in use; 0: not allocated yet */
	struct outbox_room room;
	bool no_wait;   /* the caller does not wait for room: do not note AGAIN, or pace it */
	bool is_shared; /* such callers have filled pages, which disables pacing: the others
			   can no longer rely on few pages waiting */
	struct page_queue waiting; /* for the link; oldest first */
	uint64_t waiting_bytes;    /* of the waiting pages */
	uint64_t number;           /* of the newest page; counts from 1 */
	struct wire_gap gap;       /* for the next page to report */
	uint64_t alone;            /* messages sent in their own frames */
	uint64_t not_taken;        /* messages that it missed, and that never were in a page */
	uint64_t missed[NETIO_GAP_REASON_COUNT];
	uint64_t *missed_in_all; /* shared by a socket's outboxes; NULL: they miss nothing */
	uint64_t flush_ns;       /* when the page is sent at the latest */
	struct plx_timer timer;
	struct plx_pool *pools[2];       /* of the first pages, and of the others */
	uint32_t made;                   /* pages, in both */
	struct netio_buffered_attr attr; /* all but its connect */
	const struct outbox_owner *owner;
	LIST_ENTRY(outbox) all; /* of this lcore */
	struct netio_buffered_stats stats;
};

/* A page ------------------------------------------------------------------------------------- */

static inline struct page_note *page_note(const struct plx_buf *page)
{
	return (struct page_note *)page->base;
}

/* The page waits no longer. */
static inline void outbox_take_waiting(struct outbox *outbox, struct page_note *note)
{
	TAILQ_REMOVE(&outbox->waiting, note, link);
	outbox->waiting_count--;
	outbox->waiting_bytes -= note->bytes;
}

/* Stop filling the page. Return: the page, in no list. */
struct page_note *outbox_end_page(struct outbox *outbox);

/* Free a page that is in no list and not in flight, with its chain. */
static inline void outbox_free_page(struct outbox *outbox, struct plx_buf *page)
{
	while (page) {
		struct plx_buf *next = page->next;

		page->next = outbox->free;
		outbox->free = page;
		outbox->free_count++;
		page = next;
	}
}

/* outbox_life.c ------------------------------------------------------------------------------ */

/* Check attr and fill in defaults. Return: 0; -EINVAL. */
int outbox_check_attr(struct netio_buffered_attr *attr);
/* outbox: aligned to a cache line; attr: checked. Does not allocate pages. */
void outbox_init(struct outbox *outbox, const struct netio_buffered_attr *attr,
		 const struct outbox_owner *owner);
/* An unbuffered socket collects messages up to this length in two pages while its link has no room:
 * one fills while another one is under way. */
#define OUTBOX_COLLECT_MAX   1024
#define OUTBOX_COLLECT_PAGES 2

/* Allocate more pages, up to `count`: attr.page_count, or before that OUTBOX_COLLECT_PAGES.
 * Return: 0, also if there are as many; -ENOMEM. */
int outbox_make_pages(struct outbox *outbox, uint32_t count);
/* Free all pages, after they have returned. */
void outbox_fini(struct outbox *outbox);
/* The link is open; its peer accepts messages up to message_max. */
void outbox_open(struct outbox *outbox, struct plx_link *link, uint64_t message_max);
/* Accept no more messages and send the rest. Return: whether nothing is in flight. */
bool outbox_close(struct outbox *outbox);
/* The link has ended: count what was not sent as lost. */
void outbox_link_ended(struct outbox *outbox);

/* Return whether nothing is in flight. */
static inline bool outbox_is_done(const struct outbox *outbox)
{
	return outbox->free_count == outbox->count && outbox->gap.count == 0 &&
	       outbox->latest.count == 0;
}

/* outbox.c ------------------------------------------------------------------------------------ */

/* Send the page being filled, if any, or queue it until the link takes it: then no message can join
 * it. */
void outbox_flush(struct outbox *outbox);

/* Send the page as soon as the link has taken those before it; until then messages join it. */
void outbox_flush_soon(struct outbox *outbox);

/* The link has refused a message, so outbox_writable follows: it sends the page being filled. */
static inline void outbox_flush_when_writable(struct outbox *outbox)
{
	outbox->urgent = outbox->page != NULL;
}

/* Send waiting pages up to that number, as far as the link takes them. */
void outbox_send_until(struct outbox *outbox, uint64_t number);
/* The link has room. Does not report room to callers. */
void outbox_writable(struct outbox *outbox);
/* Report room to a caller that got AGAIN, if there is room. */
void outbox_report_room(struct outbox *outbox);
/* Put conflated messages into pages while there is room. */
void outbox_put_latest(struct outbox *outbox);
/* Return whether no page up to that number waits. */
bool outbox_sent_until(const struct outbox *outbox, uint64_t number);

/* Bytes waiting for the link or for a page to fill up. */
static inline uint64_t outbox_backlog_bytes(const struct outbox *outbox)
{
	return outbox->waiting_bytes +
	       (outbox->page ? (uint64_t)(outbox->at - outbox->page->data) : 0);
}

/* Return whether messages wait for the link. Only then may the policy drop new messages; earlier
 * ones may be dropped only if all may. */
static inline bool outbox_is_slow(const struct outbox *outbox)
{
	return (outbox->waiting_count | outbox->latest.count) != 0;
}

/* Return whether a message in its own frame would overtake nothing. */
static inline bool outbox_is_clear(const struct outbox *outbox)
{
	return !outbox->page && !outbox_is_slow(outbox) && outbox->gap.count == 0;
}

/* A message in its own frame follows: send all before it. Return: 0; NETIO_STATUS_AGAIN. */
int outbox_flush_before(struct outbox *outbox);
/* Note that a caller waits for `wanted` free pages. Return: NETIO_STATUS_AGAIN. */
int outbox_again(struct outbox *outbox, uint32_t wanted);
/* The number of pages for a message of any length. */
uint64_t outbox_pages_needed(const struct outbox *outbox, uint64_t length, uint8_t flags);
/* Put a message that does not fit into the current page. Return: enum netio_status. */
int outbox_put_slow(struct outbox *outbox, const struct message *message);

/* Send a message that does not fit into the current page, of at least half a page, without a page
 * if the link takes it. Return: enum netio_status. */
int outbox_send_long(struct outbox *outbox, const struct message *message);

/* Return whether the whole message fits into the page. */
static inline bool outbox_fits(const struct outbox *outbox, uint64_t length, uint8_t flags)
{
	return length <= outbox->message_max &&
	       wire_entry_bytes(length, flags) <= (uint64_t)(outbox->end - outbox->at);
}

/* Where an entry's payload goes. The page must have room. */
static inline uint8_t *outbox_entry(struct outbox *outbox, uint32_t length, uint8_t flags,
				    netio_tag_t tag)
{
	uint8_t *at = outbox->at;

	outbox->at = at + wire_entry_bytes(length, flags);
	at = wire_entry_begin(at, length, flags, tag);
	wire_entry_pad(at, length);
	return at;
}

static inline void outbox_message_ended(struct outbox *outbox)
{
	outbox->messages++;
	if (plx_unlikely(outbox->at >= outbox->flush_at))
		outbox_flush_soon(outbox);
}

static inline void outbox_copy(struct outbox *outbox, const struct message *message, uint8_t flags)
{
	message_copy(message, outbox_entry(outbox, (uint32_t)message->length, flags, message->tag));
	outbox_message_ended(outbox);
}

/* Put a message anywhere with room. Return: enum netio_status. */
static inline int outbox_put(struct outbox *outbox, const struct message *message)
{
	uint8_t flags = message->tag ? WIRE_TAG : 0;

	if (plx_unlikely(!outbox_fits(outbox, message->length, flags)))
		return outbox_put_slow(outbox, message);
	outbox_copy(outbox, message, flags);
	return NETIO_STATUS_OK;
}

/* All messages for the peer so far, whether it got them or not. */
static inline uint64_t outbox_total(const struct outbox *outbox)
{
	return outbox->stats.messages + (outbox->page ? outbox->messages : 0) + outbox->alone +
	       outbox->not_taken + outbox->latest.count;
}

/* outbox_gap.c -------------------------------------------------------------------------------- */

#define OUTBOX_GAP_NS PLX_NS_PER_MS /* time for a message to carry a gap */

/* The peer misses messages. Report the gap in order, after earlier messages and before later ones:
 * with the next message, or alone if none follows soon. */
void outbox_miss(struct outbox *outbox, uint64_t count, enum netio_gap_reason reason);
/* Drop the oldest waiting page that may be dropped; `any`: that may be any. If there is none, drop
 * the page being filled. The gap is reported to the peer. Return: whether a page was dropped. */
bool outbox_drop_oldest(struct outbox *outbox, bool any, enum netio_gap_reason reason);
/* Return whether a message that all pages hold would fit after dropping what may be dropped. */
bool outbox_may_find_room(const struct outbox *outbox, uint64_t length, uint8_t flags);
/* Report a gap that no page carries, in a separate message, unless pages wait before it. */
void outbox_report_gap(struct outbox *outbox);

/* policy.c ------------------------------------------------------------------------------------ */

/* Terms of a subscription. */
struct outbox_terms {
	uint64_t backlog_bytes; /* not 0 */
	uint8_t policy;         /* enum netio_policy, not the default */
	bool at_once;
};

#define OUTBOX_MISSED 1 /* the peer misses the message, and the gap is reported */

/* Whether the message may be copied into pages: all of them together hold it. */
static inline bool outbox_holds(const struct outbox *outbox, const struct message *message)
{
	return message->length <= PLX_SEND_COPY_MAX &&
	       outbox_pages_needed(outbox, message->length, message->tag ? WIRE_TAG : 0) <=
		       outbox->count;
}

/* A message that cannot wait finds no room. Return: OUTBOX_MISSED; under BLOCK, AGAIN. */
int outbox_refuse(struct outbox *outbox, const struct outbox_terms *terms,
		  const struct message *message);

/* Submit a message up to message_max. Return: as outbox_put; OUTBOX_MISSED; -EINVAL; -ENOMEM. */
int outbox_submit(struct outbox *outbox, const struct outbox_terms *terms,
		  const struct message *message);
/* The peer is disconnected: drop everything that waits, except the rest of a message in flight, and
 * `missed` messages that are in no page. */
void outbox_drop_all(struct outbox *outbox, uint64_t missed);
/* A subscription with that policy begins, before its first message: +1; or has ended: -1. */
void outbox_count_policy(struct outbox *outbox, enum netio_policy policy, int step);

/* Whether messages put after this may be dropped. */
static inline void outbox_set_droppable(struct outbox *outbox, bool droppable)
{
	outbox->droppable = droppable;
	outbox->keeps |= !droppable;
}

/* Remove one; remove all. Return: how many there were. */
void conflation_drop(struct conflation *conflation, struct latest *latest);
uint32_t conflation_clear(struct conflation *conflation);

#endif
