/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of messages for subscribers that are too slow for them. */
#include "publisher.h"

#include <assert.h>
#include <stdio.h>

/* What is missed ------------------------------------------------------------------------------- */

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

static void count_missed(struct subscriber *subscriber, uint64_t count,
			 enum netio_gap_reason reason)
{
	struct netio_publish_stats *stats = &subscriber_core(subscriber)->stats;

	subscriber->missed[reason] += count;
	switch (reason) {
	case NETIO_GAP_DROPPED_NEW:
		stats->dropped_new += count;
		break;
	case NETIO_GAP_DROPPED_OLD:
		stats->dropped_old += count;
		break;
	case NETIO_GAP_CONFLATED:
		stats->conflated += count;
		break;
	case NETIO_GAP_DISCONNECTED:
		stats->disconnected += count;
		break;
	default: /* counted by who found out */
		break;
	}
}

void subscriber_misses(struct subscriber *subscriber, uint64_t count, enum netio_gap_reason reason)
{
	bool is_slow = reason != NETIO_GAP_TOO_BIG;

	count_missed(subscriber, count, reason);
	if (subscriber->pages) {
		pages_add_gap(subscriber->pages, count, NETIO_GAP_BIT(reason), is_slow);
		return;
	}
	wire_gap_widen(&subscriber->gap, count, NETIO_GAP_BIT(reason));
	if (subscriber_is_there(subscriber))
		subscriber_tell_gap(subscriber);
}

bool subscriber_tell_gap(struct subscriber *subscriber)
{
	uint8_t page[WIRE_PAGE_BYTES];
	int rc;

	if (plx_likely(!subscriber->gap.count))
		return true;
	wire_page_write(page, &subscriber->gap);
	rc = plx_link_send(subscriber->accepted.link, page, sizeof(page));
	if (rc == 0)
		subscriber->gap = (struct wire_gap){0};
	return rc != -EAGAIN;
}

void netio_subscriber_stats(const struct netio_subscriber *subscriber,
			    struct netio_subscriber_stats *stats_out)
{
	const struct subscriber *its = plx_container_of(subscriber, struct subscriber, pub);
	const struct pages *pages = its->pages;

	*stats_out = (struct netio_subscriber_stats){0};
	memcpy(stats_out->missed, its->missed, sizeof(stats_out->missed));
	if (!pages)
		return;
	stats_out->backlog_bytes = pages_backlog_bytes(pages) + its->latest.bytes;
	stats_out->pages_under_way = pages->count - pages->free_count;
	stats_out->is_slow = pages_are_slow(pages);
}

static_assert(NETIO_POLICY_CONFLATE == WIRE_POLICY_MAX, "as on the wire");
static_assert(NETIO_GAP_BIT(NETIO_GAP_REASON_COUNT) - 2 == WIRE_GAP_REASONS, "as on the wire");

/* Policies ------------------------------------------------------------------------------------- */

/* A message on its way to a subscriber. */
struct letter {
	const struct match *match;
	struct subscriber *subscriber;
	struct pages *pages;
	netio_tag_t tag;
	const struct iovec *iov;
	uint64_t length;
};

/* An older one of its tag that waits is not to come behind it. */
static void supersede(const struct letter *letter)
{
	struct conflation *latest = &letter->subscriber->latest;
	struct latest *older = latest->count ? conflation_find(latest, letter->tag) : NULL;

	if (!older)
		return;
	conflation_drop(latest, older);
	letter->pages->behind_count = latest->count;
	subscriber_misses(letter->subscriber, 1, NETIO_GAP_CONFLATED);
}

/* Return: 0; -EAGAIN: as much waits as may, or as there are pages. */
static int put(const struct letter *letter)
{
	struct pages *pages = letter->pages;
	struct source source = {.iov = letter->iov};
	uint64_t bytes = wire_entry_bytes(letter->length, WIRE_TAG);
	bool waits = letter->match->policy == NETIO_POLICY_BLOCK;
	int rc;

	if (pages->waiting_count &&
	    pages_backlog_bytes(pages) + bytes > letter->match->backlog_bytes)
		return waits ? pages_again(pages, 1) : -EAGAIN;
	pages_set_droppable(pages, letter->match->policy == NETIO_POLICY_DROP_OLD);
	rc = (waits ? pages_putv : pages_put_freely)(pages, letter->tag, letter->length, &source);
	pages->droppable = false;
	if (rc)
		return rc;
	supersede(letter);
	if (letter->match->at_once)
		pages_leave_soon(pages);
	return 0;
}

static int miss_new(const struct letter *letter)
{
	subscriber_misses(letter->subscriber, 1, NETIO_GAP_DROPPED_NEW);
	return PUBLISH_MISSED;
}

