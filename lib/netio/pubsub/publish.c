/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing: a message goes to the outbox of each matching subscriber, as a copy or by reference.
 * Subscribers without room are remembered. */
#include "pubsub_priv.h"

struct outgoing {
	struct message message;
	uint64_t key;                    /* 0: copied */
	struct publication *publication; /* NULL: copied */
};

/* Results: numbers of subscribers. */
struct outcome {
	uint32_t taken, missing, too_big, missed, failed;
	uint32_t gone; /* subscribers that are disconnected or closing */
	int error;     /* of the first failure */
};

void publish_report_room(struct netio_publish_core *core)
{
	if (!core->wants_room)
		return;
	core->wants_room = false;
	PUBLISH_CALLBACK(core, cb_buffers_available, (core->acceptor.socket));
}

/* Outcomes ------------------------------------------------------------------------------------ */

/* A subscriber has not taken it. Subscribers without room move to the front of `matches`, followed
 * by those for which the message is too long, and by those that are gone. */
static PLX_NOINLINE void note_refusal(struct outcome *outcome, struct match *matches,
				      uint32_t index, int rc)
{
	struct match match = matches[index];
	struct match *first_too_big = matches + outcome->missing;
	struct match *first_gone = first_too_big + outcome->too_big;
	struct match *end = first_gone + outcome->gone;

	if (rc == NETIO_STATUS_AGAIN) {
		block_begin(match.subscriber);
		*end = *first_gone;
		*first_gone = *first_too_big;
		*first_too_big = match;
		outcome->missing++;
	} else if (rc == NETIO_STATUS_TOO_BIG) {
		*end = *first_gone;
		*first_gone = match;
		outcome->too_big++;
	} else if (rc == NETIO_STATUS_NOT_CONNECTED) {
		*end = match;
		outcome->gone++;
	} else if (rc == OUTBOX_MISSED) {
		outcome->missed++;
	} else {
		outbox_miss(&match.subscriber->outbox, 1, NETIO_GAP_GIVEN_UP);
		if (++outcome->failed == 1)
			outcome->error = rc;
	}
}

/* The subscribers from `first` on miss it. matches: NULL if count is 0. */
static void miss(struct match *matches, uint32_t first, uint32_t count,
		 enum netio_gap_reason reason)
{
	for (uint32_t i = first; i < first + count; i++)
		outbox_miss(&matches[i].subscriber->outbox, 1, reason);
}

/* It goes to no more subscribers: those after the ones without room miss it. */
static void miss_rest(struct match *matches, const struct outcome *outcome, netio_tag_t tag)
{
	uint32_t first_gone = outcome->missing + outcome->too_big;

	miss(matches, outcome->missing, outcome->too_big, NETIO_GAP_TOO_BIG);
	for (uint32_t i = first_gone; i < first_gone + outcome->gone; i++)
		absent_miss(matches[i].subscriber, tag);
}

/* Remember the subscribers without room; out of memory, they miss the message. */
static struct pending *remember(struct netio_publish_core *core, const struct outgoing *outgoing,
				struct outcome *outcome)
{
	struct pending *pending = pending_create(core, outgoing->message.tag, outgoing->key,
						 outcome->missing);

	if (pending) {
		pending->taken = outcome->taken || outcome->missed;
		pending->publication = outgoing->publication;
		return pending;
	}
	outcome->error = plx_fail(ENOMEM, "out of memory to publish again");
	miss(core->matches, 0, outcome->missing, NETIO_GAP_GIVEN_UP);
	outcome->failed += outcome->missing;
	outcome->missing = 0;
	return NULL;
}

/* taken: some subscribers took it before. Return: enum netio_status. */
static int finish(struct netio_publish_core *core, const struct outgoing *outgoing,
		  const struct outcome *outcome, bool taken)
{
	struct netio_publish_stats *stats = &core->stats;

	stats->copies += outcome->taken;
	if (plx_unlikely(outcome->missing)) {
		stats->again++;
		core->wants_room = true;
		return NETIO_STATUS_AGAIN;
	}
	if (plx_likely(outcome->taken) || taken || outcome->missed) {
		stats->messages++;
		return outcome->failed ? outcome->error : NETIO_STATUS_OK;
	}
	if (outcome->failed)
		return outcome->error;
	if (outcome->too_big)
		return plx_fail(EMSGSIZE,
				"%llu bytes: no subscriber takes a message of this length: their "
				"message_max_bytes is less, or %u pages of %u bytes do not hold it",
				(unsigned long long)outgoing->message.length,
				core->outbox_attr.page_count, core->outbox_attr.page_bytes);
	stats->no_subscribers++;
	return NETIO_STATUS_NO_SUBSCRIBERS;
}

