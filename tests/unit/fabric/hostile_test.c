/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that violate the protocol, or speak none: each is dropped with a reason that names its
 * violation, and an honest link next to it is unaffected. */
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
	struct plx_link_attr attr = {.hello_timeout_ns = 200 * PLX_NS_PER_MS};

	fixture_start(NULL, false);
	listener = fixture_listen(here("0"), &attr);
	fixture_connect(listener, NULL);
	honest_server = server;
	honest_server.echo = true;
	plx_link_set_user(server.link, &honest_server);
	memset(&server, 0, sizeof(server));
	return 0;
}

static void honest_link_is_well(void)
{
	expect_echo("ping", 4);
	assert_int_equal(client.closed + honest_server.closed, 0);
}

static int stop(void **state)
{
	honest_link_is_well();
	fixture_stop();
	free(honest_server.last);
	return 0;
}

/* A connection that never opened is reported as a failure of the listener, with that text. */
static void expect_failure(const char *part)
{
	struct plx_listener_stats stats = {0};

	for (int i = 0; i < 400 && stats.failed == 0; i++) {
		pump_ms(5);
		plx_listener_stats(listener, &stats);
	}
	assert_int_equal(stats.failed, 1);
	assert_has(stats.last_failure, part);
	assert_int_equal(server.opened, 0);
}

#define WITH_HONEST(test) PLX_TEST_WITH(test, start, stop)

WITH_HONEST(no_hello)
{
	struct rogue *rogue = rogue_connect(plx_listener_address(listener));

	expect_failure("did not say HELLO within 200 ms");
	rogue_close(rogue);
}

WITH_HONEST(gone_before_hello)
{
	rogue_close(rogue_connect(plx_listener_address(listener)));
	expect_failure("before it said HELLO");
}

WITH_HONEST(a_hello_of_another_protocol)
{
	struct rogue *rogue = rogue_connect(plx_listener_address(listener));
	uint8_t bytes[FRAME_HEADER_BYTES + HELLO_BYTES] = {FRAME_HELLO, 0, 0, 0, HELLO_BYTES};

	rogue_send(rogue, bytes, sizeof(bytes));
	expect_failure("bad magic");
	rogue_close(rogue);
}

WITH_HONEST(a_hello_of_a_later_version)
{
	struct rogue *rogue = rogue_connect(plx_listener_address(listener));
	struct frame_hello hello = rogue_good_hello();

	hello.version_min = hello.version_max = WIRE_VERSION_MAX + 1;
	rogue_send_hello(rogue, &hello);
	expect_failure("no wire version in common");
	rogue_close(rogue);
}

/* Private data that claims `claimed` bytes and has `sent`. */
static void send_hello_with(struct rogue *rogue, uint32_t claimed, uint32_t sent)
{
	uint8_t bytes[FRAME_HEADER_BYTES + 512] = {0};
	struct frame_header header = {FRAME_HELLO, 0, HELLO_BYTES + 4 + sent, 8};
	struct frame_hello hello = rogue_good_hello();

	frame_write(bytes, &header);
	hello_write(bytes + FRAME_HEADER_BYTES, &hello);
	claimed = htole32(claimed);
	memcpy(bytes + FRAME_HEADER_BYTES + HELLO_BYTES, &claimed, sizeof(claimed));
	rogue_send(rogue, bytes, FRAME_HEADER_BYTES + header.length);
}

/* A rogue that does this instead of sending a valid HELLO gets no link. */
#define MAKES_NO_LINK(name, text, ...)                                               \
	WITH_HONEST(name)                                                            \
	{                                                                            \
		struct rogue *rogue = rogue_connect(plx_listener_address(listener)); \
                                                                                     \
		__VA_ARGS__;                                                         \
		expect_failure(text);                                                \
		rogue_close(rogue);                                                  \
	}

MAKES_NO_LINK(more_private_data_than_there_is, "sent a bad HELLO: cut private data",
	      { send_hello_with(rogue, 64, 63); })

MAKES_NO_LINK(more_private_data_than_there_may_be, "sent a bad HELLO: too much private data",
	      { send_hello_with(rogue, 65, 65); })

MAKES_NO_LINK(private_data_of_endless_length, "sent a bad HELLO: too much private data",
	      { send_hello_with(rogue, UINT32_MAX, 64); })

