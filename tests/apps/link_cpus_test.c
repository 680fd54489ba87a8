/* SPDX-License-Identifier: BSD-3-Clause */
/* Warnings and lists of pollers that share a CPU. */
#include "plx_topo.h"
#include "process_fixture.h"

#include <unistd.h>

/* Claim a CPU, so that the next poller shares it; -1: another poller keeps it. */
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

/* Two pollers on one CPU measure the scheduler, so the result must carry a warning even if the log
 * does not. */
RESULTS_TEST(the_result_of_a_shared_cpu_has_a_warning)
{
	int claim = occupy(client_cpu);
	int pid = (int)getpid();

	if (claim < 0)
		skip();
	struct server server = serve_echo(providers[0]);
	struct process *client = launch("apps/plx-ping -l 0@%u --huge none --log-level error "
					"--provider %s -- --connect %s --count 20 --warmup 0 "
					"--out %s",
					client_cpu, providers[0], server.address, results);
	expect_figures(client);
	close(claim);
	expect_out(client, "WARNING: CPU %u is already claimed by process %d: ", client_cpu, pid);
	expect_in_results("\"warnings\": [\n    \"CPU %u is already claimed by process %d: ",
			  client_cpu, pid);
	expect_in_results("\"interrupted\": null");
	end_server(&server);
}

RESULTS_TEST(the_result_of_a_private_cpu_has_no_warning)
{
	int claim = client_cpu == server_cpu ? -1 : occupy(client_cpu);

	if (claim < 0)
		skip();
	struct server server = serve_echo(providers[0]);
	close(claim);
	struct process *client = launch_ping(&server, providers[0],
					     "--count 20 --warmup 0 --out %s", results);
	expect_figures(client);
	/* The log reports another poller that interfered. */
	if (!strstr(process_err(client), " is already claimed by ")) {
		assert_null(strstr(process_out(client), "WARNING"));
		expect_in_results("\"warnings\": []");
	}
	end_server(&server);
}

PROCESS_TEST(plx_info_names_all_pollers_of_a_cpu)
{
	int claim = occupy(server_cpu);
	struct server servers[3];
	struct process *text, *json;

	if (claim < 0)
		skip();
	for (size_t i = 0; i < PLX_ARRAY_LEN(servers); i++)
		servers[i] = serve_echo(providers[0]);
	text = launch("apps/plx-info");
	json = launch("apps/plx-info --format json");
	expect_status(text, 0);
	expect_status(json, 0);
	close(claim);
	for (size_t i = 0; i < PLX_ARRAY_LEN(servers); i++) {
		int pid = (int)servers[i].process->pid;

		expect_out(text, " %u by plx-echo (pid %d) too", server_cpu, pid);
		expect_out(json, "\"pid\": %d,", pid);
		end_server(&servers[i]);
	}
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
