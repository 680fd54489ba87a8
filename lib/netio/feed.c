/* SPDX-License-Identifier: BSD-3-Clause */
#include "feed.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>

static struct feed *feed_of(struct netio_connection *connection)
{
	return (struct feed *)connection;
}

/* Telling ------------------------------------------------------------------------------------- */

static void destroy(struct feed *feed);

/* A callback may end the socket, and with it the feed: its memory stays until all is told. */
static void begin_telling(struct feed *feed)
{
	feed->telling++;
}

static void end_telling(struct feed *feed)
{
	if (--feed->telling == 0 && feed->freed)
		destroy(feed);
}

static struct netio_subscribe_socket *socket_of(const struct feed *feed)
{
	return feed->feeds ? feed->feeds->socket : NULL;
}

/* Call a callback of the socket, if it is there, with the publisher and what follows. */
#define TELL(feed, callback, ...)                                                \
	do {                                                                     \
		struct netio_subscribe_socket *told = socket_of(feed);           \
		if (told && told->callback)                                      \
			told->callback(&(feed)->pub __VA_OPT__(, ) __VA_ARGS__); \
	} while (0)

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
	struct want *want = malloc(sizeof(*want));

	if (!want || make_room(feed) != 0) {
		free(want);
		return NULL;
	}
	while (feed->wants[feed->unused_from])
		feed->unused_from++;
	*want = (struct want){.what = *what, .state = WANT_NEW, .id = feed->unused_from};
	feed->wants[want->id] = want;
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

/* Nothing is wanted of it any more: its connection ends, and it with it. */
static void close_if_unwanted(struct feed *feed)
{
	if (feed->want_count || !feed->feeds)
		return;
	if (feed->connection.state == CONNECTION_IDLE)
		feed_release(feed);
	else if (!feed->connection.quit)
		connection_close(&feed->connection);
}

static void tell_ended(struct feed *feed, struct want *want)
{
	struct netio_subscription what = want->what;

	want_destroy(feed, want);
	TELL(feed, cb_unsubscribed, &what);
}

static void tell_all_ended(struct feed *feed)
{
	while (feed->feeds && !TAILQ_EMPTY(&feed->to_end)) {
		struct want *want = TAILQ_FIRST(&feed->to_end);

		TAILQ_REMOVE(&feed->to_end, want, link);
		tell_ended(feed, want);
	}
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct feed *feed = arg;

	begin_telling(feed);
	tell_all_ended(feed);
	close_if_unwanted(feed);
	end_telling(feed);
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
		request.first = what->tag;
		request.last = what->mask ? what->mask : what->last ? what->last : what->tag;
	}
	wire_request_write(out, &request);
}

/* Send as many requests as the link takes. */
static void ask(struct feed *feed)
{
	uint8_t list[WIRE_LIST_BYTES + WIRE_LIST_MAX * WIRE_REQUEST_BYTES];

	if (feed->connection.state != CONNECTION_ESTABLISHED)
		return;
	wire_list_write(list, WIRE_REQUEST);
	while (!TAILQ_EMPTY(&feed->to_ask)) {
		uint32_t length = WIRE_LIST_BYTES, count = 0;
		struct want *want;

		TAILQ_FOREACH(want, &feed->to_ask, link)
		{
			if (count == WIRE_LIST_MAX)
				break;
			write_request(want, list + length);
			length += WIRE_REQUEST_BYTES;
			count++;
		}
		if (plx_link_send(feed->connection.link, list, length) != 0)
			return; /* on_writable follows, or the end */
		for (; count; count--) {
			want = TAILQ_FIRST(&feed->to_ask);
			TAILQ_REMOVE(&feed->to_ask, want, link);
			want->answer_due |= want->state == WANT_NEW;
			want->state = want->state == WANT_NEW ? WANT_ASKED : WANT_ENDED;
		}
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
	ask(feed);
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
		ask(feed);
		return 0;
	}
	TAILQ_REMOVE(&feed->to_ask, want, link);
	want->state = WANT_ENDED;
	TAILQ_INSERT_TAIL(&feed->to_end, want, link);
	plx_timer_start(&feed->timer, 0);
	return 0;
}

/* Answers ------------------------------------------------------------------------------------- */

