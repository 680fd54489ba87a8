/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that violate the protocol, or speak none: each is dropped with a reason that names its
 * violation, and an honest link next to it is unaffected. */
#include "count.h"
#include "fabric_link.h"
#include "fixture.h"
#include "rogue.h"

#include <arpa/inet.h>
#include <unistd.h>

static struct plx_listener *listener;
static struct side honest_server;

/* An honest link stays open throughout. */
static int start(void **state)
{
	struct plx_link_attr attr = {.hello_timeout_ns = 200 * PLX_NS_PER_MS,
				     .close_timeout_ns = 500 * PLX_NS_PER_MS};

	fixture_start(NULL, false);
	listener = fixture_listen(here("0"), &attr);
	fixture_connect(listener, NULL);
	server_set_aside(&honest_server);
	honest_server.echo = true;
	return 0;
}

static void honest_link_is_well(void)
{
	expect_echo("ping", 4);
	assert_int_equal(client.closed + honest_server.closed, 0);
}

static struct rogue *rogue;

static int start_connected(void **state)
{
	start(state);
	rogue = rogue_connect(plx_listener_address(listener));
	return 0;
}

static int start_open(void **state)
{
	start(state);
	rogue = rogue_open(listener, NULL);
	return 0;
}

static int stop(void **state)
{
	rogue_drop(&rogue);
	honest_link_is_well();
	fixture_stop();
	free(honest_server.last);
	return 0;
}

/* A connection that never opened is reported as a failure of the listener, with that text. */
static void expect_failure(const char *part)
{
	expect_soon(listener_stats_of(listener).failed);
	assert_int_equal(listener_stats_of(listener).failed, 1);
	assert_has(listener_stats_of(listener).last_failure, part);
	assert_int_equal(server.opened, 0);
}

/* The rogue sends a frame of zeros. */
static void say(uint8_t type, uint32_t length)
{
	rogue_send_frame(rogue, (struct frame_header){type, 0, length, 8});
}

/* Next to a rogue that is connected, or whose link is open, or without one. */
#define CONNECTED(test)   PLX_TEST_WITH(test, start_connected, stop)
#define OPEN(test)        PLX_TEST_WITH(test, start_open, stop)
#define WITH_HONEST(test) PLX_TEST_WITH(test, start, stop)

CONNECTED(a_peer_that_sends_no_hello_times_out)
{
	expect_failure("did not say HELLO within 200 ms");
}

WITH_HONEST(a_peer_may_leave_before_hello)
{
	rogue_close(rogue_connect(plx_listener_address(listener)));
	expect_failure("before it said HELLO");
}

/* A request with this private data is rejected: both sides know why. */
static void expect_rejection(const void *data, uint32_t length, const char *why)
{
	uint64_t before = listener_stats_of(listener).failed;
	struct frame_hello answer;

	rogue_expect_rejection(plx_listener_address(listener), data, length, &answer);
	assert_int_equal(answer.refused[0], strlen(why));
	assert_memory_equal(answer.refused + 1, why, strlen(why));
	assert_int_equal(listener_stats_of(listener).failed, before + 1);
	assert_has(listener_stats_of(listener).last_failure, why);
	assert_int_equal(server.opened, 0);
}

static void expect_hello_rejected(const struct frame_hello *hello, uint8_t end, const char *why)
{
	uint8_t data[HELLO_BYTES_MAX];

	expect_rejection(data, hello_write(data, hello, 0, end), why);
}

/* An old connector sends no private data, and understands no reason. */
WITH_HONEST(a_peer_of_wire_version_1_is_rejected)
{
	expect_rejection(NULL, 0, "it speaks wire version 1, not 2");
}

WITH_HONEST(a_request_with_private_data_of_another_program_is_rejected)
{
	expect_rejection("GET / HTTP/1.1\r\n\r\n", 18, "bad magic: it speaks another protocol");
	expect_rejection("\xff\xff\xff\xff", 4, "bad magic: it speaks another protocol");
}

WITH_HONEST(a_request_with_a_bad_opening_is_rejected)
{
	struct frame_hello hello = rogue_good_hello();

	hello.version_min = hello.version_max = WIRE_VERSION + 1;
	expect_hello_rejected(&hello, HELLO_REFUSED, "it does not speak wire version 2");
	hello = rogue_good_hello();
	hello.secured = 2;
	expect_hello_rejected(&hello, HELLO_REFUSED, "one side alone requires a secured link");
	hello = rogue_good_hello();
	hello.heartbeat_ms = 9;
	expect_hello_rejected(&hello, HELLO_REFUSED, "heartbeat period out of range");
}

