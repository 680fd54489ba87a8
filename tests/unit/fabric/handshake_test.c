/* SPDX-License-Identifier: BSD-3-Clause */
/* Incomplete handshakes, of the link or above it: how they are counted and logged. And the limits
 * of a listener for peers that it does not know. */
#include "count.h"
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

static void expect_opens(const struct plx_link_attr *how)
{
	assert_int_equal(connect_as(how), PLX_LINK_CLOSED);
	plx_link_abort(client.link);
	expect_soon(client.closed);
}

PLX_TEST(a_link_opens_if_the_protocols_match_or_one_is_unnamed)
{
	static const struct {
		uint8_t listener, client;
		const char *error, *logged; /* NULL: it opens */
	} rows[] = {
		{PLX_PROTOCOL_ECHO, PLX_PROTOCOL_ECHO, NULL, NULL},
		{PLX_PROTOCOL_ECHO, PLX_PROTOCOL_NONE, NULL, NULL},
		{PLX_PROTOCOL_NONE, PLX_PROTOCOL_ECHO, NULL, NULL},
		{PLX_PROTOCOL_ECHO, PLX_PROTOCOL_RPC,
		 " speaks the echo of plx-ping, not Pollux RPC",
		 "it speaks Pollux RPC; this port expects the echo of plx-ping"},
		{PLX_PROTOCOL_OWN, 255, " speaks protocol 16, not protocol 255",
		 "it speaks protocol 255; this port expects protocol 16"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		const struct plx_link_attr how = {.protocol = rows[i].client};

		listen_as(rows[i].listener);
		if (rows[i].error) {
			assert_int_equal(connect_as(&how), PLX_LINK_HELLO);
			assert_has(client.text, plx_listener_address(listener));
			assert_has(client.text, rows[i].error);
			wait_without_handshake(1);
			assert_int_equal(log_count_of(rows[i].logged), 1);
		} else {
			expect_opens(&how);
			assert_int_equal(without_handshake(), 0);
		}
		fixture_stop();
	}
}

TEST(failed_handshakes_of_a_host_are_logged_once_a_second)
{
	uint64_t begin_ns = plx_now_ns();

	listen_as(PLX_PROTOCOL_ECHO);
	for (unsigned i = 1; i <= 8; i++) {
		connect_as(&(struct plx_link_attr){.protocol = PLX_PROTOCOL_RPC});
		wait_without_handshake(i);
	}
	assert_in_range(log_count("did not complete the handshake"), 1,
			1 + (plx_now_ns() - begin_ns) / PLX_NS_PER_S);
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

/* server_refuses, client_refuses: the peer; NULL: they do not. Return: as connect_as. */
static enum plx_link_reason meet(const char *says, const char *answers, const char *server_refuses,
				 const char *client_refuses)
{
	struct plx_listen_attr listen = {.link = saying(answers, &server)};
	struct plx_link_attr attr = saying(says, &client);

	server_judge.refuses = server_refuses;
	client_judge.refuses = client_refuses;
	fixture_start("tcp", false);
	assert_works(plx_link_listen(here("0"), &listen, &listener));
	log_capture();
	assert_works(plx_link_connect(plx_listener_address(listener), &attr, &client.link));
	expect_soon(client.opened || client.closed);
	return client.opened ? PLX_LINK_CLOSED : client.reason;
}

TEST(each_side_sees_the_private_data_of_the_peers_hello)
{
	assert_int_equal(meet("a question", "an answer", NULL, NULL), PLX_LINK_CLOSED);
	assert_int_equal(server_judge.length, 10);
	assert_memory_equal(server_judge.saw, "a question", 10);
	assert_int_equal(client_judge.length, 9);
	assert_memory_equal(client_judge.saw, "an answer", 9);
}

TEST(a_refusal_by_the_accepting_side_gives_both_sides_the_reason)
{
	assert_int_equal(meet("three dogs", "", "no more than two dogs", NULL), PLX_LINK_HELLO);
	assert_has(client.text, " refused the link: no more than two dogs");
	assert_int_equal(server.opened + client.opened, 0);
	wait_without_handshake(1);
	assert_int_equal(log_count_of("it was refused: no more than two dogs"), 1);
}

TEST(a_refusal_by_the_connecting_side_gives_both_sides_the_reason)
{
	assert_int_equal(meet("", "a cat", NULL, "that is no dog"), PLX_LINK_HELLO);
	assert_has(client.text, " was refused: that is no dog");
	assert_int_equal(client.opened, 0);
	expect_end(&server, PLX_LINK_HELLO);
	assert_has(server.text, " refused the link: that is no dog");
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

/* A peer that sends these bytes, and maybe closes, is counted; the log says why. */
static const struct stranger {
	const void *bytes;
	size_t size;
	const char *what; /* NULL: nothing is logged */
	bool closes;
	const char *settings;
} strangers[] = {
	{"GET / HTTP/1.1\r\n\r\n", 18, "it speaks HTTP", false, NULL},
	{"\x16\x03\x01\0\0\0\0\0\0\0\0\0\0\0\0", 16, "it speaks TLS", false, NULL},
	{"SSH-2.0-x\r\n", 11, "it speaks SSH", false, NULL},
	{"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0", 32,
	 "it speaks the protocol of libfabric's own TCP provider", false, NULL},
	{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16, "", false, NULL},
	{"", 0, NULL, true, NULL}, /* as a health check of a load balancer does */
	{"\x93", 1, "it closed before it had said who it is", true, NULL}, /* of plx_tcp */
	{"", 0, "it said nothing for too long", false, "handshake_ms=50"}, /* the default is 5 s */
};

static void meet_stranger(const struct stranger *stranger)
{
	int before, fd;

	fixture_start_as(&(struct plx_fabric_conf){.provider = "tcp", .tcp = stranger->settings},
			 false);
	listener = fixture_listen("127.0.0.1:0", NULL);
	log_capture();
	before = count_descriptors();
	fd = rogue_socket(plx_listener_address(listener));
	assert_int_equal(write(fd, stranger->bytes, stranger->size), stranger->size);
	if (stranger->closes)
		close(fd);
	wait_without_handshake(1);
	assert_int_equal(log_count("fabric:"), stranger->what != NULL);
	if (stranger->what && log_count_of(stranger->what) != 1)
		fail_msg("the log does not say once '%s'", stranger->what);
	assert_int_equal(listener_stats_of(listener).requests + listener_stats_of(listener).failed +
				 listener_stats_of(listener).evicted,
			 0);
	if (!stranger->closes)
		close(fd);
	expect_soon(count_descriptors() == before);
	expect_opens(&(struct plx_link_attr){0});
	fixture_stop();
}

PLX_TEST(a_client_of_another_protocol_is_counted_and_logged_with_its_protocol)
{
	skip_if_provider_given();
	for (size_t i = 0; i < PLX_ARRAY_LEN(strangers); i++)
		meet_stranger(&strangers[i]);
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

#define BYTES(text) (text), sizeof(text) - 1

/* Of the provider; then 6 bytes with the length of the private data. */
#define ACCEPTANCE "\x93PLXTCP\n\x01\x02"
#define REJECTION  "\x93PLXTCP\n\x01\x03"

/* Answers to a connect, each with what the link's text then says after the address. Whatever the
 * peer says, it steers no terminal. */
static const struct answer {
	const char *bytes;
	size_t size;
	enum plx_link_reason reason;
	const char *text;
} answers[] = {
	{BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"), PLX_LINK_REFUSED,
	 ": it speaks HTTP, not plx_tcp's protocol"},
	{BYTES("\x93PLXTCP\n\x02"), PLX_LINK_REFUSED,
	 ": it speaks version 2 of plx_tcp's protocol, and this side version 1"},
	{BYTES(""), PLX_LINK_REFUSED,
	 ": it closed the connection without an answer: does it speak plx_tcp's protocol?"},
	{BYTES(ACCEPTANCE "\7\0\0\0\0\0rubbish"), PLX_LINK_HELLO,
	 " sent a bad HELLO: bad magic: it speaks another protocol"},
	{BYTES(ACCEPTANCE "\6\0\0\0\0\0\1\0042XLP"), PLX_LINK_HELLO,
	 " sent a bad HELLO: it does not speak wire version 2"},
	{BYTES(ACCEPTANCE "\x09\0\0\0\0\0\1\0042XLP\2\2\2"), PLX_LINK_HELLO,
	 " sent a bad HELLO: a field is cut"},
	{BYTES(REJECTION "\x14\0\0\0\0\0\1\0042XLP\2\2\2\0\3\2\2\0\x10\4no\033!"), PLX_LINK_HELLO,
	 " refused the link: no\\x1b!"},
	{BYTES(REJECTION "\7\0\0\0\0\0\1\0042XLP\2"), PLX_LINK_REFUSED,
	 " refused the connection: is anything listening there?"},
};

TEST(a_connect_to_another_service_or_version_reports_what_is_wrong)
{
	char address[ROGUE_ADDRESS_MAX];
	int fd;

	skip_if_provider_given();
	fixture_start("tcp", false);
	fd = rogue_listener(address);
	for (const struct answer *each = answers; each < answers + PLX_ARRAY_LEN(answers); each++) {
		connect_in_vain(fd, address, each->bytes, each->size, each->reason);
		assert_int_equal(strncmp(client.text, address, strlen(address)), 0);
		assert_string_equal(client.text + strlen(address), each->text);
		assert_int_equal(client.opened, 0);
	}
	close(fd);
}

TEST(plx_link_without_peer_strips_only_the_address_of_the_peer)
{
	static const char *const rows[][2] = {{" went away", "went away"},
					      {": it is gone", "it is gone"}};
	char text[PLX_ADDRESS_MAX + 64];

	listen_as(PLX_PROTOCOL_NONE);
	fixture_connect(listener, NULL);
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text), "%s%s", plx_link_peer(client.link), rows[i][0]);
		assert_string_equal(plx_link_without_peer(client.link, text), rows[i][1]);
	}
	snprintf(text, sizeof(text), "%s0 went away", plx_link_peer(client.link));
	assert_string_equal(plx_link_without_peer(client.link, text), text);
}

PLX_TEST_MAIN()
