/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the subscribers of a message: those with a matching subscription, or, when it is published
 * again, those of them that had no room before. */
#include "pubsub_priv.h"

#include <assert.h>
#include <stdlib.h>

static_assert(sizeof(((struct netio_subscription_cache *)0)->to[0]) == sizeof(struct match),
	      "a user's cache has matches, which are copied as they are");

uint64_t match_new_version(void)
{
	static _Atomic uint64_t newest;

	/* Relaxed: only that no two are equal matters. */
	return atomic_fetch_add_explicit(&newest, 1, memory_order_relaxed) + 1;
}

/* If a subscriber has several matching subscriptions, the strictest policy applies. */
static void merge(struct outbox_terms *terms, const struct outbox_terms *other)
{
	terms->at_once |= other->at_once;
	if (other->policy < terms->policy ||
	    (other->policy == terms->policy && other->backlog_bytes > terms->backlog_bytes)) {
		terms->policy = other->policy;
		terms->backlog_bytes = other->backlog_bytes;
	}
}

static void search(struct netio_publish_core *core, netio_tag_t tag)
{
	struct table_search search = {.tag = tag};
	const struct subscription *found;

	core->lookups++;
	core->match_count = 0;
	while ((found = table_next(&core->table, &search))) {
		struct subscriber *subscriber = found->subscriber;

		if (subscriber->seen == core->lookups) {
			merge(&core->matches[subscriber->match].terms, &found->terms);
			continue;
		}
		subscriber->seen = core->lookups;
		subscriber->match = core->match_count;
		core->matches[core->match_count++] = (struct match){subscriber, found->terms};
	}
}

static void remember(const struct netio_publish_core *core, netio_tag_t tag,
		     struct netio_subscription_cache *cache)
{
	if (core->match_count > PLX_ARRAY_LEN(cache->to))
		return;
	cache->version = core->version;
	cache->tag = tag;
	cache->count = core->match_count;
	for (uint32_t i = 0; i < core->match_count; i++)
		memcpy(&cache->to[i], &core->matches[i], sizeof(struct match));
}

void match_find(struct netio_publish_core *core, netio_tag_t tag,
		struct netio_subscription_cache *cache)
{
	if (!cache || cache->version != core->version || cache->tag != tag) {
		search(core, tag);
		if (cache)
			remember(core, tag, cache);
		return;
	}
	core->match_count = cache->count;
	for (uint32_t i = 0; i < cache->count; i++)
		memcpy(&core->matches[i], &cache->to[i], sizeof(struct match));
}

static int compare_pendings(const void *a, const void *b)
{
	const struct pending *one = a, *other = b;

	return compare_numbers(one->tag, other->tag) ?: compare_numbers(one->key, other->key);
}

struct pending *pending_search(struct netio_publish_core *core, netio_tag_t tag, uint64_t key)
{
	return tree_find(&(struct pending){.tag = tag, .key = key}, &core->pending_tree,
			 compare_pendings);
}

struct pending *pending_create(struct netio_publish_core *core, netio_tag_t tag, uint64_t key,
			       uint32_t count)
{
	struct pending *pending;

	/* An unbuffered one cannot be given up here: its caller still owns the message's memory. */
	if (core->buffered && core->pending_count == NETIO_REENTRY_MAX)
		pending_give_up(core, TAILQ_FIRST(&core->pendings));
	pending = malloc(sizeof(*pending) + count * sizeof(struct match));
	if (pending)
		*pending = (struct pending){.tag = tag, .key = key, .count = count};
	if (!pending || !tsearch(pending, &core->pending_tree, compare_pendings)) {
		free(pending);
		return NULL;
	}
	memcpy(pending->missing, core->matches, count * sizeof(struct match));
	TAILQ_INSERT_TAIL(&core->pendings, pending, link);
	core->pending_count++;
	return pending;
}

void pending_destroy(struct netio_publish_core *core, struct pending *pending)
{
	tdelete(pending, &core->pending_tree, compare_pendings);
	TAILQ_REMOVE(&core->pendings, pending, link);
	core->pending_count--;
	free(pending);
}

void pending_match(struct netio_publish_core *core, struct pending *pending)
{
	uint32_t left = 0;

	search(core, pending->tag);
	for (uint32_t i = 0; i < pending->count; i++)
		if (pending->missing[i].subscriber->seen == core->lookups)
			pending->missing[left++] = pending->missing[i];
	pending->count = left;
}

void pending_give_up(struct netio_publish_core *core, struct pending *pending)
{
	struct publication *publication = pending->publication;

	if (publication)
		publication->status = -ECANCELED;
	for (uint32_t i = 0; i < pending->count; i++)
		outbox_miss(&pending->missing[i].subscriber->outbox, 1, NETIO_GAP_GIVEN_UP);
	core->stats.messages++;
	pending_destroy(core, pending);
	if (publication)
		publication_unref(publication);
}

void pending_forget(struct netio_publish_core *core, struct subscriber *subscriber,
		    enum netio_gap_reason reason)
{
	struct pending *pending;

	TAILQ_FOREACH (pending, &core->pendings, link)
		for (uint32_t i = 0; i < pending->count; i++)
			if (pending->missing[i].subscriber == subscriber) {
				pending->missing[i] = pending->missing[--pending->count];
				outbox_miss(&subscriber->outbox, 1, reason);
				if (pending->publication && !pending->publication->status)
					pending->publication->status = -ECONNRESET;
				break;
			}
}
