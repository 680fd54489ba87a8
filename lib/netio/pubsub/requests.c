/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers' requests to a publish socket, checked before use, and the answers. */
#include "pubsub_priv.h"

#include <stdio.h>
#include <stdlib.h>

#define REQUESTS_MAX (REQUEST_BUFFERS + 2) /* that wait for an answer */

static int compare_ids(const void *a, const void *b)
{
	return compare_numbers(((const struct subscription *)a)->id,
			       ((const struct subscription *)b)->id);
}

static int compare_whats(const void *a, const void *b)
{
	return subscription_compare(&((const struct subscription *)a)->what,
				    &((const struct subscription *)b)->what);
}

static struct subscription *find(struct subscriber *subscriber, uint32_t id)
{
	return tree_find(&(struct subscription){.id = id}, &subscriber->by_id, compare_ids);
}

static void leave_trees(struct subscriber *subscriber, const struct subscription *subscription)
{
	tdelete(subscription, &subscriber->by_id, compare_ids);
	tdelete(subscription, &subscriber->by_what, compare_whats);
}

/* It has entered the table, or left it: +1 or -1. */
static void count(const struct subscription *subscription, int step)
{
	struct subscriber *subscriber = subscription->subscriber;
	struct netio_publish_core *core = subscriber_core(subscriber);
	uint32_t places = (uint32_t)step * subscription->pair_count;

	core->version = match_new_version();
	outbox_count_policy(&subscriber->outbox, subscription->terms.policy, step);
	if (!subscriber->absent_until_ns)
		core->stats.subscriptions += (uint32_t)step;
	core->places += places;
	subscriber->places += places;
}

static void leave_table(struct subscription *subscription)
{
	table_remove(&subscriber_core(subscription->subscriber)->table, subscription->pairs,
		     subscription->pair_count);
	count(subscription, -1);
	free(subscription);
}

static void end(struct subscriber *subscriber, struct subscription *subscription)
{
	leave_trees(subscriber, subscription);
	leave_table(subscription);
}

static enum wire_status unsubscribe(struct subscriber *subscriber, uint32_t id,
				    struct netio_subscription *what_out)
{
	struct subscription *subscription = find(subscriber, id);

	if (!subscription)
		return WIRE_UNKNOWN;
	*what_out = subscription->what;
	end(subscriber, subscription);
	return WIRE_UNSUBSCRIBED;
}

static struct subscription *find_what(const struct subscriber *subscriber,
				      const struct netio_subscription *what)
{
	return tree_find(&(struct subscription){.what = *what}, &subscriber->by_what,
			 compare_whats);
}

bool requests_end(struct subscriber *subscriber, const struct netio_subscription *what)
{
	struct subscription *subscription = find_what(subscriber, what);

	if (subscription)
		end(subscriber, subscription);
	return subscription;
}

/* To an absent subscriber, which needs no id. */
static void hand_over(struct subscriber *from, struct subscription *subscription,
		      struct subscriber *to)
{
	struct subscription **found;

	leave_trees(from, subscription);
	found = tsearch(subscription, &to->by_what, compare_whats);
	if (!found || *found != subscription) { /* no memory; or it has one for the same */
		leave_table(subscription);
		return;
	}
	count(subscription, -1);
	subscription->subscriber = to;
	count(subscription, 1);
}

static struct subscription *any_of(const struct subscriber *subscriber)
{
	return subscriber->by_what ? *(struct subscription **)subscriber->by_what : NULL;
}

void requests_hand_over(struct subscriber *from, struct subscriber *to)
{
	while (from->by_what)
		hand_over(from, any_of(from), to);
}

struct change {
	enum wire_status status;
	struct netio_subscription what;
};

static void notify(struct subscriber *subscriber, const struct change *change)
{
	const struct netio_publish_core *core = subscriber_core(subscriber);

	if (change->status == WIRE_SUBSCRIBED || change->status == WIRE_RESUMED)
		PUBLISH_CALLBACK(core, cb_subscribed, (&subscriber->pub, &change->what));
	else if (change->status == WIRE_UNSUBSCRIBED)
		PUBLISH_CALLBACK(core, cb_unsubscribed, (&subscriber->pub, &change->what));
}

