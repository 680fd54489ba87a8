/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes that exchange messages: sizes, loads, addresses, and what goes wrong at once. */
#include "fixture.h"
#include "plx_topo.h"

#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* CPUs ------------------------------------------------------------------------------------- */

/* CPUs that a poller could claim now. */
static unsigned count_free_cpus(void)
{
	struct plx_topo *topo;
	unsigned count = 0;

	assert_int_equal(plx_topo_open(NULL, &topo), 0);
	PLX_CPUSET_FOREACH (cpu, plx_topo_allowed(topo)) {
		int fd;

		if (plx_cpu_claim(cpu, &fd, NULL) == 0) {
			count++;
			close(fd);
		}
	}
	plx_topo_close(topo);
	return count;
}

/* The one CPU that a process runs on. */
static unsigned cpu_of(const struct process *process)
{
	cpu_set_t cpus;
	unsigned cpu = 0;

	assert_int_equal(sched_getaffinity(process->pid, sizeof(cpus), &cpus), 0);
	assert_int_equal(CPU_COUNT(&cpus), 1);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	return cpu;
}

/* Whether each end had a CPU of its own; if not, another's poller must have come between. */
static bool run_without_options(void)
{
	struct process *server = launch("apps/plx-ping --listen 127.0.0.1:0"), *client;
	char address[64];
	bool differ;

	expect_out(server, "listening on 127.0.0.1:");
	assert_int_equal(sscanf(process_out(server), "listening on %63s", address), 1);
	client = launch("apps/plx-ping --connect %s --duration 500ms", address);
	expect_out(server, connected_over("shm"));
	differ = cpu_of(server) != cpu_of(client);
	expect_end(client, 1u << 0 | 1u << 3);
	expect_out(client, " full round trips of 64 B in ");
	expect_out(server, " gone: closed");
	process_signal(server, SIGTERM);
	expect_status(server, 0);
	if (strstr(process_err(server), "no CPU is free"))
		return false;
	if (!strstr(process_err(client), "no CPU is free"))
		assert_true(differ);
	return differ;
}

static void both_ends_without_options_take_different_cpus(void **state)
{
	bool differ = false;

	for (int tries = 0; tries < 5 && !differ; tries++) {
		for (int i = 0; i < 50 && count_free_cpus() < 2; i++)
			nap_ms(100);
		if (count_free_cpus() < 2) {
			print_message("skipped: it takes two CPUs that no other poller has\n");
			skip();
		}
		differ = run_without_options();
	}
	assert_true(differ);
}

/* Take the claim of a CPU, so that whoever comes is the second one there; -1: another poller does
 * not go. */
static int occupy(unsigned cpu)
{
	int fd;

	for (int i = 0; i < 100; i++) {
		if (plx_cpu_claim(cpu, &fd, NULL) == 0)
			return fd;
		nap_ms(100);
	}
	print_message("skipped: it takes a CPU that no other poller has\n");
	return -1;
}

static void expect_in_result(const char *dir, const char *text)
{
	char path[64], content[8192];

	snprintf(path, sizeof(path), "%s/plx-ping.json", dir);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	content[fread(content, 1, sizeof(content) - 1, file)] = '\0';
	fclose(file);
	if (!strstr(content, text))
		fail_msg("'%s' is not in %s:\n%s", text, path, content);
}

