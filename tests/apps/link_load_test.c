/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages at a given rate and on shared CPUs: what returns, and what is printed. */
#include "plx_topo.h"
#include "process_fixture.h"

#include <unistd.h>

PROVIDER_TEST(messages_come_back_unchanged)
{
	struct server server = serve("apps/plx-ping", provider, "--listen 127.0.0.1:0 --rx-buf 4K");

	expect_round_trips(ping(&server, provider, "--size 0 --count 300 --verify"), 300, "0");
	expect_round_trips(ping(&server, provider, "--size 64K --count 20 --verify --rx-buf 256"),
			   20, "65536");
	expect_round_trips(ping(&server, provider, "--size 1M --count 10 --verify --rx-buf 4K"), 10,
			   "1048576");
	end_server(&server);
}

static int run_open_loop(const struct server *server, const char *provider, const char *arrival,
			 unsigned seed)
{
	struct process *client = launch_ping(server, provider,
					     "--rate 1000 --arrival %s --seed %u --duration 500ms "
					     "--warmup 10 --verify",
					     arrival, seed);
	int status = expect_figures(client);

	expect_out(client, "open loop at 1000/s (%s)", arrival);
	if (status == 3)
		print_message("%s, %s, seed %u: %s", provider, arrival, seed, process_err(client));
	return status;
}

/* The number of messages of a Poisson process in half a second is random, and every seed is valid.
 * One row shows for the other providers that the schedule does not depend on them. */
PROVIDER_TEST(open_loop_keeps_its_rate)
{
	static const struct {
		const char *arrival;
		unsigned seed;
	} rows[] = {{"poisson", 1}, {"fixed", 1}, {"poisson", 2}, {"poisson", 3}};
	size_t count = provider == providers[0] ? PLX_ARRAY_LEN(rows) : 1;
	struct server server = serve_echo(provider);

	for (size_t i = 0; i < count; i++) {
		int status = 3;

		for (int tries = 0; tries < 5 && status; tries++)
			status = run_open_loop(&server, provider, rows[i].arrival, rows[i].seed);
		assert_int_equal(status, 0);
	}
	end_server(&server);
}

PROCESS_TEST(a_missed_rate_is_status_3)
{
	struct server server = serve_echo(providers[0]);
	struct process *client = launch_ping(&server, providers[0],
					     "--rate 10000000 --duration 200ms");

	expect_failure(client, 3, "plx-ping: achieved ");
	expect_err(client, " scheduled requests per second (99.9 %% needed): ask for a lower rate");
	expect_out(client, "NOT VALID: achieved ");
	end_server(&server);
}

PROCESS_TEST(changed_answers_are_detected)
{
	static const char *const faults[] = {"flip", "shorten"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(faults); i++) {
		struct server server = serve("tests/apps/bad_echo", providers[0],
					     "--listen 127.0.0.1:0 --fault %s --after 30",
					     faults[i]);
		struct process *client = launch_ping(&server, providers[0],
						     "--count 100 --warmup 10 --verify");
		expect_failure(client, 1, "plx-ping: message 30 came back changed\n");
		expect_out(client, "INTERRUPTED after 20 of 100 round trips: message 30 came back "
				   "changed\n");
		end_server(&server);
	}
}

/* CPUs ------------------------------------------------------------------------------------- */

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
