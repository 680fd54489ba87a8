/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribe sockets and their recorded events, on the test's loop. */
#ifndef PUBSUB_FIXTURE_H
#define PUBSUB_FIXTURE_H

#include "pubsub_priv.h"
#include "socket_fixture.h"

#define SUBS 4

struct sub {
	struct netio_subscribe_socket socket;
	struct netio_publisher *publisher; /* of the newest connection */
	unsigned established, refused, closed;
	unsigned subscribed, not_taken, lost, resumed, unsubscribed;
	struct netio_subscription what; /* of the newest of these */
	enum plx_link_reason reason;
	char why[256];
	unsigned messages, wrong;
	uint64_t next; /* expected number of the next message, if numbered */
	size_t len;
	netio_tag_t tag;
	uint64_t source;
	uint8_t bytes[64];
	unsigned gaps;
	uint64_t missed[NETIO_GAP_REASON_COUNT];
	struct netio_gap gap; /* the newest */
	struct keeper kept;
};

static struct sub subs[SUBS];

static inline struct sub *sub_of(const struct netio_publisher *publisher)
{
	return publisher->subscribe_socket->data;
}

static inline void note_why(struct sub *sub, const char *why)
{
	snprintf(sub->why, sizeof(sub->why), "%s", why);
}

static inline void note_end(struct sub *sub, enum plx_link_reason reason, const char *why)
{
	sub->reason = reason;
	note_why(sub, why);
}

/* A callback that counts its event, and notes one of the other parameters. */
#define SUB_EVENT(event, note, ...)                                                      \
	static inline void sub_##event(struct netio_publisher *publisher, ##__VA_ARGS__) \
	{                                                                                \
		struct sub *sub = sub_of(publisher);                                     \
                                                                                         \
		sub->event++;                                                            \
		note;                                                                    \
	}

typedef const struct netio_subscription what_t;

SUB_EVENT(established, sub->publisher = publisher)
SUB_EVENT(refused, note_end(sub, reason, why), enum plx_link_reason reason, const char *why)
SUB_EVENT(closed, note_end(sub, reason, why), enum plx_link_reason reason, const char *why)
SUB_EVENT(subscribed, sub->what = *what, what_t *what)
SUB_EVENT(lost, sub->what = *what, what_t *what, const char *why)
SUB_EVENT(resumed, sub->what = *what, what_t *what)
SUB_EVENT(unsubscribed, sub->what = *what, what_t *what)

static inline void sub_not_taken(struct netio_publisher *publisher, what_t *what, const char *why)
{
	sub_of(publisher)->what = *what;
	sub_of(publisher)->not_taken++;
	note_why(sub_of(publisher), why);
}

static inline void sub_message(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	struct sub *sub = socket->data;
	uint64_t number;

	sub->messages++;
	sub->len = msg->len;
	sub->tag = msg->tag;
	sub->source = msg->source;
	memcpy(sub->bytes, msg->data,
	       msg->len < sizeof(sub->bytes) ? msg->len : sizeof(sub->bytes));
	if (read_number(msg, &number, &sub->wrong))
		sub->wrong += number != sub->next++;
	keep_message(&sub->kept, msg);
}

/* Alternatively, if only messages of one tag, 0 to 63, are in order: values, never decreasing. */
static uint64_t newest_of[64];
static unsigned came_of[64];

static inline void sub_tagged_message(struct netio_subscribe_socket *socket,
				      const struct netio_msg *msg)
{
	struct sub *sub = socket->data;
	uint64_t value;

	memcpy(&value, msg->data, sizeof(value));
	sub->messages++;
	sub->wrong += came_of[msg->tag]++ && value <= newest_of[msg->tag];
	newest_of[msg->tag] = value;
	keep_message(&sub->kept, msg);
}

static inline void sub_take_tagged(struct sub *sub)
{
	memset(newest_of, 0, sizeof(newest_of));
	memset(came_of, 0, sizeof(came_of));
	sub->socket.cb_msg_received = sub_tagged_message;
}

/* Numbers continue after a gap. */
static inline void sub_gap(struct netio_publisher *publisher, const struct netio_gap *gap)
{
	struct sub *sub = sub_of(publisher);

	assert_int_equal(gap->count, gap->last ? gap->last - gap->first + 1 : 0);
	sub->gaps++;
	sub->missed[__builtin_ctz(gap->reasons)] += gap->count;
	sub->gap = *gap;
	sub->next += gap->count;
}

static inline uint64_t missed(const struct sub *sub)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < NETIO_GAP_REASON_COUNT; i++)
		sum += sub->missed[i];
	return sum;
}

static inline void sub_up(struct sub *sub, const struct netio_subscribe_attr *attr)
{
	*sub = (struct sub){0};
	assert_int_equal(netio_subscribe_socket_init(&ctx.evloop, &sub->socket, attr), 0);
	sub->socket.cb_connection_established = sub_established;
	sub->socket.cb_connection_refused = sub_refused;
	sub->socket.cb_connection_closed = sub_closed;
	sub->socket.cb_subscribed = sub_subscribed;
	sub->socket.cb_subscription_refused = sub_not_taken;
	sub->socket.cb_subscription_lost = sub_lost;
	sub->socket.cb_subscription_resumed = sub_resumed;
	sub->socket.cb_unsubscribed = sub_unsubscribed;
	sub->socket.cb_gap = sub_gap;
	sub->socket.cb_msg_received = sub_message;
	sub->socket.data = sub;
}

/* Subscribe, and wait for the answer. */
static inline void sub_to(struct sub *sub, unsigned port, struct netio_subscription what)
{
	unsigned before = sub->subscribed;

	if (!sub->socket.core)
		sub_up(sub, NULL);
	assert_int_equal(netio_subscribe_to(&sub->socket, test_host(), port, &what), 0);
	TURN_UNTIL(sub->subscribed == before + 1);
}

/* Events of the test's publish socket. */
static const void *publishing; /* the socket */
static unsigned came, went;
static struct netio_subscriber *subscriber; /* the newest */

static inline void on_established(struct netio_subscriber *who)
{
	assert_ptr_equal(who->socket, publishing);
	subscriber = who;
	came++;
}

static inline struct subscriber *newest_subscriber(void)
{
	return plx_container_of(subscriber, struct subscriber, pub);
}

/* As if its process or the network failed. */
static inline void cut_subscriber(void)
{
	plx_link_abort(newest_subscriber()->accepted.session.link);
}

PLX_COUNTS(on_closed, went, struct netio_subscriber *who, enum plx_link_reason reason,
	   const char *why)

/* With a port() of the test's publisher. */
#define SUBSCRIBE(i, ...) sub_to(&subs[i], port(), (struct netio_subscription){__VA_ARGS__})

/* The same without waiting for the answer. */
#define REQUEST(i, ...)                                                                 \
	assert_int_equal(netio_subscribe_to(&subs[i].socket, test_host(), port(),       \
					    &(struct netio_subscription){__VA_ARGS__}), \
			 0)

/* For a test whose subscribers miss numbers on purpose. */
static inline void subs_expect_wrong(void)
{
	for (unsigned i = 0; i < SUBS; i++)
		subs[i].wrong = 0;
}

/* Return: the number of wrong messages. */
static inline unsigned subs_down(void)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < SUBS; i++) {
		wrong += subs[i].wrong;
		release_all(&subs[i].kept);
		netio_subscribe_socket_fini(&subs[i].socket);
		subs[i] = (struct sub){0};
	}
	return wrong;
}

#endif
