/* SPDX-License-Identifier: BSD-3-Clause */
/* How an outbox takes a message. A policy for slow peers is one function and one table row. */
#include "outbox.h"

#include <assert.h>
#include <stdlib.h>

/* The newest message of each tag -------------------------------------------------------------- */

static int compare_tags(const void *a, const void *b)
{
	return compare_numbers(((const struct latest *)a)->tag, ((const struct latest *)b)->tag);
}

/* Memory used, including a tree node and the heap's overhead for three blocks. */
static uint64_t charge(uint64_t room)
{
	return sizeof(struct latest) + 96 + room;
}

static struct latest *find(const struct conflation *conflation, netio_tag_t tag)
{
	return tree_find(&(struct latest){.tag = tag}, &conflation->by_tag, compare_tags);
}

static struct latest *create(struct conflation *conflation, netio_tag_t tag)
{
	struct latest *latest = calloc(1, sizeof(*latest));

	if (latest)
		latest->tag = tag;
	if (!latest || !tsearch(latest, &conflation->by_tag, compare_tags)) {
		free(latest);
		return NULL;
	}
	latest->order = ++conflation->order;
	TAILQ_INSERT_TAIL(&conflation->queue, latest, link);
	conflation->count++;
	conflation->bytes += charge(0);
	return latest;
}

/* Store a copy of a message: replaces the one with the same tag, or goes to the end. At most
 * bytes_max in total. Return: 0; 1 replaced; -EAGAIN too many bytes; -ENOMEM an older one stays. */
static int store(struct conflation *conflation, const struct message *message, uint64_t bytes_max)
{
	struct latest *latest = find(conflation, message->tag);
	uint64_t length = message->length, room = latest ? latest->room : 0;
	uint64_t more = (length > room ? length - room : 0) + (latest ? 0 : charge(0));
	bool is_new = !latest;

	if (more && (conflation->bytes > bytes_max || more > bytes_max - conflation->bytes))
		return -EAGAIN;
	latest = latest ?: create(conflation, message->tag);
	if (!latest)
		return -ENOMEM;
	if (length > room) {
		uint8_t *data = realloc(latest->data, length);

		if (!data) {
			if (is_new)
				conflation_drop(conflation, latest);
			return -ENOMEM;
		}
		conflation->bytes += length - room;
		latest->data = data;
		latest->room = length;
	}
	message_copy(message, latest->data);
	latest->length = length;
	return is_new ? 0 : 1;
}

void conflation_drop(struct conflation *conflation, struct latest *latest)
{
	tdelete(latest, &conflation->by_tag, compare_tags);
	TAILQ_REMOVE(&conflation->queue, latest, link);
	conflation->count--;
	conflation->bytes -= charge(latest->room);
	free(latest->data);
	free(latest);
}

uint32_t conflation_clear(struct conflation *conflation)
{
	uint32_t count = conflation->count;

	while (conflation->count)
		conflation_drop(conflation, TAILQ_FIRST(&conflation->queue));
	return count;
}

/* Policies ------------------------------------------------------------------------------------ */

#define TRY_AGAIN 2 /* retry: there may be room now */

static int drop_new(struct outbox *outbox, const struct outbox_terms *terms,
		    const struct message *message)
{
	outbox_miss(outbox, 1, NETIO_GAP_DROPPED_NEW);
	return OUTBOX_MISSED;
}

static int drop_old(struct outbox *outbox, const struct outbox_terms *terms,
		    const struct message *message)
{
	if (outbox_may_find_room(outbox, message->length, WIRE_TAG) &&
	    outbox_drop_oldest(outbox, false, NETIO_GAP_DROPPED_OLD))
		return TRY_AGAIN;
	return drop_new(outbox, terms, message);
}

void outbox_drop_all(struct outbox *outbox, uint64_t missed)
{
	missed += conflation_clear(&outbox->latest);
	outbox_flush(outbox);
	while (outbox_drop_oldest(outbox, true, NETIO_GAP_DISCONNECTED))
		;
	if (missed)
		outbox_miss(outbox, missed, NETIO_GAP_DISCONNECTED);
}

static int disconnect(struct outbox *outbox, const struct outbox_terms *terms,
		      const struct message *message)
{
	outbox_drop_all(outbox, 1);
	outbox->owner->too_slow(outbox);
	return OUTBOX_MISSED;
}

/* Drop an older message of the tag: the new one overtakes it. Return: whether there was one. */
static bool supersede(struct outbox *outbox, netio_tag_t tag)
{
	struct conflation *latest = &outbox->latest;
	struct latest *older = latest->count ? find(latest, tag) : NULL;

	if (!older)
		return false;
	conflation_drop(latest, older);
	outbox_miss(outbox, 1, NETIO_GAP_CONFLATED);
	return true;
}

static int conflate(struct outbox *outbox, const struct outbox_terms *terms,
		    const struct message *message)
{
	struct conflation *latest = &outbox->latest;
	int rc = store(latest, message, terms->backlog_bytes);

	if (rc == -EAGAIN && supersede(outbox, message->tag))
		rc = store(latest, message, terms->backlog_bytes);
	if (rc == 0)
		TAILQ_LAST(&latest->queue, latest_queue)->follows = outbox->number;
	if (rc == 1)
		outbox_miss(outbox, 1, NETIO_GAP_CONFLATED);
	return rc == -EAGAIN ? drop_new(outbox, terms, message) : rc < 0 ? rc : 0;
}

