/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way messages: plx-ping --one-way counts exactly what a --sink has received. */
#include "process_fixture.h"

#include <signal.h>

#define WARMUP 10

static double number(const char *key)
{
	const char *text = read_results(), *at;
	char quoted[64];

	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	at = strstr(text, quoted);
	if (!at)
		fail_msg("%s is not in %s", key, text);
	return strtod(at + strlen(quoted), NULL);
}

static void assert_near(double value, double expected)
{
	if (value < expected * 0.999999 || value > expected * 1.000001)
		fail_msg("%f is not %f", value, expected);
}

static void expect_rates(double size)
{
	double per_s = number("count") / number("elapsed_ns") * 1e9;

	assert_near(number("size_bytes"), size);
	assert_near(number("messages_per_s"), per_s);
	assert_near(number("bytes_per_s"), per_s * size);
}

static struct server serve_sink(const char *provider, const char *options)
{
	return serve("apps/plx-ping", provider, "--listen 127.0.0.1:0 --sink %s", options);
}

static struct process *one_way(const struct server *server, const char *provider,
			       const char *options)
{
	return launch_ping(server, provider, " --one-way --out %s --warmup %d %s", results, WARMUP,
			   options);
}

/* The server has received that many messages on its last link, and the link closed in order. */
static void expect_received(struct process *server, double messages, double size)
{
	expect_out(server, " gone: closed; %.0f messages, %.0f bytes\n", messages, messages * size);
}

/* A client in the middle of its run. */
static struct process *launch_running(const struct server *server, const char *provider,
				      const char *options)
{
	struct process *client = one_way(server, provider, options);

	expect_out(server->process, "%s", connected_over(provider));
	nap_ms(1000);
	return client;
}

RESULTS_PROVIDER_TEST(each_message_is_counted_once_on_both_sides)
{
	static const struct {
		const char *size, *shown;
		double bytes, count;
	} rows[] = {
		{"0", "0 B", 0, 500},
		{"64", "64 B", 64, 500},
		{"1M", "1048576 B", 1 << 20, 20},
	};
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct server server = serve_sink(provider, "");
		char options[64];

		snprintf(options, sizeof(options), "--size %s --count %.0f", rows[i].size,
			 rows[i].count);
		struct process *client = one_way(&server, provider, options);

		expect_status(client, 0);
		expect_out(client, "plx-ping: %.0f messages of %s one way in ", rows[i].count,
			   rows[i].shown);
		expect_received(server.process, rows[i].count + WARMUP, rows[i].bytes);
		assert_near(number("count"), rows[i].count);
		expect_rates(rows[i].bytes);
		expect_in_results("\"one_way\": true");
		expect_in_results("\"valid\": true");
		expect_in_results("\"interrupted\": null");
		end_server(&server);
		expect_out(server.process, "\nlcore 0: 1 links, %.0f messages, ",
			   rows[i].count + WARMUP);
	}
}

RESULTS_TEST(burst_limits_the_messages_of_one_turn)
{
	struct server server = serve_sink("tcp", "");

	expect_status(one_way(&server, "tcp", "--count 20000 --burst 1"), 0);
	assert_true(number("turns") - number("idle_turns") >= 20000 + WARMUP);
	expect_received(server.process, 20000 + WARMUP, 64);
	end_server(&server);
}

RESULTS_PROVIDER_TEST(a_run_keeps_its_duration_and_all_messages_arrive)
{
	struct server server = serve("apps/plx-ping", provider,
				     "--listen 127.0.0.1:0 --sink --size 64K");
	struct process *client = one_way(&server, provider, "--size 64K --duration 200ms");

	expect_status(client, 0);
	assert_in_range((uint64_t)number("elapsed_ns"), 200000000, 5000000000);
	expect_rates(65536);
	expect_received(server.process, number("count") + WARMUP, 65536);
	end_server(&server);
}

/* Credit is only read between bursts, so a window of 2 stops each burst. */
RESULTS_TEST(the_sink_has_the_window_that_was_requested)
{
	static const struct {
		const char *sink, *client;
		double least, most;
	} rows[] = {
		{"", "--count 64", 0, 0},
		{"--rx-bufs 200", "--count 128", 0, 0},
		{"--rx-bufs 2", "--count 128", 63, 1e9},
		{"--rx-buf 1M", "--count 64", 1, 1e9}, /* 8 of them */
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct server server = serve_sink("shm", rows[i].sink);

		expect_status(launch_ping(&server, "shm", " --one-way --out %s --warmup 0 %s",
					  results, rows[i].client),
			      0);
		if (number("again") < rows[i].least || number("again") > rows[i].most)
			fail_msg("'%s': refused %.0f times", rows[i].sink, number("again"));
		end_server(&server);
	}
}

