/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-ping --listen on two lcores: which lcore serves which links. */
#include "process_fixture.h"

#define PINGS 4

/* A server on lcores 0 and 1; on a host with one CPU they share it. */
static struct server serve_on_two(const char *spread)
{
	struct server server;

	server.process = launch("apps/plx-ping -l 0@%u,1@%u --huge none --provider %s -- "
				"--listen 127.0.0.1:0%s%s",
				server_cpu, client_cpu, providers[0], *spread ? " --spread " : "",
				spread);
	expect_out(server.process, "listening on 127.0.0.1:");
	assert_int_equal(sscanf(process_out(server.process), "listening on %63s", server.address),
			 1);
	return server;
}

/* Other programs may have claimed its CPUs, which it reports. */
static void expect_no_errors(const struct process *process)
{
	const char *line = process_err(process), *next;

	for (; *line; line = next) {
		char one[512];

		next = strchrnul(line, '\n');
		snprintf(one, sizeof(one), "%.*s", (int)(next - line), line);
		if (!strstr(one, " is already claimed by process "))
			fail_msg("it says: %s", one);
		next += *next == '\n';
	}
}

static void expect_served(const char *spread, unsigned links_of_0, unsigned links_of_1)
{
	struct server server = serve_on_two(spread);
	const unsigned links[] = {links_of_0, links_of_1};

	for (int i = 0; i < PINGS; i++)
		ping(&server, providers[0], "--size 100 --count 10 --warmup 10 --verify");
	end_server(&server);
	for (unsigned id = 0; id < 2; id++)
		expect_out(server.process, "lcore %u: %u links, %u messages, %u bytes\n", id,
			   links[id], links[id] * 20, links[id] * 2000);
	expect_no_errors(server.process);
}

PROCESS_TEST(all_lcores_serve_in_turn)
{
	expect_served("round-robin", PINGS / 2, PINGS / 2);
}

PROCESS_TEST(round_robin_is_the_default)
{
	expect_served("", PINGS / 2, PINGS / 2);
}

PROCESS_TEST(spread_none_leaves_other_lcores_asleep)
{
	expect_served("none", PINGS, 0);
}

/* The hash of 127.0.0.1 over lcores 0 and 1; see spread_test.c. */
PROCESS_TEST(hash_keeps_a_host_on_one_lcore)
{
	expect_served("hash", 0, PINGS);
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		count++;
	}
	return count;
}

PROCESS_TEST(links_on_every_lcore_end_in_order)
{
	struct server server = serve_on_two("round-robin");
	struct process *process = server.process;

	for (int i = 0; i < 2; i++)
		launch_ping(&server, providers[0], "--duration 20s --warmup 0");
	for (int i = 0; i < 100 && count_of(process_out(process), "connected over") < 2; i++)
		process_out_has(process, "nothing that it says", 100); /* makes it read */
	end_server(&server);
	assert_int_equal(count_of(process_out(process), "connected over"), 2);
	assert_int_equal(count_of(process_out(process), "gone: closed; "), 2);
	expect_out(process, "lcore 0: 1 links");
	expect_out(process, "lcore 1: 1 links");
}

PROCESS_TEST(an_unknown_spread_is_named)
{
	struct process *process = launch("apps/plx-ping --listen 127.0.0.1:0 --spread roundrobin");

	expect_failure(process, 2, "--spread roundrobin");
	expect_err(process, "round-robin");
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
