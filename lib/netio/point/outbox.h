/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits for one peer, and what becomes of a message for it. In the order in which a message
 * passes the files:
 *
 *     policy.c       what becomes of a message: sent, put into a page, dropped, or kept
 *     conflate.c     the newest message of each tag, where only that waits
 *     outbox_gap.c   pages that are dropped, and the gaps that the peer has to hear of
 *     outbox.c       pages: filled, waiting for the link, with it, and free again
 *     outbox_life.c  their memory, and the link's beginning and end
 *
 * A page is free, or being filled, or waits for the link, or is with it. A message that is longer
 * than a page takes several, which are one chain from then on. */
#ifndef NETIO_OUTBOX_H
#define NETIO_OUTBOX_H

#include "netio_wire.h"
#include "point.h"

#include <sys/queue.h>

/* The newest message of each tag, for who is too slow for all of them. */
struct latest {
	netio_tag_t tag;
	uint64_t order;  /* counts up in the order in which their tags came */
	uint64_t behind; /* of the owner: the page that it came behind */
	uint64_t length, room;
	uint8_t *data;
	TAILQ_ENTRY(latest) link;
};

TAILQ_HEAD(latest_queue, latest);

struct conflation {
	uint32_t count;
	void *by_tag; /* struct latest, of tsearch */
	struct latest_queue queue;
	uint64_t bytes; /* that they take, all in all */
	uint64_t order; /* of the newest */
};

struct outbox;

struct outbox_owner {
	/* A caller that saw AGAIN finds as many pages free as it wanted. */
	void (*room)(struct outbox *outbox);
	/* A page was sent. */
	void (*sent)(struct outbox *outbox);
	/* The policy is to close the connection: why, constant text. NULL: none is. */
	void (*too_slow)(struct outbox *outbox, const char *why);
};

struct outbox_attr {
	uint32_t page_bytes, page_count, watermark_bytes;
	uint64_t timeout_ns;
};

/* Of callers that wait for pages when there are none. */
struct outbox_room {
	uint32_t wanted;  /* that must be free; 0: nobody saw AGAIN */
	bool is_paced;    /* few are filled ahead of the link: see outbox.c */
	uint64_t idle_ns; /* since when the link has had none to send, while it is paced */
	uint64_t number;  /* of the newest page at the last AGAIN */
};

struct outbox {
	/* Of the page that is being filled; all NULL if there is none, or no connection. */
	PLX_ALIGNED_LINE uint8_t *at; /* of its next entry */
	uint8_t *end;                 /* no entry goes beyond */
	uint8_t *flush_at;            /* from here on it leaves */
	uint64_t message_max;         /* that the peer accepts */
	struct plx_buf *page;
	uint32_t messages;        /* in it */
	uint32_t waiting_count;   /* pages that wait for the link */
	struct conflation latest; /* follow all pages; its count is tested first */

	struct plx_link *link; /* NULL: there is none */
	bool is_open;          /* messages are accepted */
	bool is_closing;       /* no longer when the newest have gone into pages */
	bool urgent;           /* the page leaves as soon as the link takes it */
	bool keeps;            /* it has something that must not be dropped */
	bool droppable;        /* what is put may be dropped */
	bool all_droppable;    /* so may all that was ever put */
	uint32_t limit;        /* of a page's length */
	uint32_t flush_bytes;  /* with that length it leaves */
	struct plx_buf **free;
	uint32_t free_count;
	uint32_t count; /* all but those that were given up; 0: it has no memory yet */
	uint32_t slots; /* of free and waiting */
	struct outbox_room room;
	bool is_shared;           /* with callers that are not paced, so that nobody is */
	struct plx_buf **waiting; /* for the link, first in first out, round the end of slots */
	uint32_t waiting_first;
	uint64_t waiting_bytes; /* in them */
	uint64_t number;        /* of the newest page; they count up from 1 */
	uint64_t frames_seen;   /* that the link has sent; while it closes */
	struct wire_gap gap;    /* that the next page tells */
	uint64_t missed[NETIO_GAP_REASON_COUNT];
	uint64_t *missed_in_all; /* the same of all outboxes of a socket; NULL: nobody counts */
	uint64_t flush_ns;       /* when the page leaves at the latest */
	struct plx_timer timer;
	struct plx_pool *pool;
	struct outbox_attr attr;
	const struct outbox_owner *owner;
	LIST_ENTRY(outbox) opened; /* of this lcore's that are open; le_prev NULL: in no list */
	struct netio_buffered_stats stats;
};

/* A page ------------------------------------------------------------------------------------- */

/* What is known of a page that is full; in its headroom, where nobody else looks at it. */
struct page_note {
	uint64_t number;
	uint32_t messages; /* in it */
	uint32_t pages;    /* of its chain */
	bool keeps;        /* something that must not be dropped */
};

static inline struct page_note *page_note(const struct plx_buf *page)
{
	return (struct page_note *)page->base;
}

