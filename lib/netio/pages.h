/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages of a buffered socket. A page is free, or being filled, or waits for the link, or is
 * with it. */
#ifndef NETIO_PAGES_H
#define NETIO_PAGES_H

#include "connection.h"
#include "wire.h"

struct pages {
	struct netio_connection connection; /* first */

	/* Of the page that is being filled; all NULL where there is none, or no connection. */
	PLX_ALIGNED_LINE uint8_t *at; /* of its next entry */
	uint8_t *end;                 /* no entry goes beyond */
	uint8_t *leave_at;            /* from here on it leaves */
	uint64_t message_max;         /* that the peer accepts */
	uint32_t messages;            /* that end in it */
	struct plx_buf *page;

	uint32_t limit;     /* of a page's length */
	uint32_t leaves_at; /* with that length it leaves */
	struct plx_buf **free;
	uint32_t free_count;
	uint32_t count;           /* all but those that were given up */
	uint32_t slots;           /* of free and waiting */
	uint32_t wanted;          /* pages that must be free for who saw AGAIN; 0: nobody did */
	struct plx_buf **waiting; /* for the link, first in first out, round the end of slots */
	uint32_t waiting_first, waiting_count;
	uint64_t began_ns; /* the page */
	struct plx_timer timer;
	struct plx_pool *pool;
	uint32_t page_bytes, watermark_bytes;
	uint64_t timeout_ns;
	struct netio_buffered_stats stats;
};

/* Memory of as many as attr says. attr: checked. Return: 0; -ENOMEM. */
int pages_create(const struct netio_buffered_attr *attr, struct pages **pages_out);

/* All that have come back. */
void pages_destroy(struct pages *pages);

/* The page that is being filled leaves: now, or when the link takes it. */
void pages_leave(struct pages *pages);

/* As many as the link takes of those that wait. */
void pages_send_waiting(struct pages *pages);

/* Whether nothing is under way. */
static inline bool pages_are_back(const struct pages *pages)
{
	return pages->free_count == pages->count;
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

#endif
