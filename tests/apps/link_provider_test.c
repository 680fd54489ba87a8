/* SPDX-License-Identifier: BSD-3-Clause */
/* Which provider two processes choose. */
#include "process_fixture.h"

#include <unistd.h>

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
