/* SPDX-License-Identifier: BSD-3-Clause */
/* What only processes of plx-ping show: both ends count the same messages, signals, files, and
 * which lcore serves. The engine's own tests are in tests/unit/app. */
#include "process_fixture.h"

#include <signal.h>
#include <unistd.h>

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

static struct server serve_kind(const char *provider, bool one_way)
{
	return serve("apps/plx-ping", provider,
		     one_way ? "--listen 127.0.0.1:0 --sink" : "--listen 127.0.0.1:0");
}

static struct process *one_way(const struct server *server, const char *provider,
			       const char *options)
{
	return launch_ping(server, provider, " --one-way --out %s --warmup %d %s", results, WARMUP,
			   options);
}

/* A client in the middle of its run. */
static struct process *launch_running(const struct server *server, const char *provider,
				      const char *options)
{
	struct process *client = launch_ping(server, provider, " --out %s %s", results, options);

	expect_out(server->process, "%s", connected_over(provider));
	nap_ms(500);
	return client;
}

/* The server has received that many messages on its last link, and the link closed in order. */
static void expect_received(struct process *server, double messages, double size)
{
	expect_out(server, " gone: closed; %.0f messages, %.0f bytes\n", messages, messages * size);
}

/* One way ------------------------------------------------------------------------------------ */

RESULTS_PROVIDER_TEST(each_one_way_message_is_counted_once_on_both_sides)
{
	static const struct {
		const char *options;
		double bytes, count;
	} rows[] = {
		{"--size 0 --count 500", 0, 500},
		{"--size 64 --count 500", 64, 500},
		{"--size 1M --count 20", 1 << 20, 20},
		{"--duration 200ms", 64, 0},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct server server = serve_kind(provider, true);
		struct process *client = one_way(&server, provider, rows[i].options);

		expect_status(client, 0);
		expect_out(client, "plx-ping: %.0f messages of %.0f B one way in ", number("count"),
			   rows[i].bytes);
		assert_true(rows[i].count == 0 || number("count") == rows[i].count);
		assert_true(rows[i].count > 0 || number("elapsed_ns") >= 200000000);
		expect_received(server.process, number("count") + WARMUP, rows[i].bytes);
		expect_in_results("\"one_way\": true");
		expect_in_results("\"valid\": true");
		end_server(&server);
		expect_out(server.process, "\nlcore 0: 1 links, %.0f messages, ",
			   number("count") + WARMUP);
	}
}

RESULTS_TEST(burst_limits_the_messages_of_one_turn)
{
	struct server server = serve_kind("tcp", true);

	expect_status(one_way(&server, "tcp", "--count 20000 --burst 1"), 0);
	assert_true(number("turns") - number("idle_turns") >= 20000 + WARMUP);
	end_server(&server);
}

/* Credit is only read between bursts, so a window of 2 stops each burst. */
RESULTS_TEST(the_sink_has_the_window_that_was_requested)
{
	struct server server = serve("apps/plx-ping", "shm",
				     "--listen 127.0.0.1:0 --sink --rx-bufs 2");

	expect_status(one_way(&server, "shm", "--count 1000"), 0);
	assert_true(number("again") >= 1000 / 64);
	end_server(&server);
}

RESULTS_PROVIDER_TEST(a_stopped_server_received_what_is_reported)
{
	struct server server = serve_kind(provider, true);
	struct process *client = launch_running(&server, provider,
						"--one-way --warmup 10 --count 1000000000");

	end_server(&server);
	expect_failure(client, 1, "plx-ping: the peer closed the link\n");
	expect_out(client, " of 1000000000 messages: the peer closed the link\n");
	expect_in_results("\"valid\": false");
	expect_received(server.process, number("count") + WARMUP, 64);
}

RESULTS_PROVIDER_TEST(an_answering_server_is_refused)
{
	struct server server = serve_echo(provider);
	struct process *client = one_way(&server, provider, "--duration 60s");

	expect_failure(client, 1, "plx-ping: --one-way: the server sends messages back; ");
	assert_string_equal(process_out(client), "");
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
	struct process *client = launch_running(&server, "shm", "--one-way --duration 60s");

	process_signal(server.process, SIGSTOP);
	expect_failure(client, 1, "plx-ping: the peer has taken no message for 10 s\n");
	process_signal(server.process, SIGCONT);
	client = launch_ping(&server, "shm", " --count 1");
	expect_failure(client, 1,
		       "the peer has not answered for 10 s; a server with --sink never does\n");
	end_server(&server);
}

/* Signals ------------------------------------------------------------------------------------ */