/* Whole, as over our providers. */
WITH_HONEST(a_request_with_a_bad_hello_is_rejected)
{
	struct frame_hello hello = rogue_good_hello();
	uint8_t data[HELLO_BYTES_MAX];
	uint32_t length;

	skip_if_provider_given();
	hello.rx_buf_count = 1;
	expect_hello_rejected(&hello, HELLO_TYPES, "receive buffer count out of range");
	hello = rogue_good_hello();
	hello.heartbeat_ms = 15001;
	hello.dead_after_ms = DEAD_AFTER_MS_MAX;
	expect_hello_rejected(&hello, HELLO_TYPES,
			      "give --heartbeat of at most 15000 ms, or the listener more than "
			      "--dead-after-max 60000 ms");
	hello = rogue_good_hello();
	length = hello_write(data, &hello, 0, HELLO_TYPES);
	expect_rejection(data, length - 1, "a field is cut");
}

/* It is no answer, so there is nothing that it could refuse. */
WITH_HONEST(a_request_that_is_a_refusal_waits_in_vain)
{
	struct frame_hello hello = rogue_good_hello();
	uint8_t data[HELLO_BYTES_MAX];

	memcpy(hello.refused, "\3bah", 4);
	rogue = rogue_connect_with(plx_listener_address(listener), data,
				   hello_write(data, &hello, 0, HELLO_REFUSED + 1));
	expect_failure("did not say HELLO within 200 ms");
}

static void say_hello_with_heartbeat(uint32_t heartbeat_ms)
{
	struct frame_hello hello = rogue_good_hello();

	hello.heartbeat_ms = heartbeat_ms;
	hello.dead_after_ms = DEAD_AFTER_MS_MAX;
	rogue = rogue_greet(listener, &hello);
}

WITH_HONEST(a_peer_with_rare_heartbeats_is_refused)
{
	say_hello_with_heartbeat(15001);
	expect_failure("was refused with a heartbeat of 15001 ms: give --heartbeat of at most "
		       "15000 ms, or the listener more than --dead-after-max 60000 ms");
}

WITH_HONEST(a_peer_with_the_rarest_heartbeats_is_accepted)
{
	say_hello_with_heartbeat(15000);
	assert_true(pump_until(&server.opened, 1, 5000));
}

#define DATA_FIELD 23

/* The rest of a HELLO, with private data that claims `claimed` bytes and has `sent`. */
static void send_hello_with(uint8_t claimed, uint32_t sent)
{
	struct frame_hello hello = rogue_good_hello();
	uint8_t payload[512] = {0};
	uint32_t length = hello_write(payload, &hello, HELLO_REFUSED, DATA_FIELD);

	payload[length++] = DATA_FIELD;
	payload[length++] = claimed;
	rogue_send_payload(rogue, FRAME_HELLO, payload, length + sent);
}

/* A rogue that does this instead of sending a valid HELLO gets no link. */
#define MAKES_NO_LINK(name, text, ...) \
	CONNECTED(name)                \
	{                              \
		__VA_ARGS__;           \
		expect_failure(text);  \
	}

MAKES_NO_LINK(a_hello_frame_of_zeros, "sent a bad HELLO: receive buffer size out of range",
	      { say(FRAME_HELLO, 48); })

MAKES_NO_LINK(a_hello_frame_that_is_too_long, "HELLO too short or too long",
	      { say(FRAME_HELLO, HELLO_BYTES_MAX + 1); })

MAKES_NO_LINK(a_second_opening, "sent a bad HELLO: its fields are out of order",
	      { rogue_send_payload(rogue, FRAME_HELLO, "\1\0042XLP", 6); })

MAKES_NO_LINK(more_private_data_than_there_is, "sent a bad HELLO: a field is cut",
	      { send_hello_with(64, 63); })

MAKES_NO_LINK(more_private_data_than_there_may_be, "sent a bad HELLO: a field has another length",
	      { send_hello_with(65, 65); })

static void send_refusal(const char *text)
{
	struct frame_hello hello = {.refused[0] = (uint8_t)strlen(text)};

	memcpy(hello.refused + 1, text, strlen(text));
	rogue_send_hello(rogue, &hello);
}

MAKES_NO_LINK(a_refusal_that_steers_a_terminal, " refused the link: \\x1b[2Jgone",
	      { send_refusal("\033[2Jgone"); })

OPEN(a_refusal_on_an_open_link_ends_it)
{
	send_refusal("no");
	rogue_expect_end(PLX_LINK_HELLO, " refused the link: no");
}

