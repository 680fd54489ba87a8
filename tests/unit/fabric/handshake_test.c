/* SPDX-License-Identifier: BSD-3-Clause */
/* Incomplete handshakes, of the link or above it: how they are counted and logged. And the limits
 * of a listener for peers that it does not know. */
#include "fixture.h"
#include "log_capture.h"
#include "rogue.h"

#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

static struct plx_listener *listener;

static void listen_as(uint8_t protocol)
{
	struct plx_link_attr attr = {.protocol = protocol};

	fixture_start("tcp", false);
	listener = fixture_listen(here("0"), &attr);
	log_capture();
}

/* Return: the reason if it ended; PLX_LINK_CLOSED: it is open. */
static enum plx_link_reason connect_as(const struct plx_link_attr *how)
{
	memset(&client, 0, sizeof(client));
	client_connect(plx_listener_address(listener), how);
	expect_soon(client.opened || client.closed);
	assert_int_equal(client.opened + client.closed, 1);
	return client.opened ? PLX_LINK_CLOSED : client.reason;
}

static uint64_t without_handshake(void)
{
	return listener_stats_of(listener).no_handshake;
}

static void wait_without_handshake(uint64_t count)
{
	expect_soon(without_handshake() >= count);
	assert_int_equal(without_handshake(), count);
}

/* How often the log says that about a handshake. */
static unsigned log_count_of(const char *what)
{
	char line[160];

	snprintf(line, sizeof(line), " did not complete the handshake: %s", what);
	return log_count(line);
}

#define TEST(name) PLX_TEST_WITH(name, NULL, fixture_down)

TEST(a_link_of_another_protocol_does_not_open)
{
	listen_as(PLX_PROTOCOL_ECHO);
	assert_int_equal(connect_as(&(struct plx_link_attr){.protocol = PLX_PROTOCOL_RPC}),
			 PLX_LINK_HELLO);
	assert_has(client.text, plx_listener_address(listener));
	assert_has(client.text, " speaks the echo of plx-ping, not Pollux RPC");
	wait_without_handshake(1);
	assert_int_equal(server.opened, 0);
	assert_int_equal(
		log_count_of("it speaks Pollux RPC; this port expects the echo of plx-ping"), 1);
	assert_int_equal(log_count("went away"), 0);
}

TEST(different_protocols_of_applications_do_not_open_a_link)
{
	listen_as(PLX_PROTOCOL_OWN);
	assert_int_equal(connect_as(&(struct plx_link_attr){.protocol = 255}), PLX_LINK_HELLO);
	assert_has(client.text, " speaks protocol 16, not protocol 255");
}

static void expect_opens(const struct plx_link_attr *how)
{
	assert_int_equal(connect_as(how), PLX_LINK_CLOSED);
	plx_link_abort(client.link);
	assert_true(pump_until(&client.closed, 1, 3000));
}

TEST(a_link_opens_if_the_protocols_match_or_one_is_unnamed)
{
	listen_as(PLX_PROTOCOL_ECHO);
	expect_opens(&(struct plx_link_attr){.protocol = PLX_PROTOCOL_ECHO});
	expect_opens(&(struct plx_link_attr){0});
	fixture_stop();
	listen_as(PLX_PROTOCOL_NONE);
	expect_opens(&(struct plx_link_attr){.protocol = PLX_PROTOCOL_ECHO});
	assert_int_equal(without_handshake(), 0);
}

TEST(failed_handshakes_of_a_host_are_logged_once_a_second)
{
	uint64_t begin_ns = plx_now_ns(), seconds;

	listen_as(PLX_PROTOCOL_ECHO);
	for (unsigned i = 1; i <= 8; i++) {
		connect_as(&(struct plx_link_attr){.protocol = PLX_PROTOCOL_RPC});
		wait_without_handshake(i);
	}
	seconds = (plx_now_ns() - begin_ns) / PLX_NS_PER_S;
	assert_in_range(log_count("did not complete the handshake"), 1, 1 + seconds);
}

/* Private data --------------------------------------------------------------------------------- */

/* What one side refuses, and what it saw. */
struct judge {
	const char *refuses;
	uint8_t saw[PLX_LINK_HELLO_MAX];
	uint32_t length;
};

static struct judge client_judge, server_judge;

