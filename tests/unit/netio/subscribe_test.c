/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of subscriptions, which a publisher may refuse, and how each end handles a misbehaving
 * peer. */
#include "publish_fixture.h"

#include "netio_wire.h"
#include "raw_link.h"

static struct netio_publish_socket second;
static struct sub *const sub = &subs[0];
static unsigned at; /* port of the publisher, also after it closed */

static const struct netio_subscribe_attr quick = {
	.connect = {.reconnect_min_ns = PLX_NS_PER_MS, .reconnect_max_ns = 20 * PLX_NS_PER_MS}};

static void open_publisher(struct netio_publish_socket *socket, unsigned port)
{
	assert_int_equal(netio_publish_socket_init(&ctx.evloop, socket, NULL), 0);
	assert_int_equal(netio_publish_listen(socket, test_host(), port), 0);
}

static void begin(void)
{
	publish_with(NULL);
	at = port();
	sub_up(sub, &quick);
}

static int all_down(void **state)
{
	netio_publish_socket_fini(&second);
	return pubsub_down(state);
}

static int subscribe(netio_tag_t tag)
{
	return netio_subscribe(&sub->socket, test_host(), at, tag);
}

/* Wait for the answer. */
static void subscribe_surely(netio_tag_t tag)
{
	unsigned before = sub->subscribed;

	assert_int_equal(subscribe(tag), 0);
	TURN_UNTIL(sub->subscribed == before + 1);
}

static int unsubscribe(netio_tag_t tag)
{
	return netio_unsubscribe(&sub->socket, test_host(), at, tag);
}

/* One message arrives, from that publisher. */
static void expect_message(struct netio_publish_socket *socket, netio_tag_t tag)
{
	unsigned before = sub->messages;

	assert_int_equal(netio_buffered_publish(socket, tag, "hello", 6, 0, NULL), NETIO_STATUS_OK);
	netio_buffered_publish_flush(socket);
	TURN_UNTIL(sub->messages == before + 1);
	assert_string_equal((const char *)sub->bytes, "hello");
}

/* Life ---------------------------------------------------------------------------------------- */

#define TEST(test) PLX_TEST_WITH(test, netio_up, all_down)

TEST(lost_subscriptions_are_resumed)
{
	begin();
	assert_int_equal(subscribe(1), 0);
	assert_int_equal(subscribe(2), 0);
	TURN_UNTIL(sub->subscribed == 2);
	netio_publish_socket_fini(&publisher);
	TURN_UNTIL(sub->lost == 2 && sub->closed == 1);
	assert_int_equal(sub->reason, PLX_LINK_CLOSED);
	assert_int_equal(subscribe(3), 0); /* meanwhile */
	TURN_UNTIL(sub->refused > 2);
	open_publisher(&publisher, at);
	TURN_UNTIL(sub->resumed == 2 && sub->subscribed == 3);
	assert_int_equal(sub->established, 2);
	for (netio_tag_t tag = 1; tag <= 3; tag++)
		expect_message(&publisher, tag);
}

TEST(a_socket_may_subscribe_to_several_publishers)
{
	begin();
	open_publisher(&second, 0);
	unsigned other = netio_publish_socket_port(&second);
	subscribe_surely(1);
	uint64_t first_id = sub->publisher->id;
	assert_int_equal(netio_subscribe(&sub->socket, test_host(), other, 1), 0);
	TURN_UNTIL(sub->subscribed == 2);
	assert_int_not_equal(sub->publisher->id, first_id);
	assert_non_null(strstr(sub->publisher->provider, "tcp"));
	expect_message(&publisher, 1);
	assert_int_equal(sub->source, first_id);
	expect_message(&second, 1);
	assert_int_equal(sub->source, sub->publisher->id);
	/* Ending one leaves the other unaffected. */
	netio_publish_socket_fini(&second);
	TURN_UNTIL(sub->lost == 1);
	expect_message(&publisher, 1);
}

