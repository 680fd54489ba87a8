/* SPDX-License-Identifier: BSD-3-Clause */
/* Links over both of libfabric's TCP providers: messages arrive once, complete and in order, and a
 * close loses nothing. Both ends are on one lcore. */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *provider = "tcp"; /* then shm, then fi:tcp: see main */

static int start(void **state)
{
	fixture_start(provider, false);
	return 0;
}

static int stop(void **state)
{
	fixture_stop();
	return 0;
}

static uint8_t *pattern(size_t size, unsigned seed)
{
	uint8_t *bytes = malloc(size + 1);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)((i + seed) * 31 + (i >> 8));
	return bytes;
}

static void send_and_expect_back(size_t size, bool by_reference)
{
	uint8_t *bytes = pattern(size, (unsigned)size);
	unsigned before = client.messages;
	int rc;

	if (by_reference) {
		struct plx_buf *buf = plx_buf_alloc((uint32_t)size);

		memcpy(plx_buf_append(buf, (uint32_t)size), bytes, size);
		rc = plx_link_send_buf(client.link, buf, NULL, NULL);
	} else {
		rc = plx_link_send(client.link, bytes, size);
	}
	if (rc)
		fail_msg("sending %zu bytes: %s", size, plx_error());
	if (!pump_until(&client.messages, before + 1, 5000))
		fail_msg("%zu bytes did not come back: client '%s' server '%s'", size, client.text,
			 server.text);
	assert_int_equal(client.last_len, size);
	assert_memory_equal(client.last, bytes, size);
	free(bytes);
}

static void messages_of_every_size_come_back_unchanged(void **state)
{
	static const size_t sizes[] = {0,    1,    7,     64,    112,    113,    496,
				       497,  1024, 4079,  4080,  4081,   4096,   4097,
				       8160, 8161, 65536, 65537, 100000, 262144, 1 << 20};
	struct plx_listener *listener = fixture_listen(here("0"), NULL);

	fixture_connect(listener, NULL);
	server.echo = true;
	for (size_t i = 0; i < PLX_ARRAY_LEN(sizes); i++) {
		send_and_expect_back(sizes[i], false);
		send_and_expect_back(sizes[i], true);
	}
	assert_int_equal(server.closed + client.closed, 0);
}

static void frames_of_an_echo(size_t bytes, const struct plx_link_attr *attr, uint64_t frames)
{
	struct plx_listener *listener = fixture_listen(here("0"), attr);
	struct plx_link_stats stats;

	fixture_connect(listener, attr);
	server.echo = true;
	send_and_expect_back(bytes, true);
	plx_link_stats(client.link, &stats);
	assert_int_equal(stats.frames_sent, 1 + frames); /* HELLO, and the message */
	assert_int_equal(stats.frames_received, 1 + frames);
}

static void a_page_link_takes_a_megabyte_in_one_frame(void **state)
{
	frames_of_an_echo(1 << 20, &(struct plx_link_attr){.rx_buf_bytes = 1 << 20}, 1);
}

static void a_message_as_long_as_a_receive_buffer_is_one_frame(void **state)
{
	frames_of_an_echo(4096, NULL, 1);
}

static void a_message_one_byte_longer_is_two(void **state)
{
	frames_of_an_echo(4097, NULL, 2);
}

static void ipv6_and_every_address_work(void **state)
{
	if (is_provider_given())
		skip(); /* no device has it */

	struct plx_listener *listener = fixture_listen("[::1]:0", NULL);

	assert_non_null(strstr(plx_listener_address(listener), "[::1]:"));
	fixture_connect(listener, NULL);
	assert_true(plx_link_is_same_host(client.link));
	assert_true(plx_link_is_same_host(server.link));
	server.echo = true;
	send_and_expect_back(100, false);
}

static void a_listener_at_every_address_is_reached(void **state)
{
	struct plx_listener *listener = fixture_listen("*:0", NULL);
	struct plx_link_attr attr = {.events = &side_events, .user = &client};
	const char *port = strrchr(plx_listener_address(listener), ':');

	assert_int_equal(plx_link_connect(here(port + 1), &attr, &client.link), 0);
	assert_true(pump_until(&client.opened, 1, 2000));
	assert_true(pump_until(&server.opened, 1, 2000));
	assert_true(plx_link_is_same_host(client.link));
	assert_true(plx_link_is_same_host(server.link));
	server.echo = true;
	send_and_expect_back(64, false);
}

