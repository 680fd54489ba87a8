/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscription requests to a publisher, and its answers. */
#include "pubsub_priv.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	return subscription_compare(&((const struct interest *)a)->what,
				    &((const struct interest *)b)->what);
}

static int make_room(struct publisher *publisher)
{
	uint32_t room = publisher->interest_room ? 2 * publisher->interest_room : 16;
	struct interest **interests;

	if (publisher->interest_count < publisher->interest_room)
		return 0;
	interests = realloc(publisher->interests, room * sizeof(*interests));
	if (!interests)
		return -ENOMEM;
	memset(interests + publisher->interest_room, 0,
	       (room - publisher->interest_room) * sizeof(*interests));
	publisher->interests = interests;
	publisher->interest_room = room;
	return 0;
}

static struct interest *interest_create(struct publisher *publisher,
					const struct netio_subscription *what)
{
	struct interest *interest = calloc(1, sizeof(*interest));

	if (interest)
		interest->what = *what;
	if (!interest || make_room(publisher) != 0 ||
	    !tsearch(interest, &publisher->by_what, compare)) {
		free(interest);
		return NULL;
	}
	while (publisher->interests[publisher->unused_from])
		publisher->unused_from++;
	interest->id = publisher->unused_from++;
	publisher->interests[interest->id] = interest;
	publisher->interest_count++;
	return interest;
}

/* It must be in no queue and not in the tree. */
static void interest_destroy(struct publisher *publisher, struct interest *interest)
{
	publisher->interests[interest->id] = NULL;
	publisher->interest_count--;
	if (interest->id < publisher->unused_from)
		publisher->unused_from = interest->id;
	free(interest);
}

static void tell_ended(struct publisher *publisher, struct interest *interest)
{
	struct netio_subscription what = interest->what;

	interest_destroy(publisher, interest);
	NOTIFY(netio_subscribe_socket, publisher, cb_unsubscribed, &what);
}

void publisher_report_ended(struct publisher *publisher)
{
	while (publisher->connection.socket && !TAILQ_EMPTY(&publisher->to_end)) {
		struct interest *interest = TAILQ_FIRST(&publisher->to_end);

		TAILQ_REMOVE(&publisher->to_end, interest, link);
		tell_ended(publisher, interest);
	}
}

/* Requests ------------------------------------------------------------------------------------ */

/* A full list says that another one follows. */
static uint32_t write_requests(struct publisher *publisher, uint8_t *out)
{
	const struct interest *interest = TAILQ_FIRST(&publisher->to_request);
	uint32_t count = 0;

	wire_list_write(out, WIRE_REQUEST);
	out += WIRE_LIST_BYTES;
	for (; interest && count < WIRE_LIST_MAX; interest = TAILQ_NEXT(interest, link), count++) {
		struct wire_request request = {.id = interest->id, .kind = WIRE_UNSUBSCRIBE};

		if (interest->state == INTEREST_NEW) {
			request.what = interest->what;
			request.kind = request.what.mask ? WIRE_SUBSCRIBE_MASK
							 : WIRE_SUBSCRIBE_RANGE;
		}
		wire_request_write(out, &request);
		out += WIRE_REQUEST_BYTES;
	}
	return !interest && count == WIRE_LIST_MAX ? count - 1 : count;
}

void publisher_send_requests(struct publisher *publisher)
{
	uint8_t list[WIRE_LIST_BYTES + WIRE_LIST_MAX * WIRE_REQUEST_BYTES];

	if (publisher->connection.session.state != PLX_CONNECTOR_OPEN || publisher->is_full)
		return;
	while (!TAILQ_EMPTY(&publisher->to_request)) {
		uint32_t count = write_requests(publisher, list);
		int rc = plx_link_send(publisher->connection.session.link, list,
				       WIRE_LIST_BYTES + WIRE_REQUEST_BYTES * (size_t)count);

		if (rc == -ENOMEM) /* no event would report the loss */
			plx_link_abort(publisher->connection.session.link);
		publisher->is_full = rc != 0; /* until on_writable or the link's end */
		if (rc)
			return;
		for (; count; count--) {
			struct interest *interest = TAILQ_FIRST(&publisher->to_request);
			bool is_new = interest->state == INTEREST_NEW;

			TAILQ_REMOVE(&publisher->to_request, interest, link);
			interest->answer_due |= is_new;
			interest->state = is_new ? INTEREST_REQUESTED : INTEREST_ENDED;
		}
	}
}

static struct interest *find(const struct publisher *publisher,
			     const struct netio_subscription *what)
{
	return tree_find(&(struct interest){.what = *what}, &publisher->by_what, compare);
}