/* Unset terms come from the publisher. The backlog is limited to what the pages hold. */
static struct outbox_terms terms_of(const struct netio_publish_core *core,
				    const struct netio_subscription *what)
{
	const struct netio_buffered_attr *pages = &core->outbox_attr;
	uint64_t backlog_max = (uint64_t)pages->page_count * pages->page_bytes;
	uint64_t backlog = what->backlog_bytes;

	if (what->policy == NETIO_POLICY_DEFAULT && !backlog)
		backlog = core->attr.backlog_bytes;
	return (struct outbox_terms){
		.policy = (uint8_t)(what->policy ?: core->attr.policy),
		.backlog_bytes = backlog && backlog < backlog_max ? backlog : backlog_max,
		.at_once = what->delivery == NETIO_DELIVERY_AT_ONCE ||
			   (what->delivery == NETIO_DELIVERY_DEFAULT && core->unbuffered),
	};
}

static enum wire_status enter(struct subscription *subscription)
{
	struct subscriber *subscriber = subscription->subscriber;
	struct netio_publish_core *core = subscriber_core(subscriber);
	const struct outbox_terms *terms = &subscription->terms;
	bool needs_all_pages = !terms->at_once || core->buffered ||
			       terms->policy != NETIO_POLICY_BLOCK;
	int rc = -ENOMEM;

	if (core->attr.refuse_block && terms->policy == NETIO_POLICY_BLOCK)
		return WIRE_NO_BLOCK;
	/* Messages sent at once need pages when the link is full. By reference with the block
	 * policy, only short ones do, in few pages. */
	if (needs_all_pages &&
	    outbox_make_pages(&subscriber->outbox, core->outbox_attr.page_count) != 0)
		return WIRE_NO_MEMORY;
	if (tsearch(subscription, &subscriber->by_id, compare_ids) &&
	    tsearch(subscription, &subscriber->by_what, compare_whats))
		rc = table_add(&core->table, &subscription->what, subscription->pairs,
			       subscription);
	if (rc == 0)
		return WIRE_SUBSCRIBED;
	leave_trees(subscriber, subscription);
	return rc == -ENOSPC ? WIRE_TOO_MASKS : WIRE_NO_MEMORY;
}

/* what: not subscribed to yet. */
static enum wire_status try_to_subscribe(struct subscriber *subscriber, uint32_t id,
					 const struct netio_subscription *what)
{
	const struct netio_publish_core *core = subscriber_core(subscriber);
	unsigned pairs = table_pairs_of(what);
	struct subscription *subscription;
	enum wire_status status;

	if (pairs > core->attr.subscriptions_max - core->places ||
	    pairs > core->attr.subscriber_subscriptions_max - subscriber->places)
		return WIRE_TOO_MANY;
	subscription = malloc(sizeof(*subscription) + pairs * sizeof(struct table_pair));
	if (!subscription)
		return WIRE_NO_MEMORY;
	subscription->subscriber = subscriber;
	subscription->id = id;
	subscription->what = *what;
	subscription->terms = terms_of(core, what);
	subscription->pair_count = pairs;
	status = enter(subscription);
	if (status == WIRE_SUBSCRIBED)
		count(subscription, 1);
	else
		free(subscription);
	return status;
}

/* An absent subscriber gives way to one that is here. */
static enum wire_status subscribe(struct subscriber *subscriber, uint32_t id,
				  const struct netio_subscription *what)
{
	bool is_resumed = absent_resume(subscriber, what);
	enum wire_status status;

	do
		status = try_to_subscribe(subscriber, id, what);
	while ((status == WIRE_TOO_MANY || status == WIRE_TOO_MASKS) &&
	       absent_drop_oldest(subscriber_core(subscriber)));
	return status == WIRE_SUBSCRIBED && is_resumed ? WIRE_RESUMED : status;
}

