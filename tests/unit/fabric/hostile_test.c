/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that violate the protocol, or speak none: each is dropped with a reason that names its
 * violation, and an honest link next to it is unaffected. */
#include "fabric_link.h"
#include "fixture.h"
#include "rogue.h"

#include <unistd.h>

static struct plx_listener *listener;
static struct side honest_server;

/* An honest link stays open throughout. */
static int start(void **state)
{
	struct plx_link_attr attr = {.close_timeout_ns = 500 * PLX_NS_PER_MS};

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

PLX_FIXTURE(start_open, 0, (start(state), rogue = rogue_open(listener, NULL)))

static int stop(void **state)
{
	honest_link_is_well();
	fixture_stop();
	free(honest_server.last);
	return 0;
}

/* Connections that never opened are failures of the listener, the newest with that text. */
static void expect_failures(uint64_t count, const char *part)
{
	expect_soon(listener_stats_of(listener).failed >= count);
	assert_int_equal(listener_stats_of(listener).failed, count);
	assert_has(listener_stats_of(listener).last_failure, part);
	assert_int_equal(server.opened, 0);
}

/* The rogue sends a frame of zeros. */
static void say(uint8_t type, uint32_t length)
{
	rogue_send_frame(rogue, (struct frame_header){type, 0, length, 8});
}

/* Next to a rogue whose link is open, or without one. */
#define OPEN(test)        PLX_TEST_WITH(test, start_open, stop)
#define WITH_HONEST(test) PLX_TEST_WITH(test, start, stop)

WITH_HONEST(a_peer_that_sends_no_hello_times_out)
{
	listener = fixture_listen(here("0"),
				  &(struct plx_link_attr){.hello_timeout_ns = 200 * PLX_NS_PER_MS});
	rogue = rogue_connect(plx_listener_address(listener));
	expect_failures(1, "did not say HELLO within 200 ms");
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

#define FIELD(name) offsetof(struct frame_hello, name)

/* An old connector sends no private data. More in frame_test.c. */
WITH_HONEST(a_request_without_a_good_hello_is_rejected)
{
	static const struct {
		size_t offset;
		uint32_t value;
		bool whole; /* as over our providers; otherwise only the opening */
		const char *why;
	} rows[] = {
		{FIELD(secured), 2, false, "one side alone requires a secured link"},
		{FIELD(heartbeat_ms), 9, false, "heartbeat period out of range"},
		{FIELD(rx_buf_count), 1, true, "receive buffer count out of range"},
		{FIELD(heartbeat_ms), 15001, true,
		 "give --heartbeat of at most 15000 ms, or the listener more than "
		 "--dead-after-max 60000 ms"},
	};
	uint8_t data[HELLO_BYTES_MAX];

	expect_rejection(NULL, 0, "it speaks wire version 1, not 2");
	expect_rejection("GET / HTTP/1.1\r\n\r\n", 18, "bad magic: it speaks another protocol");
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct frame_hello hello = rogue_beating_hello(0, DEAD_AFTER_MS_MAX);

		if (rows[i].whole && is_provider_given())
			continue;
		memcpy((char *)&hello + rows[i].offset, &rows[i].value,
		       rows[i].offset == FIELD(secured) ? 1 : sizeof(rows[i].value));
		expect_rejection(
			data,
			hello_write(data, &hello, 0, rows[i].whole ? HELLO_TYPES : HELLO_REFUSED),
			rows[i].why);
	}
}

static void send_refusal(const char *text)
{
	struct frame_hello hello = {.refused[0] = (uint8_t)strlen(text)};

	memcpy(hello.refused + 1, text, strlen(text));
	rogue_send_hello(rogue, &hello);
}

static void a_refusal_that_steers_a_terminal(void)
{
	send_refusal("\033[2Jgone");
}

static void an_empty_first_frame(void)
{
	rogue_send(rogue, "", 0);
}

/* What a rogue does instead of sending a valid HELLO; more in frame_test.c. */
WITH_HONEST(a_bad_first_frame_makes_no_link)
{
	static const struct {
		void (*send)(void); /* NULL: this frame */
		uint8_t type;
		const char *payload; /* NULL: zeros */
		uint32_t length;
		const char *text;
	} rows[] = {
		{NULL, FRAME_HELLO, NULL, 48, "sent a bad HELLO: receive buffer size out of range"},
		{NULL, FRAME_HELLO, "\1\0042XLP", 6, /* a second opening */
		 "sent a bad HELLO: its fields are out of order"},
		{NULL, FRAME_DATA, NULL, 5, "another frame came first"},
		{a_refusal_that_steers_a_terminal, 0, NULL, 0, " refused the link: \\x1b[2Jgone"},
		{an_empty_first_frame, 0, NULL, 0, "shorter than its header"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		rogue = rogue_connect(plx_listener_address(listener));
		if (rows[i].send)
			rows[i].send();
		else if (rows[i].payload)
			rogue_send_payload(rogue, rows[i].type, rows[i].payload, rows[i].length);
		else
			say(rows[i].type, rows[i].length);
		expect_failures(i + 1, rows[i].text);
		rogue_close(rogue);
	}
}

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
	expect_failures(1, is_provider_given() ? "" : "speaks Pollux RPC; this port expects");
	assert_int_equal(server.messages, 0);
}

/* What a rogue does on an open link: frames of zeros, maybe after the beginning of a message. */
WITH_HONEST(a_violation_of_the_protocol_ends_the_link_with_its_name)
{
	static const struct {
		uint64_t total;                /* of the message; 10 bytes arrive. 0: none */
		struct frame_header frames[2]; /* without type: none */
		const char *text;
	} rows[] = {
		{0, {{FRAME_HELLO, 0, 48, 8}}, "a second HELLO"},
		{0, {{FRAME_DATA, 0x80 /* the key phase */, 5, 8}}, "broken frame: unknown flags"},
		{0, {{FRAME_CREDIT, 0, 0, 7}}, "credit makes no sense"}, /* it runs backwards */
		{UINT64_MAX, {{0}}, "at most 16777216 are accepted"},
		{20, {{FRAME_DATA_NEXT, 0, 11, 8}}, "does not fit its length"},
		{20, {{FRAME_DATA, 0, 3, 8}}, "a message inside another"},
		{0, {{FRAME_DATA_NEXT, 0, 11, 8}}, "does not fit its length"},
		{20, {{FRAME_FIN, 0, 0, 8}}, "FIN"},
		{0, {{FRAME_FIN_ACK, 0, 0, 8}}, "acknowledgement of no FIN"},
		{0, {{FRAME_FIN, 0, 0, 8}, {FRAME_DATA, 0, 3, 8}}, "a message after FIN"},
		{0, {{FRAME_PUT, 0, 4, 8}}, "a frame of direct data placement: this side"},
		{0, {{FRAME_REVOKE, 0, 8, 8}}, "a frame of direct data placement: this side"},
		{0, {{FRAME_REVOKED, 0, 8, 8}}, "a frame of direct data placement: this side"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		server = (struct side){.name = "server"};
		rogue = rogue_open(listener, NULL);
		if (rows[i].total)
			rogue_send_first(rogue, rows[i].total, 10);
		for (unsigned k = 0; k < 2 && rows[i].frames[k].type; k++)
			rogue_send_frame(rogue, rows[i].frames[k]);
		rogue_expect_end(PLX_LINK_PROTOCOL, rows[i].text);
		assert_int_equal(server.messages, 0);
		rogue_close(rogue);
		honest_link_is_well();
	}
}

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
	rogue_close(rogue);
	rogue_expect_end(PLX_LINK_PEER_DOWN, "went away");
	assert_int_equal(server.messages, 0);
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
	free(message);
}

static unsigned sent, sent_late;

static void note_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	sent++;
	sent_late += server.closed;
}