/* It neither disconnects nor stays silent. */
WITH_HONEST(messages_of_a_refused_peer_are_dropped)
{
	struct plx_link_attr attr = {.protocol = PLX_PROTOCOL_ECHO};
	struct frame_hello hello = rogue_good_hello();

	listener = fixture_listen(here("0"), &attr);
	hello.protocol = PLX_PROTOCOL_RPC;
	rogue = rogue_greet(listener, &hello);
	say(FRAME_DATA, 8);
	say(FRAME_FIN, 0);
	/* Over verbs the message may arrive before the connection, before HELLO was checked. */
	expect_failure(is_provider_given() ? "" : "speaks Pollux RPC; this port expects");
	assert_int_equal(server.messages, 0);
}

/* Plain sockets, which stay open or say nothing: none becomes a link, and none leaves anything. */
WITH_HONEST(clients_that_do_not_speak_the_providers_protocol_leave_nothing)
{
	static uint8_t noise[2000];
	static const struct {
		const void *bytes;
		size_t size;
	} rows[] = {
		{"GET / HTTP/1.1\r\n\r\n", 18},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11},
		{"SSH-2.0-x\r\n", 11},
		{"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0", 32},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16},
		{noise, sizeof(noise)},
	};
	int before = count_descriptors(), fds[4 * PLX_ARRAY_LEN(rows)], silent;

	skip_if_provider_given();
	silent = rogue_socket(plx_listener_address(listener));
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)rand();
	for (size_t i = 0; i < PLX_ARRAY_LEN(fds); i++) {
		size_t row = i % PLX_ARRAY_LEN(rows);

		fds[i] = rogue_socket(plx_listener_address(listener));
		assert_int_equal(write(fds[i], rows[row].bytes, rows[row].size), rows[row].size);
		expect_soon(listener_stats_of(listener).no_handshake > i);
		assert_int_equal(listener_stats_of(listener).no_handshake, i + 1);
		honest_link_is_well();
	}
	assert_int_equal(listener_stats_of(listener).requests, 1); /* the honest one */
	assert_int_equal(listener_stats_of(listener).failed, 0);
	for (size_t i = 0; i < PLX_ARRAY_LEN(fds); i++)
		close(fds[i]);
	close(silent);
	expect_soon(count_descriptors() == before);
}

MAKES_NO_LINK(a_message_before_hello, "another frame came first", { say(FRAME_DATA, 5); })

MAKES_NO_LINK(an_empty_first_frame, "shorter than its header", { rogue_send(rogue, "", 0); })

CONNECTED(a_hello_with_too_much_credit_is_refused)
{
	struct frame_header header = {FRAME_HELLO, 0, 0, 1 << 20};
	uint8_t bytes[FRAME_HEADER_BYTES + HELLO_BYTES_MAX];
	struct frame_hello hello = rogue_good_hello();

	header.length = hello_write(bytes + FRAME_HEADER_BYTES, &hello, HELLO_REFUSED, HELLO_TYPES);
	frame_write(bytes, &header);
	rogue_send(rogue, bytes, FRAME_HEADER_BYTES + header.length);
	expect_failure("credit makes no sense");
}

/* A rogue that does this violates the protocol: its link ends. */
#define ENDS_THE_LINK(name, text, ...)                     \
	OPEN(name)                                         \
	{                                                  \
		__VA_ARGS__;                               \
		rogue_expect_end(PLX_LINK_PROTOCOL, text); \
	}

ENDS_THE_LINK(a_second_hello, "a second HELLO", { rogue_send_hello(rogue, NULL); })

ENDS_THE_LINK(a_frame_of_trust, "broken frame: a TRUST frame on a link without trust",
	      { say(FRAME_TRUST, 100); })

ENDS_THE_LINK(another_phase_of_the_key, "broken frame: unknown flags",
	      { rogue_send_frame(rogue, (struct frame_header){FRAME_DATA, 0x80, 5, 8}); })

ENDS_THE_LINK(an_unknown_frame, "unknown frame type", { say(77, 5); })

ENDS_THE_LINK(credit_that_runs_backwards, "credit makes no sense",
	      { rogue_send_frame(rogue, (struct frame_header){FRAME_CREDIT, 0, 0, 7}); })

OPEN(a_frame_without_credit_ends_the_link)
{
	server.keep = 100; /* so that nothing is granted again */
	for (int i = 0; i < 7 && !server.closed; i++)
		say(FRAME_DATA, 100);
	rogue_expect_end(PLX_LINK_PROTOCOL, "more than it was granted");
	assert_int_equal(server.messages, 6);
}