/* Requests ------------------------------------------------------------------------------------ */

static bool earlier_are_sent(struct subscriber *subscriber)
{
	struct outbox *outbox = &subscriber->outbox;
	const struct latest *latest = TAILQ_FIRST(&outbox->latest.queue);

	if (subscriber->answer_order) {
		if (latest && latest->order <= subscriber->answer_order)
			return false;
		subscriber->answer_order = 0; /* they are in pages now */
		subscriber->answer_behind = outbox->number;
	}
	if (outbox->page && outbox->number <= subscriber->answer_behind)
		outbox_flush(outbox);
	outbox_send_until(outbox, subscriber->answer_behind);
	outbox_report_gap(outbox);
	return outbox_sent_until(outbox, subscriber->answer_behind);
}

/* Return: whether no answer waits. */
static bool send_answer(struct subscriber *subscriber)
{
	int rc;

	if (!subscriber->answer_bytes)
		return true;
	if (!earlier_are_sent(subscriber))
		return false;
	rc = plx_link_send(subscriber->accepted.session.link, subscriber->answer,
			   subscriber->answer_bytes);
	if (rc == -EAGAIN)
		return false;
	if (rc && rc != -ENOTCONN) /* out of memory: close, or it would wait forever */
		plx_link_abort(subscriber->accepted.session.link);
	subscriber->answer_bytes = 0;
	return true;
}

#define REASON_BYTES 192

static void explain(const struct subscriber *subscriber, enum wire_status status,
		    char reason[REASON_BYTES])
{
	const struct netio_publish_core *core = subscriber_core(subscriber);

	if (status == WIRE_TOO_MANY)
		snprintf(reason, REASON_BYTES,
			 "it has %u, of %u (subscriber_subscriptions_max), and all have %u, of %u "
			 "(subscriptions_max)",
			 subscriber->places, core->attr.subscriber_subscriptions_max, core->places,
			 core->attr.subscriptions_max);
	else if (status == WIRE_TOO_MASKS)
		snprintf(reason, REASON_BYTES, "subscriptions have %d different masks already",
			 TABLE_MASKS_MAX);
	else
		snprintf(reason, REASON_BYTES, "%s",
			 status == WIRE_NO_BLOCK ? "it would block (refuse_block)"
						 : "out of memory");
}

/* A subscriber asks again: log each reason once. */
static void log_refusal(struct subscriber *subscriber, enum wire_status status)
{
	struct acceptor *acceptor = &subscriber_core(subscriber)->acceptor;
	char reason[REASON_BYTES], who[PLX_PEER_BYTES];

	if (subscriber->refusals_logged & 1u << status ||
	    !plx_log_allowed(&acceptor->log_limit, plx_loop_now_ns()))
		return;
	subscriber->refusals_logged |= 1u << status;
	explain(subscriber, status, reason);
	plx_log(netio_log, PLX_LOG_WARNING, "subscriber %s is refused a subscription: %s",
		plx_peer_format(subscriber->accepted.peer, subscriber->accepted.program,
				subscriber->accepted.pid, who),
		reason);
}

static bool is_refusal(enum wire_status status)
{
	return status != WIRE_SUBSCRIBED && status != WIRE_RESUMED && status != WIRE_UNSUBSCRIBED;
}

/* Return: NULL; or the error as text. */
static const char *handle_request(struct subscriber *subscriber, const uint8_t *in,
				  struct change *change)
{
	struct netio_publish_stats *stats = &subscriber_core(subscriber)->stats;
	struct wire_request request;
	const char *wrong = wire_request_read(in, &request);