static const char *judge(struct plx_link *link, void *user)
{
	struct judge *own = user == &client ? &client_judge : &server_judge;
	const uint8_t *hello = plx_link_hello(link, &own->length);

	memcpy(own->saw, hello, own->length);
	return own->refuses;
}

static struct plx_link_attr saying(const char *hello, struct side *side)
{
	static struct plx_link_events events;
	struct plx_link_attr attr = {
		.events = &events, .user = side, .hello_length = (uint8_t)strlen(hello)};

	events = side_events;
	events.on_hello = judge;
	memcpy(attr.hello, hello, attr.hello_length);
	return attr;
}

/* Return: as connect_as. */
static enum plx_link_reason meet(const char *says, const char *answers)
{
	struct plx_listen_attr listen = {.link = saying(answers, &server)};
	struct plx_link_attr attr = saying(says, &client);

	fixture_start("tcp", false);
	assert_works(plx_link_listen(here("0"), &listen, &listener));
	log_capture();
	assert_works(plx_link_connect(plx_listener_address(listener), &attr, &client.link));
	expect_soon(client.opened || client.closed);
	return client.opened ? PLX_LINK_CLOSED : client.reason;
}

TEST(each_side_sees_the_private_data_of_the_peers_hello)
{
	client_judge.refuses = server_judge.refuses = NULL;
	assert_int_equal(meet("a question", "an answer"), PLX_LINK_CLOSED);
	assert_int_equal(server_judge.length, 10);
	assert_memory_equal(server_judge.saw, "a question", 10);
	assert_int_equal(client_judge.length, 9);
	assert_memory_equal(client_judge.saw, "an answer", 9);
}

TEST(a_refusal_by_the_accepting_side_gives_both_sides_the_reason)
{
	client_judge.refuses = NULL;
	server_judge.refuses = "no more than two dogs";
	assert_int_equal(meet("three dogs", ""), PLX_LINK_HELLO);
	assert_has(client.text, " refused the link: no more than two dogs");
	assert_int_equal(server.opened + client.opened, 0);
	wait_without_handshake(1);
	assert_int_equal(log_count_of("it was refused: no more than two dogs"), 1);
}

TEST(a_refusal_by_the_connecting_side_gives_both_sides_the_reason)
{
	server_judge.refuses = NULL;
	client_judge.refuses = "that is no dog";
	assert_int_equal(meet("", "a cat"), PLX_LINK_HELLO);
	assert_has(client.text, " was refused: that is no dog");
	assert_int_equal(client.opened, 0);
	expect_end(&server, PLX_LINK_HELLO);
	assert_has(server.text, " refused the link: that is no dog");
}

/* Frames that each side had sent when both were open. */
static void expect_frames_to_open(const char *provider, uint64_t count)
{
	fixture_start(provider, false);
	fixture_pair(NULL);
	assert_int_equal(stats_of(client.link).frames_sent, count);
	assert_int_equal(stats_of(client.link).frames_received, count);
	assert_int_equal(stats_of(server.link).frames_sent, count);
	fixture_stop();
}

PLX_TEST(a_link_over_our_providers_opens_with_its_connection)
{
	skip_if_provider_given();
	expect_frames_to_open("tcp", 0);
	expect_frames_to_open("shm", 0);
	expect_frames_to_open("foreign", 1);
}

TEST(private_data_has_a_maximum_length)
{
	struct plx_link_attr attr = {.events = &side_events, .hello_length = 65};

	fixture_start("tcp", false);
	assert_fails(plx_link_connect(here("9"), &attr, &client.link), -EINVAL,
		     "hello_length 65: out of range; give 0 to 64");
}

TEST(a_peer_that_leaves_before_hello_is_not_logged_as_crashed)
{
	listen_as(PLX_PROTOCOL_NONE);
	rogue_close(rogue_connect(plx_listener_address(listener)));
	wait_without_handshake(1);
	assert_int_equal(log_count_of("it went away before it said HELLO"), 1);
	assert_int_equal(log_count("without closing"), 0);
}

/* Refused by the provider, so never a link ---------------------------------------------------- */

static void listen_over_tcp(void)
{
	skip_if_provider_given();
	listen_as(PLX_PROTOCOL_NONE);
}

