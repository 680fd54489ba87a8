/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of subscriptions, and how each end handles a misbehaving peer. */
#include "pubsub_fixture.h"

#include "netio_wire.h"
#include "raw_link.h"

static struct netio_publish_socket publisher, second;
static struct sub *const sub = &subs[0];
static unsigned at; /* port of the publisher, also after it closed */

static void open_publisher(struct netio_publish_socket *socket, unsigned port)
{
	assert_int_equal(netio_publish_socket_init(&ctx.evloop, socket, NULL), 0);
	assert_int_equal(netio_publish_listen(socket, "127.0.0.1", port), 0);
}

static void begin(void)
{
	static const struct netio_subscribe_attr quick = {
		.connect.reconnect_min_ns = PLX_NS_PER_MS,
		.connect.reconnect_max_ns = 20 * PLX_NS_PER_MS,
	};

	open_publisher(&publisher, 0);
	at = netio_publish_socket_port(&publisher);
	sub_up(sub, &quick);
}

static int all_down(void **state)
{
	subs_down();
	netio_publish_socket_fini(&publisher);
	netio_publish_socket_fini(&second);
	return netio_down(state);
}

static int subscribe(netio_tag_t tag)
{
	return netio_subscribe(&sub->socket, "127.0.0.1", at, tag);
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
	return netio_unsubscribe(&sub->socket, "127.0.0.1", at, tag);
}

static int publish(struct netio_publish_socket *socket, netio_tag_t tag)
{
	int rc = netio_buffered_publish(socket, tag, "hello", 6, 0, NULL);

	netio_buffered_publish_flush(socket);
	return rc;
}

PLX_READS(struct netio_publish_stats, stats, (void), netio_publish_stats_read(&publisher, &it))

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
	assert_int_equal(sub->lost, 2);
	for (netio_tag_t tag = 1; tag <= 3; tag++)
		assert_int_equal(publish(&publisher, tag), NETIO_STATUS_OK);
	TURN_UNTIL(sub->messages == 3);
	assert_memory_equal(sub->bytes, "hello", sizeof("hello"));
}

TEST(a_publisher_may_start_later)
{
	begin();
	netio_publish_socket_fini(&publisher);
	turn_ms(5);
	assert_int_equal(subscribe(1), 0);
	assert_int_equal(subscribe(1), -EEXIST);
	TURN_UNTIL(sub->refused > 0);
	assert_int_equal(sub->reason, PLX_LINK_REFUSED);
	open_publisher(&publisher, at);
	TURN_UNTIL(sub->subscribed == 1);
	assert_int_equal(sub->lost, 0);
}

