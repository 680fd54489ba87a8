/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that cannot connect or listen report why, with their status; and which provider two
 * processes choose. */
#include "process_fixture.h"

#include <unistd.h>

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

/* Otherwise clients of one address would reach either server. */
PROCESS_TEST(a_server_over_one_transport_holds_its_port_on_the_other)
{
	struct server server = serve_echo("shm");
	struct process *second = launch("apps/plx-echo -l 0@%u --huge none -- --listen %s",
					client_cpu, server.address);

	expect_failure(second, 1,
		       "plx-echo: listen on %s: process %d (plx-echo) listens at %s over shared "
		       "memory (plx_shm); give",
		       server.address, (int)server.process->pid, server.address);
	end_server(&server);
}

/* Status 2: the command line is wrong. */
PROCESS_TEST(wrong_addresses_and_options_are_reported)
{
	static const struct {
		const char *words;
		int status;
		const char *text;
	} rows[] = {
		{"apps/plx-ping --connect 127.0.0.1:1", 1, "127.0.0.1:1 refused the connection"},
		{"apps/plx-ping --connect no.such.host.invalid:7", 1, "no.such.host.invalid:7"},
		{"apps/plx-echo --listen 192.0.2.7:0", 1,
		 "listen on 192.0.2.7:0: that address is not this host's"},
		{"apps/plx-ping --connect 127.0.0.1:99999", 2,
		 "--connect 127.0.0.1:99999: bad port; give HOST:PORT"},
		{"apps/plx-echo --listen 7000", 2,
		 "--listen 7000: the host is missing; give HOST:PORT"},
		{"apps/plx-echo --listen tcp://127.0.0.1:7000", 2,
		 "it needs no scheme; give HOST:PORT"},
		{"apps/plx-echo", 2, "--listen ADDR is missing"},
		{"apps/plx-ping", 2, "give one of --listen ADDR, --connect ADDR and --self"},
		{"apps/plx-ping --listen *:0 --connect a:1", 2, "give one of --listen ADDR, "},
		{"apps/plx-ping --connect a:1 --count 1 --duration 1", 2, "exclude each other"},
		{"apps/plx-ping --connect a:1 --arrival poisson", 2, "give --rate R too"},
		{"apps/plx-ping --connect a:1 --size 17M", 2, "--size 17M"},
		{"apps/plx-ping --listen 127.0.0.1:0 --rx-buf 255", 2, "--rx-buf 255"},
		{"apps/plx-echo --tcp sendbytes=1 -- --listen 127.0.0.1:0", 2,
		 "--tcp sendbytes=1: 'sendbytes=1' is no setting; give KEY=VALUE,... with keys "},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct process *process = launch("%s", rows[i].words);

		expect_failure(process, rows[i].status, "%s", rows[i].text);
		assert_string_equal(process_out(process), "");
	}
}

/* Providers -------------------------------------------------------------------------------- */

/* The result and its file have the provider and the reason for the choice. */
RESULTS_TEST(provider_is_chosen_for_each_peer)
{
	static const struct {
		const char *provider, *name, *why;
	} rows[] = {
		{"shm", "plx_shm", "the peer is on this host and offers it"},
		{"tcp", "plx_tcp", "the peer is on this host, but offers nothing quicker there"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct server server = serve_echo(rows[i].provider);
		struct process *client = ping(&server, "auto",
					      "--count 20 --warmup 0 --verify --out %s", results);

		expect_out(client, "\nprovider %s: %s\n", rows[i].name, rows[i].why);
		expect_in_results("\"provider\": \"%s\"", rows[i].name);
		expect_in_results("\"provider_choice\": \"%s\"", rows[i].why);
		remove_results();
		expect_out(server.process, " (plx-ping, pid %d)%s", client->pid,
			   connected_over(rows[i].provider));
		end_server(&server);
	}
}

/* Shared memory is for one user, or one group. Only root can act as two users. Each side must allow
 * the other's group. */
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
	expect_figures(client);
	expect_out(client, " full round trips of 64 B in ");
	expect_out(server.process, "%s", connected_over(provider));
	end_server(&server);
}

PROCESS_TEST(two_users_meet_over_tcp_unless_a_group_lets_them_in)
{
	if (geteuid() != 0 || access("/usr/bin/setpriv", X_OK) != 0) {
		print_message("skipped: it takes root, and setpriv\n");
		skip();
	}
	if (process_wait(launch("/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups "
				"/usr/bin/test -x %s/apps/plx-ping",
				getenv("PLX_BUILD_ROOT")),
			 LIMIT_MS) != 0) {
		print_message("skipped: other users cannot reach the build folder\n");
		skip();
	}
	expect_of_two_users("1", "1", "tcp");
	expect_of_two_users("65534", "0", "shm");
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