/* It grants much, reads nothing, and agrees to close: every send still completes, before the
 * closure is reported. */
WITH_HONEST(a_close_agreed_without_reading_completes_every_send)
{
	struct frame_hello hello = rogue_good_hello();
	unsigned accepted = 0;
	uint8_t *big;

	skip_if_provider_given(); /* RDMA ends the link of a peer without such a receive */
	big = calloc(1, 1 << 20);
	hello.rx_buf_bytes = 2 << 20;
	hello.message_max = 2 << 20;
	rogue = rogue_open(listener, &hello);
	sent = sent_late = 0;
	rogue_send_frame(rogue, (struct frame_header){FRAME_CREDIT, 0, 0, 100});
	pump_ms(5);
	for (;;) {
		struct plx_buf *buf = plx_buf_wrap(big, 0, 1 << 20, NULL, NULL);

		if (plx_link_send_buf(server.link, buf, note_sent, NULL) != 0) {
			plx_buf_unref(buf);
			break;
		}
		accepted++;
	}
	plx_link_close(server.link);
	pump_ms(5);
	rogue_send_frame(rogue, (struct frame_header){FRAME_FIN, FRAME_FLAG_ACK, 0, 100});
	pump_ms(20);
	rogue_close(rogue);
	assert_true(pump_until(&server.closed, 1, 5000));
	assert_int_equal(sent_late, 0);
	assert_int_equal(sent, accepted);
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