static void remove_results(const char *dir)
{
	static const char *const suffixes[] = {"json", "hgrm", "csv"};
	char path[64];

	for (size_t i = 0; i < PLX_ARRAY_LEN(suffixes); i++) {
		snprintf(path, sizeof(path), "%s/plx-ping.%s", dir, suffixes[i]);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

/* Figures of a CPU that has two pollers are of turns of the scheduler, and have to say so even
 * where the log does not. */
static void result_of_a_shared_cpu_carries_a_warning(void **state)
{
	int claim = occupy(client_cpu);
	char dir[] = "/tmp/plx_shared_XXXXXX", text[128];

	if (claim < 0)
		skip();
	assert_non_null(mkdtemp(dir));
	struct server server = serve_echo(providers[0]);
	struct process *client = launch("apps/plx-ping -l 0@%u --huge none --log-level error "
					"--provider %s -- --connect %s --count 20 --warmup 0 "
					"--out %s",
					client_cpu, providers[0], server.address, dir);
	expect_end(client, 1u << 0 | 1u << 3);
	close(claim);
	snprintf(text, sizeof(text), "WARNING: CPU %u is polled by process %d too: ", client_cpu,
		 (int)getpid());
	expect_out(client, text);
	snprintf(text, sizeof(text),
		 "\"warnings\": [\n    \"CPU %u is polled by process %d too: ", client_cpu,
		 (int)getpid());
	expect_in_result(dir, text);
	expect_in_result(dir, "\"interrupted\": null");
	remove_results(dir);
	end_server(&server);
}

static void result_of_a_cpu_of_its_own_carries_none(void **state)
{
	int claim = client_cpu == server_cpu ? -1 : occupy(client_cpu);
	char dir[] = "/tmp/plx_alone_XXXXXX";

	if (claim < 0)
		skip();
	assert_non_null(mkdtemp(dir));
	struct server server = serve_echo(providers[0]);
	close(claim);
	struct process *client = launch_ping(&server, providers[0],
					     "--count 20 --warmup 0 --out %s", dir);
	expect_end(client, 1u << 0 | 1u << 3);
	/* The log tells of another poller that came in between. */
	if (!strstr(process_err(client), " is polled by ")) {
		assert_null(strstr(process_out(client), "WARNING"));
		expect_in_result(dir, "\"warnings\": []");
	}
	remove_results(dir);
	end_server(&server);
}

static void plx_info_names_all_pollers_of_a_cpu(void **state)
{
	int claim = occupy(server_cpu);
	struct server servers[3];
	struct process *text, *json;
	char wanted[64];

	if (claim < 0)
		skip();
	for (size_t i = 0; i < PLX_ARRAY_LEN(servers); i++)
		servers[i] = serve_echo(providers[0]);
	text = launch("apps/plx-info");
	json = launch("apps/plx-info --json");
	expect_status(text, 0);
	expect_status(json, 0);
	close(claim);
	for (size_t i = 0; i < PLX_ARRAY_LEN(servers); i++) {
		int pid = (int)servers[i].process->pid;

		snprintf(wanted, sizeof(wanted), " %u by plx-echo (pid %d) too", server_cpu, pid);
		expect_out(text, wanted);
		snprintf(wanted, sizeof(wanted), "\"pid\": %d,", pid);
		expect_out(json, wanted);
		end_server(&servers[i]);
	}
}

/* Providers -------------------------------------------------------------------------------- */

/* The result, and its file, say what it ran on, and why. */
static void expect_choice(struct process *client, const char *dir, bool tcp, const char *why)
{
	const char *name = !tcp ? "plx_shm" : strcmp(providers[0], "net") == 0 ? "net" : "tcp";
	char text[160];

	expect_end(client, 1u << 0 | 1u << 3);
	snprintf(text, sizeof(text), "\nprovider %s: %s\n", name, why);
	expect_out(client, text);
	snprintf(text, sizeof(text), "\"provider\": \"%s\"", name);
	expect_in_result(dir, text);
	snprintf(text, sizeof(text), "\"provider_choice\": \"%s\"", why);
	expect_in_result(dir, text);
	remove_results(dir);
}

static void provider_is_chosen_for_each_peer(void **state)
{
	static const char offers[] = "the peer is on this host and offers it";
	static const char asked[] = "it was asked for";
	static const struct {
		const char *server, *client;
		bool tcp;
		const char *why;
	} rows[] = {
		{"auto", "auto", false, offers},
		{"shm", "auto", false, offers},
		{"tcp", "auto", true, "the peer is on this host, but offers nothing quicker there"},
		{"auto", "shm", false, asked},
		{"auto", "tcp", true, asked},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		char dir[] = "/tmp/plx_choice_XXXXXX";
		struct server server = serve_echo(rows[i].server);

		assert_non_null(mkdtemp(dir));
		expect_choice(launch_ping(&server, rows[i].client,
					  "--count 20 --warmup 0 --verify --out %s", dir),
			      dir, rows[i].tcp, rows[i].why);
		expect_out(server.process, connected_over(rows[i].tcp ? "tcp" : "shm"));
		end_server(&server);
	}
}

/* Shared memory is for one user, or one group. Only root can be two users. The client's group is
 * the server's to allow, and the other way round. */
static void expect_of_two_users(const char *group_of_client, const char *group_of_server,
				const char *provider)
{
	const char *build = getenv("PLX_BUILD_ROOT");
	struct process *client;
	struct server server;
	char program[512];

	snprintf(program, sizeof(program), "/usr/bin/env FI_PLX_SHM_GROUP=%s %s/apps/plx-echo",
		 group_of_client, build);
	server = serve(program, "auto", "--listen 127.0.0.1:0");
	client = launch("/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups "
			"/usr/bin/env FI_PLX_SHM_GROUP=%s %s/apps/plx-ping -l 0@%u --huge none -- "
			"--connect %s --count 20",
			group_of_server, build, client_cpu, server.address);
	expect_end(client, 1u << 0 | 1u << 3);
	expect_out(client, " full round trips of 64 B in ");
	expect_out(server.process, connected_over(provider));
	end_server(&server);
}

static void two_users_meet_over_tcp_unless_a_group_lets_them_in(void **state)
{
	if (geteuid() != 0 || access("/usr/bin/setpriv", X_OK) != 0) {
		print_message("skipped: it takes root, and setpriv\n");
		skip();
	}
	expect_of_two_users("1", "1", "tcp");
	expect_of_two_users("65534", "0", "shm");
}

/* Sizes and loads -------------------------------------------------------------------------- */

/* What stands in the first line of plx-ping's results. */
static void expect_count(struct process *client, unsigned count, const char *size)
{
	char line[96];

	snprintf(line, sizeof(line), "plx-ping: %u full round trips of %s B in ", count, size);
	expect_out(client, line);
}

static void messages_of_every_size_come_back_unchanged(void **state)
{
	static const struct {
		const char *given, *bytes;
		unsigned count;
		bool everywhere; /* else it is of the frames, which are the same everywhere */
	} rows[] = {
		{"0", "0", 300, true},       {"1", "1", 300, false},
		{"64", "64", 300, true},     {"112", "112", 300, false},
		{"113", "113", 300, false},  {"1K", "1024", 300, false},
		{"1025", "1025", 300, true}, {"4K", "4096", 300, true},
		{"5000", "5000", 300, true}, {"64K", "65536", 100, true},
		{"1M", "1048576", 10, true},
	};

	FOREACH_PROVIDER(provider)
	{
		struct server server = serve_echo(*provider);

		for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
			if (!rows[i].everywhere && provider != providers)
				continue;
			expect_count(ping(&server, *provider,
					  "--size %s --count %u --warmup 5 --verify", rows[i].given,
					  rows[i].count),
				     rows[i].count, rows[i].bytes);
		}
		end_server(&server);
		end_all(NULL);
	}
}

static void long_messages_are_cut_on_both_ways(void **state)
{
	FOREACH_PROVIDER(provider)
	{
		struct server server = serve("apps/plx-ping", *provider,
					     "--listen 127.0.0.1:0 --rx-buf 4K");

		expect_count(ping(&server, *provider,
				  "--size 1M --count 10 --warmup 5 --verify --rx-buf 4K"),
			     10, "1048576");
		if (provider == providers) {
			expect_count(ping(&server, *provider,
					  "--size 64K --count 100 --warmup 5 --verify --rx-buf 4K"),
				     100, "65536");
			expect_count(ping(&server, *provider,
					  "--size 64K --count 20 --warmup 5 --verify --rx-buf 256"),
				     20, "65536");
		}
		end_server(&server);
		end_all(NULL);
	}
}

/* Threads that run or could run now, on all CPUs. */
static unsigned count_runnable(void)
{
	FILE *file = fopen("/proc/loadavg", "r");
	unsigned count = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*f %*f %*f %u/", &count), 1);
	fclose(file);
	return count;
}

/* Others have so much to do here that no schedule can be kept: in a fifth of a second more threads
 * want to run than there are CPUs, or they did in the last minute. */
static bool is_host_busy(void)
{
	enum { SAMPLES = 20 };
	double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN), load = 0;
	unsigned sum = 0;

	for (int i = 0; i < SAMPLES; i++) {
		sum += count_runnable();
		nap_ms(10);
	}
	return sum > SAMPLES * (cpus + 0.5) || (getloadavg(&load, 1) == 1 && load > 1.5 * cpus);
}

