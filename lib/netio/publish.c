/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing copies: to whom, and what those have not got yet that had no room. */
#include "publisher.h"

#include "message.h"

/* Matching ------------------------------------------------------------------------------------ */

uint64_t publish_new_version(void)
{
	static __thread uint64_t newest;
	uint64_t now_ns = plx_now_ns();

	newest = now_ns > newest ? now_ns : newest + 1;
	return newest << 8 | plx_lcore_id();
}

/* Of several subscriptions of one subscriber the strictest decides. */
static void merge(struct match *match, const struct subscription *subscription)
{
	match->at_once |= subscription->at_once;
	if (subscription->policy < match->policy ||
	    (subscription->policy == match->policy &&
	     subscription->backlog_bytes > match->backlog_bytes)) {
		match->policy = subscription->policy;
		match->backlog_bytes = subscription->backlog_bytes;
	}
}

static void visit(void *owner, void *arg)
{
	const struct subscription *subscription = owner;
	struct subscriber *subscriber = subscription->subscriber;
	struct netio_publish_core *core = arg;

	if (subscriber->seen == core->lookups) {
		merge(&core->matches[subscriber->match], subscription);
		return;
	}
	subscriber->seen = core->lookups;
	subscriber->match = core->match_count++;
	core->matches[subscriber->match] = (struct match){
		.subscriber = subscriber,
		.backlog_bytes = subscription->backlog_bytes,
		.policy = subscription->policy,
		.at_once = subscription->at_once,
	};
}

static void search(struct netio_publish_core *core, netio_tag_t tag)
{
	core->lookups++;
	core->match_count = 0;
	table_lookup(&core->table, tag, visit, core);
}

static void remember(const struct netio_publish_core *core, netio_tag_t tag,
		     struct netio_subscription_cache *cache)
{
	if (core->match_count > PLX_ARRAY_LEN(cache->to))
		return;
	cache->version = core->version;
	cache->tag = tag;
	cache->count = core->match_count;
	for (uint32_t i = 0; i < core->match_count; i++) {
		cache->to[i].subscriber = core->matches[i].subscriber;
		cache->to[i].backlog_bytes = core->matches[i].backlog_bytes;
		cache->to[i].policy = core->matches[i].policy;
		cache->to[i].at_once = core->matches[i].at_once;
	}
}

void publish_match_again(struct netio_publish_core *core, struct pending *pending)
{
	uint32_t left = 0;

	search(core, pending->tag);
	for (uint32_t i = 0; i < pending->count; i++)
		if (pending->missing[i].subscriber->seen == core->lookups)
			pending->missing[left++] = pending->missing[i];
	pending->count = left;
}

void publish_match(struct netio_publish_core *core, netio_tag_t tag,
		   struct netio_subscription_cache *cache)
{
	if (!cache || cache->version != core->version || cache->tag != tag) {
		search(core, tag);
		if (cache)
			remember(core, tag, cache);
		return;
	}
	core->match_count = cache->count;
	for (uint32_t i = 0; i < cache->count; i++) {
		core->matches[i].subscriber = cache->to[i].subscriber;
		core->matches[i].backlog_bytes = cache->to[i].backlog_bytes;
		core->matches[i].policy = cache->to[i].policy;
		core->matches[i].at_once = cache->to[i].at_once;
	}
}

/* Room ---------------------------------------------------------------------------------------- */

void publish_tell_room(struct netio_publish_core *core)
{
	if (!core->wants_room)
		return;
	core->wants_room = false;
	if (core->buffered && core->buffered->cb_buffers_available)
		core->buffered->cb_buffers_available(core->buffered);
	else if (core->unbuffered && core->unbuffered->cb_buffers_available)
		core->unbuffered->cb_buffers_available(core->unbuffered);
}

/* Copies -------------------------------------------------------------------------------------- */

