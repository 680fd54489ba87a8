/* SPDX-License-Identifier: BSD-3-Clause */
/* Fill and send pages: hot path. */
#include "outbox.h"

#include <assert.h>

static_assert(sizeof(struct page_note) + PLX_LINK_OVERHEAD <= PLX_BUF_HEADROOM, "both fit");

/* A sender that finds no free page is faster than its link. It would fill each page just as it
 * returns, when all other pages have evicted it from the caches. From then on the sender is paced:
 * only as many pages wait as keep the link busy, and it reuses the page that returned last. Pacing
 * ends when the link has been idle for PACED_IDLE_NS, or when the sender has filled every page once
 * without AGAIN, so it is no longer the faster side. */
#define PACED_WAITING   2
#define PACED_IDLE_NS   PLX_NS_PER_MS
#define PACED_UNDER_WAY (UINT32_C(2) << 20) /* bytes of pages in flight before a long message */

static struct plx_buf *take_free(struct outbox *outbox)
{
	struct plx_buf *page = outbox->free;

	outbox->free = page->next;
	outbox->free_count--;
	page->next = NULL;
	plx_buf_reset(page);
	return page;
}

static void begin_page(struct outbox *outbox)
{
	struct plx_buf *page = take_free(outbox);

	wire_page_write(page->data, &outbox->gap);
	*page_note(page) = (struct page_note){.page = page, .number = ++outbox->number, .pages = 1};
	outbox->gap = (struct wire_gap){0};
	outbox->page = page;
	outbox->messages = 0;
	outbox->keeps = outbox->keepers && !outbox->droppable;
	outbox->at = page->data + WIRE_PAGE_BYTES;
	outbox->end = page->data + outbox->limit;
	outbox->flush_at = page->data + outbox->flush_bytes;
	outbox->flush_ns = plx_time_add(plx_loop_now_ns(), outbox->attr.timeout_ns);
	if (outbox->flush_ns != PLX_NEVER && !plx_timer_running(&outbox->timer))
		plx_timer_start(&outbox->timer, outbox->attr.timeout_ns);
}

struct page_note *outbox_end_page(struct outbox *outbox)
{
	struct plx_buf *page = outbox->page;
	struct page_note *note;

	assert(page && "no page is being filled");
	note = page_note(page);
	page->len = (uint32_t)(outbox->at - page->data);
	note->messages = outbox->messages;
	note->keeps = outbox->keeps;
	outbox->stats.messages += outbox->messages;
	outbox->page = NULL;
	outbox->urgent = false;
	outbox->at = outbox->end = outbox->flush_at = NULL;
	return note;
}

/* Room ---------------------------------------------------------------------------------------- */

/* Return whether a paced sender must wait. needed: pages of its message. */
static bool is_enough(const struct outbox *outbox, uint64_t needed)
{
	uint64_t under_way = outbox->count - outbox->free_count;

	return outbox->waiting_count >= PACED_WAITING ||
	       (needed > 1 && under_way * outbox->attr.page_bytes > PACED_UNDER_WAY);
}

static bool has_free(const struct outbox *outbox, uint64_t needed)
{
	return outbox->free_count >= needed &&
	       !(outbox->room.is_paced && !outbox->is_shared && is_enough(outbox, needed));
}

static bool is_link_idle(const struct outbox *outbox)
{
	return outbox->free_count + (outbox->page != NULL) == outbox->count;
}

static void check_pace(struct outbox *outbox)
{
	if ((is_link_idle(outbox) &&
	     plx_time_since(outbox->room.idle_ns, plx_loop_now_ns()) >= PACED_IDLE_NS) ||
	    outbox->number - outbox->room.number >= outbox->count)
		outbox->room.is_paced = false;
}

int outbox_again(struct outbox *outbox, uint32_t wanted)
{
	if (!outbox->no_wait) {
		outbox->stats.again++;
		outbox->room.wanted = wanted;
	}
	return NETIO_STATUS_AGAIN;
}

static int again_and_pace(struct outbox *outbox, uint64_t wanted)
{
	if (!outbox->no_wait) {
		outbox->room.is_paced = true;
		outbox->room.number = outbox->number;
	}
	return outbox_again(outbox, (uint32_t)wanted);
}

void outbox_report_room(struct outbox *outbox)
{
	if (plx_likely(outbox->room.wanted == 0) || !outbox->is_open ||
	    !plx_link_is_open(outbox->link))
		return;
	/* The page being filled may be one of the free ones wanted. */
	if (outbox->page && outbox->free_count + 1 == outbox->room.wanted)
		outbox_flush(outbox);
	if (!has_free(outbox, outbox->room.wanted))
		return;
	outbox->room.wanted = 0;
	outbox->owner->room(outbox);
}

/* Sending ------------------------------------------------------------------------------------- */