int publisher_subscribe(struct publisher *publisher, const struct netio_subscription *what)
{
	struct interest *interest;

	if (find(publisher, what))
		return plx_fail(EEXIST, "netio_subscribe: that is subscribed to at %s",
				publisher->pub.address);
	interest = interest_create(publisher, what);
	if (!interest)
		return plx_fail(ENOMEM, "netio_subscribe: out of memory");
	TAILQ_INSERT_TAIL(&publisher->to_request, interest, link);
	publisher_send_requests(publisher);
	return 0;
}

int publisher_unsubscribe(struct publisher *publisher, const struct netio_subscription *what)
{
	struct interest *interest = find(publisher, what);

	if (!interest)
		return plx_fail(ENOENT, "netio_unsubscribe: that is not subscribed to at %s",
				publisher->pub.address);
	tdelete(interest, &publisher->by_what, compare);
	if (interest->state != INTEREST_NEW && interest->state != INTEREST_REFUSED) {
		interest->state = INTEREST_ENDING;
		TAILQ_INSERT_TAIL(&publisher->to_request, interest, link);
		publisher_send_requests(publisher);
		return 0;
	}
	TAILQ_REMOVE(interest->state == INTEREST_NEW ? &publisher->to_request
						     : &publisher->to_retry,
		     interest, link);
	interest->state = INTEREST_ENDED;
	TAILQ_INSERT_TAIL(&publisher->to_end, interest, link);
	plx_task_schedule(&publisher->report_task);
	return 0;
}

/* Refusals ------------------------------------------------------------------------------------ */

static void start_retry(struct publisher *publisher)
{
	if (!TAILQ_EMPTY(&publisher->to_retry) && !plx_timer_running(&publisher->retry_timer))
		plx_timer_start(&publisher->retry_timer, plx_backoff_next_ns(&publisher->retry));
}

/* One list at a time: there may be 100 000. An accepted one resets the back-off. */
static void request_again(struct plx_timer *timer, void *arg)
{
	struct publisher *publisher = arg;
	struct interest *interest;

	for (uint32_t i = 0; i < WIRE_LIST_MAX; i++) {
		interest = TAILQ_FIRST(&publisher->to_retry);
		if (!interest)
			break;
		TAILQ_REMOVE(&publisher->to_retry, interest, link);
		interest->state = INTEREST_NEW;
		TAILQ_INSERT_TAIL(&publisher->to_request, interest, link);
	}
	start_retry(publisher);
	publisher_send_requests(publisher);
}

void publisher_init_interests(struct publisher *publisher)
{
	const struct plx_connector_attr *attr = &publisher->connection.session.attr;

	TAILQ_INIT(&publisher->to_request);
	TAILQ_INIT(&publisher->to_end);
	TAILQ_INIT(&publisher->to_retry);
	plx_timer_init(&publisher->retry_timer, request_again, publisher);
	plx_timer_set_lax(&publisher->retry_timer, true);
	plx_backoff_init(&publisher->retry, attr->reconnect_min_ns, attr->reconnect_max_ns,
			 publisher->key);
}

void publisher_stop_retrying(struct publisher *publisher)
{
	plx_timer_stop(&publisher->retry_timer);
	plx_backoff_reset(&publisher->retry);
	TAILQ_INIT(&publisher->to_retry);
}

/* It may have room later, unless it does not want subscriptions like that. Return: whether it is
 * asked again. */
static bool retry_later(struct publisher *publisher, struct interest *interest,
			enum wire_status status)
{
	if (status == WIRE_NO_BLOCK ||
	    publisher->connection.session.attr.reconnect_min_ns == PLX_NEVER)
		return false;
	interest->state = INTEREST_REFUSED;
	TAILQ_INSERT_TAIL(&publisher->to_retry, interest, link);
	start_retry(publisher);
	return true;
}

/* Log each reason once a connection. If the program is notified, it is no warning. */
static void log_refused(struct publisher *publisher, enum wire_status status, const char *why,
			bool is_retried)
{
	const struct netio_subscribe_socket *socket = publisher->connection.socket;
	bool is_notified = socket && socket->cb_subscription_refused;

	if (publisher->refusals_logged & 1u << status)
		return;
	publisher->refusals_logged |= 1u << status;
	plx_log(netio_log, is_notified ? PLX_LOG_INFO : PLX_LOG_WARNING,
		"%s refuses a subscription: %s%s", publisher->pub.address, why,
		is_retried ? "; trying again" : "");
}

static void refused(struct publisher *publisher, struct interest *interest, enum wire_status status)
{
	static const char *const whys[WIRE_STATUS_COUNT] = {
		[WIRE_TOO_MANY] = "the publisher takes no more subscriptions",
		[WIRE_TOO_MASKS] = "the publisher takes no more different masks",
		[WIRE_NO_MEMORY] = "the publisher has no memory for it",
		[WIRE_NO_BLOCK] = "the publisher lets nobody block it; give another policy",
	};
	struct netio_subscription what = interest->what;
	bool is_retried = retry_later(publisher, interest, status);

	log_refused(publisher, status, whys[status], is_retried);
	if (!is_retried) {
		tdelete(interest, &publisher->by_what, compare);
		interest_destroy(publisher, interest);
	}
	NOTIFY(netio_subscribe_socket, publisher, cb_subscription_refused, &what, whys[status]);
	if (!is_retried)
		NOTIFY(netio_subscribe_socket, publisher, cb_unsubscribed, &what);
}

