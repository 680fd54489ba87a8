/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that violate the protocol: a raw link to a service, and one that acts as a service. */
#include "rpc_fixture.h"

#include "log_capture.h"

/* A batch being built. */
static uint64_t words[1024];
static size_t batch_bytes;

static void add(uint8_t kind, uint8_t flags, uint64_t call, uint32_t first, uint32_t second,
		const char *payload)
{
	struct rpc_header header = {
		.kind = kind,
		.flags = flags,
		.length = (uint32_t)strlen(payload),
		.call = call,
		.method = first,
		.remaining_us = second,
	};
	uint8_t *at = (uint8_t *)words + batch_bytes;

	memcpy(rpc_header_write(at, &header), payload, header.length);
	batch_bytes += rpc_record_bytes(header.length);
}

static void send_batch(struct side *side)
{
	assert_works(plx_link_send(side->link, words, batch_bytes));
	batch_bytes = 0;
}

/* A service, a correct client, and a raw link. */
static void start_with(const struct plx_rpc_service_attr *what)
{
	batch_bytes = 0;
	rpc_start("tcp", what, NULL);
	connect_raw(NULL);
}

PLX_FIXTURE(start_service, 0, start_with(NULL))

static int stop(void **state)
{
	if (client.link)
		plx_link_abort(client.link);
	rpc_stop();
	return 0;
}

#define SERVICE_TEST(name) PLX_TEST_WITH(name, start_service, stop)

static void others_continue(void)
{
	call_expecting(PLX_RPC_OK, ECHO, "still", 5, &outcome);
}

static void is_disconnected(unsigned nth)
{
	PUMP_UNTIL(client.closed >= 1);
	assert_int_equal(service_stats().protocol, nth);
}

/* hello: NULL: a valid one of that role. */
static void say(struct plx_link_attr *attr, const char *hello, enum rpc_role role)
{
	rpc_say(attr, role);
	if (!hello)
		return;
	attr->hello_length = (uint8_t)strlen(hello);
	memcpy(attr->hello, hello, attr->hello_length);
}

/* Refused with a reason that both sides get; later data of the peer is ignored. */
PLX_TEST_WITH(invalid_greetings_are_refused, NULL, stop)
{
	static const struct {
		const char *hello, *why;
	} rows[] = {
		{"", "the HELLO is no client's"},
		{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "the HELLO is no client's"},
		{NULL, "the HELLO is a service's, not a client's"},
	};
	struct plx_link_attr attr;

	rpc_start("tcp", NULL, NULL);
	log_capture();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		attr = (struct plx_link_attr){0};
		say(&attr, rows[i].hello, RPC_SERVER);
		connect_raw(&attr);
		PUMP_UNTIL(client.closed >= 1);
		assert_int_equal(client.reason, PLX_LINK_HELLO);
		assert_non_null(strstr(client.text, rows[i].why));
		assert_int_equal(service_stats().protocol, i + 1);
	}
	assert_in_range(log_count(" did not complete the handshake: it was refused: the HELLO is"),
			1, PLX_ARRAY_LEN(rows));
	assert_int_equal(log_count("without closing"), 0);
	plx_log_set_sink(NULL, NULL);
	others_continue();
}

SERVICE_TEST(bad_records_end_their_connection)
{
	static const struct {
		const char *name;
		uint8_t kind, flags;
		unsigned count, cut_bytes; /* of the batch */
		const char *payload;
	} rows[] = {
		{"an unknown flag", RPC_REQUEST, 0x80 | RPC_FLAG_KEY, 1, 0, "12345678"},
		{"a key that is cut off", RPC_REQUEST, RPC_FLAG_KEY, 1, 0, "1234567"},
		{"an unknown kind", 77, 0, 1, 0, ""},
		{"a reply to a service", RPC_REPLY, PLX_RPC_OK, 1, 0, ""},
		{"a record that is longer than its message", RPC_REQUEST, 0, 1, 8, "long"},
		/* They would be queued unchanged, out of proportion to the client's window. */
		{"too many records in one message", RPC_CANCEL, 0,
		 RPC_BATCH_BYTES / RPC_RECORD_BYTES + 1, 0, ""},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		print_message("%s\n", rows[i].name);
		if (i > 0)
			connect_raw(NULL);
		for (unsigned j = 0; j < rows[i].count; j++)
			add(rows[i].kind, rows[i].flags, j, ECHO, 1000000, rows[i].payload);
		batch_bytes -= rows[i].cut_bytes;
		send_batch(&client);
		is_disconnected(i + 1);
	}
	assert_int_equal(handled_count, 0);
	others_continue();
}

