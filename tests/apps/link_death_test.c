/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that end in the middle: killed, asked to stop, frozen, or exiting right after their
 * last message. */
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
	static const char *const loads[] = {"--warmup 1000000000",
					    "--warmup 1000000000 --rate 1000",
					    "--warmup 1000000000 --size 1M --rx-buf 4K"};
	for (size_t i = 0; i < PLX_ARRAY_LEN(loads); i++) {
		struct server server = serve_echo(provider);
		struct process *client = launch_running(&server, provider, loads[i]);
		uint64_t killed_ms = now_ms();

		process_signal(server.process, SIGKILL);
		expect_status(client, 1);
		assert_in_range(now_ms() - killed_ms, 0, 2000);
		expect_err(client, "plx-ping: 127.0.0.1:");
		expect_err(client, " went away without closing\n");
		assert_string_equal(process_out(client), "");
	}
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

RESULTS_PROVIDER_TEST(figures_before_the_server_was_killed_are_kept)
{
	static const struct {
		const char *options, *planned, *key;
	} rows[] = {
		/* the first one over every provider */
		{"--duration 60s", " of 60.00 s: 127.0.0.1:", "\"planned_ns\": 60000000000"},
		{"--count 100000000",
		 " of 100000000 round trips: 127.0.0.1:", "\"planned_count\": 100000000"},
		{"--duration 60s --rate 1000", " of 60.00 s: 127.0.0.1:", "\"rate\": 1000.0"},
	};
	size_t count = provider == providers[0] ? PLX_ARRAY_LEN(rows) : 1;

	for (size_t i = 0; i < count; i++) {
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

	for (int i = 0; i < 3; i++) {
		struct process *client = launch_running(
			&server, provider, i == 1 ? "--duration 60s --size 1M" : "--duration 60s");

		expect_line(server.process, connected_over(provider));
		process_signal(client, SIGKILL);
		expect_line(server.process, " gone: went away without closing");
		process_wait(client, LIMIT_MS);
		ping(&server, provider, "--count 50 --warmup 5 --verify");
		process_line(server.process, LIMIT_MS);
		expect_line(server.process, " gone: closed");
	}
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

/* The server announces how much silence it needs tolerated. */
PROCESS_TEST(a_frozen_client_with_a_long_heartbeat_keeps_its_link)
{
	struct server server = serve("apps/plx-echo --heartbeat 100ms:20s", "shm",
				     "--listen 127.0.0.1:0");
	struct process *client = launch_running(&server, "shm", "--duration 2 --rate 100");

	process_signal(client, SIGSTOP);
	nap_ms(1000);
	process_signal(client, SIGCONT);
	expect_figures(client); /* its figures include the stop */
	expect_out(server.process, " gone: closed\n");
	end_server(&server);
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

static bool has_pending_signal(const struct process *process)
{
	return proc_number(process, "status", "ShdPnd:", 16) != 0;
}

/* The kernel merges two pending signals with the same number. */
static void wait_until_signal_is_taken(const struct process *process)
{
	uint64_t end_ms = now_ms() + LIMIT_MS;

	while (has_pending_signal(process) && now_ms() < end_ms)
		nap_ms(10);
	assert_false(has_pending_signal(process));
}

/* An lcore that never returns to its loop: the first signal has no effect. */
PROCESS_TEST(a_second_signal_ends_a_hanging_process)
{
	static const int signals[][2] = {{SIGINT, SIGINT}, {SIGTERM, SIGTERM}, {SIGTERM, SIGINT}};

	for (size_t i = 0; i < PLX_ARRAY_LEN(signals); i++) {
		struct server server = serve("tests/apps/bad_echo", providers[0],
					     "--listen 127.0.0.1:0 --fault hang");
		struct process *client = launch_ping(&server, providers[0],
						     "--count 100 --warmup 0");

		expect_out(server.process, "hanging\n");
		process_signal(server.process, signals[i][0]);
		wait_until_signal_is_taken(server.process);
		assert_int_equal(process_wait(server.process, 500), -ETIMEDOUT);
		process_signal(server.process, signals[i][1]);
		assert_int_equal(process_wait(server.process, LIMIT_MS), 128 + signals[i][1]);
		expect_status(client, 1);
	}
}

#define SENDERS          10
#define ROUNDS_OF_SENDER 5 /* 50 in total, per provider */

PROVIDER_TEST(last_message_before_a_close_arrives)
{
	static const unsigned counts[SENDERS] = {1, 2, 7, 8, 9, 10, 40, 100, 3, 1};
	static const char *const sizes[] = {"64", "100000", "0", "4096"};
	unsigned round = 0;

	for (unsigned size = 0; size < PLX_ARRAY_LEN(sizes); size++) {
		struct server server = serve("tests/apps/last_message", provider,
					     "--listen 127.0.0.1:0 --size %s", sizes[size]);

		for (unsigned i = size, in_server = 0; i < SENDERS; i += PLX_ARRAY_LEN(sizes)) {
			struct process *sender = launch(
				"tests/apps/last_message -l 0@%u --huge none --provider %s "
				"-- --connect %s --size %s --count %u --rounds %u",
				client_cpu, provider, server.address, sizes[size], counts[i],
				ROUNDS_OF_SENDER);

			expect_status(sender, 0);
			for (int k = 0; k < ROUNDS_OF_SENDER; k++, round++) {
				char expected[128];

				snprintf(expected, sizeof(expected),
					 "round %u: %u messages, 0 wrong, closed", ++in_server,
					 counts[i]);
				assert_string_equal(process_line(server.process, LIMIT_MS),
						    expected);
			}
		}
		end_server(&server);
		end_all(NULL);
	}
	assert_int_equal(round, SENDERS * ROUNDS_OF_SENDER);
}

PLX_TEST_MAIN_WITH(group_set_up, group_tear_down)