/* A peer that says this is refused, and the log names what it speaks. */
static void expect_refusal(const void *bytes, size_t size, const char *what)
{
	int fd;

	listen_over_tcp();
	fd = rogue_socket(plx_listener_address(listener));
	assert_int_equal(write(fd, bytes, size), size);
	wait_without_handshake(1);
	if (log_count_of(what) != 1)
		fail_msg("the log does not say once '%s'", what);
	assert_int_equal(log_count("fabric:"), 1);
	assert_int_equal(listener_stats_of(listener).requests + listener_stats_of(listener).failed +
				 listener_stats_of(listener).evicted,
			 0);
	close(fd);
	expect_opens(&(struct plx_link_attr){0});
	fixture_stop();
}

PLX_TEST(a_client_of_another_protocol_is_logged_with_its_protocol)
{
	expect_refusal("GET / HTTP/1.1\r\n\r\n", 18, "it speaks HTTP");
	expect_refusal((uint8_t[16]){0x16, 0x03, 0x01}, 16, "it speaks TLS");
	expect_refusal((uint8_t[32]){3, [24] = 1}, 32,
		       "it speaks the protocol of libfabric's own TCP provider");
}

/* As a health check of a load balancer does. */
TEST(a_peer_that_closes_without_a_byte_is_counted_and_not_logged)
{
	listen_over_tcp();
	close(rogue_socket(plx_listener_address(listener)));
	wait_without_handshake(1);
	assert_int_equal(log_count("fabric:"), 0);
}

TEST(a_peer_that_closes_inside_its_first_message_is_logged)
{
	int fd;

	listen_over_tcp();
	fd = rogue_socket(plx_listener_address(listener));
	assert_int_equal(write(fd, "\x93", 1), 1); /* of plx_tcp */
	close(fd);
	wait_without_handshake(1);
	assert_int_equal(log_count_of("it closed before it had said who it is"), 1);
}

TEST(a_peer_that_sends_nothing_is_logged)
{
	int fd;

	skip_if_provider_given();
	fixture_start_as(&(struct plx_fabric_conf){.provider = "tcp", .tcp = "handshake_ms=50"},
			 false);
	listener = fixture_listen("127.0.0.1:0", NULL);
	log_capture();
	fd = rogue_socket(plx_listener_address(listener));
	for (int i = 0; i < 2000 && !without_handshake(); i++) /* the default is 5 s */
		pump_ms(1);
	assert_int_equal(log_count_of("it said nothing for too long"), 1);
	close(fd);
}

TEST(clients_of_other_protocols_are_logged_once_a_second)
{
	uint64_t begin_ns = plx_now_ns(), seconds;

	listen_over_tcp();
	for (unsigned i = 1; i <= 8; i++) {
		int fd = rogue_socket(plx_listener_address(listener));

		assert_int_equal(write(fd, "GET / HTTP/1.1\r\n", 16), 16);
		wait_without_handshake(i);
		close(fd);
	}
	seconds = (plx_now_ns() - begin_ns) / PLX_NS_PER_S;
	assert_in_range(log_count("it speaks HTTP"), 1, 1 + seconds);
}

/* Listeners that misbehave --------------------------------------------------------------------- */

/* Connect to a listener that sends this answer and closes: the link ends for that reason. */
static void connect_in_vain(int fd, const char *address, const char *answer, size_t size,
			    enum plx_link_reason reason)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	int peer;

	memset(&client, 0, sizeof(client));
	client_connect(address, NULL);
	expect_soon(poll(&pollfd, 1, 0) == 1);
	peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(peer >= 0);
	assert_int_equal(write(peer, answer, size), size);
	shutdown(peer, SHUT_WR);
	expect_end(&client, reason);
	close(peer);
}

static void expect_connect_fails(const char *answer, size_t size, const char *what)
{
	char address[ROGUE_ADDRESS_MAX], expected[160];
	int fd = rogue_listener(address);

	connect_in_vain(fd, address, answer, size, PLX_LINK_REFUSED);
	snprintf(expected, sizeof(expected), "%s: %s", address, what);
	assert_string_equal(client.text, expected);
	close(fd);
}

