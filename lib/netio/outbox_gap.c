/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer misses: pages that are dropped, and how it hears of it. The head of each page says
 * how many messages were not sent before it. */
#include "outbox.h"

#include <stdio.h>

#define GAP_NS PLX_NS_PER_MS /* for a message that takes a gap along */

/* A page with nothing to be kept yet. */
static void begin_gap(struct outbox *outbox)
{
	outbox_begin_page(outbox, false);
	outbox->keeps = false;
}

/* The head of a page alone, by itself. */
static void send_head(struct outbox *outbox)
{
	uint8_t head[WIRE_PAGE_BYTES];

	wire_page_write(head, &outbox->gap);
	if (plx_link_send(outbox->link, head, sizeof(head)) != -EAGAIN)
		outbox->gap = (struct wire_gap){0};
}

void outbox_tell_gap(struct outbox *outbox)
{
	if (!outbox->gap.count || outbox->page || !outbox->link || !plx_link_is_open(outbox->link))
		return;
	if (outbox->count == 0) {
		send_head(outbox);
		return;
	}
	if (!outbox->free_count)
		return;
	begin_gap(outbox);
	if (!outbox->is_open || outbox->waiting_count) {
		outbox_leave_soon(outbox);
		return;
	}
	outbox->leave_ns = plx_loop_now_ns() + GAP_NS;
	plx_timer_start(&outbox->timer, GAP_NS);
}

static void widen_in(struct plx_buf *page, uint64_t count, uint32_t reasons)
{
	struct wire_gap gap = wire_page_gap(page->data);

	wire_gap_widen(&gap, count, reasons);
	wire_page_write(page->data, &gap);
}

static void add_gap(struct outbox *outbox, uint64_t count, uint32_t reasons, bool soon)
{
	if (outbox_page_is_empty(outbox)) {
		widen_in(outbox->page, count, reasons);
	} else {
		if (outbox->page)
			outbox_leave(outbox);
		wire_gap_widen(&outbox->gap, count, reasons);
		if (outbox->free_count)
			begin_gap(outbox);
	}
	if (soon && outbox->page)
		outbox_leave_soon(outbox);
}

void outbox_count_missed(struct outbox *outbox, uint64_t count, enum netio_gap_reason reason)
{
	outbox->missed[reason] += count;
	if (outbox->missed_in_all)
		outbox->missed_in_all[reason] += count;
}

void outbox_miss(struct outbox *outbox, uint64_t count, enum netio_gap_reason reason)
{
	outbox_count_missed(outbox, count, reason);
	if (!outbox->is_open)
		return;
	add_gap(outbox, count, NETIO_GAP_BIT(reason), reason != NETIO_GAP_TOO_BIG);
	if (outbox->count == 0)
		outbox_tell_gap(outbox);
}

/* Dropping ------------------------------------------------------------------------------------ */

/* How many pages that wait, from that one on, are one with what goes on in them: the one that is
 * being filled counts as one more. 0: something of it must be kept. */
static uint32_t group_of(const struct outbox *outbox, uint32_t first, bool any)
{
	uint32_t end = first;

	do {
		if (page_note(*outbox_waiting_at(outbox, end))->keeps && !any)
			return 0;
		end++;
	} while (end < outbox->waiting_count &&
		 page_note(*outbox_waiting_at(outbox, end))->continues);
	if (end == outbox->waiting_count && outbox->page && page_note(outbox->page)->continues) {
		if (outbox->keeps && !any)
			return 0;
		end++;
	}
	return end - first;
}

/* A page that is not sent. Return: how many messages end in it. */
static uint32_t drop_page(struct outbox *outbox, struct plx_buf *page, struct wire_gap *gap)
{
	struct wire_gap before = wire_page_gap(page->data);
	uint32_t messages = page_note(page)->messages;

	wire_gap_widen(gap, before.count, before.reasons);
	outbox_free_page(outbox, page);
	return messages;
}

static bool drop_group(struct outbox *outbox, uint32_t first, uint32_t count,
		       enum netio_gap_reason reason)
{
	struct wire_gap gap = {0};
	uint32_t waiting = count;
	uint64_t messages = 0;

	if (first + count > outbox->waiting_count) {
		messages += drop_page(outbox, outbox_end_page(outbox), &gap);
		waiting--;
	}
	for (uint32_t i = first; i < first + waiting; i++) {
		outbox->waiting_bytes -= (*outbox_waiting_at(outbox, i))->len;
		messages += drop_page(outbox, *outbox_waiting_at(outbox, i), &gap);
	}
	for (uint32_t i = first; i-- > 0;)
		*outbox_waiting_at(outbox, i + waiting) = *outbox_waiting_at(outbox, i);
	outbox->waiting_first = (outbox->waiting_first + waiting) % outbox->slots;
	outbox->waiting_count -= waiting;
	wire_gap_widen(&gap, messages, NETIO_GAP_BIT(reason));
	outbox_count_missed(outbox, messages, reason);
	if (first < outbox->waiting_count)
		widen_in(*outbox_waiting_at(outbox, first), gap.count, gap.reasons);
	else if (outbox->page)
		widen_in(outbox->page, gap.count, gap.reasons);
	else
		wire_gap_widen(&outbox->gap, gap.count, gap.reasons);
	return true;
}

bool outbox_drop_oldest(struct outbox *outbox, bool any, enum netio_gap_reason reason)
{
	for (uint32_t i = 0; i < outbox->waiting_count; i++) {
		uint32_t count = page_note(*outbox_waiting_at(outbox, i))->continues
				       ? 0
				       : group_of(outbox, i, any);

		if (count)
			return drop_group(outbox, i, count, reason);
	}
	if (outbox->page && !outbox_page_is_empty(outbox) && !page_note(outbox->page)->continues &&
	    (any || !outbox->keeps))
		return drop_group(outbox, outbox->waiting_count, 1, reason);
	return false;
}

bool outbox_may_find_room(const struct outbox *outbox, uint64_t length, uint8_t flags)
{
	uint64_t needed = outbox_pages_needed(outbox, length, flags);
	uint64_t found = outbox->free_count + (outbox->page && !outbox->keeps);

	for (uint32_t i = 0; i < outbox->waiting_count && found < needed; i++)
		found += !page_note(*outbox_waiting_at(outbox, i))->keeps;
	return found >= needed;
}

/* Reasons ------------------------------------------------------------------------------------- */

const char *netio_gap_reason_name(enum netio_gap_reason reason)
{
	static const char *const names[] = {
		[NETIO_GAP_DROPPED_NEW] = "dropped as new",
		[NETIO_GAP_DROPPED_OLD] = "dropped as old",
		[NETIO_GAP_CONFLATED] = "conflated",
		[NETIO_GAP_DISCONNECTED] = "too slow, and disconnected",
		[NETIO_GAP_TOO_BIG] = "too big",
		[NETIO_GAP_GIVEN_UP] = "given up",
	};

	return (unsigned)reason < PLX_ARRAY_LEN(names) && names[reason] ? names[reason] : "unknown";
}

const char *netio_gap_reasons_format(uint32_t reasons, char out[NETIO_GAP_TEXT_BYTES])
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned reason = 1; reason < NETIO_GAP_REASON_COUNT; reason++) {
		if (reasons & NETIO_GAP_BIT(reason))
			used += (size_t)snprintf(out + used, NETIO_GAP_TEXT_BYTES - used, "%s%s",
						 used ? ", " : "", netio_gap_reason_name(reason));
	}
	return out;
}
