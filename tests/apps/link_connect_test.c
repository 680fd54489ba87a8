/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting, and failing to: addresses, ports, command lines, and foreign clients. */
#include "process_fixture.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static bool has_ipv6(void)
{
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&loopback, sizeof(loopback)) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

PROVIDER_TEST(ipv6_works)
{
	if (!has_ipv6()) {
		print_message("skipped: this host has no ::1\n");
		skip();
	}
	struct server server = serve("apps/plx-echo", provider, "--listen [::1]:0");

	assert_int_equal(strncmp(server.address, "[::1]:", 6), 0);
	assert_string_not_equal(server.address, "[::1]:0");
	expect_round_trips(ping(&server, provider, "--count 100 --warmup 5 --verify"), 100, "64");
	expect_out(server.process, "[::1]:");
	end_server(&server);
}

PROVIDER_TEST(a_busy_port_is_reported)
{
	struct server server = serve_echo(provider);
	struct process *second = launch("apps/plx-echo -l 0@%u --huge none --provider %s "
					"-- --listen %s",
					client_cpu, provider, server.address);

	expect_failure(second, 1, "plx-echo: listen on %s: the port is in use; give ",
		       server.address);
	end_server(&server);
}

static void expect_holds_against(const struct server *server, const char *over,
				 const char *provider)
{
	struct process *second = launch("apps/plx-echo -l 0@%u --huge none --provider %s "
					"-- --listen %s",
					client_cpu, provider, server->address);

	expect_failure(second, 1,
		       "plx-echo: listen on %s: process %d (plx-echo) listens at %s %s; give",
		       server->address, (int)server->process->pid, server->address, over);
}

/* Otherwise clients of one address would reach either server. */
PROCESS_TEST(a_server_over_one_transport_holds_its_port_on_the_other)
{
	struct server server = serve_echo("shm");

	expect_holds_against(&server, "over shared memory (plx_shm)", "tcp");
	expect_holds_against(&server, "over shared memory (plx_shm)", "auto");
	end_server(&server);
	server = serve_echo("tcp");
	expect_holds_against(&server, "on TCP", "shm");
	end_server(&server);
}

/* A bound socket that does not listen: its port refuses, and nothing else can take it. */
static int hold_closed_port(char *address, size_t size)
{
	struct sockaddr_in bound = {.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(bound);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&bound, sizeof(bound)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &len), 0);
	snprintf(address, size, "127.0.0.1:%u", ntohs(bound.sin_port));
	return fd;
}

PROVIDER_TEST(a_closed_port_refuses)
{
	struct server nobody = {0};
	int fd = hold_closed_port(nobody.address, sizeof(nobody.address));
	uint64_t start_ms = now_ms();
	struct process *client = launch_ping(&nobody, provider, "--count 10");

	expect_failure(client, 1, "plx-ping: %s refused the connection", nobody.address);
	assert_true(now_ms() - start_ms < 5000);
	close(fd);
}

PROVIDER_TEST(a_refusing_listener_is_reported)
{
	struct server server = serve("tests/apps/bad_echo", provider,
				     "--listen 127.0.0.1:0 --fault refuse");
	struct process *client = launch_ping(&server, provider, "--count 10");

	expect_failure(client, 1, " refused the connection");
	end_server(&server);
}