/* By itself, where nothing waits before it; else in the page, which leaves as soon as it can. */
static int copy_at_once(struct subscriber *subscriber, netio_tag_t tag, const struct iovec *iov,
			size_t count, uint64_t length)
{
	struct pages *pages = subscriber->pages;
	struct source source = {.iov = iov};
	int rc;

	/* Else it would depend on the link's room whether it is too long. */
	if (plx_unlikely(!pages_hold(pages, length, tag ? WIRE_TAG : 0)))
		return NETIO_STATUS_TOO_BIG;
	if (!pages->page && pages->waiting_count == 0 && pages->gap.count == 0) {
		rc = message_sendv(subscriber->accepted.link, subscriber->accepted.message_max, tag,
				   iov, count);
		if (rc != -EAGAIN)
			return rc;
	}
	rc = pages_putv(pages, tag, length, &source);
	if (rc == 0)
		pages_leave_soon(pages);
	return rc;
}

int publish_copy_to(const struct match *match, netio_tag_t tag, const struct iovec *iov,
		    size_t count, uint64_t length)
{
	struct subscriber *subscriber = match->subscriber;
	struct source source = {.iov = iov};
	struct pages_room room;
	int rc;

	if (plx_unlikely(!subscriber_is_there(subscriber)))
		return -ENOTCONN;
	if (plx_unlikely(length > subscriber->accepted.message_max))
		return NETIO_STATUS_TOO_BIG;
	if (plx_unlikely(pages_are_slow(subscriber->pages)))
		return slow_copy_to(match, tag, iov, length);
	room = subscriber->pages->room;
	if (match->at_once)
		rc = copy_at_once(subscriber, tag, iov, count, length);
	else
		rc = pages_putv(subscriber->pages, tag, length, &source);
	if (plx_likely(rc != -EAGAIN) || match->policy == NETIO_POLICY_BLOCK)
		return rc;
	subscriber->pages->room = room; /* of those who wait for it */
	return slow_copy_to(match, tag, iov, length);
}

void publish_note_other(struct publish_outcome *outcome, struct match *matches, uint32_t index,
			int rc)
{
	uint32_t missing = outcome->missing;
	struct match match = matches[index];

	if (rc == -EAGAIN) {
		matches[missing + outcome->too_big] = matches[missing];
		matches[missing] = match;
		outcome->missing++;
	} else if (rc == -EMSGSIZE) {
		matches[missing + outcome->too_big] = match;
		outcome->too_big++;
	} else if (rc == PUBLISH_MISSED) {
		outcome->missed++;
	} else if (rc == -ENOTCONN) {
		outcome->gone++;
	} else {
		subscriber_misses(match.subscriber, 1, NETIO_GAP_GIVEN_UP);
		if (++outcome->failed == 1)
			outcome->error = rc;
	}
}

void publish_tell_too_big(const struct publish_outcome *outcome, const struct match *matches)
{
	for (uint32_t i = 0; i < outcome->too_big; i++)
		subscriber_misses(matches[outcome->missing + i].subscriber, 1, NETIO_GAP_TOO_BIG);
}

void publish_fail_missing(struct publish_outcome *outcome, const struct match *matches)
{
	for (uint32_t i = 0; i < outcome->missing; i++)
		subscriber_misses(matches[i].subscriber, 1, NETIO_GAP_GIVEN_UP);
	outcome->failed += outcome->missing;
	outcome->missing = 0;
}

int publish_finish(struct netio_publish_core *core, const struct publish_outcome *outcome,
		   uint32_t taken_before)
{
	struct netio_publish_stats *stats = &core->stats;

	stats->copies += outcome->taken;
	stats->too_big += outcome->too_big;
	stats->given_up += outcome->failed;
	if (plx_unlikely(outcome->missing)) {
		stats->again++;
		core->wants_room = true;
		return NETIO_STATUS_AGAIN;
	}
	if (plx_likely(outcome->taken) || taken_before || outcome->missed) {
		stats->messages++;
		return outcome->failed ? outcome->error : NETIO_STATUS_OK;
	}
	if (outcome->failed)
		return outcome->error;
	if (outcome->too_big)
		return plx_fail(EMSGSIZE, "no subscriber accepts a message so long, or the pages "
					  "do not hold it");
	stats->no_subscribers++;
	return NETIO_STATUS_NO_SUBSCRIBERS;
}