static int run_open_loop(const struct server *server, const char *provider, const char *arrival,
			 unsigned seed)
{
	struct process *client = launch_ping(server, provider,
					     "--rate 1000 --arrival %s --seed %u --duration 500ms "
					     "--warmup 10 --verify",
					     arrival, seed);
	char text[64];
	int status = expect_end(client, 1u << 0 | 1u << 3);

	snprintf(text, sizeof(text), "open loop at 1000/s (%s)", arrival);
	expect_out(client, text);
	if (status == 3)
		print_message("%s, %s, seed %u: %s", provider, arrival, seed, process_err(client));
	return status;
}

/* How many messages a Poisson process has in half a second is chance, and no seed is a bad one.
 * One row shows for the other providers that the schedule is none of theirs. */
static void open_loop_keeps_its_rate(void **state)
{
	static const struct {
		const char *arrival;
		unsigned seed;
	} rows[] = {{"poisson", 1}, {"fixed", 1}, {"poisson", 2}, {"poisson", 3}};

	FOREACH_PROVIDER(provider)
	{
		size_t count = provider == providers ? PLX_ARRAY_LEN(rows) : 1;
		struct server server = serve_echo(*provider);

		for (size_t i = 0; i < count; i++) {
			int status = 3;

			for (int tries = 0; tries < 3 && status; tries++)
				status = run_open_loop(&server, *provider, rows[i].arrival,
						       rows[i].seed);
			if (status && is_host_busy())
				print_message("not held against it: this host is busy\n");
			else
				assert_int_equal(status, 0);
		}
		end_server(&server);
		end_all(NULL);
	}
}