TEST(a_subscription_may_end_in_any_state)
{
	begin();
	/* Before there is a connection. */
	assert_int_equal(subscribe(1), 0);
	assert_int_equal(unsubscribe(1), 0);
	assert_int_equal(unsubscribe(1), -ENOENT);
	assert_int_equal(sub->unsubscribed, 0); /* not inside the call */
	TURN_UNTIL(sub->unsubscribed == 1 && sub->closed == 1);
	assert_int_equal(unsubscribe(1), -ENOENT);

	/* Before the answer. */
	subscribe_surely(1);
	assert_int_equal(subscribe(2), 0);
	assert_int_equal(unsubscribe(2), 0);
	TURN_UNTIL(sub->unsubscribed == 2);
	assert_int_equal(sub->subscribed, 1);
	assert_int_equal(stats().subscriptions, 1);

	/* And requested again at once. */
	assert_int_equal(unsubscribe(1), 0);
	assert_int_equal(subscribe(1), 0);
	TURN_UNTIL(sub->unsubscribed == 3 && sub->subscribed == 2);
	assert_int_equal(stats().subscriptions, 1);
	expect_message(&publisher, 1);
	assert_int_equal(sub->closed, 1);

	/* Again while the connection closes, because nothing was wanted. */
	assert_int_equal(unsubscribe(1), 0);
	TURN_UNTIL(sub->unsubscribed == 4);
	subscribe_surely(1);
	expect_message(&publisher, 1);

	/* Between attempts. */
	netio_publish_socket_fini(&publisher);
	TURN_UNTIL(sub->lost == 1);
	assert_int_equal(unsubscribe(1), 0);
	TURN_UNTIL(sub->unsubscribed == 5);
	turn_ms(100);
	sub->refused = 0;
	turn_ms(100);
	assert_int_equal(sub->refused, 0);
}

TEST(bad_arguments_are_refused_with_the_reason)
{
	static const struct {
		struct netio_subscription what;
		int rc;
		const char *error;
	} rows[] = {
		{{.tag = 5, .last = 4}, -EINVAL, "from 0x5 to 0x4"},
		{{.tag = 5, .mask = 4}, -EINVAL, "mask 0x4 leaves out"},
		{{.tag = 4, .mask = 4, .last = 5}, -EINVAL, "a range and a mask"},
		{{.tag = 4, .delivery = 3}, -EINVAL, "delivery 3"},
		{{.policy = 99}, -EINVAL, "policy 99"},
		/* Equivalent subscriptions are the same. */
		{{.tag = 5, .last = 5}, -EEXIST, ""},
		{{.tag = 5, .mask = UINT64_MAX}, -EEXIST, ""},
	};

	begin();
	assert_int_equal(subscribe(5), 0);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		int rc = netio_subscribe_to(&sub->socket, "127.0.0.1", at, &rows[i].what);

		if (rc != rows[i].rc || !strstr(plx_error(), rows[i].error))
			fail_msg("row %u, '%s': %d, %s", i, rows[i].error, rc, plx_error());
	}
	assert_int_equal(netio_unsubscribe_from(&sub->socket, "127.0.0.1", at, &rows[6].what), 0);
	assert_int_equal(netio_subscribe(&sub->socket, "", at, 1), -EINVAL);
	assert_int_equal(netio_subscribe(&sub->socket, "127.0.0.1", 65536, 1), -EINVAL);
	assert_int_equal(netio_unsubscribe(&sub->socket, "127.0.0.2", at, 1), -ENOENT);
	assert_int_equal(netio_unsubscribe(&sub->socket, "", at, 1), -EINVAL);
	assert_int_equal(netio_buffered_publish(&second, 1, "", 0, 0, NULL), -EINVAL);
	assert_int_equal(netio_subscribe(&subs[1].socket, "127.0.0.1", at, 1), -EINVAL);
	assert_fails(publish(1, 8, 4), -EINVAL, "give 0 or NETIO_REENTRY");
	assert_int_equal(netio_publish_listen(&publisher, test_host(), 0), -EALREADY);
}

TEST(a_subscribe_to_another_kind_of_socket_reports_its_kind)
{
	begin();
	listen_with(NULL);
	at = netio_listen_socket_port(&heard.socket);
	assert_int_equal(subscribe(1), 0);
	TURN_UNTIL(sub->refused > 0);
	assert_int_equal(sub->reason, PLX_LINK_HELLO);
	assert_non_null(strstr(sub->why, "listening socket"));
	assert_int_equal(heard.established, 0);
	netio_listen_socket_fini(&heard.socket);
}

/* No room ------------------------------------------------------------------------------------- */