RESULTS_TEST(the_results_name_the_signal_that_ended_the_run)
{
	static const struct {
		const char *options;
		int number;
		const char *shown, *planned;
	} rows[] = {
		{"--duration 60s", SIGINT, " of 60.00 s: SIGINT\n", "\"planned_ns\": 60000000000"},
		{"--count 1000000000 --rate 1000", SIGTERM, " of 1000000000 round trips: SIGTERM\n",
		 "\"planned_count\": 1000000000"},
		{"--one-way --count 1000000000", SIGTERM, " of 1000000000 messages: SIGTERM\n",
		 "\"planned_count\": 1000000000"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		bool is_one_way = strstr(rows[i].options, "--one-way");
		struct server server = serve_kind("shm", is_one_way);
		struct process *client;
		char options[64];

		snprintf(options, sizeof(options), "--warmup 1 %s", rows[i].options);
		client = launch_running(&server, "shm", options);
		process_signal(client, rows[i].number);
		/* 3: on busy hosts round trips may not add up */
		if (expect_end(client, is_one_way ? 1u << 0 : 1u << 0 | 1u << 3) == 0)
			expect_in_results("\"valid\": true");
		expect_out(client, "INTERRUPTED after ");
		expect_out(client, "%s", rows[i].shown);
		expect_in_results("%s", rows[i].planned);
		expect_in_results("\"interrupted\": \"%s\"",
				  rows[i].number == SIGINT ? "SIGINT" : "SIGTERM");
		end_server(&server);
	}
}

static bool has_file(const char *suffix)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/plx-ping.%s", results, suffix);
	return access(path, F_OK) == 0;
}

static void write_old_file(void)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/plx-ping.json", results);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

RESULTS_TEST(a_signal_during_warm_up_leaves_no_figures)
{
	static const char *const options[] = {"--warmup 1000000000",
					      "--warmup 1000000000 --one-way --size 64K"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(options); i++) {
		struct server server = serve_kind("shm", strstr(options[i], "--one-way"));
		struct process *client;

		write_old_file();
		client = launch_running(&server, "shm", options[i]);
		process_signal(client, SIGINT);
		expect_failure(client, 3, "plx-ping: SIGINT came before anything was measured\n");
		assert_string_equal(process_out(client), "");
		assert_false(has_file("json"));
		end_server(&server);
	}
}

/* A run that fails, however early, removes them; a command line that starts none does not. */
RESULTS_TEST(a_run_removes_files_of_an_earlier_one)
{
	static char too_much_memory[96];
	static const struct {
		const char *options;
		int status;
	} rows[] = {
		{"-- --connect 127.0.0.1:1", 1}, /* nothing listens there */
		{too_much_memory, 1},
		{"--dry-run -- --connect 127.0.0.1:1", 0},
		{"-- --connect 127.0.0.1:1 --arrival poisson", 2},
	};

	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES) * 99 / 100;

	snprintf(too_much_memory, sizeof(too_much_memory),
		 "--numa strict --socket-mem %llu -- --connect 127.0.0.1:1",
		 (unsigned long long)(pages * (uint64_t)sysconf(_SC_PAGESIZE) >> 20));
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		write_old_file();
		expect_status(launch("apps/plx-ping -l 0@%u --huge none --provider shm %s --out %s",
				     client_cpu, rows[i].options, results),
			      rows[i].status);
		assert_true(has_file("json") == (rows[i].status != 1));
	}
}

/* Who serves --------------------------------------------------------------------------------- */

static void expect_served(const char *spread, unsigned links_of_0, unsigned links_of_1)
{
	const unsigned links[] = {links_of_0, links_of_1};
	struct server server;

	server.process = launch("apps/plx-ping -l 0@%u,1@%u --huge none --provider shm -- "
				"--listen 127.0.0.1:0%s",
				server_cpu, client_cpu, spread);
	expect_out(server.process, "listening on 127.0.0.1:");
	assert_int_equal(sscanf(process_out(server.process), "listening on %63s", server.address),
			 1);
	for (int i = 0; i < 2; i++)
		ping(&server, "shm", "--size 100 --count 10 --warmup 10 --verify");
	end_server(&server);
	for (unsigned id = 0; id < 2; id++)
		expect_out(server.process, "lcore %u: %u links, %u messages, %u bytes\n", id,
			   links[id], links[id] * 20, links[id] * 2000);
}

PROCESS_TEST(lcores_serve_as_spread_requests)
{
	expect_served("", 1, 1);
	expect_served(" --spread none", 2, 0);
	expect_served(" --spread hash", 0, 2); /* see spread_test.c */
}

PROCESS_TEST(options_that_exclude_each_other_are_refused)
{
	static const struct {
		const char *options, *error;
	} rows[] = {
		{"--listen 127.0.0.1:0 --one-way", "--listen answers until it is stopped; "},
		{"--listen 127.0.0.1:0 --rx-bufs 9", "--rx-bufs is for --sink; "},
		{"--listen 127.0.0.1:0 --process", "--process is for --connect"},
		{"--listen 127.0.0.1:0 --spread roundrobin", "--spread roundrobin"},
		{"--self --sink", "--sink, --rx-bufs and --spread are for --listen"},
		{"--self --connect 127.0.0.1:1", "give one of --listen ADDR, --connect ADDR"},
		{"--self --count 1 --duration 1", "--count and --duration exclude each other"},
		{"--self --rate 1 --interval 1", "--rate and --interval exclude each other"},
		{"--self --burst 1", "--burst is for --one-way"},
		{"--self --one-way --rate 9", "--arrival and --seed are for round trips; "},
		{"--self --one-way --verify", "--verify compares what comes back, "},
		{"--self --one-way --rx-buf 4K", "--rx-buf: with --one-way it is "},
		{"--self --one-way --explain", "--explain is for round trips"},
		{"--self --process --rate 5", "--process makes one call after the other"},
		{"--self --process --size 65537", "0 to 65536 bytes"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		expect_failure(launch("apps/plx-ping %s", rows[i].options), 2, "%s", rows[i].error);
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