static void send_refusal(struct rogue *rogue, const char *text)
{
	uint8_t bytes[FRAME_HEADER_BYTES + REFUSE_TEXT_MAX];
	struct frame_header header = {FRAME_REFUSE, 0, (uint32_t)strlen(text), 8};

	frame_write(bytes, &header);
	memcpy(bytes + FRAME_HEADER_BYTES, text, header.length);
	rogue_send(rogue, bytes, FRAME_HEADER_BYTES + header.length);
}

MAKES_NO_LINK(a_refusal_that_steers_a_terminal, " refused the link: \\x1b[2Jgone",
	      { send_refusal(rogue, "\033[2Jgone"); })

WITH_HONEST(a_refusal_of_an_open_link)
{
	struct rogue *rogue = rogue_open(listener, NULL);

	send_refusal(rogue, "no");
	rogue_expect_end(PLX_LINK_HELLO, " refused the link: no");
	rogue_close(rogue);
}

/* It neither disconnects nor stays silent. */
WITH_HONEST(a_refused_peer_that_sends_all_the_same)
{
	struct plx_link_attr attr = {.protocol = PLX_PROTOCOL_ECHO};
	struct frame_hello hello = rogue_good_hello();
	struct rogue *rogue;

	listener = fixture_listen(here("0"), &attr);
	rogue = rogue_connect(plx_listener_address(listener));
	hello.features = PLX_PROTOCOL_RPC << FEATURE_PROTOCOL_SHIFT;
	rogue_send_hello(rogue, &hello);
	rogue_send_frame(rogue, (struct frame_header){FRAME_DATA, 0, 8, 8});
	rogue_send_frame(rogue, (struct frame_header){FRAME_FIN, 0, 0, 8});
	/* Over verbs the message may arrive before the connection, before HELLO was checked. */
	expect_failure(is_provider_given() ? "" : "speaks Pollux RPC; this port expects");
	assert_int_equal(server.messages, 0);
	rogue_close(rogue);
}

MAKES_NO_LINK(http_instead_of_hello, "sounds like HTTP",
	      { rogue_send(rogue, "GET / HTTP/1.1\r\nHost: here\r\n\r\n", 30); })

/* Plain sockets, some of which stay open: none becomes a link. */
WITH_HONEST(those_that_do_not_speak_the_providers_protocol)
{
	static const struct {
		const char *bytes;
		size_t size;
	} rows[] = {
		{"GET / HTTP/1.1\r\n\r\n", 18},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11},
		{"SSH-2.0-x\r\n", 11},
		{"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0", 32},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16},
	};
	struct plx_listener_stats stats = {0};
	int fds[PLX_ARRAY_LEN(rows)];

	if (is_provider_given())
		skip();
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		fds[i] = rogue_socket(plx_listener_address(listener));
		assert_int_equal(write(fds[i], rows[i].bytes, rows[i].size), rows[i].size);
		for (int k = 0; k < 5000 && stats.no_handshake <= i; k++) {
			pump_ms(1);
			plx_listener_stats(listener, &stats);
		}
		assert_int_equal(stats.no_handshake, i + 1);
		honest_link_is_well();
	}
	assert_int_equal(stats.requests, 1); /* the honest one */
	assert_int_equal(stats.failed, 0);
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		close(fds[i]);
}

MAKES_NO_LINK(a_message_before_hello, "another frame came first",
	      { rogue_send_frame(rogue, (struct frame_header){FRAME_DATA, 0, 5, 8}); })

MAKES_NO_LINK(an_empty_first_frame, "shorter than its header", { rogue_send(rogue, "", 0); })

WITH_HONEST(insane_credit_in_hello)
{
	struct rogue *rogue = rogue_connect(plx_listener_address(listener));
	uint8_t bytes[FRAME_HEADER_BYTES + HELLO_BYTES];
	struct frame_header header = {FRAME_HELLO, 0, HELLO_BYTES, 1 << 20};
	struct frame_hello hello = rogue_good_hello();

	frame_write(bytes, &header);
	hello_write(bytes + FRAME_HEADER_BYTES, &hello);
	rogue_send(rogue, bytes, sizeof(bytes));
	expect_failure("credit makes no sense");
	rogue_close(rogue);
}

