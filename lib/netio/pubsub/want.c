/* SPDX-License-Identifier: BSD-3-Clause */
/* What a publisher is asked for, and what it answers. */
#include "pubsub_priv.h"

#include <search.h>
#include <stdlib.h>

/* Wants --------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct netio_subscription *one = &((const struct want *)a)->what;
	const struct netio_subscription *other = &((const struct want *)b)->what;

	if (one->tag != other->tag)
		return one->tag > other->tag ? 1 : -1;
	if (one->last != other->last)
		return one->last > other->last ? 1 : -1;
	return (one->mask > other->mask) - (one->mask < other->mask);
}

static int make_room(struct feed *feed)
{
	uint32_t room = feed->want_room ? 2 * feed->want_room : 16;
	struct want **wants;

	if (feed->want_count < feed->want_room)
		return 0;
	wants = realloc(feed->wants, room * sizeof(*wants));
	if (!wants)
		return -ENOMEM;
	memset(wants + feed->want_room, 0, (room - feed->want_room) * sizeof(*wants));
	feed->wants = wants;
	feed->want_room = room;
	return 0;
}

static struct want *want_create(struct feed *feed, const struct netio_subscription *what)
{
	struct want *want = calloc(1, sizeof(*want));

	if (!want || make_room(feed) != 0) {
		free(want);
		return NULL;
	}
	while (feed->wants[feed->unused_from])
		feed->unused_from++;
	*want = (struct want){.what = *what, .state = WANT_NEW, .id = feed->unused_from};
	feed->wants[feed->unused_from++] = want;
	feed->want_count++;
	return want;
}

/* It is in no queue, and not in the tree. */
static void want_destroy(struct feed *feed, struct want *want)
{
	feed->wants[want->id] = NULL;
	feed->want_count--;
	if (want->id < feed->unused_from)
		feed->unused_from = want->id;
	free(want);
}

static void tell_ended(struct feed *feed, struct want *want)
{
	struct netio_subscription what = want->what;

	want_destroy(feed, want);
	TELL(feed, cb_unsubscribed, (&feed->pub, &what));
}

void feed_tell_ended(struct feed *feed)
{
	while (feed->feeds && !TAILQ_EMPTY(&feed->to_end)) {
		struct want *want = TAILQ_FIRST(&feed->to_end);

		TAILQ_REMOVE(&feed->to_end, want, link);
		tell_ended(feed, want);
	}
}

/* Requests ------------------------------------------------------------------------------------ */

static void write_request(const struct want *want, uint8_t *out)
{
	const struct netio_subscription *what = &want->what;
	struct wire_request request = {.id = want->id};

	if (want->state == WANT_ENDING) {
		request.what = WIRE_UNSUBSCRIBE;
	} else {
		request.what = what->mask ? WIRE_SUBSCRIBE_MASK : WIRE_SUBSCRIBE_RANGE;
		request.delivery = (uint8_t)what->delivery;
		request.policy = (uint8_t)what->policy;
		request.backlog_bytes = what->backlog_bytes;
		request.first = what->tag;
		request.last = what->mask ? what->mask : what->last ? what->last : what->tag;
	}
	wire_request_write(out, &request);
}

/* The first ones of to_ask. Return: how many. */
static uint32_t write_requests(struct feed *feed, uint8_t *out)
{
	const struct want *want = TAILQ_FIRST(&feed->to_ask);
	uint32_t count = 0;

	wire_list_write(out, WIRE_REQUEST);
	for (; want && count < WIRE_LIST_MAX; want = TAILQ_NEXT(want, link))
		write_request(want, out + WIRE_LIST_BYTES + WIRE_REQUEST_BYTES * (size_t)count++);
	return count;
}

static void were_asked(struct feed *feed, uint32_t count)
{
	for (; count; count--) {
		struct want *want = TAILQ_FIRST(&feed->to_ask);

		TAILQ_REMOVE(&feed->to_ask, want, link);
		want->answer_due |= want->state == WANT_NEW;
		want->state = want->state == WANT_NEW ? WANT_ASKED : WANT_ENDED;
	}
}

/* Send as many requests as the link takes. */
void feed_ask(struct feed *feed)
{
	uint8_t list[WIRE_LIST_BYTES + WIRE_LIST_MAX * WIRE_REQUEST_BYTES];

	if (feed->connection.session.state != PLX_CONNECTOR_OPEN || feed->is_full)
		return;
	while (!TAILQ_EMPTY(&feed->to_ask)) {
		uint32_t count = write_requests(feed, list);
		int rc = plx_link_send(feed->connection.session.link, list,
				       WIRE_LIST_BYTES + WIRE_REQUEST_BYTES * (size_t)count);

		if (rc == -ENOMEM) /* of which nobody would tell the end */
			plx_link_abort(feed->connection.session.link);
		feed->is_full = rc != 0; /* until on_writable, or the end */
		if (rc)
			return;
		were_asked(feed, count);
	}
}

static struct want *find(const struct feed *feed, const struct netio_subscription *what)
{
	struct want wanted = {.what = *what};
	struct want **found = tfind(&wanted, &feed->by_what, compare);

	return found ? *found : NULL;
}

int feed_subscribe(struct feed *feed, const struct netio_subscription *what)
{
	struct want *want;

	if (find(feed, what))
		return plx_fail(EEXIST, "netio_subscribe: that is subscribed to at %s",
				feed->address);
	want = want_create(feed, what);
	if (!want)
		return plx_fail(ENOMEM, "netio_subscribe: out of memory");
	if (!tsearch(want, &feed->by_what, compare)) {
		want_destroy(feed, want);
		return plx_fail(ENOMEM, "netio_subscribe: out of memory");
	}
	TAILQ_INSERT_TAIL(&feed->to_ask, want, link);
	feed_ask(feed);
	return 0;
}

