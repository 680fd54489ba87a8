/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the driver tcp (--tcp): each affects sockets of both sides, and is reset at the next
 * start. */
#include "fixture.h"
#include "rogue.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct plx_listener *listener;

static int option_of(int fd, int level, int name)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &bytes), 0);
	return value;
}

/* Whether it is this process's, with that local or remote port. */
static bool is_of_port(int fd, uint16_t port)
{
	struct sockaddr_in own, peer;
	socklen_t own_bytes = sizeof(own), peer_bytes = sizeof(peer);

	if (getsockname(fd, (struct sockaddr *)&own, &own_bytes) != 0 || own.sin_family != AF_INET)
		return false;
	return ntohs(own.sin_port) == port ||
	       (getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) == 0 &&
		ntohs(peer.sin_port) == port);
}

/* Whether that many sockets of the listener's port have the value: 3 are its own, and one per side.
 */
static bool have(unsigned count, int level, int name, int value)
{
	uint16_t port = (uint16_t)plx_listener_port(listener);

	for (int fd = 0; fd < 1024; fd++)
		count -= is_of_port(fd, port) && option_of(fd, level, name) == value;
	return count == 0;
}

static void start(struct plx_fabric_conf conf)
{
	conf.provider = "tcp";
	fixture_start_as(&conf, false);
	listener = fixture_listen("127.0.0.1:0", NULL);
}

#define TEST(name) PLX_TEST_WITH(name, NULL, fixture_down)

/* Whether setsockopt allows it: busy polling needs CAP_NET_ADMIN, and kernel support. */
static bool is_allowed(int level, int name, int value)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool allowed = setsockopt(fd, level, name, &value, sizeof(value)) == 0;

	close(fd);
	return allowed;
}

PLX_TEST(tcp_settings_apply_to_the_sockets_of_both_sides)
{
	static const struct {
		const char *settings;
		int level, name, value;
	} rows[] = {
		{"send_bytes=20000", SOL_SOCKET, SO_SNDBUF, 40000}, /* the kernel doubles it */
		{"receive_bytes=30000", SOL_SOCKET, SO_RCVBUF, 60000},
		{"user_timeout_ms=12345", IPPROTO_TCP, TCP_USER_TIMEOUT, 12345},
		{"dscp=46", IPPROTO_IP, IP_TOS, 46 << 2},
		{"busy_poll_us=50", SOL_SOCKET, SO_BUSY_POLL, 50},
		/* The defaults, of which heartbeats need no keepalive. */
		{NULL, SOL_SOCKET, SO_KEEPALIVE, 0},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		print_message("%s\n", rows[i].settings ?: "none");
		start((struct plx_fabric_conf){.tcp = rows[i].settings});
		fixture_connect(listener, NULL);
		if (is_allowed(rows[i].level, rows[i].name, rows[i].value))
			assert_true(have(3, rows[i].level, rows[i].name, rows[i].value));
		fixture_stop();
	}
}

TEST(links_without_heartbeats_have_keepalive_on_both_sides)
{
	start((struct plx_fabric_conf){.heartbeat_ns = PLX_NEVER});
	fixture_connect(listener, NULL);
	assert_true(have(2, SOL_SOCKET, SO_KEEPALIVE, 1));
	assert_true(have(2, IPPROTO_TCP, TCP_KEEPIDLE, 10));
	assert_true(have(3, IPPROTO_TCP, TCP_USER_TIMEOUT, 0)); /* it is this side's choice */
}

/* A rogue of the same process, without heartbeats. */
static void limit_of_peers_without_heartbeats(const char *settings, uint64_t max_ns, int value_ms)
{
	start((struct plx_fabric_conf){.tcp = settings, .dead_after_max_ns = max_ns});
	rogue_open(listener, NULL);
	assert_true(have(1, SOL_SOCKET, SO_KEEPALIVE, 1));
	assert_true(have(settings ? 3 : 1, IPPROTO_TCP, TCP_USER_TIMEOUT, value_ms));
	fixture_stop();
}

PLX_TEST(a_listener_limits_how_long_a_peer_without_heartbeats_answers_nothing)
{
	limit_of_peers_without_heartbeats(NULL, 0, 30000);
	limit_of_peers_without_heartbeats(NULL, 4 * PLX_NS_PER_S, 2000);
	limit_of_peers_without_heartbeats("user_timeout_ms=12345", 0, 12345);
}

/* It listens but never accepts; the kernel does. */
TEST(a_connect_to_a_silent_listener_times_out)
{
	struct plx_link_attr attr = {.connect_timeout_ns = 60 * PLX_NS_PER_S};
	char address[ROGUE_ADDRESS_MAX];
	int fd;

	start((struct plx_fabric_conf){.tcp = "connect_ms=100"});
	fd = rogue_listener(address);
	client_connect(address, &attr);
	expect_end(&client, PLX_LINK_UNREACHABLE); /* within 5 s; the default is 10 s */
	close(fd);
}

PLX_TEST(bad_tcp_settings_are_refused)
{
	assert_fails(plx_fabric_check_tcp(plx_drivers, "--tcp", "sendbytes=1"), -EINVAL,
		     "--tcp sendbytes=1: 'sendbytes=1' is no setting; give KEY=VALUE,... with "
		     "keys from send_bytes, receive_bytes, ");
	assert_fails(plx_fabric_check_tcp(plx_drivers, "--tcp", "dscp=64"), -EINVAL,
		     "--tcp dscp 64: out of range; give 0 to 63");
	/* For a listener it is --handshakes-max. */
	assert_int_equal(plx_fabric_check_tcp(plx_drivers, "--tcp", "handshakes_max=4"), -EINVAL);
	assert_int_equal(plx_fabric_init(&(struct plx_fabric_conf){.drivers = plx_drivers,
								   .tcp = "dscp=64"}),
			 -EINVAL);
}

PLX_TEST_MAIN()