/* Which of the two would a cancellation mean? */
SERVICE_TEST(a_reused_call_number_ends_the_connection)
{
	add(RPC_REQUEST, 0, 5, LATER, UINT32_MAX, "");
	add(RPC_CANCEL, 0, 5, 0, 0, "with bytes");
	add(RPC_CANCEL, 0, 5, 0, 0, "");
	add(RPC_CANCEL, 0, 6, 0, 0, "");
	add(RPC_REQUEST, 0, 5, LATER, UINT32_MAX, ""); /* the first one is cancelled */
	send_batch(&client);
	is_kept(2);
	assert_int_equal(gone_count, 1);
	assert_int_equal(service_stats().cancelled, 1);
	add(RPC_REQUEST, 0, 5, LATER, UINT32_MAX, "");
	send_batch(&client);
	is_disconnected(1);
	assert_int_equal(kept_count, 3); /* all are replied to, in vain */
	assert_int_equal(gone_count, 2);
	others_continue();
}

SERVICE_TEST(a_violation_may_follow_valid_requests)
{
	for (uint64_t i = 0; i < 65; i++)
		add(RPC_REQUEST, 0, i, ECHO, UINT32_MAX, "");
	add(77, 0, 1, 0, 0, "");
	for (uint64_t i = 0; i < 65; i++)
		add(RPC_REQUEST, 0, i, ECHO, UINT32_MAX, "");
	send_batch(&client);
	add(RPC_REQUEST, 0, 1, ECHO, UINT32_MAX, "");
	send_batch(&client);
	is_disconnected(1);
	assert_int_equal(handled_count, 65);
}

/* Cancellations take turns too. */
SERVICE_TEST(a_flood_of_cancellations_does_not_block_others)
{
	for (uint64_t i = 0; i < 160; i++)
		add(RPC_CANCEL, 0, i, 0, 0, "");
	send_batch(&client);
	PUMP_UNTIL(service_stats().deferred == 1);
	others_continue();
}

/* Long requests are queued up to a bound; excess ones get BUSY before them. */
PLX_TEST_WITH(queued_long_requests_are_bounded, NULL, stop)
{
	struct rpc_header header = {
		.kind = RPC_REQUEST, .method = ECHO, .remaining_us = UINT32_MAX};
	static uint64_t bytes[4000];

	start_with(&(struct plx_rpc_service_attr){.waiting_max = 100000, .turn_max = 1});
	for (uint64_t i = 0; i < 100; i++) /* they take longer to arrive than the long ones */
		add(RPC_REQUEST, 0, 1000 + i, SLOW, UINT32_MAX, "");
	send_batch(&client);
	header.length = sizeof(bytes) - RPC_RECORD_BYTES;
	for (header.call = 0; header.call < 8; header.call++) {
		rpc_header_write(bytes, &header);
		while (plx_link_send(client.link, bytes, sizeof(bytes)) == -EAGAIN)
			pump_ms(1);
	}
	PUMP_UNTIL(service_stats().busy == 5); /* three fit, of 32000 bytes each */
	assert_int_equal(client.closed, 0);
	others_continue();
}

/* From a service that drains and has announced it. */
SERVICE_TEST(a_request_after_the_drain_notice_is_refused)
{
	pump_ms(20);
	plx_rpc_service_drain(service);
	PUMP_UNTIL(client.messages >= 1);
	assert_int_equal(client.last[0], RPC_DRAIN);
	add(RPC_REQUEST, 0, 1, ECHO, UINT32_MAX, "");
	send_batch(&client);
	PUMP_UNTIL(client.messages >= 2);
	assert_int_equal(client.last[0], RPC_REPLY);
	assert_int_equal(client.last[1], PLX_RPC_DRAINING);
	/* It did not run. */
	assert_int_equal(((const struct rpc_header *)client.last)->handler_ns, 0);
	assert_int_equal(handled_count, 0);
	PUMP_UNTIL(client.closed >= 1); /* it has 2 s to leave */
}