/* A rogue that does this violates the protocol: its link ends. */
#define ENDS_THE_LINK(name, text, ...)                            \
	WITH_HONEST(name)                                         \
	{                                                         \
		struct rogue *rogue = rogue_open(listener, NULL); \
                                                                  \
		__VA_ARGS__;                                      \
		rogue_expect_end(PLX_LINK_PROTOCOL, text);        \
		rogue_close(rogue);                               \
	}

ENDS_THE_LINK(a_second_hello, "a second HELLO", { rogue_send_hello(rogue, NULL); })

ENDS_THE_LINK(an_unknown_frame, "unknown frame type",
	      { rogue_send_frame(rogue, (struct frame_header){77, 0, 5, 8}); })

ENDS_THE_LINK(credit_that_runs_backwards, "credit makes no sense",
	      { rogue_send_frame(rogue, (struct frame_header){FRAME_CREDIT, 0, 0, 7}); })

WITH_HONEST(more_than_was_granted)
{
	struct rogue *rogue = rogue_open(listener, NULL);

	server.keep = 100; /* so that nothing is granted again */
	for (int i = 0; i < 7 && !server.closed; i++)
		rogue_send_frame(rogue, (struct frame_header){FRAME_DATA, 0, 100, 8});
	rogue_expect_end(PLX_LINK_PROTOCOL, "more than it was granted");
	assert_int_equal(server.messages, 6);
	rogue_close(rogue);
}

WITH_HONEST(a_frame_longer_than_the_buffers)
{
	struct rogue *rogue = rogue_open(listener, NULL);

	rogue_send_frame(rogue, (struct frame_header){FRAME_DATA, 0, 5000, 8});
	assert_true(pump_until(&server.closed, 1, 3000)); /* 1.17 drops such a connection itself */
	assert_int_equal(server.messages, 0);
	rogue_close(rogue);
}

ENDS_THE_LINK(a_message_announced_too_long, "at most 16777216 are accepted",
	      { rogue_send_first(rogue, UINT64_MAX, 10); })

ENDS_THE_LINK(a_message_longer_than_announced, "does not fit its length", {
	rogue_send_first(rogue, 20, 10);
	rogue_send_frame(rogue, (struct frame_header){FRAME_DATA_NEXT, 0, 11, 8});
})

ENDS_THE_LINK(a_message_inside_another, "a message inside another", {
	rogue_send_first(rogue, 20, 10);
	rogue_send_frame(rogue, (struct frame_header){FRAME_DATA, 0, 3, 8});
})

ENDS_THE_LINK(a_part_of_no_message, "does not fit its length",
	      { rogue_send_frame(rogue, (struct frame_header){FRAME_DATA_NEXT, 0, 11, 8}); })

/* None of this side's memory is granted, so the peer can write nothing; but it may claim that it
 * did. TCP does not identify the writer, and RDMA consumes a receive for it. */
WITH_HONEST(a_write_of_nothing_that_is_told)
{
	struct rogue *rogue = rogue_open(listener, NULL);
	uint64_t data = 7;

	if (!rogue_write(rogue, &(struct rogue_write){.data = &data})) {
		rogue_close(rogue);
		skip();
	}
	if (is_provider_given())
		rogue_expect_end(PLX_LINK_PROTOCOL, "shorter than its header");
	pump_ms(20);
	honest_link_is_well();
	rogue_close(rogue);
}