/* Whether nothing stands in the page but its header. */
static inline bool outbox_page_is_empty(const struct outbox *outbox)
{
	return outbox->page && outbox->at == outbox->page->data + WIRE_PAGE_BYTES;
}

/* The index-th one of those that wait. */
static inline struct plx_buf **outbox_waiting_at(const struct outbox *outbox, uint32_t index)
{
	return &outbox->waiting[(outbox->waiting_first + index) % outbox->slots];
}

/* Begin one of those that are free. */
void outbox_begin_page(struct outbox *outbox);

/* Nothing more goes into the one that is being filled. Return: it, which is in no list. */
struct plx_buf *outbox_end_page(struct outbox *outbox);

/* One that is in no list, and is not with the link, is free again, with its chain. */
static inline void outbox_free_page(struct outbox *outbox, struct plx_buf *page)
{
	while (page) {
		struct plx_buf *next = page->next;

		page->next = NULL;
		outbox->free[outbox->free_count++] = page;
		page = next;
	}
}

/* outbox_life.c ------------------------------------------------------------------------------ */

/* Fill in what is left out, and check. Return: 0; -EINVAL. */
int outbox_check_attr(struct outbox_attr *attr);

/* outbox: aligned to a cache line; attr: checked. It has no memory yet. */
void outbox_init(struct outbox *outbox, const struct outbox_attr *attr,
		 const struct outbox_owner *owner);

/* Memory for its pages, if it has none. Return: 0; -ENOMEM. */
int outbox_make_pages(struct outbox *outbox);

/* The memory of all pages, when they have come back. */
void outbox_fini(struct outbox *outbox);

/* There is a link, whose peer accepts messages of that length. */
void outbox_open(struct outbox *outbox, struct plx_link *link, uint64_t message_max);

/* No more messages; what there is is sent. Return: whether nothing is under way. */
bool outbox_close(struct outbox *outbox);

/* The link has ended: what was not sent is lost, and counted. */
void outbox_link_ended(struct outbox *outbox);

/* Whether nothing is under way. */
static inline bool outbox_is_done(const struct outbox *outbox)
{
	return outbox->free_count == outbox->count && outbox->gap.count == 0 &&
	       outbox->latest.count == 0;
}

/* outbox.c ------------------------------------------------------------------------------------ */

/* The page that is being filled leaves: now, or when the link takes it. */
void outbox_flush(struct outbox *outbox);

/* The page leaves as soon as the link has taken those before it. */
static inline void outbox_flush_soon(struct outbox *outbox)
{
	if (outbox->waiting_count)
		outbox->urgent = outbox->page != NULL;
	else if (outbox->page)
		outbox_flush(outbox);
}

/* As many as the link takes of those that wait, up to that number. */
void outbox_send_until(struct outbox *outbox, uint64_t number);

/* The link has room. A caller that saw AGAIN is not told yet. */
void outbox_writable(struct outbox *outbox);

/* A caller that saw AGAIN hears of it if there is room by now. */
void outbox_report_room(struct outbox *outbox);

/* The newest of each tag go into pages as far as there are any. */
void outbox_put_latest(struct outbox *outbox);

/* Whether none of the pages up to that number waits. */
bool outbox_sent_until(const struct outbox *outbox, uint64_t number);

/* Bytes that wait for the link, or for a page to be full. */
static inline uint64_t outbox_backlog_bytes(const struct outbox *outbox)
{
	return outbox->waiting_bytes +
	       (outbox->page ? (uint64_t)(outbox->at - outbox->page->data) : 0);
}

/* Whether messages wait for the link: what is put now may be dropped, if the policy says so. What
 * was put before they did is not, unless all is. */
static inline bool outbox_is_slow(const struct outbox *outbox)
{
	return (outbox->waiting_count | outbox->latest.count) != 0;
}

/* Whether a message in a frame of its own would overtake nothing. */
static inline bool outbox_is_clear(const struct outbox *outbox)
{
	return !outbox->page && !outbox_is_slow(outbox) && outbox->gap.count == 0;
}

/* Send what was put before: a message in a frame of its own follows. Return: 0; NETIO_STATUS_AGAIN.
 */
int outbox_flush_before(struct outbox *outbox);

/* Note that somebody waits for `wanted` free pages. Return: NETIO_STATUS_AGAIN. */
int outbox_again(struct outbox *outbox, uint32_t wanted);

/* How many pages a message takes. length: any. */
uint64_t outbox_pages_needed(const struct outbox *outbox, uint64_t length, uint8_t flags);

/* Whether a message is not too long for all pages together. length: any. */
static inline bool outbox_holds(const struct outbox *outbox, uint64_t length, uint8_t flags)
{
	return outbox_pages_needed(outbox, length, flags) <= outbox->count;
}

/* A message that the page has no room for, if there is one. length: any.
 * Return: enum netio_status. */