static void missed_rate_is_status_3(void **state)
{
	struct server server = serve_echo(providers[0]);
	struct process *client = launch_ping(&server, providers[0],
					     "--rate 10000000 --duration 200ms");

	expect_status(client, 3);
	expect_err(client, "plx-ping: achieved ");
	expect_err(client, " scheduled requests per second (99.9 % needed): ask for a lower rate");
	expect_out(client, "NOT VALID: achieved ");
	end_server(&server);
}

static void changed_answers_are_noticed(void **state)
{
	static const char *const faults[] = {"flip", "shorten"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(faults); i++) {
		char options[96];
		struct server server;
		struct process *client;

		snprintf(options, sizeof(options), "--listen 127.0.0.1:0 --fault %s --after 30",
			 faults[i]);
		server = serve("tests/apps/bad_echo", providers[0], options);
		client = launch_ping(&server, providers[0], "--count 100 --warmup 10 --verify");
		expect_status(client, 1);
		expect_err(client, "plx-ping: message 30 came back changed\n");
		expect_out(client, "INTERRUPTED after 20 of 100 round trips: message 30 came back "
				   "changed\n");
		end_server(&server);
	}
}

/* Addresses -------------------------------------------------------------------------------- */

static bool has_ipv6(void)
{
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&loopback, sizeof(loopback)) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

static void ipv6_works(void **state)
{
	if (!has_ipv6()) {
		print_message("skipped: this host has no ::1\n");
		skip();
	}
	FOREACH_PROVIDER(provider)
	{
		struct server server = serve("apps/plx-echo", *provider, "--listen [::1]:0");

		assert_int_equal(strncmp(server.address, "[::1]:", 6), 0);
		assert_string_not_equal(server.address, "[::1]:0");
		expect_count(ping(&server, *provider, "--count 100 --warmup 5 --verify"), 100,
			     "64");
		expect_out(server.process, "[::1]:");
		end_server(&server);
	}
}

static void busy_port_is_told(void **state)
{
	FOREACH_PROVIDER(provider)
	{
		struct server server = serve_echo(*provider);
		struct process *second = launch("apps/plx-echo -l 0@%u --huge none --provider %s "
						"-- --listen %s",
						client_cpu, *provider, server.address);
		char text[128];

		expect_status(second, 1);
		snprintf(text, sizeof(text), "plx-echo: listen on %s: the port is in use; give ",
			 server.address);
		expect_err(second, text);
		end_server(&server);
	}
}

/* A socket that is bound and does not listen: its port refuses, and nobody else can take it. */
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

static void closed_port_refuses(void **state)
{
	struct server nobody = {0};
	int fd = hold_closed_port(nobody.address, sizeof(nobody.address));

	FOREACH_PROVIDER(provider)
	{
		uint64_t start_ms = now_ms();
		struct process *client = launch_ping(&nobody, *provider, "--count 10");
		char text[128];

		expect_status(client, 1);
		snprintf(text, sizeof(text), "plx-ping: %s refused the connection", nobody.address);
		expect_err(client, text);
		assert_true(now_ms() - start_ms < 5000);
	}
	close(fd);
}