	if (wrong)
		return wrong;
	stats->requests++;
	change->what = request.what;
	/* Our subscribers end a subscription before they request the same again. */
	if (request.kind == WIRE_UNSUBSCRIBE)
		change->status = unsubscribe(subscriber, request.id, &change->what);
	else if (find(subscriber, request.id) || find_what(subscriber, &request.what))
		return "a request with an id that is in use, or for what it has";
	else
		change->status = subscribe(subscriber, request.id, &change->what);
	if (is_refusal(change->status)) {
		stats->refused++;
		log_refusal(subscriber, change->status);
	}
	wire_answer_write(subscriber->answer + subscriber->answer_bytes,
			  &(struct wire_answer){request.id, (uint8_t)change->status});
	subscriber->answer_bytes += WIRE_ANSWER_BYTES;
	return NULL;
}

static const char *handle_requests(struct subscriber *subscriber, const struct plx_buf *message)
{
	const uint8_t *in = message->data + WIRE_LIST_BYTES;
	struct outbox *outbox = &subscriber->outbox;
	struct change changes[WIRE_LIST_MAX];
	uint32_t count, done = 0;
	const char *wrong = wire_list_read(message->data, message->len, WIRE_REQUEST,
					   WIRE_REQUEST_BYTES, &count);

	if (wrong)
		return wrong;
	wire_list_write(subscriber->answer, WIRE_ANSWER);
	subscriber->answer_bytes = WIRE_LIST_BYTES;
	for (; done < count && !wrong; in += WIRE_REQUEST_BYTES) {
		wrong = handle_request(subscriber, in, &changes[done]);
		done += !wrong;
	}
	if (!wrong) {
		/* The answer follows all messages published before it, but no later ones: a busy
		 * publisher would delay it forever. The next page may carry a gap. */
		subscriber->answer_behind = outbox->number + (outbox->gap.count > 0);
		subscriber->answer_order = outbox->latest.count ? outbox->latest.order : 0;
		send_answer(subscriber);
		/* At first a subscriber requests all it wants: the last list is not full. */
		if (count < WIRE_LIST_MAX)
			absent_end(subscriber);
	}
	/* After the answer: callbacks may publish, or release the socket. */
	for (uint32_t i = 0; i < done; i++)
		notify(subscriber, &changes[i]);
	return wrong;
}

static struct plx_buf *take_first(struct subscriber *subscriber)
{
	struct plx_buf *message = subscriber->requests;

	subscriber->requests = message->next;
	message->next = NULL;
	return message;
}

/* While an answer waits, so do requests. They keep their share of the link's window. */
const char *requests_received(struct accepted *accepted, struct plx_buf *message)
{
	struct subscriber *subscriber = (struct subscriber *)accepted;
	struct plx_buf **end = &subscriber->requests;
	unsigned count = 0;

	/* Messages published before the close are still sent; later requests are ignored. */
	if (plx_unlikely(accepted->session.closing))
		return NULL;
	if (!subscriber->answer_bytes)
		return handle_requests(subscriber, message);
	for (; *end; end = &(*end)->next)
		count++;
	if (count == REQUESTS_MAX)
		return "more than it was granted";
	*end = plx_buf_ref(message);
	return NULL;
}

void requests_resume(struct subscriber *subscriber)
{
	while (subscriber_is_there(subscriber) && send_answer(subscriber) && subscriber->requests) {
		struct plx_buf *message = take_first(subscriber);
		const char *wrong = handle_requests(subscriber, message);

		plx_buf_unref(message);
		if (wrong) {
			accepted_fail(&subscriber->accepted, wrong);
			return;
		}
	}
}

void requests_drop(struct subscriber *subscriber, bool silently)
{
	subscriber->answer_bytes = 0;
	while (subscriber->requests)
		plx_buf_unref(take_first(subscriber));
	while (subscriber->by_what) {
		struct subscription *any = any_of(subscriber);
		struct change change = {WIRE_UNSUBSCRIBED, any->what};

		if (subscriber->other && !subscriber->absent_until_ns)
			hand_over(subscriber, any, subscriber->other);
		else
			end(subscriber, any);
		if (!silently)
			notify(subscriber, &change);
	}
}
