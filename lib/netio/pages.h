/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages that messages are copied into on their way to one peer. A page is free, or being
 * filled, or waits for the link, or is with it. */
#ifndef NETIO_PAGES_H
#define NETIO_PAGES_H

#include "netio_priv.h"
#include "wire.h"

struct pages;

struct pages_owner {
	/* Who saw AGAIN finds as many free as it wanted. */
	void (*room)(struct pages *pages);
	/* A page was sent. */
	void (*sent)(struct pages *pages);
};

struct pages_attr {
	uint32_t page_bytes, page_count, watermark_bytes;
	uint64_t timeout_ns;
};

/* Of who waits for pages when there are none. */
struct pages_room {
	uint32_t wanted;  /* that must be free; 0: nobody saw AGAIN */
	bool is_paced;    /* few are filled ahead of the link: see pages.c */
	uint64_t idle_ns; /* since when the link has had none to send, while it is paced */
	uint64_t number;  /* of the newest page when AGAIN was told last */
};

struct pages {
	/* Of the page that is being filled; all NULL where there is none, or no connection. */
	PLX_ALIGNED_LINE uint8_t *at; /* of its next entry */
	uint8_t *end;                 /* no entry goes beyond */
	uint8_t *leave_at;            /* from here on it leaves */
	uint64_t message_max;         /* that the peer accepts */
	struct plx_buf *page;
	uint32_t messages;      /* that end in it */
	uint32_t waiting_count; /* pages that wait for the link */
	uint32_t behind_count;  /* messages that wait behind all pages; of the owner */

	struct plx_link *link; /* NULL: there is none */
	bool is_open;          /* messages are accepted */
	bool urgent;           /* the page leaves as soon as the link takes it */
	bool keeps;            /* it has something that is not to be dropped */
	bool droppable;        /* what is put may be dropped */
	bool all_droppable;    /* so may all that was ever put; of the owner */
	uint32_t limit;        /* of a page's length */
	uint32_t leaves_at;    /* with that length it leaves */
	struct plx_buf **free;
	uint32_t free_count;
	uint32_t count; /* all but those that were given up */
	uint32_t slots; /* of free and waiting */
	struct pages_room room;
	bool is_shared;           /* with who is not paced, so that nobody is */
	struct plx_buf **waiting; /* for the link, first in first out, round the end of slots */
	uint32_t waiting_first;
	uint64_t waiting_bytes; /* in them */
	uint64_t number;        /* of the newest page; they count up from 1 */
	struct wire_gap gap;    /* to be told by the next page */
	uint64_t leave_ns;      /* when the page leaves at the latest */
	struct plx_timer timer;
	struct plx_pool *pool;
	struct pages_attr attr;
	const struct pages_owner *owner;
	struct pages *next, **prev_next; /* of this lcore's that were opened */
	struct netio_buffered_stats stats;
};

/* A page ------------------------------------------------------------------------------------- */

/* What is known of a page that is full; in its headroom, where nobody else looks at it. */
struct page_note {
	uint64_t number;
	uint32_t messages; /* that end in it */
	bool keeps;        /* something that is not to be dropped */
	bool continues;    /* a message that begins in the one before it */
};

static inline struct page_note *page_note(const struct plx_buf *page)
{
	return (struct page_note *)page->base;
}

/* Whether nothing stands in the page but its header. */
static inline bool pages_is_empty(const struct pages *pages)
{
	return pages->page && pages->at == pages->page->data + WIRE_PAGE_BYTES;
}

/* The index-th one of those that wait. */
static inline struct plx_buf **pages_waiting_at(const struct pages *pages, uint32_t index)
{
	return &pages->waiting[(pages->waiting_first + index) % pages->slots];
}

/* Begin one, of which there is one free. continues: with the rest of a message. */
void pages_begin(struct pages *pages, bool continues);

/* Nothing more goes into the one that is being filled. Return: it, which is in no list. */
struct plx_buf *pages_end(struct pages *pages);

/* All pages ---------------------------------------------------------------------------------- */

/* Fill in what is left out, and check. Return: 0; -EINVAL. */
int pages_check_attr(struct pages_attr *attr);

/* pages: aligned to a cache line; attr: checked. Return: 0; -ENOMEM. */
int pages_init(struct pages *pages, const struct pages_attr *attr, const struct pages_owner *owner);

/* The memory of all that have come back. */
void pages_fini(struct pages *pages);

/* There is a link, whose peer accepts messages of that length. */
void pages_open(struct pages *pages, struct plx_link *link, uint64_t message_max);

/* No more messages; what there is is sent. Return: whether nothing is under way. */
bool pages_close(struct pages *pages);

/* The page that is being filled leaves: now, or when the link takes it. */
void pages_leave(struct pages *pages);

/* The page leaves as soon as the link has taken those before it. */
static inline void pages_leave_soon(struct pages *pages)
{
	if (pages->waiting_count)
		pages->urgent = pages->page != NULL;
	else if (pages->page)
		pages_leave(pages);
}