RESULTS_PROVIDER_TEST(an_interrupted_client_reports_what_arrived)
{
	struct server server = serve_sink(provider, "");
	struct process *client = launch_running(&server, provider, "--duration 60s");

	process_signal(client, SIGINT);
	expect_status(client, 0);
	expect_out(client, " messages of 64 B one way in ");
	assert_true(number("count") > 0);
	expect_rates(64);
	expect_in_results("\"valid\": true");
	expect_received(server.process, number("count") + WARMUP, 64);
	end_server(&server);
}

RESULTS_PROVIDER_TEST(a_stopped_server_received_what_is_reported)
{
	struct server server = serve_sink(provider, "");
	struct process *client = launch_running(&server, provider, "--count 1000000000");

	end_server(&server);
	expect_failure(client, 1, "plx-ping: the peer closed the link\n");
	expect_out(client, "INTERRUPTED after ");
	expect_out(client, " of 1000000000 messages: the peer closed the link\n");
	expect_in_results("\"valid\": false");
	expect_in_results("\"interrupted\": \"the peer closed the link\"");
	assert_near(number("planned_count"), 1e9);
	expect_received(server.process, number("count") + WARMUP, 64);
}

RESULTS_PROVIDER_TEST(a_killed_server_is_recorded_in_the_run)
{
	struct server server = serve_sink(provider, "");
	struct process *client = launch_running(&server, provider, "--duration 60s");

	process_signal(server.process, SIGKILL);
	expect_failure(client, 1, " went away without closing\n");
	expect_out(client, "INTERRUPTED after ");
	expect_in_results("\"valid\": false");
	assert_true(number("count") > 0);
	expect_rates(64);
}

RESULTS_PROVIDER_TEST(an_answering_server_is_refused)
{
	static const char *const options[] = {
		"--count 1 --size 0",
		"--count 1000 --size 64",
		"--duration 60s --size 1M",
	};
	struct server server = serve_echo(provider);

	for (size_t i = 0; i < PLX_ARRAY_LEN(options); i++) {
		struct process *client = one_way(&server, provider, options[i]);

		expect_failure(client, 1,
			       "plx-ping: --one-way: the server sends messages back; "
			       "start it as plx-ping --listen ADDR --sink\n");
		assert_string_equal(process_out(client), "");
	}
	end_server(&server);
}

RESULTS_TEST(a_peer_that_accepts_nothing_is_given_up)
{
	if (!is_soak()) {
		print_message("skipped: takes 20 s; set PLX_TEST_SOAK=1\n");
		skip();
	}

	struct server server = serve("apps/plx-ping --heartbeat off", "shm",
				     "--listen 127.0.0.1:0 --sink");
	struct process *client = launch_running(&server, "shm", "--duration 60s");

	process_signal(server.process, SIGSTOP);
	expect_failure(client, 1, "plx-ping: the peer has taken no message for 10 s\n");
	process_signal(server.process, SIGCONT);
	client = launch_ping(&server, "shm", " --count 1");
	expect_failure(client, 1,
		       "the peer has not answered for 10 s; a server with --sink never does\n");
	end_server(&server);
}

PROCESS_TEST(options_that_exclude_each_other_are_refused)
{
	static const char listen[] = "--listen 127.0.0.1:0", connect[] = "--connect 127.0.0.1:1";
	static const struct {
		const char *program, *address, *options, *error;
	} rows[] = {
		{"plx-ping", listen, "--one-way", "--listen answers until it is stopped; "},
		{"plx-ping", listen, "--rx-bufs 9", "--rx-bufs is for --sink; "},
		{"plx-ping", listen, "--sink --rx-bufs 1", "--rx-bufs 1: "},
		{"plx-ping", connect, "--sink", "--sink, --rx-bufs and --spread are for --listen"},
		{"plx-ping", connect, "--spread hash", "and --spread are for --listen"},
		{"plx-ping", connect, "--one-way --rate 9",
		 "--rate, --interval, --arrival and --seed are for round "},
		{"plx-ping", connect, "--one-way --arrival poisson",
		 "--rate, --interval, --arrival and "},
		{"plx-ping", connect, "--one-way --seed 3",
		 "--rate, --interval, --arrival and --seed are "},
		{"plx-ping", connect, "--one-way --verify", "--verify compares what comes back, "},
		{"plx-ping", connect, "--one-way --burst 65", "--burst 65: "},
		{"plx-ping", connect, "--burst 1", "--burst is for --one-way"},
		{"plx-ping", connect, "--one-way --rx-buf 4K", "--rx-buf: with --one-way it is "},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct process *process = launch("apps/%s %s %s", rows[i].program, rows[i].address,
						 rows[i].options);

		expect_failure(process, 2, "%s", rows[i].error);
	}
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