/* The child shares the parent's pages until one of them writes. */
static void a_fork_does_not_hurt(void **state)
{
	fixture_connect(fixture_listen(here("0"), NULL), NULL);
	server.echo = true;
	send_and_expect_back(3000, false);

	pid_t child = fork();

	if (child == 0)
		pause();
	for (unsigned i = 0; i < 20; i++)
		send_and_expect_back(3000 + i, i % 2);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	send_and_expect_back(3000, true);
}

static void a_chain_is_one_message(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	uint8_t *bytes = pattern(9000, 3);
	struct plx_buf *head = NULL;
	size_t at = 0;

	fixture_connect(listener, NULL);
	while (at < 9000) { /* 90 pieces: more than one operation or one frame takes */
		struct plx_buf *piece = plx_buf_alloc(100);

		memcpy(plx_buf_append(piece, 100), bytes + at, 100);
		at += 100;
		if (head)
			plx_buf_chain(head, piece);
		else
			head = piece;
	}
	assert_int_equal(plx_link_send_buf(client.link, head, NULL, NULL), 0);
	assert_true(pump_until(&server.messages, 1, 2000));
	assert_int_equal(server.last_len, 9000);
	assert_memory_equal(server.last, bytes, 9000);
	free(bytes);
}

static void pieces_are_gathered_by_sendv(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	char low[] = "low", dash[] = "-", latency[] = "latency";
	struct iovec iov[] = {{low, 3}, {NULL, 0}, {dash, 1}, {latency, 7}};
	struct iovec many[65] = {{0}};

	fixture_connect(listener, NULL);
	assert_int_equal(plx_link_sendv(client.link, iov, 4), 0);
	assert_true(pump_until(&server.messages, 1, 2000));
	assert_int_equal(server.last_len, 11);
	assert_memory_equal(server.last, "low-latency", 11);
	assert_fails(plx_link_sendv(client.link, many, 65), -EINVAL, "0 to 64");
}

/* A message that starts with its number. */
static int send_number(struct plx_link *link, uint64_t number, uint8_t *bytes, size_t size)
{
	memcpy(bytes, &number, sizeof(number));
	return plx_link_send(link, bytes, size);
}

static void a_flood_meets_again_and_arrives_in_order(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	uint8_t bytes[3000] = {0};
	uint64_t sent = 0, refused = 0;

	fixture_connect(listener, NULL);
	server.sequenced = true;
	while (sent < 20000) {
		int rc = send_number(client.link, sent, bytes, 8 + sent % 2900);

		if (rc == 0) {
			sent++;
			continue;
		}
		assert_int_equal(rc, -EAGAIN);
		refused++;

		unsigned before = client.writable;

		assert_true(pump_until(&client.writable, before + 1, 2000));
		pump_ms(0);
		assert_int_equal(client.writable, before + 1); /* once per -EAGAIN */
	}
	assert_true(pump_until(&server.messages, 20000, 5000));
	assert_int_equal(server.sequence_errors, 0);
	assert_true(refused > 100);
}

static void a_receiver_that_keeps_its_buffers_stalls_its_link_alone(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	struct side other = {.name = "other"};
	struct plx_link_attr attr = {.events = &side_events, .user = &other};
	struct plx_link_stats stats;
	uint8_t bytes[1000] = {0};
	unsigned accepted = 0;

	fixture_connect(listener, NULL);

	struct side first_server = server;

	server = (struct side){.name = "second server", .echo = true};
	plx_link_set_user(first_server.link, &first_server);
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &other.link), 0);
	assert_true(pump_until(&server.opened, 1, 2000));
	assert_true(pump_until(&other.opened, 1, 2000));

	first_server.keep = 500;
	for (int i = 0; i < 1000; i++) {
		accepted += plx_link_send(client.link, bytes, sizeof(bytes)) == 0;
		plx_loop_turn();
	}
	assert_int_equal(accepted, 6); /* the window, and nothing queued beyond it */
	assert_int_equal(first_server.kept_count, 6);
	plx_link_stats(client.link, &stats);
	assert_int_equal(stats.tx_inflight, 0);
	plx_link_stats(first_server.link, &stats);
	assert_int_equal(stats.rx_kept, 6);
	assert_in_range(stats.rx_posted, 2, 6); /* for control: more over iWARP */

	assert_int_equal(plx_link_send(other.link, "x", 1), 0); /* the other link still works */
	assert_true(pump_until(&other.messages, 1, 2000));

	side_release(&first_server, 3); /* three returned: three more may arrive */
	accepted = 0;
	for (int i = 0; i < 1000; i++) {
		accepted += plx_link_send(client.link, bytes, sizeof(bytes)) == 0;
		plx_loop_turn();
	}
	assert_in_range(accepted, 0, 3);

	plx_link_abort(client.link); /* the closure is noticed anyway */
	assert_true(pump_until(&first_server.closed, 1, 2000));
	assert_int_equal(first_server.reason, PLX_LINK_PEER_DOWN);
	side_release(&first_server, 500);
	free(first_server.last);
	plx_link_abort(other.link);
	assert_true(pump_until(&other.closed, 1, 2000));
	free(other.last);
}