/* By reference: once one subscriber has it, its memory must stay. */
static int finish_reference(struct netio_publish_core *core, const struct outgoing *outgoing,
			    const struct outcome *outcome)
{
	return finish(core, outgoing, outcome, true) == NETIO_STATUS_AGAIN ? NETIO_STATUS_PARTIAL
									   : NETIO_STATUS_OK;
}

/* One message --------------------------------------------------------------------------------- */

/* Whether a message that finds no room by reference waits in pages. Under BLOCK only a short one
 * does: its copy costs less than the receive buffer that it would take. */
static bool may_wait(const struct match *match, const struct message *message)
{
	struct outbox *outbox = &match->subscriber->outbox;

	if (match->terms.policy == NETIO_POLICY_BLOCK &&
	    (message->length > OUTBOX_COLLECT_MAX ||
	     outbox_make_pages(outbox, OUTBOX_COLLECT_PAGES) != 0))
		return false;
	return outbox_holds(outbox, message);
}

static int send_to(const struct match *match, const struct outgoing *outgoing)
{
	struct subscriber *subscriber = match->subscriber;
	struct outbox *outbox = &subscriber->outbox;
	int rc;

	if (plx_unlikely(!subscriber_is_there(subscriber)))
		return NETIO_STATUS_NOT_CONNECTED;
	if (plx_unlikely(outgoing->message.length > outbox->message_max))
		return NETIO_STATUS_TOO_BIG;
	if (outgoing->publication &&
	    (match->terms.at_once || plx_unlikely(!outbox_holds(outbox, &outgoing->message)))) {
		rc = publication_send(outgoing->publication, outbox);
		if (plx_likely(rc != NETIO_STATUS_AGAIN))
			return rc;
		if (!may_wait(match, &outgoing->message))
			return outbox_refuse(outbox, &match->terms, &outgoing->message);
	}
	return outbox_submit(outbox, &match->terms, &outgoing->message);
}

static void send_to_all(struct match *matches, uint32_t count, const struct outgoing *outgoing,
			struct outcome *outcome)
{
	for (uint32_t i = 0; i < count; i++) {
		int rc = send_to(&matches[i], outgoing);

		if (plx_likely(rc == 0))
			outcome->taken++;
		else
			note_refusal(outcome, matches, i, rc);
	}
}

static int publish_copy(struct netio_publish_core *core, const struct outgoing *outgoing,
			struct netio_subscription_cache *cache)
{
	struct outcome outcome = {0};

	match_find(core, outgoing->message.tag, cache);
	send_to_all(core->matches, core->match_count, outgoing, &outcome);
	if (plx_unlikely(outcome.too_big | outcome.gone))
		miss_rest(core->matches, &outcome, outgoing->message.tag);
	if (plx_unlikely(outcome.missing))
		remember(core, outgoing, &outcome);
	return finish(core, outgoing, &outcome, false);
}

static int publish_reference(struct netio_publish_core *core, struct outgoing *outgoing,
			     struct netio_subscription_cache *cache)
{
	struct outcome outcome = {0};
	struct pending *pending = NULL;

	match_find(core, outgoing->message.tag, cache);
	if (core->match_count == 0)
		return finish(core, outgoing, &outcome, false);
	outgoing->publication = publication_create(core, outgoing->key, &outgoing->message);
	if (!outgoing->publication)
		return plx_fail(ENOMEM, "out of memory to publish");
	send_to_all(core->matches, core->match_count, outgoing, &outcome);
	if (!outcome.taken && outcome.missing && !outcome.missed)
		outcome.too_big = outcome.gone = 0; /* they are counted when it is published */
	miss_rest(core->matches, &outcome, outgoing->message.tag);
	if (!outcome.taken && !outcome.missed) { /* no subscriber has it */
		publication_drop(outgoing->publication);
		return finish(core, outgoing, &outcome, false);
	}
	if (plx_unlikely(outcome.missing))
		pending = remember(core, outgoing, &outcome);
	if (!pending)
		publication_unref(outgoing->publication);
	return finish_reference(core, outgoing, &outcome);
}

static int publish_again(struct netio_publish_core *core, struct pending *pending,
			 struct outgoing *outgoing)
{
	struct outcome outcome = {0};
	struct publication *publication = pending->publication;
	bool taken = pending->taken;

	outgoing->publication = publication;
	pending_match(core, pending);
	send_to_all(pending->missing, pending->count, outgoing, &outcome);
	miss_rest(pending->missing, &outcome, outgoing->message.tag);
	core->missed[NETIO_GAP_GIVEN_UP] += outcome.gone;
	if (publication && outcome.gone && !publication->status)
		publication->status = -ECONNRESET;
	pending->count = outcome.missing;
	pending->taken |= outcome.taken > 0;
	if (!outcome.missing) {
		pending_destroy(core, pending);
		if (publication)
			publication_unref(publication);
	}
	return publication ? finish_reference(core, outgoing, &outcome)
			   : finish(core, outgoing, &outcome, taken);
}