TEST(a_socket_may_subscribe_to_several_publishers)
{
	begin();
	open_publisher(&second, 0);
	unsigned other = netio_publish_socket_port(&second);
	subscribe_surely(1);
	uint64_t first_id = sub->publisher->id;
	assert_int_equal(netio_subscribe(&sub->socket, "127.0.0.1", other, 1), 0);
	TURN_UNTIL(sub->subscribed == 2);
	assert_int_not_equal(sub->publisher->id, first_id);
	assert_non_null(strstr(sub->publisher->provider, "tcp"));
	assert_int_equal(publish(&publisher, 1), NETIO_STATUS_OK);
	TURN_UNTIL(sub->messages == 1);
	assert_int_equal(sub->source, first_id);
	assert_int_equal(publish(&second, 1), NETIO_STATUS_OK);
	TURN_UNTIL(sub->messages == 2);
	assert_int_equal(sub->source, sub->publisher->id);
	/* Ending one leaves the other unaffected. */
	netio_publish_socket_fini(&second);
	TURN_UNTIL(sub->lost == 1);
	assert_int_equal(publish(&publisher, 1), NETIO_STATUS_OK);
	TURN_UNTIL(sub->messages == 3);
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
	assert_int_equal(publish(&publisher, 1), NETIO_STATUS_OK);
	TURN_UNTIL(sub->messages == 1);
	assert_int_equal(sub->closed, 1);

	/* Again while the connection closes, because nothing was wanted. */
	assert_int_equal(unsubscribe(1), 0);
	TURN_UNTIL(sub->unsubscribed == 4);
	subscribe_surely(1);
	assert_int_equal(publish(&publisher, 1), NETIO_STATUS_OK);
	TURN_UNTIL(sub->messages == 2);

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

/* The connection closes while its closure is requested. */
TEST(a_subscription_may_end_with_its_connection)
{
	begin();
	assert_int_equal(subscribe(1), 0);
	assert_int_equal(subscribe(2), 0);
	TURN_UNTIL(sub->subscribed == 2);
	netio_publish_socket_fini(&publisher);
	assert_int_equal(unsubscribe(2), 0);
	TURN_UNTIL(sub->unsubscribed == 1 && sub->lost == 1);
	assert_int_equal(sub->what.tag, 2); /* the end is reported last */
	open_publisher(&publisher, at);
	TURN_UNTIL(sub->resumed == 1);
	assert_int_equal(stats().subscriptions, 1);
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
	assert_int_equal(netio_unsubscribe_from(&sub->socket, "127.0.0.1", at, &rows[5].what), 0);
	assert_int_equal(netio_subscribe(&sub->socket, "", at, 1), -EINVAL);
	assert_int_equal(netio_subscribe(&sub->socket, "127.0.0.1", 65536, 1), -EINVAL);
	assert_int_equal(netio_unsubscribe(&sub->socket, "127.0.0.2", at, 1), -ENOENT);
	assert_int_equal(netio_subscribe(&subs[1].socket, "127.0.0.1", at, 1), -EINVAL);
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

/* Hostile subscribers ------------------------------------------------------------------------- */

static uint8_t list[WIRE_LIST_BYTES + (WIRE_LIST_MAX + 1) * WIRE_REQUEST_BYTES];
static const struct wire_greeting subscriber_says = GREETING(WIRE_HELLO, WIRE_SUBSCRIBER, 4096);

static void connect_raw_with(uint64_t message_max)
{
	const struct plx_link_attr attr = {.message_max_bytes = message_max};

	raw_connect_as(netio_publish_socket_port(&publisher), attr, &subscriber_says);
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
	assert_int_equal(publish(&publisher, 1), NETIO_STATUS_OK);
	TURN_UNTIL(sub->messages == 1);
	assert_int_equal(stats().subscribers, 1);
	assert_int_equal(stats().subscriptions, 1);
}

TEST(unknown_subscriptions_are_refused)
{
	begin();
	connect_raw();
	plx_link_send(raw, list,
		      write_list(&(struct wire_request){.id = 9, .kind = WIRE_UNSUBSCRIBE}, 1));
	TURN_UNTIL(raw_messages == 1);
	assert_int_equal(raw_closed, 0);
	assert_int_equal(stats().requests, 1);
	assert_int_equal(stats().refused, 1);
	plx_link_close(raw);
	TURN_UNTIL(raw_closed == 1);
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
	assert_int_equal(publish(&publisher, 1), NETIO_STATUS_OK);
	TURN_UNTIL(sub->messages == 1);
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
	uint8_t bytes[WIRE_LIST_BYTES + 4 * WIRE_ANSWER_BYTES];

	wire_list_write(bytes, WIRE_ANSWER);
	for (unsigned i = 0; i < count; i++)
		wire_answer_write(bytes + WIRE_LIST_BYTES + i * WIRE_ANSWER_BYTES, &answers[i]);
	assert_int_equal(plx_link_send(raw, bytes, WIRE_LIST_BYTES + count * WIRE_ANSWER_BYTES), 0);
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

/* Nothing is wanted, and then something again, while the connection closes. Failing to reopen it at
 * once is retried like any other attempt. */
TEST(a_failed_reopening_is_retried)
{
	char good[PLX_ADDRESS_MAX];

	begin();
	subscribe_surely(1);
	struct publisher *peer = (struct publisher *)LIST_FIRST(&sub->socket.core->hub.connections);
	assert_int_equal(unsubscribe(1), 0);
	for (int i = 0; i < 10000 && peer->connection.session.state == PLX_CONNECTOR_OPEN; i++)
		plx_loop_turn();
	assert_int_equal(sub->closed, 0);
	assert_int_equal(subscribe(1), 0);
	memcpy(good, peer->connection.session.address, sizeof(good));
	strcpy(peer->connection.session.address, "no address");
	TURN_UNTIL(sub->closed == 1 && sub->refused >= 1);
	assert_int_equal(sub->reason, PLX_LINK_LOCAL);
	memcpy(peer->connection.session.address, good, sizeof(good));
	TURN_UNTIL(sub->subscribed == 2);
}

PLX_TEST_MAIN()
