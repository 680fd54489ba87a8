/* SPDX-License-Identifier: BSD-3-Clause */
/* Page memory, and the link's open and close. */
#include "outbox.h"

#include <assert.h>

#define PAGE_BYTES_DEFAULT 65536
#define TIMEOUT_NS_DEFAULT PLX_NS_PER_MS

int outbox_check_attr(struct netio_buffered_attr *attr)
{
	int rc;

	attr->page_bytes = attr->page_bytes ?: PAGE_BYTES_DEFAULT;
	rc = netio_check_range("page_bytes", attr->page_bytes, NETIO_PAGE_BYTES_MIN,
			       NETIO_PAGE_BYTES_MAX)
		   ?: netio_check_range("page_count", attr->page_count, 2, NETIO_PAGE_COUNT_MAX);
	if (rc)
		return rc;
	attr->watermark_bytes = attr->watermark_bytes ?: attr->page_bytes;
	attr->timeout_ns = attr->timeout_ns ?: TIMEOUT_NS_DEFAULT;
	if (attr->watermark_bytes > attr->page_bytes)
		return plx_fail(EINVAL, "watermark_bytes %u: give at most page_bytes, %u",
				attr->watermark_bytes, attr->page_bytes);
	attr->page_bytes = (uint32_t)wire_round_up(attr->page_bytes);
	return 0;
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct outbox *outbox = arg;
	uint64_t now_ns = plx_loop_now_ns();

	if (!outbox->page)
		outbox_report_gap(outbox);
	else if (now_ns >= outbox->flush_ns)
		outbox_flush_soon(outbox);
	else if (outbox->flush_ns != PLX_NEVER)
		plx_timer_start(timer, outbox->flush_ns - now_ns);
}

/* By lcore. Not in the thread's memory, which may end before its connections. */
static LIST_HEAD(outboxes, outbox) outboxes[PLX_LCORE_MAX];

void outbox_init(struct outbox *outbox, const struct netio_buffered_attr *attr,
		 const struct outbox_owner *owner)
{
	*outbox = (struct outbox){.attr = *attr, .owner = owner};
	TAILQ_INIT(&outbox->waiting);
	TAILQ_INIT(&outbox->latest.queue);
	plx_timer_init(&outbox->timer, on_timer, outbox);
	LIST_INSERT_HEAD(&outboxes[plx_lcore_id()], outbox, all);
}

int outbox_make_pages(struct outbox *outbox, uint32_t count)
{
	struct plx_pool **pool = &outbox->pools[outbox->made > 0];
	uint32_t bytes = outbox->attr.page_bytes + WIRE_PAGE_OVERHEAD;
	int rc;

	if (outbox->made >= count)
		return 0;
	count -= outbox->made;
	rc = message_make_pool("netio pages", count, bytes, pool);
	if (rc)
		return rc;
	outbox->made += count;
	outbox->count += count;
	while (count--)
		outbox_free_page(outbox, plx_buf_get(*pool));
	return 0;
}

/* In a forked child, page memory may be shared with the parent. */
static void on_fork(void)
{
	uint32_t id = plx_lcore_id();
	struct outbox *outbox;

	if (id == PLX_LCORE_NONE)
		return;
	LIST_FOREACH (outbox, &outboxes[id], all) {
		outbox->is_open = false;
		outbox->end = outbox->at; /* nothing fits */
		outbox->page = NULL;
	}
}

static struct plx_fork_hook fork_hook = {.fn = on_fork};

PLX_CONSTRUCTOR static void register_fork(void)
{
	plx_fork_hook_add(&fork_hook);
}

void outbox_fini(struct outbox *outbox)
{
	plx_timer_stop(&outbox->timer);
	LIST_REMOVE(outbox, all);
	plx_buf_unref(outbox->free);
	for (size_t i = 0; i < PLX_ARRAY_LEN(outbox->pools); i++)
		plx_pool_destroy(outbox->pools[i]);
}

/* A page must be a message that the peer's link accepts. */
void outbox_open(struct outbox *outbox, struct plx_link *link, uint64_t message_max)
{
	uint64_t accepted = plx_link_message_max(link), long_max = accepted - WIRE_PAGE_OVERHEAD;

	assert(accepted >= NETIO_PAGE_BYTES_MIN + WIRE_PAGE_OVERHEAD && "checked in the handshake");
	outbox->limit = outbox->attr.page_bytes + WIRE_PAGE_OVERHEAD;
	if (outbox->limit > accepted)
		outbox->limit = (uint32_t)accepted;
	outbox->flush_bytes = outbox->attr.watermark_bytes + WIRE_PAGE_BYTES;
	outbox->message_max = message_max < long_max ? message_max : long_max;
	outbox->link = link;
	outbox->room = (struct outbox_room){0};
	outbox->is_open = true;
	outbox->is_closing = false;
}

bool outbox_close(struct outbox *outbox)
{
	outbox->is_closing = true;
	if (outbox->latest.count)
		outbox_put_latest(outbox);
	if (outbox->latest.count)
		return false;
	outbox->is_open = false;
	outbox_flush(outbox);
	outbox_report_gap(outbox);
	return outbox_is_done(outbox);
}

static void lose(struct outbox *outbox, const struct page_note *note)
{
	outbox->stats.messages_lost += note->messages;
	outbox_free_page(outbox, note->page);
}

void outbox_link_ended(struct outbox *outbox)
{
	struct page_note *note;

	plx_timer_stop(&outbox->timer);
	outbox->link = NULL;
	outbox->is_open = false;
	outbox->room.wanted = 0;
	outbox->gap = (struct wire_gap){0};
	outbox->stats.messages_lost += outbox->latest.count;
	outbox->not_taken += conflation_clear(&outbox->latest);
	if (outbox->page)
		lose(outbox, outbox_end_page(outbox));
	while ((note = TAILQ_FIRST(&outbox->waiting))) {
		outbox_take_waiting(outbox, note);
		lose(outbox, note);
	}
}
