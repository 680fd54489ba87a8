/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers whose connection is lost: all that they miss is in a gap. */
#include "publish_fixture.h"

#include "dice.h"
#include "raw_link.h"

static const struct netio_subscribe_attr soon = {.connect = {.reconnect_min_ns = PLX_NS_PER_MS}};

static void begin(void)
{
	publish_with(SMALL_PAGES);
	sub_up(&subs[0], &soon);
	SUBSCRIBE(0, .tag = 1);
}

static struct publisher *at_subscriber(const struct sub *sub)
{
	return (struct publisher *)LIST_FIRST(&sub->socket.core->hub.connections);
}

/* As if the network ended the connection. */
static void cut(const struct sub *sub)
{
	struct plx_link *link = at_subscriber(sub)->connection.session.base.link;

	if (link)
		plx_link_abort(link);
}

static void cut_and_wait(const struct sub *sub)
{
	unsigned before = sub->closed;

	cut(sub);
	TURN_UNTIL(sub->closed > before && stats().absent == 1);
}

static void publish_some(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		int rc = publish(1, 400, 0);

		if (rc == NETIO_STATUS_NO_SUBSCRIBERS)
			number++;
	}
}

static void begin_with_three(void)
{
	begin();
	publish_some(3);
	FLUSH_UNTIL(subs[0].messages == 3);
}

PUBSUB_TEST(a_lost_connection_is_one_gap_with_its_number)
{
	begin_with_three();
	/* A gap of nothing is not reported. */
	cut_and_wait(&subs[0]);
	TURN_UNTIL(subs[0].resumed == 1);
	assert_int_equal(subs[0].gaps, 0);
	cut_and_wait(&subs[0]);
	publish_some(5);
	TURN_UNTIL(subs[0].resumed == 2);
	publish_some(2);
	FLUSH_UNTIL(has_all(&subs[0]));
	assert_int_equal(subs[0].gaps, 1);
	assert_int_equal(subs[0].gap.first, 4);
	assert_int_equal(subs[0].gap.last, 8);
	assert_int_equal(subs[0].gap.reasons, NETIO_GAP_BIT(NETIO_GAP_LOST));
	assert_int_equal(subs[0].messages, 5);
	assert_int_equal(stats().lost_told, 5);
	assert_int_equal(stats().absent, 0);
}

/* Not known ------------------------------------------------------------------------------------ */

static unsigned unknown;
static unsigned messages_before;

static void on_unknown(struct netio_publisher *from, const struct netio_gap *gap)
{
	if (gap->reasons != NETIO_GAP_BIT(NETIO_GAP_UNKNOWN)) {
		sub_gap(from, gap);
		return;
	}
	assert_int_equal(gap->first + gap->last + gap->count, 0);
	messages_before = sub_of(from)->messages;
	unknown++;
}

static void expect_unknown(void)
{
	unknown = messages_before = 0;
	subs[0].socket.cb_gap = on_unknown;
}

/* At the same port. */
static void restart_publisher(unsigned at)
{
	netio_publish_socket_fini(&publisher);
	assert_int_equal(netio_publish_socket_init(&ctx.evloop, &publisher, NULL), 0);
	assert_int_equal(netio_publish_listen(&publisher, test_host(), at), 0);
}

PUBSUB_TEST(after_restarts_one_gap_is_unknown)
{
	unsigned at;
	uint64_t incarnation;

	begin_with_three();
	expect_unknown();
	at = port();
	for (unsigned i = 1; i <= 2; i++) { /* the first one without a message */
		incarnation = subs[0].publisher->incarnation;
		restart_publisher(at);
		TURN_UNTIL(subs[0].resumed == i);
		assert_true(subs[0].publisher->incarnation != incarnation);
		assert_int_equal(unknown, 0);
	}
	number = subs[0].next = 0;
	publish_some(2);
	FLUSH_UNTIL(subs[0].messages == 5);
	assert_int_equal(unknown, 1);
	assert_int_equal(messages_before, 3);
	assert_int_equal(subs[0].gaps, 0);
}