TEST(too_many_subscriptions_are_refused)
{
	publish_to_one(&(struct netio_publish_attr){.subscriptions_max = 2});
	SUBSCRIBE(0, .tag = 2);
	REQUEST(0, .tag = 3);
	TURN_UNTIL(subs[0].not_taken == 1);
	assert_int_equal(subs[0].what.tag, 3);
	assert_non_null(strstr(subs[0].why, "takes no more subscriptions"));
	assert_int_equal(subs[0].unsubscribed, 0);
	assert_true(stats().refused >= 1);

	/* It is tried again, and there is room now. */
	assert_int_equal(netio_unsubscribe(&subs[0].socket, test_host(), port(), 1), 0);
	TURN_UNTIL(subs[0].unsubscribed == 1 && subs[0].subscribed == 3);
	assert_int_equal(subs[0].what.tag, 3);
	assert_int_equal(stats().subscriptions, 2);
	assert_int_equal(publish(3, 8, 0), 0);
	FLUSH_UNTIL(subs[0].messages == 1);
}

static void begin_refused(const struct netio_subscribe_attr *attr)
{
	publish_to_one(&(struct netio_publish_attr){.subscriptions_max = 1});
	sub_up(&subs[1], attr);
	REQUEST(1, .tag = 3);
}

TEST(a_refused_subscription_may_end_while_it_waits)
{
	begin_refused(&quick);
	TURN_UNTIL(subs[1].not_taken == 3);
	assert_fails(netio_subscribe(&subs[1].socket, test_host(), port(), 3), -EEXIST,
		     "subscribed to");
	assert_int_equal(netio_unsubscribe(&subs[1].socket, test_host(), port(), 3), 0);
	TURN_UNTIL(subs[1].unsubscribed == 1 && subs[1].closed == 1);
	assert_int_equal(subs[1].subscribed, 0);
}

/* Programs without callbacks see the reason in the log of either side. */
TEST(refusals_are_logged_once_on_both_sides)
{
	begin_refused(&quick);
	subs[1].socket.cb_subscription_refused = NULL;
	TURN_UNTIL(stats().refused == 4);
	assert_int_equal(log_count("refuses a subscription: the publisher takes no more "
				   "subscriptions; trying again"),
			 1);
	assert_int_equal(log_count("is refused a subscription: it has 0, of 131072 "
				   "(subscriber_subscriptions_max), and all have 1, of 1 "
				   "(subscriptions_max)"),
			 1);
}

TEST(without_reconnecting_a_refusal_ends_the_subscription)
{
	begin_refused(&(struct netio_subscribe_attr){.connect.reconnect_min_ns = PLX_NEVER});
	TURN_UNTIL(subs[1].unsubscribed == 1 && subs[1].closed == 1);
	assert_int_equal(subs[1].not_taken, 1);
}

TEST(a_range_counts_as_its_number_of_blocks)
{
	publish_with(&(struct netio_publish_attr){.subscriptions_max = 200,
						  .subscriber_subscriptions_max = 130,
						  .subscribers_max = 2});
	SUBSCRIBE(0, .tag = 1, .last = UINT64_MAX - 1);
	for (netio_tag_t tag = 1; tag <= 4; tag++)
		SUBSCRIBE(0, .tag = tag);
	REQUEST(0, .tag = 5);
	TURN_UNTIL(subs[0].not_taken == 1);
	SUBSCRIBE(1, .tag = 1, .last = UINT64_MAX);
	REQUEST(1, .tag = 3, .last = UINT64_MAX - 3);
	TURN_UNTIL(subs[1].not_taken == 1);
	assert_int_equal(stats().subscriptions, 6);
	assert_true(stats().refused >= 2);
	/* And their number is limited. */
	sub_up(&subs[2], NULL);
	REQUEST(2, .tag = 5);
	TURN_UNTIL(subs[2].refused > 0);
	/* A leaving subscriber frees its slot. */
	netio_subscribe_socket_fini(&subs[0].socket);
	TURN_UNTIL(subs[2].subscribed == 1);
}

/* Hostile subscribers ------------------------------------------------------------------------- */

static uint8_t list[WIRE_LIST_BYTES + (WIRE_LIST_MAX + 1) * WIRE_REQUEST_BYTES];
static const struct wire_greeting subscriber_says = GREETING(WIRE_HELLO, WIRE_SUBSCRIBER, 4096);

static void connect_raw_with(uint64_t message_max)
{
	const struct plx_link_attr attr = {.message_max_bytes = message_max};

	raw_connect_as(port(), attr, &subscriber_says);
}