PROCESS_TEST(bad_addresses_are_reported)
{
	static const struct {
		const char *words;
		int status;
		const char *text;
	} rows[] = {
		{"apps/plx-ping --connect localhost", 2, "--connect localhost: there is no port"},
		{"apps/plx-ping --connect 127.0.0.1:99999", 2,
		 "--connect 127.0.0.1:99999: bad port; give HOST:PORT"},
		{"apps/plx-ping --connect 127.0.0.1:x", 2, "--connect 127.0.0.1:x: bad port"},
		{"apps/plx-ping --connect [::1:7", 2, "--connect [::1:7: "},
		{"apps/plx-ping --connect no.such.host.invalid:7000", 1,
		 "no.such.host.invalid:7000"},
		{"apps/plx-echo --listen 7000", 2, "--listen 7000: the host is missing"},
		{"apps/plx-echo --listen 192.0.2.7:0", 1,
		 "listen on 192.0.2.7:0: that address is not this host's"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		expect_failure(launch("%s", rows[i].words), rows[i].status, "%s", rows[i].text);
}

PROCESS_TEST(usage_errors_are_status_2)
{
	static const struct {
		const char *words, *text;
	} rows[] = {
		{"apps/plx-ping", "give one of --listen ADDR, --connect ADDR and --self"},
		{"apps/plx-ping --listen *:0 --connect a:1", "give one of --listen ADDR, "},
		{"apps/plx-ping --connect a:1 --count 1 --duration 1", "exclude each other"},
		{"apps/plx-ping --connect a:1 --arrival poisson", "give --rate R too"},
		{"apps/plx-ping --connect a:1 --size 17M", "--size 17M"},
		{"apps/plx-ping --connect a:1 --cuont 3", "--count"},
		{"apps/plx-echo", "--listen ADDR is missing"},
		{"apps/plx-ping --listen 127.0.0.1:0 --rx-buf 255", "--rx-buf 255"},
		{"apps/plx-echo --provider udp -- --listen 127.0.0.1:0",
		 "--provider udp: unknown provider; give auto or a driver ("},
		{"apps/plx-echo --tcp sendbytes=1 -- --listen 127.0.0.1:0",
		 "--tcp sendbytes=1: 'sendbytes=1' is no setting; give KEY=VALUE,... with keys "},
		{"apps/plx-echo --listen 7000",
		 "--listen 7000: the host is missing; give HOST:PORT"},
		{"apps/plx-echo --listen tcp://127.0.0.1:7000",
		 "it needs no scheme; give HOST:PORT"},
		{"apps/plx-echo --file x", "--file: unknown option (--help lists all)"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct process *process = launch("%s", rows[i].words);

		expect_failure(process, 2, "%s", rows[i].text);
		assert_string_equal(process_out(process), "");
	}
}

static int connect_raw(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Foreign clients only exist on TCP. */
PROVIDER_TEST(strangers_do_not_disturb_a_client)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	enum { SOCKETS = 12 };

	if (!is_tcp(provider))
		return;

	struct server server = serve_echo(provider);
	struct process *client = launch_ping(&server, provider, "--duration 1500ms --verify");
	int fds[SOCKETS];

	expect_out(server.process, "connected over");
	for (int i = 0; i < SOCKETS; i++) {
		fds[i] = connect_raw(server.address);
		if (i % 3 == 0)
			send(fds[i], http, strlen(http), MSG_NOSIGNAL);
		else if (i % 3 == 1)
			send(fds[i], "\0\xff\x01", 3, MSG_NOSIGNAL); /* less than a header */
		nap_ms(40);
		if (i % 2)
			close(fds[i]);
	}
	expect_figures(client);
	assert_null(strstr(process_err(client), "changed"));
	expect_out(client, " full round trips of 64 B in ");
	if (strcmp(provider, "tcp") == 0)
		expect_err(server.process, " did not complete the handshake: it speaks HTTP");
	ping(&server, provider, "--count 20 --warmup 0 --verify");
	for (int i = 0; i < SOCKETS; i += 2)
		close(fds[i]);
	end_server(&server);
}

PROCESS_TEST(silent_strangers_are_disconnected_after_the_set_time)
{
	struct server server = serve("apps/plx-echo", "tcp",
				     "--tcp handshake_ms=100 --listen 127.0.0.1:0");
	int fd = connect_raw(server.address);
	char byte;

	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
	expect_err(server.process, " did not complete the handshake: it said nothing for too long");
	end_server(&server);
}

PLX_TEST_MAIN_WITH(group_set_up, group_tear_down)