/* As many as the link takes of those that wait; and of these those up to that number. */
void pages_send_waiting(struct pages *pages);
void pages_send_until(struct pages *pages, uint64_t number);

/* Whoever saw AGAIN hears it where there is room by now: a page was sent, or fewer wait. */
void pages_tell_room(struct pages *pages);

/* Whether none of those up to that number waits. */
bool pages_sent_until(const struct pages *pages, uint64_t number);

/* Bytes that wait for the link, or to be full. */
static inline uint64_t pages_backlog_bytes(const struct pages *pages)
{
	return pages->waiting_bytes + (pages->page ? (uint64_t)(pages->at - pages->page->data) : 0);
}

/* Gaps: pages_gap.c -------------------------------------------------------------------------- */

/* The peer is told that it misses messages, between those that are put before and behind that;
 * soon: as soon as the link takes it, else with the next ones. */
void pages_add_gap(struct pages *pages, uint64_t count, uint32_t reasons, bool soon);

/* Drop the oldest page that waits and has nothing that is to be kept, or any but for the rest of a
 * message whose beginning was sent, and with it the rest of what begins in it; if there is none,
 * the one that is being filled. The peer is told.
 * Return: how many messages; -1: there is no such page. */
int64_t pages_drop_oldest(struct pages *pages, bool any, enum netio_gap_reason reason);

/* Whether a message of that length, which pages_hold, finds room where what may be dropped is. */
bool pages_may_have_room(const struct pages *pages, uint64_t length, uint8_t flags);

/* A page for the gap that there was none for; messages that come soon may go with it. */
void pages_tell_gap(struct pages *pages);

/* Messages ----------------------------------------------------------------------------------- */

/* Note that somebody waits for so many free pages. Return: NETIO_STATUS_AGAIN. */
int pages_again(struct pages *pages, uint32_t wanted);

/* How many pages a message takes. length: any. */
uint64_t pages_needed(const struct pages *pages, uint64_t length, uint8_t flags);

/* Whether a message is not too long for all pages together. length: any. */
static inline bool pages_hold(const struct pages *pages, uint64_t length, uint8_t flags)
{
	return pages_needed(pages, length, flags) <= pages->count;
}

/* Whether nothing is under way. */
static inline bool pages_are_back(const struct pages *pages)
{
	return pages->free_count == pages->count && pages->gap.count == 0;
}

/* The link has ended: what was not sent is lost, and counted. */
void pages_lose(struct pages *pages);

/* Where the next byte of a message in pieces is. */
struct source {
	const struct iovec *iov;
	size_t offset;
};

void source_copy(struct source *source, uint8_t *to, size_t length);

/* A message that the page has no room for, if there is one. length: any.
 * Return: enum netio_status. */
int pages_put_slowly(struct pages *pages, netio_tag_t tag, uint64_t length, struct source *source);

/* The same for who does not wait for room: AGAIN is noted for nobody, and it is not paced; nor is
 * anybody else from then on, who would never find that few wait. */
int pages_put_freely(struct pages *pages, netio_tag_t tag, uint64_t length, struct source *source);

/* Whether messages wait for the link: what is put now may be dropped, if its owner says so. What
 * was put before they did is not, but where all is. */
static inline bool pages_are_slow(const struct pages *pages)
{
	return (pages->waiting_count | pages->behind_count) != 0;
}

/* Whether there is room for a whole message in the page. length: any. */
static inline bool pages_fit(const struct pages *pages, uint64_t length, uint8_t flags)
{
	return length <= pages->message_max &&
	       wire_entry_bytes(length, flags) <= (uint64_t)(pages->end - pages->at);
}

/* Where an entry's payload goes. The page has room for it. */
static inline uint8_t *pages_put(struct pages *pages, uint32_t length, uint8_t flags,
				 netio_tag_t tag, uint64_t total)
{
	uint8_t *at = pages->at;

	pages->at = at + wire_entry_bytes(length, flags);
	return wire_entry_write(at, length, flags, tag, total);
}

/* A message is whole. */
static inline void pages_message_ended(struct pages *pages)
{
	pages->messages++;
	if (plx_unlikely(pages->at >= pages->leave_at))
		pages_leave(pages);
}

/* What is put behind this may be dropped, or not. */
static inline void pages_set_droppable(struct pages *pages, bool droppable)
{
	pages->droppable = droppable;
	pages->keeps |= !droppable;
}

/* A message of that length, wherever there is room for it. Return: enum netio_status. */
static inline int pages_putv(struct pages *pages, netio_tag_t tag, uint64_t length,
			     struct source *source)
{
	uint8_t flags = tag ? WIRE_TAG : 0;

	if (plx_unlikely(!pages_fit(pages, length, flags)))
		return pages_put_slowly(pages, tag, length, source);
	source_copy(source, pages_put(pages, (uint32_t)length, flags, tag, 0), length);
	pages_message_ended(pages);
	return NETIO_STATUS_OK;
}

#endif