TEST(a_connect_to_another_service_reports_its_protocol)
{
	skip_if_provider_given();
	fixture_start("tcp", false);
	expect_connect_fails("HTTP/1.1 400 Bad Request\r\n\r\n", 28,
			     "it speaks HTTP, not plx_tcp's protocol");
	expect_connect_fails("\x15\x03\x01\x00\x02\x02\x46", 7,
			     "it speaks TLS, not plx_tcp's protocol");
	expect_connect_fails("SSH-2.0-x\r\n", 11, "it speaks SSH, not plx_tcp's protocol");
	expect_connect_fails(
		"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16,
		"it speaks the protocol of libfabric's own TCP provider, not plx_tcp's "
		"protocol");
	expect_connect_fails("\x93PLXTCP\n\x02", 9,
			     "it speaks version 2 of plx_tcp's protocol, and this side version 1");
	expect_connect_fails("hello", 5, "it does not speak plx_tcp's protocol");
	expect_connect_fails(
		"", 0,
		"it closed the connection without an answer: does it speak plx_tcp's protocol?");
}

/* An acceptance by plx_tcp with this private data: 0 to 9 bytes. */
static void expect_bad_hello(const char *data, uint8_t length, const char *what)
{
	char address[ROGUE_ADDRESS_MAX], expected[160];
	char answer[16 + 9] = "\x93PLXTCP\n\x01\x02";
	int fd = rogue_listener(address);

	answer[10] = (char)length;
	memcpy(answer + 16, data, length);
	connect_in_vain(fd, address, answer, 16u + length, PLX_LINK_HELLO);
	snprintf(expected, sizeof(expected), "%s sent a bad HELLO: %s", address, what);
	assert_string_equal(client.text, expected);
	assert_int_equal(client.opened, 0);
	close(fd);
}

TEST(a_connect_to_an_old_or_broken_acceptor_reports_what_is_wrong)
{
	skip_if_provider_given();
	fixture_start("tcp", false);
	expect_bad_hello("", 0, "it speaks wire version 1, not 2");
	expect_bad_hello("rubbish", 7, "bad magic: it speaks another protocol");
	expect_bad_hello("\1\0042XLP", 6, "it does not speak wire version 2");
	expect_bad_hello("\1\0042XLP\2\2\2", 9, "a field is cut");
}

/* Whatever the peer says, it has at most 120 characters and steers no terminal. */
TEST(a_rejection_reports_the_reason_of_the_peer)
{
	static const char why[] = "\x93PLXTCP\n\x01\x03\x14\0\0\0\0\0"
				  "\1\0042XLP\2\2\2\0\3\2\2\0\x10\4no\033!";
	static const char hello[] = "\x93PLXTCP\n\x01\x03\x07\0\0\0\0\0\1\0042XLP\2";
	char address[ROGUE_ADDRESS_MAX];
	int fd;

	skip_if_provider_given();
	fixture_start("tcp", false);
	fd = rogue_listener(address);
	connect_in_vain(fd, address, why, sizeof(why) - 1, PLX_LINK_HELLO);
	assert_has(client.text, " refused the link: no\\x1b!");
	connect_in_vain(fd, address, hello, sizeof(hello) - 1, PLX_LINK_REFUSED);
	assert_has(client.text, " refused the connection: is anything listening there?");
	close(fd);
}

/* A name may stand for several addresses. */
TEST(a_connect_by_name_to_another_service_reports_its_protocol)
{
	char address[ROGUE_ADDRESS_MAX], name[ROGUE_ADDRESS_MAX];
	int fd;

	skip_if_provider_given();
	fixture_start("tcp", false);
	fd = rogue_listener(address);
	snprintf(name, sizeof(name), "localhost%s", strrchr(address, ':'));
	connect_in_vain(fd, name, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, PLX_LINK_REFUSED);
	assert_has(client.text, ": it speaks HTTP, not plx_tcp's protocol");
	close(fd);
}

TEST(plx_link_without_peer_strips_the_address_of_the_peer)
{
	char text[PLX_ADDRESS_MAX + 64];

	listen_as(PLX_PROTOCOL_NONE);
	fixture_connect(listener, NULL);
	snprintf(text, sizeof(text), "%s went away", plx_link_peer(client.link));
	assert_string_equal(plx_link_without_peer(client.link, text), "went away");
	snprintf(text, sizeof(text), "%s: it is gone", plx_link_peer(client.link));
	assert_string_equal(plx_link_without_peer(client.link, text), "it is gone");
	assert_string_equal(plx_link_without_peer(client.link, "closed"), "closed");
	snprintf(text, sizeof(text), "%s0 went away", plx_link_peer(client.link));
	assert_string_equal(plx_link_without_peer(client.link, text), text);
}

/* Limits for unknown peers, and refusals counted by cause -------------------------------------- */

#define CLIENTS 40

static struct side clients[CLIENTS];

