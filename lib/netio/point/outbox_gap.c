/* SPDX-License-Identifier: BSD-3-Clause */
/* Gaps: pages that are dropped, and how the peer learns of them. The header of each page has the
 * number of messages missed before it. */
#include "base_internal.h"
#include "outbox.h"

void outbox_report_gap(struct outbox *outbox)
{
	uint8_t head[WIRE_PAGE_BYTES];

	if (!outbox->gap.count || outbox->page || outbox->waiting_count || !outbox->link ||
	    !plx_link_is_open(outbox->link))
		return;
	wire_page_write(head, &outbox->gap);
	if (plx_link_send(outbox->link, head, sizeof(head)) == -EAGAIN)
		return;
	outbox->gap = (struct wire_gap){0};
	if (!outbox->is_open)
		outbox->owner->sent(outbox);
}

static void count_missed(struct outbox *outbox, uint64_t count, enum netio_gap_reason reason)
{
	outbox->missed[reason] += count;
	outbox->missed_in_all[reason] += count;
	outbox->owner->missed(outbox, reason);
}

void outbox_miss(struct outbox *outbox, uint64_t count, enum netio_gap_reason reason)
{
	count_missed(outbox, count, reason);
	outbox->not_taken += count;
	if (!outbox->is_open)
		return;
	outbox_flush(outbox);
	if (!outbox->gap.count)
		plx_timer_start(&outbox->timer, OUTBOX_GAP_NS);
	wire_gap_widen(&outbox->gap, count, NETIO_GAP_BIT(reason));
}

/* Dropping ------------------------------------------------------------------------------------ */

/* The page after it reports this gap and the gap that this page carried. */
bool outbox_drop_oldest(struct outbox *outbox, bool any, enum netio_gap_reason reason)
{
	struct page_note *note = TAILQ_FIRST(&outbox->waiting), *next = NULL;
	struct wire_gap gap, later;
	struct plx_buf *after;

	while (note && !any && note->keeps)
		note = TAILQ_NEXT(note, link);
	if (note) {
		next = TAILQ_NEXT(note, link);
		outbox_take_waiting(outbox, note);
	} else if (outbox->page && (any || !outbox->keeps)) {
		note = outbox_end_page(outbox);
	} else {
		return false;
	}
	after = next ? next->page : outbox->page;
	later = after ? wire_page_gap(after->data) : outbox->gap;
	gap = wire_page_gap(note->page->data);
	wire_gap_widen(&later, gap.count, gap.reasons);
	wire_gap_widen(&later, note->messages, NETIO_GAP_BIT(reason));
	if (after)
		wire_page_write(after->data, &later);
	else
		outbox->gap = later;
	count_missed(outbox, note->messages, reason);
	outbox_free_page(outbox, note->page);
	return true;
}

bool outbox_may_find_room(const struct outbox *outbox, uint64_t length, uint8_t flags)
{
	uint64_t needed = outbox_pages_needed(outbox, length, flags);
	uint64_t found = outbox->free_count + (outbox->page && !outbox->keeps);
	const struct page_note *note;

	for (note = TAILQ_FIRST(&outbox->waiting); note && found < needed;
	     note = TAILQ_NEXT(note, link))
		found += note->keeps ? 0 : note->pages;
	return found >= needed;
}

const char *netio_gap_reason_name(enum netio_gap_reason reason)
{
	static const char *const names[] = {
		[NETIO_GAP_DROPPED_NEW] = "dropped as new",
		[NETIO_GAP_DROPPED_OLD] = "dropped as old",
		[NETIO_GAP_CONFLATED] = "conflated",
		[NETIO_GAP_DISCONNECTED] = "too slow, and disconnected",
		[NETIO_GAP_TOO_BIG] = "too big",
		[NETIO_GAP_GIVEN_UP] = "given up",
		[NETIO_GAP_LOST] = "lost with the connection",
	};

	return (unsigned)reason < PLX_ARRAY_LEN(names) && names[reason] ? names[reason] : "unknown";
}

const char *netio_gap_reasons_format(uint32_t reasons, char out[NETIO_GAP_TEXT_BYTES])
{
	out[0] = '\0';
	for (unsigned reason = 1; reason < NETIO_GAP_REASON_COUNT; reason++)
		if (reasons & NETIO_GAP_BIT(reason))
			plx_list_add(out, NETIO_GAP_TEXT_BYTES, netio_gap_reason_name(reason));
	return out;
}