static void connect_raw(void)
{
	connect_raw_with(0);
	TURN_UNTIL(raw != NULL);
}

static size_t write_list(const struct wire_request *requests, unsigned count)
{
	wire_list_write(list, WIRE_REQUEST);
	for (unsigned i = 0; i < count; i++)
		wire_request_write(list + WIRE_LIST_BYTES + i * WIRE_REQUEST_BYTES, &requests[i]);
	return WIRE_LIST_BYTES + count * WIRE_REQUEST_BYTES;
}

/* So many bytes of the list. */
static void send_bad_list(size_t size)
{
	connect_raw();
	plx_link_send(raw, list, size);
	TURN_UNTIL(raw_closed == 1);
}

TEST(broken_requests_end_their_connection)
{
	static const struct wire_request bad[] = {
		{.kind = 0},
		{.kind = 4},
		{.kind = WIRE_SUBSCRIBE_RANGE, .what.delivery = 3},
		{.kind = WIRE_SUBSCRIBE_RANGE, .what = {.tag = 2, .last = 1}},
		{.kind = WIRE_SUBSCRIBE_MASK, .what = {.tag = 2, .mask = 1}},
		{.kind = WIRE_SUBSCRIBE_MASK},
		{.kind = WIRE_UNSUBSCRIBE, .what.tag = 2},
		{.kind = WIRE_UNSUBSCRIBE, .what.delivery = 1},
		{.kind = WIRE_UNSUBSCRIBE, .what.policy = 1},
		{.kind = WIRE_UNSUBSCRIBE, .what.backlog_bytes = 1},
		{.kind = WIRE_SUBSCRIBE_RANGE, .what.policy = NETIO_POLICY_COUNT},
	};
	const struct wire_request good[2] = {{.kind = WIRE_SUBSCRIBE_RANGE},
					     {.kind = WIRE_SUBSCRIBE_RANGE}};
	const struct wire_request twice[2] = {{.id = 1, .kind = WIRE_SUBSCRIBE_RANGE},
					      {.id = 2, .kind = WIRE_SUBSCRIBE_RANGE}};
	static const size_t sizes[] = {0, WIRE_LIST_BYTES - 1, WIRE_LIST_BYTES, sizeof(list)};
	static const size_t zeroes[] = {1, WIRE_LIST_BYTES + 7};
	size_t size;

	begin();
	subscribe_surely(1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bad); i++)
		send_bad_list(write_list(&bad[i], 1));
	/* Lists of a wrong length, and messages that are no list. */
	size = write_list(good, 1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(sizes); i++)
		send_bad_list(sizes[i]);
	send_bad_list(size - 1);
	/* Bytes that must be zero; a duplicate id; the same twice. */
	for (unsigned i = 0; i < PLX_ARRAY_LEN(zeroes); i++) {
		size = write_list(good, 1);
		list[zeroes[i]] = 1;
		send_bad_list(size);
	}
	send_bad_list(write_list(good, 2));
	send_bad_list(write_list(twice, 2));
	/* A subscriber whose link takes no pages. */
	for (uint64_t message_max = 16; message_max < 288; message_max += 16) {
		connect_raw_with(message_max);
		TURN_UNTIL(raw_closed == 1);
	}

	/* The valid one remains, and nothing of the others. */
	expect_message(&publisher, 1);
	assert_int_equal(stats().subscribers, 1);
	assert_int_equal(stats().subscriptions, 1);
}

/* A subscriber that requests and takes no answers: its own credit stops it. */
static unsigned kept_count;
static struct plx_buf *kept[64];

static void keep_buffer(struct plx_link *link, struct plx_buf *message, void *user)
{
	raw_messages++;
	if (kept_count < PLX_ARRAY_LEN(kept))
		kept[kept_count++] = plx_buf_ref(message);
}