static void start_on(const char *provider, const struct plx_admission *limits, bool on_worker)
{
	struct plx_listen_attr attr = {
		.link.hello_timeout_ns = 60 * PLX_NS_PER_S,
		.admission = *limits,
		.spread = on_worker ? PLX_SPREAD_CALLBACK : PLX_SPREAD_NONE,
		.place = place_on_lcore_1,
	};

	memset(clients, 0, sizeof(clients));
	fixture_start(provider, on_worker);
	log_capture();
	if (on_worker)
		worker_start();
	listener = fixture_listen_as(here("0"), attr);
}

static void start(const char *provider, const struct plx_admission *limits)
{
	start_on(provider, limits, false);
}

static void connect_clients(unsigned first, unsigned end)
{
	const char *address = plx_listener_address(listener);

	for (unsigned i = first; i < end; i++) {
		struct plx_link_attr attr = {.events = &side_events, .user = &clients[i]};

		clients[i] = (struct side){.name = "client"};
		assert_works(plx_link_connect(address, &attr, &clients[i].link));
	}
}

/* Until each is open or has ended. */
static void connect_and_settle(unsigned first, unsigned end)
{
	connect_clients(first, end);
	for (unsigned i = first; i < end; i++)
		expect_soon(clients[i].opened || clients[i].closed);
	pump_ms(20);
}

static unsigned open_clients(void)
{
	unsigned open = 0;

	for (unsigned i = 0; i < CLIENTS; i++)
		open += clients[i].opened && !clients[i].closed;
	return open;
}

static void links_have_a_bound_over(const char *provider)
{
	start(provider,
	      &(struct plx_admission){.links_max = 5, .links_per_host_max = PLX_NO_LIMIT});
	connect_and_settle(0, 8);
	assert_int_equal(open_clients(), 5);
	assert_int_equal(listener_stats_of(listener).refused_links, 3);
	assert_int_equal(log_count("as many as it may (--links-max 5); "), 1); /* per second */
	/* When one ends, another one fits. */
	for (unsigned i = 0; i < 8; i++) {
		if (!clients[i].closed) {
			plx_link_abort(clients[i].link);
			break;
		}
	}
	pump_ms(50);
	connect_and_settle(8, 9);
	assert_int_equal(clients[8].opened, 1);
}

TEST(the_number_of_links_is_bounded)
{
	links_have_a_bound_over("tcp");
	fixture_stop();
	links_have_a_bound_over("shm");
}

TEST(the_links_of_one_address_are_bounded)
{
	start("tcp", &(struct plx_admission){.links_per_host_max = 3});
	connect_and_settle(0, 5);
	assert_int_equal(open_clients(), 3);
	assert_int_equal(listener_stats_of(listener).refused_host, 2);
	assert_int_equal(
		log_count("127.0.0.1 has 3 links here, as many as it may (--links-per-host 3; "),
		1);
}

/* Over shm the user counts, whatever address it connects to. */
TEST(the_links_of_one_user_over_shm_are_bounded)
{
	start("shm", &(struct plx_admission){.links_per_host_max = 3});
	connect_and_settle(0, 5);
	assert_int_equal(open_clients(), 3);
	assert_int_equal(listener_stats_of(listener).refused_host, 2);
}

TEST(connections_above_the_rate_wait)
{
	uint64_t begin_ns;

	start("tcp", &(struct plx_admission){.accepts_per_s = 40}); /* 10 at once */
	begin_ns = plx_now_ns();
	connect_and_settle(0, 30);
	assert_int_equal(open_clients(), 30);
	/* 20 of them, 25 ms apart. */
	assert_true(plx_now_ns() - begin_ns >= 400 * PLX_NS_PER_MS);
}

/* At most as many wait as have their turn within half of the open timeout. */
TEST(connections_far_above_the_rate_are_refused)
{
	start("tcp", &(struct plx_admission){.accepts_per_s = 4}); /* 1 at once */
	connect_clients(0, 30);
	pump_ms(300);
	assert_in_range(listener_stats_of(listener).refused_rate, 15, 18); /* 11 wait */
	assert_int_equal(log_count("connections wait for their turn already (--accepts-per-s 4); "
				   "127.0.0.1 has most of them"),
			 1);
}