PUBSUB_TEST(a_subscriber_that_was_away_too_long_has_an_unknown_gap)
{
	begin_with_three();
	expect_unknown();
	cut_and_wait(&subs[0]);
	publish_some(5);
	assert_true(absent_drop_oldest(publisher.core)); /* as after NETIO_ABSENT_NS */
	subs[0].next = number;
	TURN_UNTIL(subs[0].resumed == 1);
	publish_some(2);
	FLUSH_UNTIL(subs[0].messages == 5);
	assert_int_equal(unknown, 1);
	assert_int_equal(messages_before, 3);
	assert_int_equal(subs[0].gaps, 0);
	/* From now on it is known again. */
	cut_and_wait(&subs[0]);
	publish_some(4);
	TURN_UNTIL(subs[0].resumed == 2);
	publish_some(1);
	FLUSH_UNTIL(subs[0].messages == 6);
	assert_int_equal(unknown, 1);
	assert_int_equal(missed(&subs[0]), 4);
}

PUBSUB_TEST(absent_subscribers_make_room_for_others)
{
	publish_with(&(struct netio_publish_attr){.subscriptions_max = 2});
	sub_up(&subs[0], &soon);
	SUBSCRIBE(0, .tag = 1);
	SUBSCRIBE(0, .tag = 2);
	cut_and_wait(&subs[0]);
	netio_subscribe_socket_fini(&subs[0].socket);
	assert_int_equal(stats().subscriptions, 0);
	SUBSCRIBE(1, .tag = 1);
	assert_int_equal(stats().absent, 0);
	assert_int_equal(publish(2, 8, 0), NETIO_STATUS_NO_SUBSCRIBERS);
}

/* A connection whose end this side has not noticed yet. */
PUBSUB_TEST(a_subscriber_may_be_back_before_its_connection_has_ended)
{
	struct wire_greeting again = GREETING(WIRE_HELLO, WIRE_SUBSCRIBER, 4096);

	publish_with(SMALL_PAGES);
	sub_up(&subs[0], &(struct netio_subscribe_attr){.connect.reconnect_min_ns = PLX_NEVER});
	SUBSCRIBE(0, .tag = 1);
	again.id = at_subscriber(&subs[0])->key;
	again.incarnation = subs[0].publisher->incarnation;
	again.number = 0;
	publish_some(3);
	FLUSH_UNTIL(subs[0].messages == 3);
	raw_connect(port(), &again);
	TURN_UNTIL(raw_messages == 1); /* the gap */
	assert_int_equal(stats().lost_told, 3);
	TURN_UNTIL(unsubscribed == 1 && subs[0].closed == 1);
}

PUBSUB_TEST(a_subscriber_that_claims_more_than_there_was_is_not_believed)
{
	struct wire_greeting liar = GREETING(WIRE_HELLO, WIRE_SUBSCRIBER, 4096);

	begin_with_three();
	liar.id = at_subscriber(&subs[0])->key;
	liar.incarnation = subs[0].publisher->incarnation;
	liar.number = WIRE_GAP_COUNT_MAX;
	cut_and_wait(&subs[0]);
	netio_subscribe_socket_fini(&subs[0].socket);
	raw_connect(port(), &liar);
	TURN_UNTIL(raw && came == 2);
	assert_int_equal(stats().lost_told, 0);
	assert_int_equal(stats().absent, 0);
	plx_link_close(raw);
	TURN_UNTIL(raw_closed == 1);

	liar.number++; /* a gap could not hold that */
	raw_connect(port(), &liar);
	TURN_UNTIL(raw_closed == 1);
	assert_non_null(strstr(raw_why, "the number of messages is out of range"));
	assert_int_equal(came, 2);
}

