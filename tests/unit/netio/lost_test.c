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

PUBSUB_TEST(a_lost_connection_is_one_gap_with_its_number)
{
	begin();
	publish_some(3);
	FLUSH_UNTIL(subs[0].messages == 3);
	cut_and_wait(&subs[0]);
	publish_some(5);
	TURN_UNTIL(subs[0].resumed == 1);
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

PUBSUB_TEST(what_was_under_way_is_in_the_gap)
{
	begin();
	subs[0].kept.more = 64;
	while (publish(1, 400, 0) == NETIO_STATUS_OK)
		plx_loop_turn();
	number++; /* the one that found no room is missed too, unless it is published again */
	cut_and_wait(&subs[0]);
	assert_int_equal(stats().given_up, 1);
	catch_up(&subs[0]);
	assert_true(missed(&subs[0]) > 1);
}

PUBSUB_TEST(a_gap_of_nothing_is_not_reported)
{
	begin();
	publish_some(3);
	FLUSH_UNTIL(subs[0].messages == 3);
	cut_and_wait(&subs[0]);
	TURN_UNTIL(subs[0].resumed == 1);
	publish_some(1);
	FLUSH_UNTIL(subs[0].messages == 4);
	assert_int_equal(subs[0].gaps, 0);
}

/* What the policy `disconnect` loses cannot be reported before the connection ends. */
PUBSUB_TEST(a_subscriber_that_was_too_slow_learns_what_it_missed)
{
	publish_with(SMALL_PAGES);
	sub_up(&subs[0], &(struct netio_subscribe_attr){.buffer_bytes = 1024,
							.buffer_count = 4,
							.connect.reconnect_min_ns = PLX_NS_PER_MS});
	SUBSCRIBE_SLOW(0, .tag = 1, .policy = NETIO_POLICY_DISCONNECT);
	while (stats().disconnected == 0)
		publish_all(1, 400, 1);
	for (unsigned i = 0; i < 20; i++) {
		publish(1, 400, 0);
		number = stats().messages + stats().no_subscribers;
	}
	release_all(&subs[0].kept);
	TURN_UNTIL(subs[0].resumed == 1);
	catch_up(&subs[0]);
	assert_int_equal(stats().disconnected + stats().lost_told, missed(&subs[0]));
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
	assert_int_equal(gap->first, 0);
	assert_int_equal(gap->last, 0);
	assert_int_equal(gap->count, 0);
	messages_before = sub_of(from)->messages;
	unknown++;
}

static void expect_unknown(void)
{
	unknown = messages_before = 0;
	subs[0].socket.cb_gap = on_unknown;
}

PUBSUB_TEST(after_a_restart_one_gap_is_unknown)
{
	unsigned at;
	uint64_t incarnation;

	begin();
	expect_unknown();
	at = port();
	incarnation = subs[0].publisher->incarnation;
	assert_true(incarnation && subs[0].publisher->started_ns);
	publish_some(3);
	FLUSH_UNTIL(subs[0].messages == 3);
	for (unsigned i = 1; i <= 3; i++) { /* the second time without a message */
		netio_publish_socket_fini(&publisher);
		publish_with(NULL);
		netio_publish_socket_fini(&publisher);
		assert_int_equal(netio_publish_socket_init(&ctx.evloop, &publisher, NULL), 0);
		publisher.cb_connection_established = on_established;
		assert_int_equal(netio_publish_listen(&publisher, test_host(), at), 0);
		TURN_UNTIL(subs[0].resumed == i);
		assert_true(subs[0].publisher->incarnation != incarnation);
		incarnation = subs[0].publisher->incarnation;
		assert_int_equal(unknown, i / 2);
		if (i == 2)
			continue;
		subs[0].next = 0;
		number = 0;
		publish_some(2);
		FLUSH_UNTIL(subs[0].messages == 4 + i);
		assert_int_equal(unknown, 1 + i / 2);
		assert_int_equal(messages_before, 2 + i);
	}
	assert_int_equal(subs[0].gaps, 0);
}

PUBSUB_TEST(a_subscriber_that_was_away_too_long_has_an_unknown_gap)
{
	begin();
	expect_unknown();
	publish_some(3);
	FLUSH_UNTIL(subs[0].messages == 3);
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

PUBSUB_TEST(nothing_is_promised_to_another_subscriber)
{
	begin();
	expect_unknown();
	publish_some(3);
	FLUSH_UNTIL(subs[0].messages == 3);
	cut_and_wait(&subs[0]);
	netio_subscribe_socket_fini(&subs[0].socket);
	publish_some(5);
	sub_up(&subs[0], &soon);
	expect_unknown();
	subs[0].next = number;
	SUBSCRIBE(0, .tag = 1);
	publish_some(2);
	FLUSH_UNTIL(subs[0].messages == 2);
	assert_int_equal(unknown + subs[0].gaps, 0);
	assert_int_equal(stats().absent, 1);
	assert_int_equal(stats().subscriptions, 1);
}

PUBSUB_TEST(who_unsubscribes_or_closes_leaves_nothing)
{
	begin();
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
	TURN_UNTIL(went == 1);
	assert_int_equal(stats().absent, 0);
	SUBSCRIBE(0, .tag = 1);
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(went == 2);
	assert_int_equal(stats().absent, 0);
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

PUBSUB_TEST(who_claims_more_than_there_was_is_not_believed)
{
	struct wire_greeting liar = GREETING(WIRE_HELLO, WIRE_SUBSCRIBER, 4096);

	begin();
	publish_some(3);
	FLUSH_UNTIL(subs[0].messages == 3);
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
}

/* A gap could not hold their number. */
PUBSUB_TEST(who_claims_more_than_a_gap_holds_is_refused)
{
	struct wire_greeting liar = GREETING(WIRE_HELLO, WIRE_SUBSCRIBER, 4096);

	publish_with(SMALL_PAGES);
	liar.id = liar.incarnation = 1;
	liar.number = WIRE_GAP_COUNT_MAX + 1;
	raw_connect(port(), &liar);
	TURN_UNTIL(raw_closed == 1);
	assert_non_null(strstr(raw_why, "the number of messages is out of range"));
	assert_int_equal(came, 0);
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

/* The same with publishers and subscribers that are killed. */
static struct side {
	bool is_new;          /* it has received nothing yet */
	unsigned incarnation; /* of the newest message */
	unsigned unknown;     /* gaps since then */
	unsigned wrong;
} sides[SUBS];

static unsigned incarnation;
static uint64_t first_numbers[1000]; /* of each incarnation */

/* It may be under way when its publisher is killed. */
static unsigned incarnation_of(const struct netio_msg *msg)
{
	unsigned its = incarnation;
	uint64_t its_number;

	memcpy(&its_number, msg->data, sizeof(its_number));
	while (its_number < first_numbers[its])
		its--;
	return its;
}

static struct side *side_of(const struct sub *sub)
{
	return &sides[sub - subs];
}

static void on_side_gap(struct netio_publisher *from, const struct netio_gap *gap)
{
	struct side *side = side_of(sub_of(from));

	if (gap->reasons == NETIO_GAP_BIT(NETIO_GAP_UNKNOWN)) {
		side->unknown++;
		return;
	}
	if (side->unknown) /* then this is what came first */
		*side = (struct side){.is_new = true, .wrong = side->wrong + (side->unknown > 1)};
	sub_gap(from, gap);
}

/* Either the next number comes, or exactly one unknown gap was before it. */
static void on_side_message(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	struct sub *sub = socket->data;
	struct side *side = side_of(sub);
	unsigned its = incarnation_of(msg);

	if (side->is_new) /* it may have subscribed before a restart, and after it */
		side->wrong += side->unknown > 1;
	else
		side->wrong += side->unknown != (side->incarnation != its);
	if (side->is_new || side->unknown)
		memcpy(&sub->next, msg->data, sizeof(sub->next));
	*side = (struct side){.incarnation = its, .wrong = side->wrong};
	sub_message(socket, msg);
}

static void start_side(unsigned i)
{
	sides[i] = (struct side){.is_new = true, .wrong = sides[i].wrong};
	sub_up(&subs[i], &soon);
	subs[i].socket.cb_gap = on_side_gap;
	subs[i].socket.cb_msg_received = on_side_message;
	REQUEST(i, .tag = 1, .policy = i % 2 ? NETIO_POLICY_BLOCK : NETIO_POLICY_DROP_OLD);
}

static void kill_side(unsigned i)
{
	sides[i].wrong += subs[i].wrong;
	cut(&subs[i]);
	netio_subscribe_socket_fini(&subs[i].socket);
	start_side(i);
}

static void kill_publisher(void)
{
	const struct netio_publish_attr attr = {.page_bytes = 1024, .page_count = 8};
	struct session_link *each;
	unsigned at = port();

	LIST_FOREACH (each, &publisher.core->acceptor.session.links, links)
		plx_link_abort(each->link);
	netio_publish_socket_fini(&publisher);
	first_numbers[++incarnation] = number;
	assert_int_equal(netio_publish_socket_init(&ctx.evloop, &publisher, &attr), 0);
	TURN_UNTIL(netio_publish_listen(&publisher, test_host(), at) == 0); /* somebody has it */
}

PUBSUB_TEST(a_killed_publisher_is_one_unknown_gap)
{
	publish_with(SMALL_PAGES);
	for (unsigned i = 0; i < SUBS; i++)
		start_side(i);
	for (unsigned round = 0; round < 500; round++) {
		unsigned what = dice_roll(&dice, 10);

		publish_to_all(dice_roll(&dice, 20));
		if (what == 0)
			kill_publisher();
		else if (what < 3)
			kill_side(dice_roll(&dice, SUBS));
		else
			cut_one();
		for (unsigned turns = dice_roll(&dice, 400); turns; turns--)
			plx_loop_turn();
	}
	for (unsigned i = 0; i < SUBS; i++)
		assert_int_equal(sides[i].wrong + subs[i].wrong, 0);
	assert_true(incarnation > 25);
}

PLX_TEST_MAIN()
