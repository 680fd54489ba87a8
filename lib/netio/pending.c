/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that some subscribers have not got yet, as they had no room. */
#include "publisher.h"

#include <search.h>
#include <stdlib.h>

static int compare_pendings(const void *a, const void *b)
{
	const struct pending *one = a, *other = b;

	if (one->tag != other->tag)
		return one->tag > other->tag ? 1 : -1;
	return (one->key > other->key) - (one->key < other->key);
}

struct pending *pending_find(struct netio_publish_core *core, netio_tag_t tag, uint64_t key)
{
	struct pending wanted = {.tag = tag, .key = key};
	struct pending **found;

	if (plx_likely(core->pending_count == 0))
		return NULL;
	found = tfind(&wanted, &core->pending_tree, compare_pendings);
	return found ? *found : NULL;
}

struct pending *pending_create(struct netio_publish_core *core, netio_tag_t tag, uint64_t key,
			       uint32_t count)
{
	struct pending *pending;

	/* The memory of a publication that is given up would have to be given back. */
	if (core->buffered && core->pending_count == NETIO_REENTRY_MAX)
		pending_give_up(core, TAILQ_FIRST(&core->pendings));
	pending = malloc(sizeof(*pending) + count * sizeof(struct match));
	if (!pending)
		return NULL;
	*pending = (struct pending){.tag = tag, .key = key};
	if (!tsearch(pending, &core->pending_tree, compare_pendings)) {
		free(pending);
		return NULL;
	}
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

void pending_give_up(struct netio_publish_core *core, struct pending *pending)
{
	struct publication *publication = pending->publication;

	if (publication)
		publication->status = -ECANCELED;
	for (uint32_t i = 0; i < pending->count; i++)
		subscriber_misses(pending->missing[i].subscriber, 1, NETIO_GAP_GIVEN_UP);
	core->stats.given_up += pending->count;
	core->stats.messages++;
	pending_destroy(core, pending);
	if (publication)
		publication_unref(publication);
}

void pending_forget(struct netio_publish_core *core, const struct subscriber *subscriber)
{
	struct pending *pending;

	TAILQ_FOREACH (pending, &core->pendings, link)
		for (uint32_t i = 0; i < pending->count; i++)
			if (pending->missing[i].subscriber == subscriber) {
				pending->missing[i] = pending->missing[--pending->count];
				core->stats.lost++;
				if (pending->publication && !pending->publication->status)
					pending->publication->status = -ECONNRESET;
				break;
			}
}