/* Buffered ------------------------------------------------------------------------------------ */

static int check(const struct netio_publish_core *core, int flags)
{
	if (!core)
		return plx_fail(EINVAL, "the socket is not set up");
	return plx_fail(EINVAL, "flags %d: give 0 or NETIO_REENTRY", flags);
}

int netio_buffered_publishv(struct netio_publish_socket *socket, netio_tag_t tag,
			    const struct iovec *iov, size_t count, int flags,
			    struct netio_subscription_cache *cache)
{
	struct netio_publish_core *core = socket->core;
	struct outgoing outgoing = {.message = {.tag = tag, .iov = iov, .count = count}};
	struct pending *pending;

	ASSERT_LOOP(core, core->acceptor.evloop);
	if (plx_unlikely(!core || flags & ~NETIO_REENTRY))
		return check(core, flags);
	if (plx_unlikely(!message_measure(iov, count, PLX_SEND_COPY_MAX, &outgoing.message.length)))
		return message_refuse(iov, count, 0,
				      "netio_unbuffered_publishv of an unbuffered socket");
	pending = pending_find(core, tag, 0);
	if (plx_unlikely(pending != NULL)) {
		if (flags & NETIO_REENTRY)
			return publish_again(core, pending, &outgoing);
		pending_give_up(core, pending);
	}
	return publish_copy(core, &outgoing, cache);
}

int netio_buffered_publish(struct netio_publish_socket *socket, netio_tag_t tag, void *data,
			   size_t len, int flags, struct netio_subscription_cache *cache)
{
	return netio_buffered_publishv(socket, tag, &(struct iovec){data, len}, 1, flags, cache);
}

void netio_buffered_publish_flush(struct netio_publish_socket *socket)
{
	struct session_link *it;

	ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);
	if (!socket->core)
		return;
	LIST_FOREACH (it, &socket->core->acceptor.session.links, links)
		outbox_flush_soon(&((struct subscriber *)it)->outbox);
}

/* By reference -------------------------------------------------------------------------------- */

int netio_unbuffered_publishv_usr(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
				  struct iovec *iov, size_t count, uint64_t *key, int flags,
				  struct netio_subscription_cache *cache, uint64_t usr,
				  uint8_t usr_size)
{
	struct netio_publish_core *core = socket->core;
	struct iovec pieces[1 + NETIO_IOV_MAX];
	struct outgoing outgoing = {
		.message = {.tag = tag, .iov = pieces, .count = 1 + count},
		.key = *key,
	};
	struct pending *pending;

	ASSERT_LOOP(core, core->acceptor.evloop);
	if (plx_unlikely(!core || flags & ~NETIO_REENTRY))
		return check(core, flags);
	if (plx_unlikely(usr_size > sizeof(usr)))
		return plx_fail(EINVAL, "usr_size %u: give 0 to 8", usr_size);
	if (plx_unlikely(!message_measure(iov, count, WIRE_MESSAGE_MAX_LIMIT - usr_size,
					  &outgoing.message.length)))
		return message_refuse(iov, count, WIRE_MESSAGE_MAX_LIMIT - usr_size, NULL);
	outgoing.message.length += usr_size;
	pieces[0] = (struct iovec){&usr, usr_size};
	for (size_t i = 0; i < count; i++)
		pieces[1 + i] = iov[i];
	pending = pending_find(core, tag, *key);
	if (plx_likely(!pending))
		return publish_reference(core, &outgoing, cache);
	if (flags & NETIO_REENTRY)
		return publish_again(core, pending, &outgoing);
	return plx_fail(EALREADY,
			"a message of that tag and key is PARTIAL; give NETIO_REENTRY, or "
			"give it up");
}

int netio_unbuffered_publish_give_up(struct netio_unbuffered_publish_socket *socket,
				     netio_tag_t tag, uint64_t key)
{
	struct pending *pending = socket->core ? pending_find(socket->core, tag, key) : NULL;

	ASSERT_LOOP(socket->core, socket->core->acceptor.evloop);
	if (!pending)
		return plx_fail(ENOENT, "no message of that tag and key is PARTIAL");
	pending_give_up(socket->core, pending);
	return 0;
}

int netio_unbuffered_publishv(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
			      struct iovec *iov, size_t count, uint64_t *key, int flags,
			      struct netio_subscription_cache *cache)
{
	return netio_unbuffered_publishv_usr(socket, tag, iov, count, key, flags, cache, 0, 0);
}