TEST(a_subscriber_that_reads_no_answers_is_throttled)
{
	static const struct plx_link_events events = {
		.on_open = raw_open,
		.on_message = keep_buffer,
		.on_close = raw_close,
	};
	const struct plx_link_attr attr = {.events = &events, .rx_buf_count = 4};
	struct wire_request request = {.kind = WIRE_UNSUBSCRIBE};
	unsigned sent = 0;

	begin();
	subscribe_surely(1);
	kept_count = 0;
	raw_connect_as(at, attr, &subscriber_says);
	TURN_UNTIL(raw != NULL);
	for (unsigned idle = 0; idle < 20;) {
		if (plx_link_send(raw, list, write_list(&request, 1)) == 0) {
			sent++;
			idle = 0;
		} else {
			turn_ms(1);
			idle++;
		}
		assert_true(sent < 10000);
	}
	assert_true(stats().requests < sent + 1); /* some are queued */
	assert_int_equal(raw_closed, 0);
	/* Others are not delayed. */
	expect_message(&publisher, 1);
	/* Queued requests are answered when possible. */
	while (kept_count)
		plx_buf_unref(kept[--kept_count]);
	kept_count = PLX_ARRAY_LEN(kept);
	TURN_UNTIL(raw_messages == sent);
	assert_int_equal(stats().requests, 1 + sent);
	plx_link_abort(raw);
	TURN_UNTIL(raw_closed == 1);
}

/* Hostile publishers -------------------------------------------------------------------------- */

static struct plx_listener *raw_listener;

static void listen_raw(void)
{
	static const struct wire_greeting answered = GREETING(WIRE_WELCOME, WIRE_SUBSCRIBER, 4000);

	at = raw_listen(0, &answered, &raw_listener);
}

/* Take the first request. */
static void take_request(void)
{
	raw = NULL;
	raw_messages = 0;
	TURN_UNTIL(raw && raw_messages == 1);
}

static void answer(const struct wire_answer *answers, unsigned count)
{
	uint8_t sent[WIRE_LIST_BYTES + 4 * WIRE_ANSWER_BYTES];

	wire_list_write(sent, WIRE_ANSWER);
	for (unsigned i = 0; i < count; i++)
		wire_answer_write(sent + WIRE_LIST_BYTES + i * WIRE_ANSWER_BYTES, &answers[i]);
	assert_int_equal(plx_link_send(raw, sent, WIRE_LIST_BYTES + count * WIRE_ANSWER_BYTES), 0);
}

TEST(broken_answers_end_their_connection)
{
	static const struct {
		struct wire_answer answers[2];
		unsigned count;
	} bad[] = {
		{{{0, 0}}, 1},
		{{{0, WIRE_STATUS_COUNT}}, 1},
		{{{1, WIRE_SUBSCRIBED}}, 1},                       /* not asked for */
		{{{UINT32_MAX, WIRE_SUBSCRIBED}}, 1},              /* the same */
		{{{0, WIRE_UNSUBSCRIBED}}, 1},                     /* not what was requested */
		{{{0, WIRE_SUBSCRIBED}, {0, WIRE_SUBSCRIBED}}, 2}, /* twice */
		{{{0, WIRE_SUBSCRIBED}, {0, WIRE_UNSUBSCRIBED}}, 2},
	};

	begin();
	listen_raw();
	assert_int_equal(subscribe(1), 0);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		take_request();
		answer(bad[i].answers, bad[i].count);
		TURN_UNTIL(sub->closed == i + 1);
		assert_int_equal(sub->reason, PLX_LINK_PROTOCOL);
		TURN_UNTIL(raw_closed == i + 1);
	}
	assert_int_equal(sub->subscribed + sub->resumed, 2);
	assert_int_equal(sub->lost, 2);
	/* Neither an answer nor a message; a malformed page. */
	take_request();
	assert_int_equal(plx_link_send(raw, "\5\0\0\0\0\0\0\0", 8), 0);
	TURN_UNTIL(sub->closed == PLX_ARRAY_LEN(bad) + 1);
	assert_non_null(strstr(sub->why, "neither a message nor a page"));
	take_request();
	assert_int_equal(plx_link_send(raw, "\4\0\0\0\0\0\0\0\1", 9), 0);
	TURN_UNTIL(sub->closed == PLX_ARRAY_LEN(bad) + 2);
	take_request();
	answer(&(struct wire_answer){0, WIRE_SUBSCRIBED}, 1);
	uint8_t message[WIRE_MESSAGE_BYTES];
	wire_message_write(message, 1);
	assert_int_equal(plx_link_send(raw, message, sizeof(message)), 0);
	TURN_UNTIL(sub->messages == 1);
	assert_int_equal(sub->resumed, 2);
	plx_listener_close(raw_listener);
	subs_down();
	TURN_UNTIL(!raw);
}

PLX_TEST_MAIN()