SERVICE_TEST(a_request_without_time_left_is_refused)
{
	add(RPC_REQUEST, 0, 1, ECHO, 0, "x");
	send_batch(&client);
	PUMP_UNTIL(client.messages >= 1);
	assert_int_equal(client.last_len, RPC_RECORD_BYTES);
	assert_int_equal(client.last[0], RPC_REPLY);
	assert_int_equal(client.last[1], PLX_RPC_DEADLINE);
	assert_int_equal(handled_count, 0);
}

/* It announced that it takes 1000 bytes. Or longer than any reply. */
SERVICE_TEST(a_reply_longer_than_the_client_accepts_is_refused)
{
	static const uint8_t bytes[1001];

	for (unsigned i = 0; i < 2; i++) {
		add(RPC_REQUEST, 0, i, LATER, UINT32_MAX, "");
		send_batch(&client);
		is_kept(i + 1);
		assert_int_equal(plx_rpc_reply(kept[i], bytes, i ? PLX_RPC_PAYLOAD_MAX + 1 : 1001),
				 -EMSGSIZE);
		kept[i] = NULL;
		PUMP_UNTIL(client.messages >= i + 1);
		assert_int_equal(client.last[1], PLX_RPC_TOO_BIG);
		/* The handler has run. */
		assert_true(client.last[16] | client.last[17] | client.last[18]);
	}
}

/* A hundred requests more, of a client that keeps everything that it gets. */
static void request_100(void)
{
	unsigned before = kept_count;

	client.keep = 512;
	for (unsigned i = 0; i < 100; i++)
		add(RPC_REQUEST, 0, before + i, LATER, UINT32_MAX, "");
	send_batch(&client);
	is_kept(before + 100);
}

static void reply_from(unsigned first)
{
	static const uint8_t bytes[1000];

	for (; first < kept_count; first++) {
		plx_rpc_reply(kept[first], bytes, sizeof(bytes));
		kept[first] = NULL;
	}
}

PLX_FIXTURE(start_small_service, 0,
	    start_with(&(struct plx_rpc_service_attr){.waiting_max = 50000}))

PLX_TEST_WITH(a_client_that_reads_no_replies_is_disconnected, start_small_service, stop)
{
	while (kept_count < 500 && client.closed == 0) {
		request_100();
		reply_from(kept_count - 100);
		pump_ms(5);
	}
	is_disconnected(1);
	others_continue();
	side_release(&client, UINT32_MAX);
}

/* However slowly it answers, and however long the client does not take the replies. */
SERVICE_TEST(a_client_that_reads_no_replies_delays_a_drain_for_seconds)
{
	uint64_t began_ns;

	log_capture();
	while (kept_count < 500)
		request_100();
	plx_rpc_service_drain(service);
	pump_ms(500);
	began_ns = plx_now_ns();
	reply_from(0);
	assert_works(plx_rpc_service_finish(service, 8 * PLX_NS_PER_S));
	assert_in_range(plx_now_ns() - began_ns, PLX_CLOSE_NS,
			PLX_CLOSE_NS + 2 * PLX_NS_PER_S); /* on a busy host */
	assert_int_equal(log_count("it did not take its replies and leave within 5 s"), 1);
	assert_int_equal(service_stats().protocol, 0);
	side_release(&client, UINT32_MAX);
	plx_log_set_sink(NULL, NULL);
}

/* A hostile service -------------------------------------------------------------------------- */

static struct plx_listener *listener;

/* `server` is its side of the caller's link. hello: NULL: a valid one. */
static void start_against(const char *hello)
{
	struct plx_rpc_client_attr attr = {.reply_max = 1000,
					   .reconnect_min_ns = 3600 * PLX_NS_PER_S};
	struct plx_link_attr link = {0};

	batch_bytes = 0;
	fixture_start("tcp", false);
	say(&link, hello, RPC_SERVER);
	listener = fixture_listen(here("0"), &link);
	caller = make_client((const char *const[]){plx_listener_address(listener), NULL}, &attr);
	PUMP_UNTIL(server.opened >= 1);
}

static int start_client(void **state)
{
	start_against(NULL);
	wait_up(caller);
	return 0;
}