OPEN(a_frame_longer_than_the_buffers_ends_the_link)
{
	say(FRAME_DATA, 5000);
	assert_true(pump_until(&server.closed, 1, 3000)); /* 1.17 drops such a connection itself */
	assert_int_equal(server.messages, 0);
}

ENDS_THE_LINK(a_message_announced_too_long, "at most 16777216 are accepted",
	      { rogue_send_first(rogue, UINT64_MAX, 10); })

ENDS_THE_LINK(a_message_longer_than_announced, "does not fit its length", {
	rogue_send_first(rogue, 20, 10);
	say(FRAME_DATA_NEXT, 11);
})

ENDS_THE_LINK(a_message_inside_another, "a message inside another", {
	rogue_send_first(rogue, 20, 10);
	say(FRAME_DATA, 3);
})

ENDS_THE_LINK(a_part_of_no_message, "does not fit its length", { say(FRAME_DATA_NEXT, 11); })

/* None of this side's memory is granted, so the peer can write nothing; but it may claim that it
 * did. TCP does not identify the writer, and RDMA consumes a receive for it. */
OPEN(a_notification_of_an_empty_write_does_no_harm)
{
	uint64_t data = 7;

	if (!rogue_write(rogue, &(struct rogue_write){.data = &data})) {
		skip();
	}
	if (is_provider_given())
		rogue_expect_end(PLX_LINK_PROTOCOL, "shorter than its header");
	pump_ms(20);
	honest_link_is_well();
}

/* Message memory is registered for messages only, even if the peer knows the key. */
OPEN(memory_registered_for_messages_cannot_be_written)
{
	struct plx_set *set = server.link->set;
	const struct plx_zone *zone;
	uint8_t *victim = plx_mem_alloc(64, 0, PLX_NODE_ANY, &zone);

	if (!set->driver->needs_mr) {
		plx_mem_free(victim);
		skip(); /* nothing is registered */
	}
	memset(victim, 'v', 64);
	set_find_desc(set, zone->index);
	assert_true(rogue_write(rogue, &(struct rogue_write){
					       .bytes = "gotcha",
					       .size = 6,
					       .address = (uintptr_t)victim,
					       .key = fi_mr_key(set->mr[zone->index]),
				       }));
	pump_ms(50);
	assert_memory_equal(victim, "vvvvvv", 6);
	assert_int_equal(server.closed, 1);
	plx_mem_free(victim);
}

/* A plain socket that becomes a link, and then sends an invalid provider frame. */
static int open_raw_link(void)
{
	uint8_t request[16 + HELLO_BYTES_MAX] = "\x93PLXTCP\n\x01\x01";
	struct frame_hello hello = rogue_good_hello();
	uint32_t length = hello_write(request + 16, &hello, 0, HELLO_TYPES);
	int fd = rogue_socket(plx_listener_address(listener));

	request[10] = (uint8_t)length;
	assert_int_equal(write(fd, request, 16 + length), 16 + length);
	assert_true(pump_until(&server.opened, 1, 5000));
	return fd;
}

WITH_HONEST(a_malformed_provider_frame_ends_the_link_and_is_counted)
{
	int fd;

	skip_if_provider_given();
	fd = open_raw_link();
	assert_int_equal(write(fd, "rubbish.", 8), 8);
	rogue_expect_end(PLX_LINK_PROTOCOL, ": it sent a frame of no kind that there is");
	assert_int_equal(listener_stats_of(listener).protocol_broken, 1);
	assert_int_equal(listener_stats_of(listener).failed, 0);
	close(fd);
}

OPEN(a_peer_may_leave_inside_a_message)
{
	rogue_send_first(rogue, 100000, 1000);
	rogue_drop(&rogue);
	rogue_expect_end(PLX_LINK_PEER_DOWN, "went away");
	assert_int_equal(server.messages, 0);
}

ENDS_THE_LINK(a_fin_inside_a_message, "FIN", {
	rogue_send_first(rogue, 20, 10);
	say(FRAME_FIN, 0);
})

ENDS_THE_LINK(an_acknowledgement_of_no_fin, "acknowledgement of no FIN", { say(FRAME_FIN_ACK, 0); })

ENDS_THE_LINK(a_message_after_fin, "a message after FIN", {
	say(FRAME_FIN, 0);
	say(FRAME_DATA, 3);
})

OPEN(a_close_without_an_answer_times_out)
{
	plx_link_close(server.link);
	rogue_expect_end(PLX_LINK_TIMEOUT, "did not agree to close within 500 ms");
}

