/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers' requests to a publish socket, and the answers. Everything is checked before it is
 * used. */
#include "pubsub_priv.h"

#include <search.h>
#include <stdlib.h>

/* Subscriptions ------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
	const struct subscription *one = a, *other = b;

	return (one->id > other->id) - (one->id < other->id);
}

static int compare_filters(const void *a, const void *b)
{
	const struct table_filter *one = &((const struct subscription *)a)->filter;
	const struct table_filter *other = &((const struct subscription *)b)->filter;

	if (one->is_mask != other->is_mask)
		return one->is_mask ? 1 : -1;
	if (one->first != other->first)
		return one->first > other->first ? 1 : -1;
	return (one->last > other->last) - (one->last < other->last);
}

static struct subscription *find(struct subscriber *subscriber, uint32_t id)
{
	struct subscription wanted = {.id = id};
	struct subscription **found = tfind(&wanted, &subscriber->by_id, compare_ids);

	return found ? *found : NULL;
}

static void table_changed(struct netio_publish_core *core)
{
	core->version = match_new_version();
}

static struct netio_subscription describe(const struct wire_request *request)
{
	struct netio_subscription what = {
		.tag = request->first,
		.delivery = (enum netio_delivery)request->delivery,
		.policy = (enum netio_policy)request->policy,
		.backlog_bytes = request->backlog_bytes,
	};

	if (request->what == WIRE_SUBSCRIBE_MASK)
		what.mask = request->last;
	else if (request->last != request->first)
		what.last = request->last;
	return what;
}

/* Remove it from the table and free it; it is already out of its subscriber's trees. */
static void drop(struct subscription *subscription, struct netio_subscription *what_out)
{
	struct subscriber *subscriber = subscription->subscriber;
	struct netio_publish_core *core = subscriber_core(subscriber);

	table_remove(&core->table, subscription->pairs, subscription->pair_count);
	table_changed(core);
	core->stats.subscriptions--;
	core->places -= subscription->pair_count;
	subscriber->places -= subscription->pair_count;
	*what_out = subscription->what;
	free(subscription);
}

static enum wire_status unsubscribe(struct subscriber *subscriber, uint32_t id,
				    struct netio_subscription *what_out)
{
	struct subscription *subscription = find(subscriber, id);

	if (!subscription)
		return WIRE_UNKNOWN;
	tdelete(subscription, &subscriber->by_id, compare_ids);
	tdelete(subscription, &subscriber->by_filter, compare_filters);
	drop(subscription, what_out);
	return WIRE_UNSUBSCRIBED;
}

/* The result of a request. */
struct change {
	enum wire_status status;
	struct netio_subscription what;
};

static void notify(struct subscriber *subscriber, const struct change *change)
{
	const struct netio_publish_core *core = subscriber_core(subscriber);

	if (change->status == WIRE_SUBSCRIBED)
		PUBLISH_CALLBACK(core, cb_subscribed, (&subscriber->pub, &change->what));
	else if (change->status == WIRE_UNSUBSCRIBED)
		PUBLISH_CALLBACK(core, cb_unsubscribed, (&subscriber->pub, &change->what));
}

static void drop_subscriptions(struct subscriber *subscriber)
{
	while (subscriber->by_id) {
		uint32_t id = (*(struct subscription **)subscriber->by_id)->id;
		struct change change;

		change.status = unsubscribe(subscriber, id, &change.what);
		notify(subscriber, &change);
	}
}

static struct table_filter filter_of(const struct wire_request *request)
{
	return (struct table_filter){
		.first = request->first,
		.last = request->last,
		.is_mask = request->what == WIRE_SUBSCRIBE_MASK,
	};
}

/* Unset terms come from the publisher. The backlog is limited to what the pages hold. */
static void set_terms(const struct netio_publish_core *core, struct subscription *subscription)
{
	const struct netio_subscription *what = &subscription->what;
	struct outbox_terms *terms = &subscription->terms;
	uint64_t backlog_max = (uint64_t)core->outbox_attr.page_count *
			       core->outbox_attr.page_bytes;

	terms->policy = (uint8_t)what->policy;
	terms->backlog_bytes = what->backlog_bytes;
	if (what->policy == NETIO_POLICY_DEFAULT) {
		terms->policy = (uint8_t)core->policy;
		if (!what->backlog_bytes)
			terms->backlog_bytes = core->backlog_bytes;
	}
	if (!terms->backlog_bytes || terms->backlog_bytes > backlog_max)
		terms->backlog_bytes = backlog_max;
	terms->at_once = what->delivery == NETIO_DELIVERY_AT_ONCE ||
			 (what->delivery == NETIO_DELIVERY_DEFAULT && core->unbuffered);
}