/* Raw peers that never send a HELLO make room for others. */
static void the_oldest_handshake_makes_room_on(bool on_worker)
{
	struct rogue *rogues[6];

	start_on("tcp", &(struct plx_admission){.handshakes_max = 4}, on_worker);
	for (int i = 0; i < 6; i++)
		rogues[i] = rogue_connect(plx_listener_address(listener));
	connect_and_settle(0, 1);
	assert_int_equal(clients[0].opened, 1);
	assert_in_range(listener_stats_of(listener).evicted, 2, 3);
	for (int i = 0; i < 6; i++)
		rogue_close(rogues[i]);
	plx_link_abort(clients[0].link);
	pump_ms(50);
	if (on_worker)
		worker_stop(); /* it logs too */
	assert_in_range(log_count("127.0.0.1 closed before it was open"), 1, 3);
	assert_int_equal(log_count("dropped: as many"), 0);
}

TEST(a_new_connection_evicts_the_oldest_handshake)
{
	the_oldest_handshake_makes_room_on(false);
}

TEST(a_new_connection_evicts_the_oldest_handshake_of_another_lcore)
{
	the_oldest_handshake_makes_room_on(true);
}

/* They never become requests: the provider closes the oldest one. */
TEST(a_new_connection_evicts_the_oldest_silent_one)
{
	int fds[6];

	skip_if_provider_given();
	start("tcp", &(struct plx_admission){.handshakes_max = 4});
	for (int i = 0; i < 6; i++) {
		fds[i] = rogue_socket(plx_listener_address(listener));
		pump_ms(5);
	}
	connect_and_settle(0, 1);
	assert_int_equal(clients[0].opened, 1);
	assert_in_range(listener_stats_of(listener).evicted, 2, 3);
	assert_int_equal(listener_stats_of(listener).no_handshake, 0);
	assert_int_equal(listener_stats_of(listener).requests, 1);
	assert_in_range(log_count("127.0.0.1 closed before it was open: 4 connections are "
				  "being opened"),
			1, 3);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	pump_ms(50);
	assert_int_equal(listener_stats_of(listener).no_handshake,
			 6 - listener_stats_of(listener).evicted);
}

TEST(plx_no_limit_disables_every_limit)
{
	start("tcp", &(struct plx_admission){
			     .links_max = PLX_NO_LIMIT,
			     .links_per_host_max = PLX_NO_LIMIT,
			     .accepts_per_s = PLX_NO_LIMIT,
			     .handshakes_max = PLX_NO_LIMIT,
		     });
	connect_and_settle(0, CLIENTS);
	assert_int_equal(open_clients(), CLIENTS);
	assert_int_equal(listener_stats_of(listener).refused, 0);
}

static void send_first(struct plx_link *link, void *user)
{
	assert_works(plx_link_send(link, "first", 5));
}

/* The acceptor may send before the connector has read that it is connected: with many connections,
 * its messages are read first. */
static void first_messages_arrive_over(const char *provider)
{
	static const struct plx_link_events events = {.on_open = send_first};

	static const struct plx_listen_attr attr = {.link.events = &events,
						    .admission.accepts_per_s = PLX_NO_LIMIT};

	memset(clients, 0, sizeof(clients));
	fixture_start(provider, false);
	assert_works(plx_link_listen(here("0"), &attr, &listener));
	connect_and_settle(0, CLIENTS);
	assert_int_equal(open_clients(), CLIENTS);
	for (unsigned i = 0; i < CLIENTS; i++) {
		expect_soon(clients[i].messages);
		assert_memory_equal(clients[i].last, "first", 5);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		free(clients[i].last);
	fixture_stop();
}

PLX_TEST(a_message_sent_in_on_open_arrives_at_every_client)
{
	first_messages_arrive_over("tcp");
	first_messages_arrive_over("shm");
}

TEST(plx_no_limit_admits_any_number_of_silent_connections)
{
	enum { SOCKETS = 300 }; /* the default is 256 */
	int fds[SOCKETS];

	skip_if_provider_given();
	start("tcp", &(struct plx_admission){.handshakes_max = PLX_NO_LIMIT});
	for (int i = 0; i < SOCKETS; i++)
		fds[i] = rogue_socket(plx_listener_address(listener));
	connect_and_settle(0, 1); /* after all of them */
	assert_int_equal(clients[0].opened, 1);
	assert_int_equal(listener_stats_of(listener).evicted, 0);
	for (int i = 0; i < SOCKETS; i++)
		close(fds[i]);
}

PLX_TEST_MAIN()