static const struct policy {
	/* There is no room. Return: as outbox_submit; TRY_AGAIN. NULL: the publisher waits;
	 * outbox_again has noted that. */
	int (*no_room)(struct outbox *outbox, const struct outbox_terms *terms,
		       const struct message *message);
	bool waits;     /* the publisher is notified of room */
	bool droppable; /* waiting messages may be dropped for newer ones */
	bool apart;     /* its messages never wait in pages */
} policies[] = {
	[NETIO_POLICY_BLOCK] = {.waits = true},
	[NETIO_POLICY_DISCONNECT] = {.no_room = disconnect},
	[NETIO_POLICY_DROP_OLD] = {.no_room = drop_old, .droppable = true},
	[NETIO_POLICY_DROP_NEW] = {.no_room = drop_new},
	[NETIO_POLICY_CONFLATE] = {.no_room = conflate, .apart = true},
};

static_assert(PLX_ARRAY_LEN(policies) == NETIO_POLICY_COUNT &&
		      PLX_ARRAY_LEN(((const char *[])NETIO_POLICY_NAMES)) == NETIO_POLICY_COUNT + 1,
	      "each policy has a row and a name");

void outbox_count_policy(struct outbox *outbox, enum netio_policy policy, int step)
{
	if (policies[policy].droppable)
		return;
	if (step < 0 && outbox->waiting_count == 0) /* else `keeps` is set with each message */
		outbox->keeps = true;
	outbox->keepers += (uint32_t)step;
}

int outbox_refuse(struct outbox *outbox, const struct outbox_terms *terms,
		  const struct message *message)
{
	if (terms->policy == NETIO_POLICY_BLOCK)
		return NETIO_STATUS_AGAIN;
	return terms->policy == NETIO_POLICY_DISCONNECT ? disconnect(outbox, terms, message)
							: drop_new(outbox, terms, message);
}

/* Return: 0; -EAGAIN backlog limit reached, or no page; TOO_BIG; -ENOMEM. */
static int put_tail(struct outbox *outbox, const struct policy *policy,
		    const struct outbox_terms *terms, const struct message *message)
{
	uint64_t bytes = wire_entry_bytes(message->length, WIRE_TAG);
	int rc;

	if (policy->apart)
		return NETIO_STATUS_AGAIN;
	if (outbox->waiting_count && outbox_backlog_bytes(outbox) + bytes > terms->backlog_bytes)
		return outbox_again(outbox, 1);
	outbox_set_droppable(outbox, policy->droppable);
	outbox->is_shared |= outbox->no_wait;
	rc = outbox_put(outbox, message);
	outbox->droppable = false;
	if (rc)
		return rc;
	supersede(outbox, message->tag);
	if (terms->at_once)
		outbox_flush_soon(outbox);
	return 0;
}

static int submit_slow(struct outbox *outbox, const struct outbox_terms *terms,
		       const struct message *message)
{
	const struct policy *policy = &policies[terms->policy];
	int rc;

	/* Dropping or waiting would not help. */
	if (!outbox_holds(outbox, message))
		return NETIO_STATUS_TOO_BIG;
	do {
		rc = put_tail(outbox, policy, terms, message);
		if (rc == NETIO_STATUS_AGAIN && policy->no_room)
			rc = policy->no_room(outbox, terms, message);
	} while (rc == TRY_AGAIN);
	return rc;
}

/* Send in its own frame if nothing waits; otherwise in the page, as soon as possible. */
static int submit_at_once(struct outbox *outbox, const struct message *message)
{
	bool is_refused = false;
	int rc;

	/* Otherwise the limit would depend on the link's room. */
	if (plx_unlikely(!outbox_holds(outbox, message)))
		return NETIO_STATUS_TOO_BIG;
	if (outbox_is_clear(outbox) && plx_likely(message->count <= NETIO_IOV_MAX)) {
		rc = message_send_copy(outbox->link, message);
		outbox->alone += rc == 0;
		if (rc != NETIO_STATUS_AGAIN)
			return rc;
		is_refused = true; /* more messages may join this one in its page */
	}
	rc = outbox_put(outbox, message);
	if (rc == 0 && is_refused)
		outbox_flush_when_writable(outbox);
	else if (rc == 0)
		outbox_flush_soon(outbox);
	return rc;
}

int outbox_submit(struct outbox *outbox, const struct outbox_terms *terms,
		  const struct message *message)
{
	int rc;

	outbox->no_wait = !policies[terms->policy].waits;
	if (plx_unlikely(outbox_is_slow(outbox)))
		return submit_slow(outbox, terms, message);
	if (terms->at_once)
		rc = submit_at_once(outbox, message);
	else
		rc = outbox_put(outbox, message);
	if (plx_likely(rc != NETIO_STATUS_AGAIN) || !outbox->no_wait)
		return rc;
	return submit_slow(outbox, terms, message);
}