void feed_forget(struct feed *feed, const struct netio_subscription *what)
{
	struct want *want = find(feed, what);

	tdelete(want, &feed->by_what, compare);
	TAILQ_REMOVE(&feed->to_ask, want, link);
	want_destroy(feed, want);
}

int feed_unsubscribe(struct feed *feed, const struct netio_subscription *what)
{
	struct want *want = find(feed, what);

	if (!want)
		return plx_fail(ENOENT, "netio_unsubscribe: that is not subscribed to at %s",
				feed->address);
	tdelete(want, &feed->by_what, compare);
	if (want->state != WANT_NEW) {
		want->state = WANT_ENDING;
		TAILQ_INSERT_TAIL(&feed->to_ask, want, link);
		feed_ask(feed);
		return 0;
	}
	TAILQ_REMOVE(&feed->to_ask, want, link);
	want->state = WANT_ENDED;
	TAILQ_INSERT_TAIL(&feed->to_end, want, link);
	plx_task_schedule(&feed->tell);
	return 0;
}

/* Answers ------------------------------------------------------------------------------------- */

static const char *why_refused(enum wire_status status)
{
	switch (status) {
	case WIRE_TOO_MANY:
		return "the publisher takes no more subscriptions";
	case WIRE_NO_BLOCK:
		return "the publisher lets nobody block it; give another policy";
	case WIRE_TOO_MASKS:
		return "the publisher takes no more different masks";
	default:
		return "the publisher has no memory for it";
	}
}

static void refused(struct feed *feed, struct want *want, enum wire_status status)
{
	struct netio_subscription what = want->what;

	tdelete(want, &feed->by_what, compare);
	want_destroy(feed, want);
	TELL(feed, cb_subscription_refused, (&feed->pub, &what, why_refused(status)));
}

static void subscribed(struct feed *feed, struct want *want)
{
	struct netio_subscription what = want->what;
	bool was_lost = want->was_lost;

	want->state = WANT_ACTIVE;
	want->was_lost = false;
	if (was_lost)
		TELL(feed, cb_subscription_resumed, (&feed->pub, &what));
	else
		TELL(feed, cb_subscribed, (&feed->pub, &what));
}

/* Return: NULL; or what is wrong with it. */
static const char *take_answer(struct feed *feed, const uint8_t *in)
{
	struct wire_answer answer;
	const char *wrong = wire_answer_read(in, &answer);
	struct want *want;
	bool is_end;

	if (wrong)
		return wrong;
	want = answer.id < feed->want_room ? feed->wants[answer.id] : NULL;
	is_end = answer.status == WIRE_UNSUBSCRIBED || answer.status == WIRE_UNKNOWN;
	if (want && want->answer_due && !is_end) {
		want->answer_due = false;
		if (want->state != WANT_ASKED) /* it is to end anyway */
			return NULL;
		if (answer.status == WIRE_SUBSCRIBED)
			subscribed(feed, want);
		else
			refused(feed, want, answer.status);
		return NULL;
	}
	if (want && !want->answer_due && is_end && want->state == WANT_ENDED) {
		tell_ended(feed, want);
		return NULL;
	}
	return "an answer to what was not asked for";
}

const char *feed_take_answers(struct feed *feed, const struct plx_buf *message)
{
	uint32_t count;
	const char *wrong = wire_list_read(message->data, message->len, WIRE_ANSWER,
					   WIRE_ANSWER_BYTES, &count);

	for (uint32_t i = 0; !wrong && feed->feeds && i < count; i++)
		wrong = take_answer(feed, message->data + WIRE_LIST_BYTES +
						  (size_t)i * WIRE_ANSWER_BYTES);
	return wrong;
}

/* Loss ---------------------------------------------------------------------------------------- */

/* What the publisher knew of it is gone: it is to be asked for again, or has ended. */
static void lose(struct feed *feed, struct want *want)
{
	want->answer_due = false;
	if (want->state == WANT_ENDING || want->state == WANT_ENDED) {
		want->state = WANT_ENDED;
		TAILQ_INSERT_TAIL(&feed->to_end, want, link);
		return;
	}
	want->is_untold = want->state == WANT_ACTIVE;
	want->was_lost |= want->is_untold;
	want->state = WANT_NEW;
	TAILQ_INSERT_TAIL(&feed->to_ask, want, link);
}

void feed_lose(struct feed *feed)
{
	TAILQ_INIT(&feed->to_ask);
	TAILQ_INIT(&feed->to_end);
	plx_task_cancel(&feed->tell);
	for (uint32_t id = 0; id < feed->want_room; id++)
		if (feed->wants[id])
			lose(feed, feed->wants[id]);
}

/* Callbacks may add and end subscriptions meanwhile. */
void feed_tell_lost(struct feed *feed, const char *why)
{
	for (uint32_t id = 0; feed->feeds && id < feed->want_room; id++) {
		struct want *want = feed->wants[id];
		struct netio_subscription what;

		if (!want || !want->is_untold)
			continue;
		want->is_untold = false;
		what = want->what;
		if (want->state == WANT_NEW)
			TELL(feed, cb_subscription_lost, (&feed->pub, &what, why));
	}
}

void feed_drop_wants(struct feed *feed)
{
	for (uint32_t id = 0; id < feed->want_room; id++) {
		struct want *want = feed->wants[id];

		if (!want)
			continue;
		if (want->state < WANT_ENDING)
			tdelete(want, &feed->by_what, compare);
		free(want);
	}
	free(feed->wants);
}
