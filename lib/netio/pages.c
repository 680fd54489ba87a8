/* SPDX-License-Identifier: BSD-3-Clause */
#include "pages.h"

#include <assert.h>
#include <stdlib.h>

static_assert(sizeof(struct page_note) + PLX_LINK_OVERHEAD <= PLX_BUF_HEADROOM, "both fit");

#define PAGE_BYTES_DEFAULT 65536
#define TIMEOUT_NS_DEFAULT (2 * PLX_NS_PER_S)

/* A sender that finds no page free is faster than its link, and would fill each one just when it
 * comes back: behind all the others, which have driven it out of the caches. From then on it is
 * paced: no more wait than the link needs not to run dry, and the free page that is taken is the
 * one that came back last. It ends when the sender has left the link without work for so long, or
 * has filled as many pages as there are and was not told AGAIN: it is not the faster one any more.
 */
#define PACED_WAITING 2
#define PACED_IDLE_NS PLX_NS_PER_MS

/* A page ------------------------------------------------------------------------------------- */

void pages_begin(struct pages *pages, bool continues)
{
	struct plx_buf *page = pages->free[--pages->free_count];

	plx_buf_reset(page);
	wire_page_write(page->data, &pages->gap);
	*page_note(page) = (struct page_note){.number = ++pages->number, .continues = continues};
	pages->gap = (struct wire_gap){0};
	pages->page = page;
	pages->messages = 0;
	pages->keeps = !(pages->droppable || pages->all_droppable);
	pages->at = page->data + WIRE_PAGE_BYTES;
	pages->end = page->data + pages->limit;
	pages->leave_at = page->data + pages->leaves_at;
	pages->leave_ns = UINT64_MAX;
	if (plx_unlikely(pages->attr.timeout_ns == UINT64_MAX))
		return;
	pages->leave_ns = plx_loop_now_ns() + pages->attr.timeout_ns;
	if (!plx_timer_running(&pages->timer))
		plx_timer_start(&pages->timer, pages->attr.timeout_ns);
}

struct plx_buf *pages_end(struct pages *pages)
{
	struct plx_buf *page = pages->page;

	assert(page && "no page is being filled");
	page->len = (uint32_t)(pages->at - page->data);
	page_note(page)->messages = pages->messages;
	page_note(page)->keeps = pages->keeps;
	pages->stats.messages += pages->messages;
	pages->page = NULL;
	pages->urgent = false;
	pages->at = pages->end = pages->leave_at = NULL;
	return page;
}

/* One with nothing but a gap is free again. */
static void take_back_page(struct pages *pages)
{
	pages->gap = wire_page_gap(pages->page->data);
	pages->free[pages->free_count++] = pages_end(pages);
}

/* One that is sent, or never will be, and has no other references but those that are dropped now.
 */
static void end_page(struct pages *pages, struct plx_buf *page, bool sent)
{
	if (!sent)
		pages->stats.messages_lost += page_note(page)->messages;
	pages->free[pages->free_count++] = page;
}

/* Whether so many pages may be filled now. */
static bool has_free(const struct pages *pages, uint64_t needed)
{
	return pages->free_count >= needed && !(pages->room.is_paced && !pages->is_shared &&
						pages->waiting_count >= PACED_WAITING);
}

/* Whether the link has no page to send. */
static bool is_link_idle(const struct pages *pages)
{
	return pages->free_count + (pages->page != NULL) == pages->count;
}

static void look_at_pace(struct pages *pages)
{
	if ((is_link_idle(pages) &&
	     plx_time_since(pages->room.idle_ns, plx_loop_now_ns()) >= PACED_IDLE_NS) ||
	    pages->number - pages->room.number >= pages->count)
		pages->room.is_paced = false;
}

void pages_tell_room(struct pages *pages)
{
	if (plx_likely(pages->room.wanted == 0) || !pages->is_open ||
	    !plx_link_is_open(pages->link))
		return;
	/* The page that is being filled may be one of those. */
	if (pages->page && pages->free_count + 1 == pages->room.wanted)
		pages_leave(pages);
	if (!has_free(pages, pages->room.wanted))
		return;
	pages->room.wanted = 0;
	pages->owner->room(pages);
}