static void refusing_listener_is_told(void **state)
{
	FOREACH_PROVIDER(provider)
	{
		struct server server = serve("tests/apps/bad_echo", *provider,
					     "--listen 127.0.0.1:0 --fault refuse");
		struct process *client = launch_ping(&server, *provider, "--count 10");

		expect_status(client, 1);
		expect_err(client, " refused the connection");
		end_server(&server);
	}
}

static void bad_addresses_are_told(void **state)
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
		{"apps/plx-echo --listen 7000", 2, "--listen 7000: there is no port"},
		{"apps/plx-echo --listen 192.0.2.7:0", 1,
		 "listen on 192.0.2.7:0: that address is not this host's"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct process *process = launch("%s", rows[i].words);

		expect_status(process, rows[i].status);
		expect_err(process, rows[i].text);
	}
}

static void usage_errors_are_status_2(void **state)
{
	static const struct {
		const char *words, *text;
	} rows[] = {
		{"apps/plx-ping", "give either --listen ADDR or --connect ADDR"},
		{"apps/plx-ping --listen *:0 --connect a:1", "give either --listen ADDR or "},
		{"apps/plx-ping --connect a:1 --count 1 --duration 1", "exclude each other"},
		{"apps/plx-ping --connect a:1 --arrival poisson", "give --rate R too"},
		{"apps/plx-ping --connect a:1 --size 17M", "--size 17M"},
		{"apps/plx-ping --connect a:1 --cuont 3", "--count"},
		{"apps/plx-echo", "--listen ADDR is missing"},
		{"apps/plx-echo --listen 127.0.0.1:0 --rx-buf 255", "--rx-buf 255"},
		{"apps/plx-echo --provider udp -- --listen 127.0.0.1:0",
		 "--provider udp: unknown provider; give auto, a driver ("},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct process *process = launch("%s", rows[i].words);

		expect_status(process, 2);
		expect_err(process, rows[i].text);
		assert_string_equal(process_out(process), "");
	}
}

/* Strangers -------------------------------------------------------------------------------- */

static int connect_raw(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Strangers come by TCP alone. */
static void strangers_do_not_disturb_a_client(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	enum { SOCKETS = 12 };

	FOREACH_PROVIDER(provider)
	{
		if (!is_tcp(*provider))
			continue;

		struct server server = serve_echo(*provider);
		struct process *client = launch_ping(&server, *provider,
						     "--duration 1500ms --verify");
		int fds[SOCKETS];

		expect_out(server.process, "connected over");
		for (int i = 0; i < SOCKETS; i++) {
			fds[i] = connect_raw(server.address);
			if (i % 3 == 0)
				send(fds[i], http, strlen(http), MSG_NOSIGNAL);
			else if (i % 3 == 1)
				send(fds[i], "\0\xff\x01", 3,
				     MSG_NOSIGNAL); /* less than a header */
			nap_ms(40);
			if (i % 2)
				close(fds[i]);
		}
		expect_end(client, 1u << 0 | 1u << 3);
		assert_null(strstr(process_err(client), "changed"));
		expect_out(client, " full round trips of 64 B in ");
		ping(&server, *provider, "--count 20 --warmup 0 --verify");
		for (int i = 0; i < SOCKETS; i += 2)
			close(fds[i]);
		end_server(&server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		process_test(both_ends_without_options_take_different_cpus),
		process_test(result_of_a_shared_cpu_carries_a_warning),
		process_test(result_of_a_cpu_of_its_own_carries_none),
		process_test(plx_info_names_all_pollers_of_a_cpu),
		process_test(provider_is_chosen_for_each_peer),
		process_test(two_users_meet_over_tcp_unless_a_group_lets_them_in),
		process_test(messages_of_every_size_come_back_unchanged),
		process_test(long_messages_are_cut_on_both_ways),
		process_test(open_loop_keeps_its_rate),
		process_test(missed_rate_is_status_3),
		process_test(changed_answers_are_noticed),
		process_test(ipv6_works),
		process_test(busy_port_is_told),
		process_test(closed_port_refuses),
		process_test(refusing_listener_is_told),
		process_test(bad_addresses_are_told),
		process_test(usage_errors_are_status_2),
		process_test(strangers_do_not_disturb_a_client),
	};

	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