static void long_messages_that_are_kept_are_bounded_too(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	uint8_t *bytes = pattern(20000, 1);
	unsigned accepted = 0;

	fixture_connect(listener, NULL);
	server.keep = 500;
	for (int i = 0; i < 3000; i++) {
		accepted += plx_link_send(client.link, bytes, 20000) == 0;
		plx_loop_turn();
	}
	assert_in_range(server.kept_count, 5, 6);
	assert_in_range(accepted, server.kept_count, 7);
	side_release(&server, 500);
	server.keep = 0;

	unsigned before = server.messages;

	uint64_t limit_ns = plx_now_ns() + 5 * PLX_NS_PER_S;

	while (server.messages < before + 20 && plx_now_ns() < limit_ns) {
		plx_link_send(client.link, bytes, 20000);
		plx_loop_turn();
	}
	assert_true(server.messages >= before + 20);
	assert_memory_equal(server.last, bytes, 20000);
	free(bytes);
}

static unsigned sent_ok, sent_failed;

static void count_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	assert_ptr_equal(arg, &sent_ok);
	sent_ok += status == 0;
	sent_failed += status < 0;
}

static void every_accepted_send_completes_once_also_when_the_peer_dies(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	unsigned accepted = 0;

	sent_ok = sent_failed = 0;
	fixture_connect(listener, NULL);
	for (int i = 0; i < 400; i++) {
		struct plx_buf *buf = plx_buf_alloc(50000);

		plx_buf_append(buf, 50000);
		if (plx_link_send_buf(client.link, buf, count_sent, &sent_ok) == 0)
			accepted++;
		else
			plx_buf_unref(buf);
		plx_loop_turn();
		if (i == 300) /* inside a message */
			plx_link_abort(server.link);
		if (client.closed)
			break;
	}
	assert_true(pump_until(&client.closed, 1, 2000));
	assert_true(accepted > 5);
	assert_int_equal(sent_ok + sent_failed, accepted);
}

static void expect_closed(void)
{
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_true(pump_until(&server.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_CLOSED);
	assert_int_equal(server.reason, PLX_LINK_CLOSED);
}

static void forget_messages(void)
{
	free(server.last);
	free(client.last);
	server.last = client.last = NULL;
}

static void close_loses_nothing_that_was_accepted(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);

	for (int round = 0; round < 200; round++) {
		uint8_t bytes[5000] = {0};
		unsigned accepted = 0;

		memset(&server, 0, sizeof(server));
		memset(&client, 0, sizeof(client));
		fixture_connect(listener, NULL);
		server.sequenced = true;
		while (send_number(client.link, accepted, bytes, 8 + (unsigned)round * 24) == 0)
			accepted++;
		assert_int_equal(plx_link_close(client.link), 0);
		assert_int_equal(plx_link_send(client.link, "x", 1), -ENOTCONN);
		expect_closed();
		assert_int_equal(server.messages, accepted);
		assert_int_equal(server.sequence_errors, 0);
		forget_messages();
	}
}

static void both_sides_may_close_at_once(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);

	for (int round = 0; round < 50; round++) {
		memset(&server, 0, sizeof(server));
		memset(&client, 0, sizeof(client));
		fixture_connect(listener, NULL);
		assert_int_equal(plx_link_send(client.link, "to server", 9), 0);
		assert_int_equal(plx_link_send(server.link, "to client", 9), 0);
		assert_int_equal(plx_link_close(client.link), 0);
		assert_int_equal(plx_link_close(server.link), 0);
		assert_int_equal(plx_link_close(server.link), -EALREADY);
		expect_closed();
		assert_int_equal(client.messages, 1);
		assert_int_equal(server.messages, 1);
		forget_messages();
	}
}

static void abort_tells_both_sides_why(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);

	fixture_connect(listener, NULL);
	plx_link_abort(client.link);
	assert_int_equal(client.closed, 0); /* from the loop, not from the call */
	assert_true(pump_until(&client.closed, 1, 2000));
	assert_true(pump_until(&server.closed, 1, 2000));
	assert_int_equal(client.reason, PLX_LINK_ABORTED);
	assert_int_equal(server.reason, PLX_LINK_PEER_DOWN);
	assert_non_null(strstr(server.text, "went away"));
}