/* Answers ------------------------------------------------------------------------------------- */

static void subscribed(struct publisher *publisher, struct interest *interest, bool is_resumed)
{
	struct netio_subscription what = interest->what;
	bool was_lost = interest->was_lost;

	interest->state = INTEREST_ACTIVE;
	interest->was_lost = false;
	plx_backoff_reset(&publisher->retry);
	if (was_lost && !is_resumed)
		publisher_note_unknown(publisher);
	if (was_lost)
		NOTIFY(netio_subscribe_socket, publisher, cb_subscription_resumed, &what);
	else
		NOTIFY(netio_subscribe_socket, publisher, cb_subscribed, &what);
}

/* Return: NULL; or the error as text. */
static const char *handle_answer(struct publisher *publisher, const uint8_t *in)
{
	struct wire_answer answer;
	const char *wrong = wire_answer_read(in, &answer);
	struct interest *interest;
	bool is_end;

	if (wrong)
		return wrong;
	interest = answer.id < publisher->interest_room ? publisher->interests[answer.id] : NULL;
	is_end = answer.status == WIRE_UNSUBSCRIBED || answer.status == WIRE_UNKNOWN;
	if (interest && interest->answer_due && !is_end) {
		interest->answer_due = false;
		if (interest->state != INTEREST_REQUESTED) /* already unsubscribed */
			return NULL;
		if (answer.status == WIRE_SUBSCRIBED || answer.status == WIRE_RESUMED)
			subscribed(publisher, interest, answer.status == WIRE_RESUMED);
		else
			refused(publisher, interest, answer.status);
		return NULL;
	}
	if (interest && !interest->answer_due && is_end && interest->state == INTEREST_ENDED) {
		tell_ended(publisher, interest);
		return NULL;
	}
	return "an answer to what was not asked for";
}

const char *publisher_handle_answers(struct publisher *publisher, const struct plx_buf *message)
{
	const uint8_t *in = message->data + WIRE_LIST_BYTES;
	uint32_t count;
	const char *wrong = wire_list_read(message->data, message->len, WIRE_ANSWER,
					   WIRE_ANSWER_BYTES, &count);

	for (; !wrong && publisher->connection.socket && count; count--, in += WIRE_ANSWER_BYTES)
		wrong = handle_answer(publisher, in);
	return wrong;
}

/* Loss ---------------------------------------------------------------------------------------- */

/* Request it again, or report its end. */
static void lose(struct publisher *publisher, struct interest *interest)
{
	interest->answer_due = false;
	if (interest->state == INTEREST_ENDING || interest->state == INTEREST_ENDED) {
		interest->state = INTEREST_ENDED;
		TAILQ_INSERT_TAIL(&publisher->to_end, interest, link);
		return;
	}
	interest->loss_due = interest->state == INTEREST_ACTIVE;
	interest->was_lost |= interest->loss_due;
	interest->state = INTEREST_NEW;
	TAILQ_INSERT_TAIL(&publisher->to_request, interest, link);
}

/* The callbacks may add and end subscriptions. */
static void report_lost(struct publisher *publisher, const char *why)
{
	for (uint32_t id = 0; publisher->connection.socket && id < publisher->interest_room; id++) {
		struct interest *interest = publisher->interests[id];
		struct netio_subscription what;

		if (!interest || !interest->loss_due || interest->state != INTEREST_NEW)
			continue;
		interest->loss_due = false;
		what = interest->what;
		NOTIFY(netio_subscribe_socket, publisher, cb_subscription_lost, &what, why);
	}
}

void publisher_lose_all(struct publisher *publisher, const char *why)
{
	publisher_stop_retrying(publisher);
	TAILQ_INIT(&publisher->to_request);
	TAILQ_INIT(&publisher->to_end);
	plx_task_cancel(&publisher->report_task);
	for (uint32_t id = 0; id < publisher->interest_room; id++)
		if (publisher->interests[id])
			lose(publisher, publisher->interests[id]);
	report_lost(publisher, why);
	publisher_report_ended(publisher);
}

void publisher_free_interests(struct publisher *publisher)
{
	for (uint32_t id = 0; id < publisher->interest_room; id++) {
		struct interest *interest = publisher->interests[id];

		if (interest && interest->state >= INTEREST_ENDING)
			free(interest);
	}
	tdestroy(publisher->by_what, free); /* all others */
	free(publisher->interests);
}
