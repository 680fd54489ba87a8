/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer misses: pages that are dropped, and how it is told. The head of each page says how
 * many messages were not sent before it. */
#include "pages.h"

#define GAP_NS PLX_NS_PER_MS /* for a message that takes a gap along */

/* A page with nothing to be kept yet. */
static void begin_gap(struct pages *pages)
{
	pages_begin(pages, false);
	pages->keeps = false;
}

void pages_tell_gap(struct pages *pages)
{
	if (pages->page || !pages->free_count || !pages->link || !plx_link_is_open(pages->link))
		return;
	begin_gap(pages);
	if (!pages->is_open || pages->waiting_count) {
		pages_leave_soon(pages);
		return;
	}
	pages->leave_ns = plx_loop_now_ns() + GAP_NS;
	plx_timer_start(&pages->timer, GAP_NS);
}

static void widen_in(struct plx_buf *page, uint64_t count, uint32_t reasons)
{
	struct wire_gap gap = wire_page_gap(page->data);

	wire_gap_widen(&gap, count, reasons);
	wire_page_write(page->data, &gap);
}

void pages_add_gap(struct pages *pages, uint64_t count, uint32_t reasons, bool soon)
{
	if (!pages->is_open)
		return;
	if (pages_is_empty(pages)) {
		widen_in(pages->page, count, reasons);
	} else {
		if (pages->page)
			pages_leave(pages);
		wire_gap_widen(&pages->gap, count, reasons);
		if (pages->free_count)
			begin_gap(pages);
	}
	if (soon && pages->page)
		pages_leave_soon(pages);
}

/* How many pages that wait, from that one on, are one with what goes on in them: the one that is
 * being filled counts as one more. 0: something of it is to be kept. */
static uint32_t group_of(const struct pages *pages, uint32_t first, bool any)
{
	uint32_t end = first;

	do {
		if (page_note(*pages_waiting_at(pages, end))->keeps && !any)
			return 0;
		end++;
	} while (end < pages->waiting_count && page_note(*pages_waiting_at(pages, end))->continues);
	if (end == pages->waiting_count && pages->page && page_note(pages->page)->continues) {
		if (pages->keeps && !any)
			return 0;
		end++;
	}
	return end - first;
}

/* A page that is not sent. Return: how many messages end in it. */
static uint32_t drop_page(struct pages *pages, struct plx_buf *page, struct wire_gap *gap)
{
	struct wire_gap before = wire_page_gap(page->data);
	uint32_t messages = page_note(page)->messages;

	wire_gap_widen(gap, before.count, before.reasons);
	pages->free[pages->free_count++] = page;
	return messages;
}

static int64_t drop_group(struct pages *pages, uint32_t first, uint32_t count,
			  enum netio_gap_reason reason)
{
	struct wire_gap gap = {0};
	uint32_t waiting = count;
	int64_t messages = 0;

	if (first + count > pages->waiting_count) {
		messages += drop_page(pages, pages_end(pages), &gap);
		waiting--;
	}
	for (uint32_t i = first; i < first + waiting; i++) {
		pages->waiting_bytes -= (*pages_waiting_at(pages, i))->len;
		messages += drop_page(pages, *pages_waiting_at(pages, i), &gap);
	}
	for (uint32_t i = first; i-- > 0;)
		*pages_waiting_at(pages, i + waiting) = *pages_waiting_at(pages, i);
	pages->waiting_first = (pages->waiting_first + waiting) % pages->slots;
	pages->waiting_count -= waiting;
	wire_gap_widen(&gap, (uint64_t)messages, NETIO_GAP_BIT(reason));
	if (first < pages->waiting_count)
		widen_in(*pages_waiting_at(pages, first), gap.count, gap.reasons);
	else if (pages->page)
		widen_in(pages->page, gap.count, gap.reasons);
	else
		wire_gap_widen(&pages->gap, gap.count, gap.reasons);
	return messages;
}

int64_t pages_drop_oldest(struct pages *pages, bool any, enum netio_gap_reason reason)
{
	for (uint32_t i = 0; i < pages->waiting_count; i++) {
		uint32_t count = page_note(*pages_waiting_at(pages, i))->continues
				       ? 0
				       : group_of(pages, i, any);

		if (count)
			return drop_group(pages, i, count, reason);
	}
	if (pages->page && !pages_is_empty(pages) && !page_note(pages->page)->continues &&
	    (any || !pages->keeps))
		return drop_group(pages, pages->waiting_count, 1, reason);
	return -1;
}

bool pages_may_have_room(const struct pages *pages, uint64_t length, uint8_t flags)
{
	uint64_t needed = pages_needed(pages, length, flags);
	uint64_t found = pages->free_count + (pages->page && !pages->keeps);

	for (uint32_t i = 0; i < pages->waiting_count && found < needed; i++)
		found += !page_note(*pages_waiting_at(pages, i))->keeps;
	return found >= needed;
}
