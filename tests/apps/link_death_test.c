/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that end in the middle: killed, asked to stop, or frozen. */
#include "process_fixture.h"

#include <signal.h>
#include <unistd.h>

/* A running client with messages in flight. */
static struct process *launch_running(const struct server *server, const char *provider,
				      const char *options)
{
	struct process *client = launch_ping(server, provider, "%s", options);

	expect_out(server->process, "%s", connected_over(provider));
	nap_ms(200);
	assert_int_equal(process_signal(client, 0), 0);
	return client;
}

/* Still in the warm-up, so there is nothing to print. */
PROVIDER_TEST(client_of_a_killed_server_ends_at_once)
{
	struct server server = serve_echo(provider);
	struct process *client = launch_running(&server, provider,
						"--warmup 1000000000 --size 1M --rx-buf 4K");
	uint64_t killed_ms = now_ms();

	process_signal(server.process, SIGKILL);
	expect_status(client, 1);
	assert_in_range(now_ms() - killed_ms, 0, 2000);
	expect_err(client, "plx-ping: 127.0.0.1:");
	expect_err(client, " went away without closing\n");
	assert_string_equal(process_out(client), "");
}

/* Both report that they were cut short, by what, and what had been requested. */
static void expect_partial_figures(struct process *client, const char *planned,
				   const char *planned_key)
{
	expect_out(client, "INTERRUPTED after ");
	expect_out(client, "%s", planned);
	expect_out(client, " went away without closing\nplx-ping: ");
	expect_out(client, " full round trips of 64 B in ");
	expect_in_results("\"interrupted\": \"127.0.0.1:");
	expect_in_results(" went away without closing\",\n");
	expect_in_results("%s", planned_key);
	expect_in_results("\"valid\": false");
	expect_in_results("\"warnings\": [");
	expect_in_results("\n}\n");
}

RESULTS_TEST(figures_before_the_server_was_killed_are_kept)
{
	const char *provider = providers[0];
	static const struct {
		const char *options, *planned, *key;
	} rows[] = {
		{"--duration 60s", " of 60.00 s: 127.0.0.1:", "\"planned_ns\": 60000000000"},
		{"--count 100000000",
		 " of 100000000 round trips: 127.0.0.1:", "\"planned_count\": 100000000"},
		{"--duration 60s --rate 1000", " of 60.00 s: 127.0.0.1:", "\"rate\": 1000.0"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		char options[128];
		struct server server = serve_echo(provider);
		struct process *client;

		snprintf(options, sizeof(options), "%s --warmup 0 --out %s", rows[i].options,
			 results);
		client = launch_running(&server, provider, options);
		process_signal(server.process, SIGKILL);
		expect_failure(client, 1, " went away without closing\n");
		expect_partial_figures(client, rows[i].planned, rows[i].key);
		remove_results();
	}
}

PROVIDER_TEST(server_outlives_a_killed_client)
{
	struct server server = serve_echo(provider);
	struct process *client = launch_running(&server, provider, "--duration 60s --size 1M");

	expect_line(server.process, connected_over(provider));
	process_signal(client, SIGKILL);
	expect_line(server.process, " gone: went away without closing");
	process_wait(client, LIMIT_MS);
	ping(&server, provider, "--count 50 --warmup 5 --verify");
	end_server(&server);
}

PROVIDER_TEST(a_stopped_server_ends_well_and_its_client_is_notified)
{
	struct server server = serve_echo(provider);
	struct process *client = launch_running(&server, provider, "--duration 60s");
	uint64_t stopped_ms = now_ms();

	end_server(&server);
	expect_status(client, 1);
	assert_in_range(now_ms() - stopped_ms, 0, 5000);
	expect_err(client, "plx-ping: the peer closed the link\n");
}

/* A client gives up a stopped server within a limit, and reports why. The server, once continued,
 * finds messages and the closed link, prints `gone`, and serves the next client.
 * Return: the number after the reason. */
static unsigned long expect_given_up(const char *command, const char *provider, uint64_t min_ms,
				     uint64_t max_ms, const char *why, const char *gone)
{
	struct server server = serve(command, provider, "--listen 127.0.0.1:0");
	struct process *client = launch_running(&server, provider, "--duration 60s --rate 2000");
	uint64_t frozen_ms = now_ms();

	process_signal(server.process, SIGSTOP);
	expect_status(client, 1);
	assert_in_range(now_ms() - frozen_ms, min_ms, max_ms);
	expect_err(client, "%s", why);

	unsigned long number = strtoul(strstr(process_err(client), why) + strlen(why), NULL, 10);

	process_signal(server.process, SIGCONT);
	expect_out(server.process, "%s", gone);
	ping(&server, provider, "--count 20 --warmup 0 --verify");
	end_server(&server);
	return number;
}

PROVIDER_TEST(a_frozen_server_is_found_dead)
{
	/* On a busy host the server may not have run for a while before it was frozen. The
	 * client prints how long it was silent. */
	unsigned long silent_ms = expect_given_up("apps/plx-echo --heartbeat 100ms:500ms", provider,
						  0, 3000, " has said nothing for ",
						  "this process stood still for ");

	assert_in_range(silent_ms, 500, 3000);
}

/* A living process that does not answer: without heartbeats here, so that it may be stopped. */
PROVIDER_TEST(a_silent_server_is_given_up)
{
	if (!is_soak()) {
		print_message("skipped: takes 20 s; set PLX_TEST_SOAK=1\n");
		skip();
	}
	expect_given_up("apps/plx-echo --heartbeat off", provider, 8000, 14000,
			"plx-ping: the peer has not answered for 10 s\n", " went away ");
}

/* Results measured so far are kept. */
PROVIDER_TEST(an_interrupted_client_reports_it_and_ends)
{
	struct server server = serve_echo(provider);
	struct process *client = launch_running(&server, provider, "--duration 60s --warmup 10");
	uint64_t stopped_ms = now_ms();

	process_signal(client, SIGINT);
	expect_end(client, 1u << 0 | 1u << 1 | 1u << 3);
	assert_in_range(now_ms() - stopped_ms, 0, 5000);
	if (!strstr(process_out(client), " full round trips of 64 B in "))
		expect_err(client, "plx-ping: ");
	expect_out(server.process, " gone: closed\n");
	ping(&server, provider, "--count 20 --warmup 0 --verify");
	end_server(&server);
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