int outbox_put_slow(struct outbox *outbox, const struct message *message);

/* The same for a caller that does not wait for room: AGAIN is noted for nobody, and it is not
 * paced; nor is anybody else from then on, who would never find that few wait. */
int outbox_put_unpaced(struct outbox *outbox, const struct message *message);

/* Whether there is room for a whole message in the page. length: any. */
static inline bool outbox_fits(const struct outbox *outbox, uint64_t length, uint8_t flags)
{
	return length <= outbox->message_max &&
	       wire_entry_bytes(length, flags) <= (uint64_t)(outbox->end - outbox->at);
}

/* Where an entry's payload goes. The page has room for it. */
static inline uint8_t *outbox_entry(struct outbox *outbox, uint32_t length, uint8_t flags,
				    netio_tag_t tag)
{
	uint8_t *at = outbox->at;

	outbox->at = at + wire_entry_bytes(length, flags);
	return wire_entry_write(at, length, flags, tag);
}

/* A message is whole. */
static inline void outbox_message_ended(struct outbox *outbox)
{
	outbox->messages++;
	if (plx_unlikely(outbox->at >= outbox->flush_at))
		outbox_flush(outbox);
}

static inline void outbox_copy(struct outbox *outbox, const struct message *message, uint8_t flags)
{
	message_copy(message, outbox_entry(outbox, (uint32_t)message->length, flags, message->tag));
	outbox_message_ended(outbox);
}

/* A message, wherever there is room for it. Return: enum netio_status. */
static inline int outbox_put(struct outbox *outbox, const struct message *message)
{
	uint8_t flags = message->tag ? WIRE_TAG : 0;

	if (plx_unlikely(!outbox_fits(outbox, message->length, flags)))
		return outbox_put_slow(outbox, message);
	outbox_copy(outbox, message, flags);
	return NETIO_STATUS_OK;
}

/* outbox_gap.c -------------------------------------------------------------------------------- */

/* The peer misses messages, and hears of it between those that were put before and those that
 * follow: as soon as the link takes it, but with the next ones where they are too big for it. */
void outbox_miss(struct outbox *outbox, uint64_t count, enum netio_gap_reason reason);

/* Count messages that it misses. */
void outbox_count_missed(struct outbox *outbox, uint64_t count, enum netio_gap_reason reason);

/* Drop the oldest page that waits, if it has nothing that must be kept or `any` may be dropped; if
 * there is none, the one that is being filled. The peer hears of it. Return: whether there was such
 * a page. */
bool outbox_drop_oldest(struct outbox *outbox, bool any, enum netio_gap_reason reason);

/* Whether a message of that length, which outbox_holds, finds room in the place of what may be
 * dropped. */
bool outbox_may_find_room(const struct outbox *outbox, uint64_t length, uint8_t flags);

/* Tell of the gap that no page tells: in a page of its own if no message comes soon. */
void outbox_report_gap(struct outbox *outbox);

/* policy.c ------------------------------------------------------------------------------------ */

/* What a subscription says. */
struct outbox_terms {
	uint64_t backlog_bytes; /* not 0 */
	uint8_t policy;         /* enum netio_policy, not the default */
	bool at_once;
};

#define OUTBOX_MISSED 1 /* the message is lost for the peer, which hears of it */

/* A message of at most message_max bytes. Return: enum netio_status; OUTBOX_MISSED; -EINVAL;
 * -ENOMEM. */
int outbox_submit(struct outbox *outbox, const struct outbox_terms *terms,
		  const struct message *message);

/* Before the first message of a subscription with that policy. */
void outbox_add_policy(struct outbox *outbox, enum netio_policy policy);

/* What is put after this may be dropped, or not. */
static inline void outbox_set_droppable(struct outbox *outbox, bool droppable)
{
	outbox->droppable = droppable;
	outbox->keeps |= !droppable;
}

/* conflate.c ---------------------------------------------------------------------------------- */

void conflation_init(struct conflation *conflation);

/* Keep a copy of a message in place of the one of its tag, or behind all others, which may take
 * bytes_max. Return: 0; 1 another one was replaced; -EAGAIN it would be more; -ENOMEM: the one of
 * its tag stays. */
int conflation_put(struct conflation *conflation, const struct message *message,
		   uint64_t bytes_max);

/* The one of that tag, or the one that came last; NULL: there is none. */
struct latest *conflation_find(const struct conflation *conflation, netio_tag_t tag);
static inline struct latest *conflation_last(const struct conflation *conflation)
{
	return TAILQ_LAST(&conflation->queue, latest_queue);
}

/* The one that waits longest; NULL: there is none. */
static inline struct latest *conflation_first(const struct conflation *conflation)
{
	return TAILQ_FIRST(&conflation->queue);
}

void conflation_drop(struct conflation *conflation, struct latest *latest);

/* Return: how many there were. */
uint32_t conflation_clear(struct conflation *conflation);

#endif