/* It takes a frame of 256 each 10 ms: however alive it is, the close has one limit. */
OPEN(a_close_that_a_peer_keeps_delaying_times_out)
{
	uint8_t *message = calloc(1, 1 << 20);
	unsigned grants = 8;

	assert_int_equal(plx_link_send(server.link, message, 1 << 20), 0);
	plx_link_close(server.link);
	while (!server.closed && grants < 256) {
		rogue_send_frame(rogue, (struct frame_header){FRAME_CREDIT, 0, 0, ++grants});
		for (int i = 0; i < 10; i++) {
			rogue_progress(rogue);
			pump_ms(1);
		}
	}
	assert_true(grants < 256);
	rogue_expect_end(PLX_LINK_TIMEOUT, "did not agree to close within 500 ms");
	rogue_drop(&rogue);
	free(message);
}

#define ROGUES 12

static struct rogue_link {
	struct rogue *rogue;
	struct side side;
	unsigned accepted, sent, late;
} rogues[ROGUES];

static void rogue_link_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	struct rogue_link *each = arg;

	each->sent++;
	each->late += each->side.closed;
}

/* It grants much, reads nothing, and agrees to close: every send still completes, before the
 * closure is reported. */
WITH_HONEST(a_close_agreed_without_reading_completes_every_send)
{
	struct frame_hello hello = rogue_good_hello();
	uint8_t *big = calloc(1, 1 << 20);

	if (is_provider_given()) {
		free(big);
		skip(); /* RDMA ends the link of a peer without such a receive */
	}
	hello.rx_buf_bytes = 2 << 20;
	hello.message_max = 2 << 20;
	for (unsigned i = 0; i < ROGUES; i++) {
		struct rogue_link *each = &rogues[i];

		each->rogue = rogue_open(listener, &hello);
		server_set_aside(&each->side);
		rogue_send_frame(each->rogue, (struct frame_header){FRAME_CREDIT, 0, 0, 100});
		pump_ms(5);
		for (;;) {
			struct plx_buf *buf = plx_buf_wrap(big, 0, 1 << 20, NULL, NULL);

			if (plx_link_send_buf(each->side.link, buf, rogue_link_sent, each) != 0) {
				plx_buf_unref(buf);
				break;
			}
			each->accepted++;
		}
	}
	for (unsigned i = 0; i < ROGUES; i++)
		plx_link_close(rogues[i].side.link);
	pump_ms(5);
	for (unsigned i = 0; i < ROGUES; i++)
		rogue_send_frame(rogues[i].rogue,
				 (struct frame_header){FRAME_FIN, FRAME_FLAG_ACK, 0, 100});
	pump_ms(20);
	for (unsigned i = 0; i < ROGUES; i++)
		rogue_close(rogues[i].rogue);
	for (unsigned i = 0; i < ROGUES; i++) {
		assert_true(pump_until(&rogues[i].side.closed, 1, 5000));
		assert_int_equal(rogues[i].late, 0);
		assert_int_equal(rogues[i].sent, rogues[i].accepted);
	}
	free(big);
}

/* It never reads, but keeps granting: the data queued for it is bounded. Its grants then exceed
 * everything sent, which ends the link. */
OPEN(credit_without_reading_does_not_grow_the_process)
{
	static const char message[100];
	unsigned accepted = 0;

	for (uint32_t grant = 1; grant <= 10 && !server.closed; grant++) {
		rogue_send_frame(rogue,
				 (struct frame_header){FRAME_CREDIT, 0, 0, 8 + grant * 30000});
		pump_ms(20);
		for (int i = 0; i < 30000 && server.link; i++)
			accepted += plx_link_send(server.link, message, sizeof(message)) == 0;
	}
	/* Of 300 000. TCP's kernel buffers take up to 10 MiB of them; RDMA takes what the rogue has
	 * posted. */
	assert_in_range(accepted, is_provider_given() ? 8 : 100, 100000);
}

/* Whatever its HELLO accepts, no message is longer than the length field allows. */
WITH_HONEST(a_hello_with_a_huge_message_limit_is_capped)
{
	struct frame_hello hello = rogue_good_hello();

	hello.message_max = UINT64_MAX;
	rogue = rogue_open(listener, &hello);
	assert_int_equal(plx_link_message_max(server.link), (1u << 30) - 1);
	assert_int_equal(plx_link_send(server.link, "", (UINT64_C(1) << 32) + 100), -EMSGSIZE);
}

PLX_TEST_MAIN()