/* The link is done with it; the reference that it drops behind this is ours again. */
static void on_sent(struct plx_link *link, struct plx_buf *page, int status, void *arg)
{
	struct pages *pages = arg;

	if (plx_unlikely(status == -ETIMEDOUT)) { /* the provider keeps it */
		pages->stats.messages_lost += page_note(page)->messages;
		pages->count--;
		return;
	}
	end_page(pages, plx_buf_ref(page), status == 0);
	if (plx_unlikely(status))
		return;
	if (plx_unlikely(pages->room.is_paced) && is_link_idle(pages))
		pages->room.idle_ns = plx_loop_now_ns();
	pages->owner->sent(pages);
	pages_tell_room(pages);
	if (plx_unlikely(pages->gap.count)) /* else a message has taken it along */
		pages_tell_gap(pages);
}

static bool send_page(struct pages *pages, struct plx_buf *page)
{
	if (plx_link_send_buf(pages->link, page, on_sent, pages) != 0)
		return false;
	pages->stats.pages++;
	return true;
}

bool pages_sent_until(const struct pages *pages, uint64_t number)
{
	return pages->waiting_count == 0 || page_note(*pages_waiting_at(pages, 0))->number > number;
}

void pages_send_until(struct pages *pages, uint64_t number)
{
	while (!pages_sent_until(pages, number)) {
		struct plx_buf *page = *pages_waiting_at(pages, 0);
		uint32_t bytes = page->len;

		if (!send_page(pages, page))
			return;
		pages->waiting_first = (pages->waiting_first + 1) % pages->slots;
		pages->waiting_count--;
		pages->waiting_bytes -= bytes;
	}
}

void pages_send_waiting(struct pages *pages)
{
	pages_send_until(pages, UINT64_MAX);
	if (pages->urgent && pages->waiting_count == 0)
		pages_leave(pages);
}

/* The page leaves: now, or when the link takes it. */
void pages_leave(struct pages *pages)
{
	struct plx_buf *page = pages_end(pages);

	if (plx_likely(pages->waiting_count == 0) && plx_likely(send_page(pages, page)))
		return;
	/* What was put while none waited was not marked. */
	if (pages->waiting_count == 0)
		page_note(page)->keeps = !pages->all_droppable;
	*pages_waiting_at(pages, pages->waiting_count) = page;
	pages->waiting_count++;
	pages->waiting_bytes += page->len;
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct pages *pages = arg;
	uint64_t now_ns = plx_loop_now_ns();

	if (!pages->page)
		return;
	if (now_ns >= pages->leave_ns)
		pages_leave(pages);
	else if (pages->leave_ns != UINT64_MAX)
		plx_timer_start(timer, pages->leave_ns - now_ns);
}

/* Messages ------------------------------------------------------------------------------------ */

void source_copy(struct source *source, uint8_t *to, size_t length)
{
	while (length > 0) {
		size_t part = source->iov->iov_len - source->offset;

		if (part > length)
			part = length;
		if (part > 0)
			memcpy(to, (const uint8_t *)source->iov->iov_base + source->offset, part);
		to += part;
		length -= part;
		source->offset += part;
		if (source->offset == source->iov->iov_len) {
			source->iov++;
			source->offset = 0;
		}
	}
}

int pages_again(struct pages *pages, uint32_t wanted)
{
	pages->stats.again++;
	pages->room.wanted = wanted;
	return NETIO_STATUS_AGAIN;
}

/* The sender is faster than the link. */
static int again_and_pace(struct pages *pages, uint64_t wanted)
{
	pages->room.is_paced = true;
	pages->room.number = pages->number;
	return pages_again(pages, (uint32_t)wanted);
}

/* Bytes of a message that a page takes beside the header of the entry, of which all but the last
 * ones are a multiple of 8. */
static uint32_t piece_max(const struct pages *pages, uint8_t flags)
{
	return (pages->limit - WIRE_PAGE_BYTES - wire_entry_header_bytes(flags)) & ~7u;
}

/* How many pages a message takes that is longer than one. */
static uint64_t pieces_of(const struct pages *pages, uint64_t length, uint8_t flags)
{
	uint32_t first = piece_max(pages, flags), next = piece_max(pages, WIRE_NEXT);

	return 1 + (length - first + next - 1) / next;
}