static void copy_to_all(struct match *matches, uint32_t match_count, netio_tag_t tag,
			const struct iovec *iov, size_t count, uint64_t length,
			struct publish_outcome *outcome)
{
	for (uint32_t i = 0; i < match_count; i++)
		publish_note(outcome, matches, i,
			     publish_copy_to(&matches[i], tag, iov, count, length));
	publish_tell_too_big(outcome, matches);
}

static int copy_anew(struct netio_publish_core *core, netio_tag_t tag, const struct iovec *iov,
		     size_t count, uint64_t length, struct netio_subscription_cache *cache)
{
	struct publish_outcome outcome = {0};
	struct pending *pending;

	publish_match(core, tag, cache);
	copy_to_all(core->matches, core->match_count, tag, iov, count, length, &outcome);
	if (plx_unlikely(outcome.missing)) {
		pending = pending_create(core, tag, 0, outcome.missing);
		if (!pending) {
			publish_fail_missing(&outcome, core->matches);
			outcome.error = plx_fail(ENOMEM, "out of memory to publish again");
		} else {
			pending->taken = outcome.taken;
			pending->count = outcome.missing;
			memcpy(pending->missing, core->matches,
			       outcome.missing * sizeof(struct match));
		}
	}
	return publish_finish(core, &outcome, 0);
}

static int copy_again(struct netio_publish_core *core, struct pending *pending,
		      const struct iovec *iov, size_t count, uint64_t length)
{
	struct publish_outcome outcome = {0};
	uint32_t taken_before = pending->taken;

	publish_match_again(core, pending);
	copy_to_all(pending->missing, pending->count, pending->tag, iov, count, length, &outcome);
	pending->count = outcome.missing;
	pending->taken += outcome.taken;
	core->stats.lost += outcome.gone;
	if (!outcome.missing)
		pending_destroy(core, pending);
	return publish_finish(core, &outcome, taken_before);
}

int netio_buffered_publishv(struct netio_publish_socket *socket, netio_tag_t tag,
			    const struct iovec *iov, size_t count, int flags,
			    struct netio_subscription_cache *cache)
{
	struct netio_publish_core *core = socket->core;
	struct pending *pending;
	uint64_t length;
	int rc;

	if (plx_unlikely(!core))
		return plx_fail(EINVAL, "the socket is not set up");
	if (plx_unlikely(flags & ~NETIO_REENTRY))
		return plx_fail(EINVAL, "flags %d: give 0 or NETIO_REENTRY", flags);
	rc = message_measure(iov, count, WIRE_MESSAGE_MAX_LIMIT, &length);
	if (plx_unlikely(rc))
		return rc;
	pending = pending_find(core, tag, 0);
	if (plx_likely(!pending))
		return copy_anew(core, tag, iov, count, length, cache);
	if (flags & NETIO_REENTRY)
		return copy_again(core, pending, iov, count, length);
	pending_give_up(core, pending);
	return copy_anew(core, tag, iov, count, length, cache);
}

int netio_buffered_publish(struct netio_publish_socket *socket, netio_tag_t tag, void *data,
			   size_t len, int flags, struct netio_subscription_cache *cache)
{
	return netio_buffered_publishv(socket, tag, &(struct iovec){data, len}, 1, flags, cache);
}

void netio_buffered_publish_flush(struct netio_publish_socket *socket)
{
	struct accepted *accepted = socket->core ? socket->core->acceptor.links : NULL;

	for (; accepted; accepted = accepted->next) {
		struct pages *pages = ((struct subscriber *)accepted)->pages;

		if (pages && pages->page)
			pages_leave(pages);
	}
}