static struct subscription *create(struct subscriber *subscriber,
				   const struct wire_request *request)
{
	struct table_filter filter = filter_of(request);
	unsigned pairs = table_pairs_of(&filter);
	struct subscription *subscription = malloc(sizeof(*subscription) +
						   pairs * sizeof(struct table_pair));

	if (!subscription)
		return NULL;
	subscription->subscriber = subscriber;
	subscription->id = request->id;
	subscription->what = describe(request);
	set_terms(subscriber_core(subscriber), subscription);
	subscription->filter = filter;
	subscription->pair_count = pairs;
	return subscription;
}

/* Return: WIRE_SUBSCRIBED; or the reason. */
static enum wire_status enter(struct subscriber *subscriber, struct subscription *subscription)
{
	struct netio_publish_core *core = subscriber_core(subscriber);
	const struct outbox_terms *terms = &subscription->terms;
	bool needs_pages = !terms->at_once || core->buffered || terms->policy != NETIO_POLICY_BLOCK;
	int rc;

	if (core->refuse_block && terms->policy == NETIO_POLICY_BLOCK)
		return WIRE_NO_BLOCK;
	/* Messages sent at once need pages when the link is full. By reference with the block
	 * policy, the publisher waits instead. */
	if (needs_pages && outbox_make_pages(&subscriber->outbox) != 0)
		return WIRE_NO_MEMORY;
	outbox_add_policy(&subscriber->outbox, terms->policy);
	if (!tsearch(subscription, &subscriber->by_id, compare_ids))
		return WIRE_NO_MEMORY;
	if (!tsearch(subscription, &subscriber->by_filter, compare_filters)) {
		tdelete(subscription, &subscriber->by_id, compare_ids);
		return WIRE_NO_MEMORY;
	}
	rc = table_add(&core->table, &subscription->filter, subscription->pairs, subscription);
	if (rc == 0)
		return WIRE_SUBSCRIBED;
	tdelete(subscription, &subscriber->by_filter, compare_filters);
	tdelete(subscription, &subscriber->by_id, compare_ids);
	return rc == -ENOSPC ? WIRE_TOO_MASKS : WIRE_NO_MEMORY;
}

/* A duplicate filter is a protocol error: our subscribers end the first subscription before. */
static bool has_filter(struct subscriber *subscriber, const struct wire_request *request)
{
	struct subscription wanted = {.filter = filter_of(request)};

	return tfind(&wanted, &subscriber->by_filter, compare_filters) != NULL;
}

static enum wire_status subscribe(struct subscriber *subscriber, const struct wire_request *request,
				  struct netio_subscription *what_out)
{
	struct netio_publish_core *core = subscriber_core(subscriber);
	struct subscription *subscription;
	enum wire_status status;

	subscription = create(subscriber, request);
	if (!subscription)
		return WIRE_NO_MEMORY;
	if (subscription->pair_count > core->subscriptions_max - core->places ||
	    subscription->pair_count > core->subscriber_subscriptions_max - subscriber->places)
		status = WIRE_TOO_MANY;
	else
		status = enter(subscriber, subscription);
	if (status != WIRE_SUBSCRIBED) {
		free(subscription);
		return status;
	}
	table_changed(core);
	core->stats.subscriptions++;
	core->places += subscription->pair_count;
	subscriber->places += subscription->pair_count;
	*what_out = subscription->what;
	return WIRE_SUBSCRIBED;
}

/* Requests ------------------------------------------------------------------------------------ */

/* The answer follows all messages published before it, but no later ones: a busy publisher would
 * delay it forever. */
static void place_answer(struct subscriber *subscriber)
{
	struct outbox *outbox = &subscriber->outbox;

	if (outbox->page)
		outbox_flush(outbox);
	subscriber->answer_behind = outbox->number;
	subscriber->answer_order = outbox->latest.count ? outbox->latest.order : 0;
}