static int stop_client(void **state)
{
	destroy_caller();
	if (server.link)
		plx_link_abort(server.link);
	plx_listener_close(listener);
	PUMP_UNTIL(!plx_fabric_open_count());
	fixture_stop();
	return 0;
}

#define CLIENT_TEST(name) PLX_TEST_WITH(name, start_client, stop_client)

/* The number that the caller gave to a call. */
static uint64_t received_call(void)
{
	struct rpc_record record = {0};
	const char *wrong;
	uint64_t copy[64];
	size_t offset = 0;

	memcpy(copy, server.last, server.last_len);
	assert_true(rpc_record_next((uint8_t *)copy, server.last_len, &offset, &record, &wrong));
	assert_int_equal(record.header.kind, RPC_REQUEST);
	return record.header.call;
}

/* The peer's protocol is unknown: no request is sent to it. */
PLX_TEST_WITH(a_listener_that_is_no_service_is_reported, NULL, stop_client)
{
	start_against("PONG");
	call_within(ECHO, 200 * PLX_NS_PER_MS, &outcome);
	PUMP_UNTIL(server.closed >= 1);
	assert_int_equal(server.reason, PLX_LINK_HELLO);
	assert_non_null(strstr(server.text, "the HELLO is no service's"));
	expect_status(&outcome, PLX_RPC_PEER_DOWN); /* never sent, and no service is up */
	assert_false(outcome.may_have_run);
	assert_int_equal(server.messages, 0);
	assert_int_equal(client_stats().protocol, 1);
	assert_non_null(strstr(plx_rpc_client_trouble(caller), "the HELLO is no service's"));
}

CLIENT_TEST(replies_to_unknown_calls_are_ignored)
{
	call_within(ECHO, 10 * PLX_NS_PER_S, &outcome);
	PUMP_UNTIL(server.messages >= 1);
	uint64_t call = received_call();
	add(RPC_REPLY, PLX_RPC_OK, call + 1, 0, 0, "none");
	add(RPC_REPLY, PLX_RPC_OK, call + (UINT64_C(1) << 32), 0, 0, "not yet");
	add(RPC_REPLY, PLX_RPC_OK, UINT64_MAX, 0, 0, "none");
	add(RPC_REPLY, 200, UINT64_MAX - 1, 0, 0, "none");
	add(RPC_REPLY, PLX_RPC_OK, call, 0, 0, "good");
	add(RPC_REPLY, PLX_RPC_OK, call, 0, 0, "twice");
	send_batch(&server);
	wait_done(&outcome);
	assert_memory_equal(outcome.data, "good", 4);
	pump_ms(10);
	assert_int_equal(outcome.count, 1);
	assert_int_equal(client_stats().strays, 5);
	assert_int_equal(client_stats().open, 0);
}

CLIENT_TEST(bad_replies_end_their_connection)
{
	static const struct {
		uint8_t status;
		unsigned length;
	} rows[] = {{PLX_RPC_STATUS_COUNT, 0}, {PLX_RPC_OK, 1001}}; /* it takes 1000 bytes */
	char payload[1002];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		if (i > 0) {
			stop_client(NULL);
			start_client(NULL);
		}
		memset(payload, 'x', sizeof(payload));
		payload[rows[i].length] = '\0';
		call_within(ECHO, 10 * PLX_NS_PER_S, &outcome);
		PUMP_UNTIL(server.messages >= 1);
		add(RPC_REPLY, rows[i].status, received_call(), 0, 0, payload);
		send_batch(&server);
		expect_status(&outcome, PLX_RPC_PEER_DOWN);
		assert_true(outcome.may_have_run);
		assert_int_equal(client_stats().protocol, 1);
	}
}

CLIENT_TEST(the_calls_of_a_service_that_dies_fail)
{
	struct outcome sent, waits;

	call_within(ECHO, 10 * PLX_NS_PER_S, &sent);
	PUMP_UNTIL(server.messages >= 1);
	plx_link_abort(server.link);
	expect_status(&sent, PLX_RPC_PEER_DOWN);
	assert_true(sent.may_have_run);
	call_within(ECHO, 50 * PLX_NS_PER_MS, &waits);
	expect_status(&waits, PLX_RPC_PEER_DOWN);
	assert_false(waits.may_have_run);
}

PLX_TEST_MAIN()