static void nobody_there_is_refused(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	struct plx_link_attr attr = {.events = &side_events, .user = &client};
	char address[PLX_ADDRESS_MAX];

	strcpy(address, plx_listener_address(listener));
	plx_listener_close(listener);
	assert_int_equal(plx_link_connect(address, &attr, &client.link), 0);
	assert_true(pump_until(&client.closed, 1, 3000));
	assert_int_equal(client.reason, PLX_LINK_REFUSED);
	assert_non_null(strstr(client.text, address));
	assert_int_equal(client.opened, 0);
}

/* At each point of the handshake; AddressSanitizer finds late uses. */
static void a_listener_may_close_while_somebody_connects(void **state)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};
	unsigned descriptors = open_descriptors();
	unsigned rounds = is_provider_given() ? 120 : 400; /* a guest takes 15 to 100 ms for each */
	char address[PLX_ADDRESS_MAX];

	for (unsigned i = 0; i < rounds; i++) {
		struct plx_listener *listener = fixture_listen(here("0"), NULL);

		snprintf(address, sizeof(address), "%s", plx_listener_address(listener));
		client.opened = client.closed = 0;
		assert_int_equal(plx_link_connect(address, &attr, &client.link), 0);
		for (unsigned turn = 0; turn < i % 40; turn++)
			plx_loop_turn();
		plx_listener_close(listener);
		while (client.opened + client.closed == 0)
			plx_loop_turn();
		if (client.opened) /* it was accepted before */
			plx_link_abort(client.link);
		assert_true(pump_until(&client.closed, 1, 20000));
		listener = fixture_listen(address, NULL); /* its port is free at once */
		plx_listener_close(listener);
	}
	assert_in_range(open_descriptors(), 0, descriptors + 2 * rounds + 100);
}

static void a_port_in_use_says_so(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL), *second;
	struct plx_listen_attr attr = {.link = {.events = &side_events}};

	assert_fails(plx_link_listen(plx_listener_address(listener), &attr, &second), -EADDRINUSE,
		     "port is in use");
	assert_error_has(plx_listener_address(listener));
}

static void bad_addresses_and_attributes_are_named(void **state)
{
	static const struct {
		const char *address, *part;
	} rows[] = {
		{"localhost", "no port"},
		{"127.0.0.1:", "bad port"},
		{"127.0.0.1:70000", "bad port"},
		{"127.0.0.1:7x", "bad port"},
		{"::1:80", "needs brackets"},
		{"[::1:80", "bracket"},
		{"127.0.0.1:0", "port 0"},
		{":80", "host is needed"},
		{"*:80", "host is needed"},
		{"no-such-host.invalid:80", "the name no-such-host.invalid does not resolve"},
	};
	struct plx_link_attr attr = {.events = &side_events, .user = &client};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		assert_true(plx_link_connect(rows[i].address, &attr, &client.link) < 0);
		assert_error_has(rows[i].part);
	}
	attr.rx_buf_bytes = 255;
	assert_fails(plx_link_connect(here("1"), &attr, &client.link), -EINVAL, "rx_buf_bytes 255");
	attr.rx_buf_bytes = 0;
	attr.provider = "carrier-pigeon";
	assert_fails(plx_link_connect(here("1"), &attr, &client.link), -EINVAL, "carrier-pigeon");
	assert_error_has("tcp");
}

static void a_message_longer_than_the_peer_accepts_is_refused_here(void **state)
{
	struct plx_link_attr small = {.message_max_bytes = 10000};
	struct plx_listener *listener = fixture_listen(here("0"), &small);
	uint8_t *bytes = pattern(10001, 0);

	fixture_connect(listener, NULL);
	assert_int_equal(plx_link_message_max(client.link), 10000);
	assert_fails(plx_link_send(client.link, bytes, 10001), -EMSGSIZE, "10001");
	assert_error_has("10000");
	assert_int_equal(plx_link_send(client.link, bytes, 10000), 0);
	assert_true(pump_until(&server.messages, 1, 2000));
	free(bytes);
}

/* A long copy would silence the lcore until its peers took it for dead. */
static void what_takes_too_long_to_copy_is_refused_here(void **state)
{
	enum { PIECES = 64, PIECE_BYTES = PLX_SEND_COPY_MAX / PIECES };
	struct plx_link_attr large = {.message_max_bytes = 2 * PLX_SEND_COPY_MAX};
	struct plx_listener *listener = fixture_listen(here("0"), &large);
	uint8_t *bytes = calloc(1, PIECE_BYTES + 1);
	struct iovec iov[PIECES];

	for (int i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){bytes, PIECE_BYTES};
	fixture_connect(listener, NULL);
	iov[0].iov_len++;
	assert_fails(plx_link_sendv(client.link, iov, PIECES), -EMSGSIZE, "33554433");
	assert_error_has("plx_link_send_buf");
	iov[0].iov_len--;
	assert_int_equal(plx_link_sendv(client.link, iov, PIECES), 0);
	assert_true(pump_until(&server.messages, 1, 10000));
	assert_int_equal(client.closed + server.closed, 0);
	free(bytes);
}