static bool earlier_are_sent(struct subscriber *subscriber)
{
	struct outbox *outbox = &subscriber->outbox;
	const struct latest *latest = conflation_first(&outbox->latest);

	if (subscriber->answer_order) {
		if (latest && latest->order <= subscriber->answer_order)
			return false;
		subscriber->answer_order = 0; /* they are in pages now */
		if (outbox->page)
			outbox_flush(outbox);
		subscriber->answer_behind = outbox->number;
	}
	outbox_send_until(outbox, subscriber->answer_behind);
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
	if (request.what == WIRE_UNSUBSCRIBE)
		change->status = unsubscribe(subscriber, request.id, &change->what);
	else if (find(subscriber, request.id) || has_filter(subscriber, &request))
		return "a request with an id that is in use, or for what it has";
	else
		change->status = subscribe(subscriber, &request, &change->what);
	stats->refused += change->status != WIRE_SUBSCRIBED && change->status != WIRE_UNSUBSCRIBED;
	wire_answer_write(subscriber->answer + subscriber->answer_bytes,
			  &(struct wire_answer){request.id, (uint8_t)change->status});
	subscriber->answer_bytes += WIRE_ANSWER_BYTES;
	return NULL;
}

static const char *handle_requests(struct subscriber *subscriber, const struct plx_buf *message)
{
	struct change changes[WIRE_LIST_MAX];
	uint32_t count, done = 0;
	const char *wrong = wire_list_read(message->data, message->len, WIRE_REQUEST,
					   WIRE_REQUEST_BYTES, &count);

	if (wrong)
		return wrong;
	wire_list_write(subscriber->answer, WIRE_ANSWER);
	subscriber->answer_bytes = WIRE_LIST_BYTES;
	while (done < count && !wrong) {
		wrong = handle_request(subscriber,
				       message->data + WIRE_LIST_BYTES +
					       (size_t)done * WIRE_REQUEST_BYTES,
				       &changes[done]);
		done += !wrong;
	}
	if (!wrong) {
		place_answer(subscriber);
		send_answer(subscriber);
	}
	/* After the answer: callbacks may publish, or release the socket. */
	for (uint32_t i = 0; i < done; i++)
		notify(subscriber, &changes[i]);
	return wrong;
}

static void drop_requests(struct subscriber *subscriber)
{
	while (subscriber->request_count) {
		plx_buf_unref(subscriber->requests[subscriber->request_first]);
		subscriber->request_first = (subscriber->request_first + 1) %
					    PLX_ARRAY_LEN(subscriber->requests);
		subscriber->request_count--;
	}
}

/* While an answer waits, so do requests. They keep their share of the link's window. */
const char *requests_received(struct subscriber *subscriber, struct plx_buf *message)
{
	uint32_t last = subscriber->request_first + subscriber->request_count;

	/* Messages published before the close are still sent; later requests are ignored. */
	if (plx_unlikely(subscriber->accepted.session.closing))
		return NULL;
	if (!subscriber->answer_bytes)
		return handle_requests(subscriber, message);
	if (subscriber->request_count == PLX_ARRAY_LEN(subscriber->requests))
		return "more than it was granted";
	subscriber->requests[last % PLX_ARRAY_LEN(subscriber->requests)] = plx_buf_ref(message);
	subscriber->request_count++;
	return NULL;
}

void requests_resume(struct subscriber *subscriber)
{
	while (subscriber_is_there(subscriber) && send_answer(subscriber) &&
	       subscriber->request_count) {
		struct plx_buf *message = subscriber->requests[subscriber->request_first];
		const char *wrong;

		subscriber->request_first = (subscriber->request_first + 1) %
					    PLX_ARRAY_LEN(subscriber->requests);
		subscriber->request_count--;
		wrong = handle_requests(subscriber, message);
		plx_buf_unref(message);
		if (wrong) {
			accepted_fail(&subscriber->accepted, wrong);
			return;
		}
	}
}

void requests_drop(struct subscriber *subscriber)
{
	subscriber->answer_bytes = 0;
	drop_requests(subscriber);
	drop_subscriptions(subscriber);
}