static int put_or_drop_new(const struct letter *letter)
{
	int rc = put(letter);

	return rc == -EAGAIN ? miss_new(letter) : rc;
}

static int put_or_drop_old(const struct letter *letter)
{
	for (;;) {
		int rc = put(letter);
		int64_t dropped = -1;

		if (rc != -EAGAIN)
			return rc;
		if (pages_may_have_room(letter->pages, letter->length, WIRE_TAG))
			dropped = pages_drop_oldest(letter->pages, false, NETIO_GAP_DROPPED_OLD);
		if (dropped < 0)
			return miss_new(letter);
		count_missed(letter->subscriber, (uint64_t)dropped, NETIO_GAP_DROPPED_OLD);
	}
}

static int conflate(const struct letter *letter)
{
	struct conflation *latest = &letter->subscriber->latest;
	int rc = conflation_put(latest, letter->tag, letter->iov, letter->length,
				letter->match->backlog_bytes);

	if (rc == -EAGAIN && conflation_find(latest, letter->tag)) { /* which is old now */
		supersede(letter);
		rc = conflation_put(latest, letter->tag, letter->iov, letter->length,
				    letter->match->backlog_bytes);
	}
	letter->pages->behind_count = latest->count;
	if (rc == 0)
		conflation_last(latest)->behind = letter->pages->number;
	if (rc == 1)
		subscriber_misses(letter->subscriber, 1, NETIO_GAP_CONFLATED);
	return rc == -EAGAIN ? miss_new(letter) : rc < 0 ? rc : 0;
}

uint32_t slow_clear(struct subscriber *subscriber)
{
	if (subscriber->pages)
		subscriber->pages->behind_count = 0;
	return conflation_clear(&subscriber->latest);
}

/* What waits is lost; but for the rest of a message that has begun to leave. */
static void disconnect(struct subscriber *subscriber)
{
	struct pages *pages = subscriber->pages;
	uint64_t missed = 1 + slow_clear(subscriber);
	int64_t dropped;

	if (pages->page)
		pages_leave(pages);
	while ((dropped = pages_drop_oldest(pages, true, NETIO_GAP_DISCONNECTED)) >= 0)
		count_missed(subscriber, (uint64_t)dropped, NETIO_GAP_DISCONNECTED);
	subscriber_misses(subscriber, missed, NETIO_GAP_DISCONNECTED);
	subscriber->accepted.closed_why = "it was too slow, and its subscription is to disconnect "
					  "it then";
	accepted_close(&subscriber->accepted);
}

static int put_or_disconnect(const struct letter *letter)
{
	int rc = put(letter);

	if (rc != -EAGAIN)
		return rc;
	disconnect(letter->subscriber);
	return PUBLISH_MISSED;
}

int slow_copy_to(const struct match *match, netio_tag_t tag, const struct iovec *iov,
		 uint64_t length)
{
	struct letter letter = {
		.match = match,
		.subscriber = match->subscriber,
		.pages = match->subscriber->pages,
		.tag = tag,
		.iov = iov,
		.length = length,
	};

	/* Nothing is dropped for it, and nobody waits. */
	if (!pages_hold(letter.pages, length, tag ? WIRE_TAG : 0))
		return NETIO_STATUS_TOO_BIG;
	switch ((enum netio_policy)match->policy) {
	case NETIO_POLICY_DISCONNECT:
		return put_or_disconnect(&letter);
	case NETIO_POLICY_DROP_OLD:
		return put_or_drop_old(&letter);
	case NETIO_POLICY_DROP_NEW:
		return put_or_drop_new(&letter);
	case NETIO_POLICY_CONFLATE:
		return conflate(&letter);
	default:
		return put(&letter);
	}
}

/* Those before which nothing waits that was there when they came. One page of them more may wait
 * each time, so that they are not old when the link takes them. */
void slow_go_on(struct subscriber *subscriber)
{
	struct pages *pages = subscriber->pages;
	uint32_t waiting_max = pages->waiting_count;
	struct latest *latest;

	while ((latest = conflation_first(&subscriber->latest)) &&
	       pages->waiting_count <= waiting_max && pages_sent_until(pages, latest->behind)) {
		struct iovec piece = {latest->data, latest->length};

		pages_set_droppable(pages, false);
		if (pages_put_freely(pages, latest->tag, latest->length,
				     &(struct source){.iov = &piece}) != 0)
			break;
		conflation_drop(&subscriber->latest, latest);
		pages->behind_count = subscriber->latest.count;
	}
	pages_leave_soon(pages);
}