static const char *why_refused(enum wire_status status)
{
	switch (status) {
	case WIRE_TOO_MANY:
		return "the publisher takes no more subscriptions";
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
	TELL(feed, cb_subscription_refused, &what, why_refused(status));
}

static void subscribed(struct feed *feed, struct want *want)
{
	struct netio_subscription what = want->what;
	bool was_lost = want->was_lost;

	want->state = WANT_ACTIVE;
	want->was_lost = false;
	if (was_lost)
		TELL(feed, cb_subscription_resumed, &what);
	else
		TELL(feed, cb_subscribed, &what);
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

static const char *take_answers(struct feed *feed, const struct plx_buf *message)
{
	uint32_t count;
	const char *wrong = wire_list_read(message->data, message->len, WIRE_ANSWER,
					   WIRE_ANSWER_BYTES, &count);

	for (uint32_t i = 0; !wrong && feed->feeds && i < count; i++)
		wrong = take_answer(feed, message->data + WIRE_LIST_BYTES +
						  (size_t)i * WIRE_ANSWER_BYTES);
	return wrong;
}

/* The connection ------------------------------------------------------------------------------ */

static bool give(struct intake *intake, const struct netio_msg *msg)
{
	struct feed *feed = plx_container_of(intake, struct feed, intake);
	struct netio_subscribe_socket *socket = socket_of(feed);

	if (plx_likely(socket) && socket->cb_msg_received)
		socket->cb_msg_received(socket, msg);
	return true;
}

static const char *on_received(struct netio_connection *connection, struct plx_buf *message)
{
	struct feed *feed = feed_of(connection);
	const char *wrong = NULL;

	begin_telling(feed);
	if (message->len > 0 && message->data[0] == WIRE_ANSWER) {
		wrong = take_answers(feed, message);
		if (!wrong)
			close_if_unwanted(feed);
	} else if (intake_take(&feed->intake, message, &wrong) != -EPROTO) {
		wrong = NULL;
	}
	end_telling(feed);
	return wrong;
}

static void on_established(struct netio_connection *connection)
{
	struct feed *feed = feed_of(connection);

	begin_telling(feed);
	feed->pub.provider = plx_link_provider(connection->link);
	TELL(feed, cb_connection_established);
	if (feed->feeds) {
		ask(feed);
		close_if_unwanted(feed);
	}
	end_telling(feed);
}

static void on_refused(struct netio_connection *connection, enum plx_link_reason reason,
		       const char *why)
{
	struct feed *feed = feed_of(connection);

	begin_telling(feed);
	TELL(feed, cb_connection_refused, reason, why);
	end_telling(feed);
}

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

static void lose_all(struct feed *feed)
{
	TAILQ_INIT(&feed->to_ask);
	TAILQ_INIT(&feed->to_end);
	plx_timer_stop(&feed->timer);
	for (uint32_t id = 0; id < feed->want_room; id++)
		if (feed->wants[id])
			lose(feed, feed->wants[id]);
}

/* Callbacks may add and end subscriptions meanwhile. */
static void tell_lost(struct feed *feed, const char *why)
{
	for (uint32_t id = 0; feed->feeds && id < feed->want_room; id++) {
		struct want *want = feed->wants[id];
		struct netio_subscription what;

		if (!want || !want->is_untold)
			continue;
		want->is_untold = false;
		what = want->what;
		if (want->state == WANT_NEW)
			TELL(feed, cb_subscription_lost, &what, why);
	}
}

static void on_closed(struct netio_connection *connection, enum plx_link_reason reason,
		      const char *why)
{
	struct feed *feed = feed_of(connection);

	begin_telling(feed);
	lose_all(feed);
	tell_all_ended(feed);
	tell_lost(feed, why);
	TELL(feed, cb_connection_closed, reason, why);
	if (feed->feeds && feed->want_count == 0)
		feed_release(feed);
	else if (feed->feeds && feed->connection.state == CONNECTION_IDLE && connection->quit)
		feed_open(feed); /* it was closed as nothing was wanted, which has changed */
	end_telling(feed);
}

static void on_ended(struct netio_connection *connection)
{
	struct feed *feed = feed_of(connection);

	feed->pub.provider = "";
	intake_drop(&feed->intake);
	feed->intake.partial_total = 0;
	feed->intake.partial_whole = false;
}

static void on_writable(struct netio_connection *connection)
{
	struct feed *feed = feed_of(connection);

	if (feed->feeds)
		ask(feed);
}

static void destroy(struct feed *feed)
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
	intake_drop(&feed->intake);
	free(feed);
}

static void on_free(struct netio_connection *connection)
{
	struct feed *feed = feed_of(connection);

	if (feed->telling)
		feed->freed = true;
	else
		destroy(feed);
}

static const struct connection_owner owner = {
	.established = on_established,
	.refused = on_refused,
	.closed = on_closed,
	.received = on_received,
	.writable = on_writable,
	.ended = on_ended,
	.free = on_free,
};

/* The feed ------------------------------------------------------------------------------------ */

struct feed *feed_find(const struct netio_feeds *feeds, const char *address)
{
	struct feed *feed = feeds->first;

	while (feed && strcmp(feed->address, address) != 0)
		feed = feed->next;
	return feed;
}

struct feed *feed_create(struct netio_feeds *feeds, const char *host, unsigned port,
			 const char *address)
{
	struct feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return NULL;
	feed->feeds = feeds;
	feed->port = port;
	snprintf(feed->host, sizeof(feed->host), "%s", host);
	snprintf(feed->address, sizeof(feed->address), "%s", address);
	feed->pub = (struct netio_publisher){
		.subscribe_socket = feeds->socket,
		.id = ++feeds->next_id,
		.address = feed->address,
		.provider = "",
	};
	feed->intake.give = give;
	feed->intake.source = feed->pub.id;
	feed->intake.message_max = feeds->connect.message_max_bytes;
	TAILQ_INIT(&feed->to_ask);
	TAILQ_INIT(&feed->to_end);
	plx_timer_init(&feed->timer, on_timer, feed);
	connection_init(&feed->connection, feeds->evloop, feed, &feed->handle, &owner,
			&feeds->connect);
	feed->connection.role = WIRE_SUBSCRIBER;
	feed->connection.link_attr = feeds->link_attr;
	feed->next = feeds->first;
	feed->prev_next = &feeds->first;
	if (feed->next)
		feed->next->prev_next = &feed->next;
	feeds->first = feed;
	return feed;
}

int feed_open(struct feed *feed)
{
	if (feed->connection.state != CONNECTION_IDLE)
		return 0;
	return connection_open(&feed->connection, feed->host, feed->port);
}

void feed_release(struct feed *feed)
{
	*feed->prev_next = feed->next;
	if (feed->next)
		feed->next->prev_next = feed->prev_next;
	feed->feeds = NULL;
	plx_timer_stop(&feed->timer);
	connection_release(&feed->connection);
}