uint64_t pages_needed(const struct pages *pages, uint64_t length, uint8_t flags)
{
	if (WIRE_PAGE_BYTES + wire_entry_bytes(length, flags) <= pages->limit)
		return 1;
	return pieces_of(pages, length, flags | WIRE_FIRST);
}

/* A message that is longer than a page. */
static int split(struct pages *pages, netio_tag_t tag, uint64_t length, struct source *source)
{
	uint8_t flags = (uint8_t)(WIRE_FIRST | (tag ? WIRE_TAG : 0));
	uint64_t needed = pieces_of(pages, length, flags);
	uint64_t left = length;

	if (needed > pages->count)
		return plx_fail(EMSGSIZE,
				"%llu bytes: %u pages of %u bytes do not hold it; give larger "
				"ones, or more",
				(unsigned long long)length, pages->count, pages->attr.page_bytes);
	if (pages_is_empty(pages))
		take_back_page(pages);
	else if (pages->page)
		pages_leave(pages);
	if (!has_free(pages, needed))
		return again_and_pace(pages, needed);
	while (left > 0) {
		uint32_t room = piece_max(pages, flags);
		uint32_t piece = left < room ? (uint32_t)left : room;

		if (pages->page)
			pages_leave(pages);
		pages_begin(pages, flags == WIRE_NEXT);
		source_copy(source, pages_put(pages, piece, flags, tag, length), piece);
		flags = WIRE_NEXT;
		left -= piece;
	}
	pages_message_ended(pages);
	return NETIO_STATUS_OK;
}

/* A message that the page has no room for, if there is one. */
int pages_put_slowly(struct pages *pages, netio_tag_t tag, uint64_t length, struct source *source)
{
	uint8_t flags = tag ? WIRE_TAG : 0;

	if (!pages->is_open)
		return netio_fail_closed();
	if (pages->count == 0)
		return plx_fail(ENOMEM, "the provider has kept all pages");
	if (length > pages->message_max)
		return plx_fail(EMSGSIZE, "%llu bytes: the peer accepts messages of at most %llu",
				(unsigned long long)length, (unsigned long long)pages->message_max);
	if (plx_unlikely(pages->room.is_paced))
		look_at_pace(pages);
	if (WIRE_PAGE_BYTES + wire_entry_bytes(length, flags) > pages->limit)
		return split(pages, tag, length, source);
	if (pages->page)
		pages_leave(pages);
	if (!has_free(pages, 1))
		return again_and_pace(pages, 1);
	pages_begin(pages, false);
	source_copy(source, pages_put(pages, (uint32_t)length, flags, tag, 0), length);
	pages_message_ended(pages);
	return NETIO_STATUS_OK;
}

int pages_put_freely(struct pages *pages, netio_tag_t tag, uint64_t length, struct source *source)
{
	struct pages_room room = pages->room;
	int rc;

	pages->room = (struct pages_room){0};
	rc = pages_putv(pages, tag, length, source);
	pages->room = room;
	pages->is_shared = true;
	return rc;
}

/* Memory ------------------------------------------------------------------------------------- */

/* Memory of all pages. Return: 0; -ENOMEM. */
static int take_memory(struct pages *pages)
{
	struct plx_pool_attr attr = {
		.name = "netio pages",
		.object_count = pages->count,
		.node = plx_lcore_node(plx_lcore_id()),
		.owner = plx_lcore_id(),
	};
	int rc = plx_buf_pool_create(&attr, pages->attr.page_bytes + WIRE_PAGE_OVERHEAD,
				     &pages->pool);

	if (rc)
		return rc;
	pages->free = calloc(2 * (size_t)pages->count, sizeof(struct plx_buf *));
	if (!pages->free) {
		plx_pool_destroy(pages->pool);
		return plx_fail(ENOMEM, "out of memory for %u pages", pages->count);
	}
	pages->waiting = pages->free + pages->count;
	while (pages->free_count < pages->count)
		pages->free[pages->free_count++] = plx_buf_get(pages->pool);
	return 0;
}