static void a_buffer_kept_past_the_link_is_safe(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);

	fixture_connect(listener, NULL);
	server.keep = 2;
	assert_int_equal(plx_link_send(client.link, "keep me", 7), 0);
	assert_true(pump_until(&server.messages, 1, 2000));
	plx_link_abort(client.link);
	assert_true(pump_until(&server.closed, 1, 2000));
	pump_ms(5);
	assert_memory_equal(server.kept[0]->data, "keep me", 7);
}

static void an_empty_first_buffer_sends_nothing_of_its_own(void **state)
{
	struct plx_listener *listener = fixture_listen(here("0"), NULL);
	struct plx_buf *head = plx_buf_alloc(64), *tail = plx_buf_alloc(64);

	fixture_connect(listener, NULL);
	memset(head->data, 'S', 64);
	memcpy(plx_buf_append(tail, 5), "hello", 5);
	plx_buf_chain(head, tail);
	assert_int_equal(plx_link_send_buf(client.link, head, NULL, NULL), 0);
	assert_true(pump_until(&server.messages, 1, 2000));
	assert_int_equal(server.last_len, 5);
	assert_memory_equal(server.last, "hello", 5);
}

/* -EAGAIN, sends in flight, then the abort: completions arrive while the link is reaped. */
static void a_blocked_link_is_aborted_with_sends_in_flight(void **state)
{
	struct plx_link_attr attr = {.rx_buf_bytes = 1 << 20};
	struct plx_listener *listener = fixture_listen(here("0"), &attr);
	unsigned accepted = 0;

	sent_ok = sent_failed = 0;
	fixture_connect(listener, &attr);
	for (;;) {
		struct plx_buf *buf = plx_buf_alloc(1000000);

		plx_buf_append(buf, 1000000);
		if (plx_link_send_buf(client.link, buf, count_sent, &sent_ok) == 0) {
			accepted++;
			continue;
		}
		plx_buf_unref(buf);
		break;
	}
	plx_link_abort(client.link);
	assert_true(pump_until(&client.closed, 1, 3000));
	pump_ms(20);
	assert_int_equal(sent_ok + sent_failed, accepted);
}

#define BOTH(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(messages_of_every_size_come_back_unchanged),
		BOTH(a_page_link_takes_a_megabyte_in_one_frame),
		BOTH(a_message_as_long_as_a_receive_buffer_is_one_frame),
		BOTH(a_message_one_byte_longer_is_two),
		BOTH(ipv6_and_every_address_work),
		BOTH(a_listener_at_every_address_is_reached),
		BOTH(a_fork_does_not_hurt),
		BOTH(a_chain_is_one_message),
		BOTH(pieces_are_gathered_by_sendv),
		BOTH(a_flood_meets_again_and_arrives_in_order),
		BOTH(a_receiver_that_keeps_its_buffers_stalls_its_link_alone),
		BOTH(long_messages_that_are_kept_are_bounded_too),
		BOTH(every_accepted_send_completes_once_also_when_the_peer_dies),
		BOTH(close_loses_nothing_that_was_accepted),
		BOTH(both_sides_may_close_at_once),
		BOTH(abort_tells_both_sides_why),
		BOTH(nobody_there_is_refused),
		BOTH(a_listener_may_close_while_somebody_connects),
		BOTH(a_port_in_use_says_so),
		BOTH(bad_addresses_and_attributes_are_named),
		BOTH(a_message_longer_than_the_peer_accepts_is_refused_here),
		BOTH(what_takes_too_long_to_copy_is_refused_here),
		BOTH(a_buffer_kept_past_the_link_is_safe),
		BOTH(an_empty_first_buffer_sends_nothing_of_its_own),
		BOTH(a_blocked_link_is_aborted_with_sends_in_flight),
	};
	int failed = cmocka_run_group_tests_name("links over the driver's choice", tests, NULL,
						 NULL);

	if (is_provider_given())
		return failed;
	provider = "shm";
	failed += cmocka_run_group_tests_name("links on this host", tests, NULL, NULL);
	provider = "fi:tcp";
	return failed + cmocka_run_group_tests_name("links over libfabric tcp", tests, NULL, NULL);
}