/* Message memory is registered for messages only, even if the peer knows the key. */
WITH_HONEST(memory_that_is_registered_for_messages_cannot_be_written)
{
	struct rogue *rogue = rogue_open(listener, NULL);
	struct plx_set *set = server.link->set;
	const struct plx_zone *zone;
	uint8_t *victim = plx_mem_alloc(64, 0, PLX_NODE_ANY, &zone);

	if (!set->driver->needs_mr) {
		plx_mem_free(victim);
		rogue_close(rogue);
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
	rogue_close(rogue);
}

/* A plain socket that becomes a link, and then sends an invalid provider frame. */
static int open_raw_link(void)
{
	static const uint8_t provider_hello[16] = "\x93PLXTCP\n\x01\x01";
	struct frame_header header = {FRAME_HELLO, 0, HELLO_BYTES, 8};
	struct frame_hello hello = rogue_good_hello();
	uint8_t frame[8 + FRAME_HEADER_BYTES + HELLO_BYTES] = {
		FRAME_HEADER_BYTES + HELLO_BYTES, 0, 0, 0, 1, 0, 'c', 'p'};
	int fd = rogue_socket(plx_listener_address(listener));

	frame_write(frame + 8, &header);
	hello_write(frame + 8 + FRAME_HEADER_BYTES, &hello);
	assert_int_equal(write(fd, provider_hello, sizeof(provider_hello)), 16);
	assert_int_equal(write(fd, frame, sizeof(frame)), sizeof(frame));
	assert_true(pump_until(&server.opened, 1, 5000));
	return fd;
}

WITH_HONEST(what_is_no_frame_of_the_provider_ends_the_link_and_is_counted)
{
	struct plx_listener_stats stats;
	int fd;

	if (is_provider_given())
		skip();
	fd = open_raw_link();
	assert_int_equal(write(fd, "rubbish.", 8), 8);
	rogue_expect_end(PLX_LINK_PROTOCOL, ": it sent a frame of no kind that there is");
	plx_listener_stats(listener, &stats);
	assert_int_equal(stats.protocol_broken, 1);
	assert_int_equal(stats.failed, 0);
	close(fd);
}

WITH_HONEST(gone_inside_a_message)
{
	struct rogue *rogue = rogue_open(listener, NULL);

	rogue_send_first(rogue, 100000, 1000);
	rogue_close(rogue);
	rogue_expect_end(PLX_LINK_PEER_DOWN, "went away");
	assert_int_equal(server.messages, 0);
}

ENDS_THE_LINK(a_fin_inside_a_message, "FIN", {
	rogue_send_first(rogue, 20, 10);
	rogue_send_frame(rogue, (struct frame_header){FRAME_FIN, 0, 0, 8});
})

ENDS_THE_LINK(an_acknowledgement_of_no_fin, "acknowledgement of no FIN",
	      { rogue_send_frame(rogue, (struct frame_header){FRAME_FIN_ACK, 0, 0, 8}); })

ENDS_THE_LINK(a_message_after_fin, "a message after FIN", {
	rogue_send_frame(rogue, (struct frame_header){FRAME_FIN, 0, 0, 8});
	rogue_send_frame(rogue, (struct frame_header){FRAME_DATA, 0, 3, 8});
})

WITH_HONEST(nobody_answers_a_close)
{
	struct rogue *rogue = rogue_open(listener, NULL);

	plx_link_close(server.link);
	rogue_expect_end(PLX_LINK_TIMEOUT, "did not agree to close within 2");
	rogue_close(rogue);
}

/* Each frame that it takes shows that it is alive, and there are 256. */
WITH_HONEST(a_close_that_goes_on_for_ever_ends)
{
	struct rogue *rogue = rogue_open(listener, NULL);
	uint8_t *message = calloc(1, 1 << 20);
	unsigned grants = 8;

	assert_int_equal(plx_link_send(server.link, message, 1 << 20), 0);
	plx_link_close(server.link);
	server.link->close_began_ns -= 59 * PLX_NS_PER_S; /* of 60 */
	while (!server.closed && grants < 256) {
		rogue_send_frame(rogue, (struct frame_header){FRAME_CREDIT, 0, 0, ++grants});
		for (int i = 0; i < 10; i++) {
			rogue_progress(rogue);
			pump_ms(1);
		}
	}
	assert_true(grants < 256);
	rogue_expect_end(PLX_LINK_TIMEOUT, "did not agree to close within 60");
	rogue_close(rogue);
	free(message);
}

/* It never reads, but keeps granting: the data queued for it is bounded. Its grants then exceed
 * everything sent, which ends the link. */
#define ROGUES 12

static struct rogue_link {
	struct rogue *rogue;
	struct plx_link *link;
	unsigned accepted, sent, closed, late;
} rogues[ROGUES];
static unsigned rogues_open;

static void rogue_link_open(struct plx_link *link, void *user)
{
	rogues[rogues_open].link = link;
	plx_link_set_user(link, &rogues[rogues_open++]);
}

static void rogue_link_closed(struct plx_link *link, enum plx_link_reason reason, const char *text,
			      void *user)
{
	((struct rogue_link *)user)->closed++;
}

static void rogue_link_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	struct rogue_link *each = arg;

	each->sent++;
	each->late += each->closed;
}

/* It grants much, reads nothing, and agrees to close: every send still completes, before the
 * closure is reported. */
