/* SPDX-License-Identifier: BSD-3-Clause */
/* Which provider two processes choose. */
#include "process_fixture.h"

#include <unistd.h>

/* The result and its file have the provider and the reason for the choice. */
static void expect_choice(struct process *client, bool tcp, const char *why)
{
	const char *name = tcp ? "plx_tcp" : "plx_shm";

	expect_figures(client);
	expect_out(client, "\nprovider %s: %s\n", name, why);
	expect_in_results("\"provider\": \"%s\"", name);
	expect_in_results("\"provider_choice\": \"%s\"", why);
	remove_results();
}

RESULTS_TEST(provider_is_chosen_for_each_peer)
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
		struct server server = serve_echo(rows[i].server);
		struct process *client = launch_ping(&server, rows[i].client,
						     "--count 20 --warmup 0 --verify --out %s",
						     results);
		int pid = client->pid;

		expect_choice(client, rows[i].tcp, rows[i].why);
		expect_out(server.process, " (plx-ping, pid %d)%s", pid,
			   connected_over(rows[i].tcp ? "tcp" : "shm"));
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

PROCESS_TEST(the_former_provider_of_libfabrics_tcp_is_refused_with_what_replaced_it)
{
	struct process *server = launch("%s/apps/plx-echo --huge none --provider fi:tcp -- "
					"--listen 127.0.0.1:0",
					getenv("PLX_BUILD_ROOT"));

	expect_failure(server, 2,
		       "--provider fi:tcp: links no longer use libfabric's own TCP; give tcp, "
		       "Pollux's own (tests/perf/raw-fi measures libfabric's)");
}

PLX_TEST_MAIN_WITH(group_set_up, group_tear_down)