/* Put conflated messages into pages; after the last one the outbox may close. */
static void resume(struct outbox *outbox)
{
	outbox_put_latest(outbox);
	if (outbox->latest.count == 0 && outbox->is_closing)
		outbox_close(outbox);
}

/* The link is done with the page. Take a new reference before the link drops its own. */
static void on_sent(struct plx_link *link, struct plx_buf *page, int status, void *arg)
{
	struct outbox *outbox = arg;

	if (plx_unlikely(status == -ETIMEDOUT)) /* the provider keeps the page */
		outbox->count -= page_note(page)->pages;
	else
		outbox_free_page(outbox, plx_buf_ref(page));
	if (plx_unlikely(status)) {
		outbox->stats.messages_lost += page_note(page)->messages;
		return;
	}
	if (plx_unlikely(outbox->room.is_paced) && is_link_idle(outbox))
		outbox->room.idle_ns = plx_loop_now_ns();
	if (plx_unlikely(outbox->latest.count))
		resume(outbox);
	outbox->owner->sent(outbox);
	outbox_report_room(outbox);
	if (plx_likely(!outbox->gap.count)) /* a message carried it */
		return;
	if (outbox->is_open)
		plx_timer_start(&outbox->timer, OUTBOX_GAP_NS);
	else
		outbox_report_gap(outbox);
}

static bool send_page(struct outbox *outbox, const struct page_note *note)
{
	if (link_send_written(outbox->link, note->page, on_sent, outbox) != 0)
		return false;
	outbox->stats.pages += note->pages;
	return true;
}

void outbox_flush(struct outbox *outbox)
{
	struct page_note *note;

	if (!outbox->page)
		return;
	note = outbox_end_page(outbox);
	if (plx_likely(outbox->waiting_count == 0) && plx_likely(send_page(outbox, note)))
		return;
	/* Messages put while no page waited did not set `keeps`. */
	if (outbox->waiting_count == 0)
		note->keeps |= outbox->keepers > 0;
	note->bytes = (uint32_t)plx_buf_total(note->page);
	TAILQ_INSERT_TAIL(&outbox->waiting, note, link);
	outbox->waiting_count++;
	outbox->waiting_bytes += note->bytes;
}

void outbox_flush_soon(struct outbox *outbox)
{
	if (outbox->waiting_count || outbox->urgent) /* outbox_writable follows */
		outbox->urgent = outbox->page != NULL;
	else
		outbox_flush(outbox);
}

bool outbox_sent_until(const struct outbox *outbox, uint64_t number)
{
	return outbox->waiting_count == 0 || TAILQ_FIRST(&outbox->waiting)->number > number;
}

void outbox_send_until(struct outbox *outbox, uint64_t number)
{
	while (!outbox_sent_until(outbox, number)) {
		struct page_note *note = TAILQ_FIRST(&outbox->waiting);

		if (!send_page(outbox, note))
			return;
		outbox_take_waiting(outbox, note);
	}
}

void outbox_writable(struct outbox *outbox)
{
	outbox_send_until(outbox, UINT64_MAX);
	if (outbox->urgent && outbox->waiting_count == 0)
		outbox_flush(outbox);
	if (outbox->latest.count)
		resume(outbox);
	outbox_report_gap(outbox);
}

int outbox_flush_before(struct outbox *outbox)
{
	outbox_flush_soon(outbox);
	if (outbox->waiting_count || outbox->urgent)
		return NETIO_STATUS_AGAIN;
	outbox_report_gap(outbox);
	outbox->no_wait = false;
	if (plx_unlikely(outbox->gap.count || outbox->latest.count))
		return outbox_again(outbox, 1);
	return 0;
}

/* Messages ------------------------------------------------------------------------------------ */

/* The prefix that a link adds to a message of several frames. */
#define FRAME_TOTAL_BYTES 8

/* Size of the first page of a chain, and of the others. Each page is one frame if the peer's
 * buffers are as long, and its data starts at a cache line there. */
static uint32_t first_bytes(const struct outbox *outbox)
{
	return (outbox->limit - FRAME_TOTAL_BYTES) & ~63u;
}

static uint32_t next_bytes(const struct outbox *outbox)
{
	return outbox->limit & ~63u;
}

uint64_t outbox_pages_needed(const struct outbox *outbox, uint64_t length, uint8_t flags)
{
	uint64_t bytes = WIRE_PAGE_BYTES + wire_entry_bytes(length, flags);

	if (bytes <= outbox->limit)
		return 1;
	return 1 + (bytes - first_bytes(outbox) + next_bytes(outbox) - 1) / next_bytes(outbox);
}