/* Otherwise one host makes the publisher forget all others, and takes its time. */
PUBSUB_TEST(a_host_that_comes_and_goes_pushes_out_its_own_only)
{
	struct wire_greeting guest = GREETING(WIRE_HELLO, WIRE_SUBSCRIBER, 4096);
	struct wire_request request = {
		.id = 1, .kind = WIRE_SUBSCRIBE_RANGE, .what = {.tag = 1, .last = 1}};
	uint8_t list[WIRE_LIST_BYTES + WIRE_REQUEST_BYTES];

	publish_with(SMALL_PAGES);
	wire_list_write(list, WIRE_REQUEST);
	wire_request_write(list + WIRE_LIST_BYTES, &request);
	for (guest.id = 1; guest.id <= NETIO_ABSENT_PER_HOST_MAX + 9; guest.id++) {
		raw_connect(port(), &guest);
		TURN_UNTIL(raw);
		assert_int_equal(plx_link_send(raw, list, sizeof(list)), 0);
		TURN_UNTIL(raw_messages == 1);
		plx_link_abort(raw);
		TURN_UNTIL(raw_closed == 1 && stats().subscriptions == 0);
	}
	assert_int_equal(stats().absent, NETIO_ABSENT_PER_HOST_MAX);
}

/* Its last list of requests is full. */
PUBSUB_TEST(one_with_a_hundred_subscriptions_is_back_at_once)
{
	publish_with(SMALL_PAGES);
	sub_up(&subs[0], &soon);
	for (netio_tag_t tag = 1; tag <= WIRE_LIST_MAX; tag++)
		SUBSCRIBE(0, .tag = tag);
	cut_and_wait(&subs[0]);
	TURN_UNTIL(subs[0].resumed == WIRE_LIST_MAX);
	assert_int_equal(stats().absent, 0);
}

/* Random rounds ------------------------------------------------------------------------------- */

static uint64_t dice;

static void publish_to_all(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		int flags = 0, rc;

		do {
			rc = publish(1, 8 + dice_roll(&dice, 600), flags);
			flags = NETIO_REENTRY;
			plx_loop_turn();
		} while (rc == NETIO_STATUS_AGAIN);
		if (rc == NETIO_STATUS_NO_SUBSCRIBERS)
			number++;
	}
}

static void cut_one(void)
{
	unsigned i = dice_roll(&dice, SUBS);
	struct session_link *any = LIST_FIRST(&publisher.core->acceptor.session.links);

	if (dice_roll(&dice, 2))
		cut(&subs[i]);
	else if (any && any->link)
		plx_link_abort(any->link);
}

PUBSUB_TEST(what_is_received_and_reported_is_what_was_published)
{
	enum { ROUNDS = 500 };
	static const enum netio_policy policies[SUBS] = {NETIO_POLICY_BLOCK, NETIO_POLICY_DROP_OLD,
							 NETIO_POLICY_DROP_NEW,
							 NETIO_POLICY_DISCONNECT};

	publish_with(SMALL_PAGES);
	for (unsigned i = 0; i < SUBS; i++) {
		sub_up(&subs[i], &soon);
		SUBSCRIBE(i, .tag = 1, .policy = policies[i],
			  .delivery = i == 1 ? NETIO_DELIVERY_AT_ONCE : NETIO_DELIVERY_BUFFERED);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		publish_to_all(dice_roll(&dice, 20));
		cut_one();
		for (unsigned turns = dice_roll(&dice, 400); turns; turns--)
			plx_loop_turn();
		if (dice_roll(&dice, 20))
			continue;
		for (unsigned i = 0; i < SUBS; i++)
			FLUSH_UNTIL(has_all(&subs[i]));
	}
	for (unsigned i = 0; i < SUBS; i++)
		FLUSH_UNTIL(has_all(&subs[i]));
	assert_true(stats().lost_told > ROUNDS);
	TURN_UNTIL(stats().absent == 0); /* the last cut may have lost nothing */
}

PLX_TEST_MAIN()