int pages_check_attr(struct pages_attr *attr)
{
	if (attr->page_bytes == 0)
		attr->page_bytes = PAGE_BYTES_DEFAULT;
	if (attr->page_bytes < NETIO_PAGE_BYTES_MIN || attr->page_bytes > NETIO_PAGE_BYTES_MAX)
		return plx_fail(EINVAL, "page_bytes %u: give %d to %u", attr->page_bytes,
				NETIO_PAGE_BYTES_MIN, NETIO_PAGE_BYTES_MAX);
	if (attr->page_count < 2 || attr->page_count > NETIO_PAGE_COUNT_MAX)
		return plx_fail(EINVAL, "page_count %u: give 2 to %d", attr->page_count,
				NETIO_PAGE_COUNT_MAX);
	if (attr->watermark_bytes == 0)
		attr->watermark_bytes = attr->page_bytes;
	if (attr->watermark_bytes > attr->page_bytes)
		return plx_fail(EINVAL, "watermark_bytes %u: give at most page_bytes, %u",
				attr->watermark_bytes, attr->page_bytes);
	attr->page_bytes = (uint32_t)wire_round_up(attr->page_bytes);
	if (attr->timeout_ns == 0)
		attr->timeout_ns = TIMEOUT_NS_DEFAULT;
	return 0;
}

int pages_init(struct pages *pages, const struct pages_attr *attr, const struct pages_owner *owner)
{
	*pages = (struct pages){
		.count = attr->page_count,
		.slots = attr->page_count,
		.attr = *attr,
		.owner = owner,
	};
	plx_timer_init(&pages->timer, on_timer, pages);
	return take_memory(pages);
}

static __thread struct pages *opened;

static void enlist(struct pages *pages)
{
	if (pages->prev_next)
		return;
	pages->next = opened;
	pages->prev_next = &opened;
	if (pages->next)
		pages->next->prev_next = &pages->next;
	opened = pages;
}

static void delist(struct pages *pages)
{
	if (!pages->prev_next)
		return;
	*pages->prev_next = pages->next;
	if (pages->next)
		pages->next->prev_next = pages->prev_next;
	pages->prev_next = NULL;
}

/* The child's copy of a page may be the parent's own memory. */
static void on_fork(void)
{
	for (struct pages *pages = opened; pages; pages = pages->next) {
		pages->is_open = false;
		pages->end = pages->at; /* nothing fits */
		pages->page = NULL;
	}
}

static struct plx_fork_hook fork_hook = {.fn = on_fork};

__attribute__((constructor)) static void register_fork(void)
{
	plx_fork_hook_add(&fork_hook);
}

void pages_fini(struct pages *pages)
{
	plx_timer_stop(&pages->timer);
	delist(pages);
	while (pages->free_count)
		plx_buf_unref(pages->free[--pages->free_count]);
	plx_pool_destroy(pages->pool);
	free(pages->free);
}

/* Its beginning and its end ------------------------------------------------------------------- */

/* A page must be a message that the peer's link accepts. */
void pages_open(struct pages *pages, struct plx_link *link, uint64_t message_max)
{
	uint64_t accepted = plx_link_message_max(link);

	assert(accepted >= NETIO_PAGE_BYTES_MIN + WIRE_PAGE_OVERHEAD && "checked by who greets");
	pages->limit = pages->attr.page_bytes + WIRE_PAGE_OVERHEAD;
	if (pages->limit > accepted)
		pages->limit = (uint32_t)accepted;
	pages->leaves_at = pages->attr.watermark_bytes + WIRE_PAGE_BYTES;
	pages->message_max = message_max;
	pages->link = link;
	pages->room = (struct pages_room){0};
	pages->is_open = true;
	enlist(pages);
}

bool pages_close(struct pages *pages)
{
	pages->is_open = false;
	if (!pages->page && pages->gap.count && pages->free_count)
		pages_begin(pages, false);
	if (pages->page)
		pages_leave(pages);
	return pages_are_back(pages);
}

void pages_lose(struct pages *pages)
{
	plx_timer_stop(&pages->timer);
	delist(pages);
	pages->link = NULL;
	pages->is_open = false;
	pages->room.wanted = 0;
	if (pages->page)
		end_page(pages, pages_end(pages), false);
	pages->waiting_bytes = 0;
	pages->gap = (struct wire_gap){0};
	for (; pages->waiting_count; pages->waiting_count--) {
		end_page(pages, *pages_waiting_at(pages, 0), false);
		pages->waiting_first = (pages->waiting_first + 1) % pages->slots;
	}
}