/* Copy a message longer than a page into a chain of free pages. */
static void put_in_chain(struct outbox *outbox, const struct message *message, uint8_t flags)
{
	struct plx_buf *page = outbox->page;
	uint8_t *at = wire_entry_begin(outbox->at, (uint32_t)message->length, flags, message->tag);
	uint8_t *end = page->data + first_bytes(outbox);
	uint64_t padding = wire_round_up(message->length) - message->length;

	for (size_t i = 0; i < message->count; i++) {
		const uint8_t *from = message->iov[i].iov_base;
		size_t left = message->iov[i].iov_len;

		while (left > 0) {
			size_t piece;

			if (at == end) {
				page->len = (uint32_t)(end - page->data);
				page->next = take_free(outbox);
				page = page->next;
				at = page->data;
				end = at + next_bytes(outbox);
			}
			piece = left < (size_t)(end - at) ? left : (size_t)(end - at);
			memcpy(at, from, piece);
			at += piece;
			from += piece;
			left -= piece;
		}
	}
	memset(at, 0, padding);
	page->len = (uint32_t)(at + padding - page->data);
}

static int put_long(struct outbox *outbox, const struct message *message, uint8_t flags)
{
	uint64_t needed = outbox_pages_needed(outbox, message->length, flags);

	if (needed > outbox->count)
		return plx_fail(EMSGSIZE,
				"%llu bytes: %u pages of %u bytes do not hold it; give larger "
				"ones, or more",
				(unsigned long long)message->length, outbox->count,
				outbox->attr.page_bytes);
	outbox_flush(outbox);
	if (!has_free(outbox, needed))
		return again_and_pace(outbox, needed);
	begin_page(outbox);
	put_in_chain(outbox, message, flags);
	page_note(outbox->page)->pages = (uint32_t)needed;
	outbox->at = outbox->page->data + outbox->page->len;
	outbox->messages++;
	outbox_flush(outbox);
	return NETIO_STATUS_OK;
}

int outbox_put_slow(struct outbox *outbox, const struct message *message)
{
	uint8_t flags = message->tag ? WIRE_TAG : 0;

	if (!outbox->is_open)
		return netio_fail_closed();
	if (outbox->count == 0)
		return plx_fail(ENOMEM, "the provider has kept all pages");
	if (message->length > outbox->message_max)
		return plx_fail(EMSGSIZE, "%llu bytes: the peer accepts messages of at most %llu",
				(unsigned long long)message->length,
				(unsigned long long)outbox->message_max);
	if (plx_unlikely(outbox->room.is_paced))
		check_pace(outbox);
	if (WIRE_PAGE_BYTES + wire_entry_bytes(message->length, flags) > outbox->limit)
		return put_long(outbox, message, flags);
	outbox_flush(outbox);
	if (!has_free(outbox, 1))
		return again_and_pace(outbox, 1);
	begin_page(outbox);
	outbox_copy(outbox, message, flags);
	return NETIO_STATUS_OK;
}

/* Put conflated messages once the pages that preceded them are sent. At most one more page waits
 * each time, so that the messages are recent when the link takes them. */
void outbox_put_latest(struct outbox *outbox)
{
	uint32_t waiting_max = outbox->waiting_count;
	struct latest *latest;

	while ((latest = TAILQ_FIRST(&outbox->latest.queue)) &&
	       outbox->waiting_count <= waiting_max && outbox_sent_until(outbox, latest->follows)) {
		struct message message = {
			.tag = latest->tag,
			.iov = &(struct iovec){latest->data, latest->length},
			.count = 1,
			.length = latest->length,
		};

		outbox_set_droppable(outbox, false);
		outbox->no_wait = outbox->is_shared = true;
		if (outbox_put(outbox, &message) != 0)
			break;
		conflation_drop(&outbox->latest, latest);
	}
	outbox_flush_soon(outbox);
}

static void long_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	struct outbox *outbox = arg;

	outbox->stats.messages_lost += status != 0;
}

/* From the caller's memory to the link, a long message takes one copy less. While the link has no
 * room, it waits in pages like others, unless the sender is paced. A message that the pages do not
 * hold is refused, whatever room the link has. */
int outbox_send_long(struct outbox *outbox, const struct message *message)
{
	int rc;

	if (!outbox->is_open || message->length > outbox->message_max ||
	    !outbox_holds(outbox, message) || !message_may_be_sent_long(outbox->link, message))
		return outbox_put_slow(outbox, message);
	if (plx_unlikely(outbox->room.is_paced))
		check_pace(outbox);
	rc = outbox_flush_before(outbox)
		   ?: message_send_long(outbox->link, message, long_sent, outbox);
	if (rc == 0) {
		outbox->alone++;
		outbox->room.idle_ns = plx_loop_now_ns();
	} else if (rc == NETIO_STATUS_AGAIN && outbox->room.is_paced) {
		outbox_again(outbox, 1);
	} else if (rc == NETIO_STATUS_AGAIN || rc == -ENOMEM) {
		rc = outbox_put_slow(outbox, message);
		outbox_flush_soon(outbox);
	}
	return rc;
}