WITH_HONEST(an_end_that_was_agreed_without_reading)
{
	static const struct plx_link_events events = {.on_open = rogue_link_open,
						      .on_close = rogue_link_closed};
	struct plx_listen_attr attr = {.link.events = &events};
	struct frame_hello hello = rogue_good_hello();
	uint8_t *big = calloc(1, 1 << 20);
	struct plx_listener *other;

	if (is_provider_given()) {
		free(big);
		skip(); /* RDMA ends the link of a peer without such a receive */
	}
	memset(rogues, 0, sizeof(rogues));
	rogues_open = 0;
	hello.rx_buf_bytes = 2 << 20;
	hello.message_max = 2 << 20;
	assert_int_equal(plx_link_listen(here("0"), &attr, &other), 0);
	for (unsigned i = 0; i < ROGUES; i++) {
		struct rogue_link *each = &rogues[i];

		each->rogue = rogue_connect(plx_listener_address(other));
		rogue_send_hello(each->rogue, &hello);
		for (unsigned ms = 0; rogues_open == i && ms < 5000; ms++)
			pump_ms(1);
		assert_int_equal(rogues_open, i + 1);
		rogue_send_frame(each->rogue, (struct frame_header){FRAME_CREDIT, 0, 0, 100});
		pump_ms(5);
		for (;;) {
			struct plx_buf *buf = plx_buf_wrap(big, 0, 1 << 20, NULL, NULL);

			if (plx_link_send_buf(each->link, buf, rogue_link_sent, each) != 0) {
				plx_buf_unref(buf);
				break;
			}
			each->accepted++;
		}
	}
	for (unsigned i = 0; i < ROGUES; i++)
		plx_link_close(rogues[i].link);
	pump_ms(5);
	for (unsigned i = 0; i < ROGUES; i++)
		rogue_send_frame(rogues[i].rogue,
				 (struct frame_header){FRAME_FIN, FRAME_FLAG_ACK, 0, 100});
	pump_ms(20);
	for (unsigned i = 0; i < ROGUES; i++)
		rogue_close(rogues[i].rogue);
	for (unsigned i = 0; i < ROGUES; i++) {
		for (unsigned ms = 0; !rogues[i].closed && ms < 5000; ms++)
			pump_ms(1);
		assert_int_equal(rogues[i].closed, 1);
		assert_int_equal(rogues[i].late, 0);
		assert_int_equal(rogues[i].sent, rogues[i].accepted);
	}
	plx_listener_close(other);
	free(big);
	honest_link_is_well();
}

WITH_HONEST(credit_without_reading_does_not_grow_the_process)
{
	static const char message[100];
	struct rogue *rogue = rogue_open(listener, NULL);
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
	rogue_close(rogue);
}

/* Whatever its HELLO accepts, no message is longer than the length field allows. */
WITH_HONEST(a_hello_that_accepts_everything_is_not_believed)
{
	struct frame_hello hello = rogue_good_hello();
	struct rogue *rogue;

	hello.message_max = UINT64_MAX;
	rogue = rogue_open(listener, &hello);
	assert_int_equal(plx_link_message_max(server.link), (1u << 30) - 1);
	assert_int_equal(plx_link_send(server.link, "", (UINT64_C(1) << 32) + 100), -EMSGSIZE);
	rogue_close(rogue);
}

WITH_HONEST(raw_sockets_with_garbage_come_and_go)
{
	if (is_provider_given())
		skip(); /* of TCP */

	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)plx_listener_port(listener))};
	unsigned before = open_descriptors();
	int fds[30];

	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	for (int i = 0; i < 30; i++) {
		static const char http[] = "GET / HTTP/1.0\r\n\r\n";
		uint8_t noise[2000];

		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = (uint8_t)rand();
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&to, sizeof(to)), 0);
		if (i % 3 == 0)
			assert_int_equal(write(fds[i], http, sizeof(http)), sizeof(http));
		if (i % 3 == 1)
			assert_int_equal(write(fds[i], noise, sizeof(noise)), sizeof(noise));
	}
	pump_ms(100);
	honest_link_is_well();
	for (int i = 0; i < 30; i++)
		close(fds[i]);
	for (int i = 0; i < 100 && open_descriptors() > before; i++)
		pump_ms(10);
	assert_int_equal(open_descriptors(), before);
}

PLX_TEST_MAIN()
