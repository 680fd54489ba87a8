/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of plx-ping --out: they have only what this run measured, and how the run ended. */
#include "process_fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#define OLD "of an earlier run\n"

static const char *const suffixes[] = {"json", "hgrm", "csv"};

static const char *path_of(const char *suffix)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/plx-ping.%s", results, suffix);
	return path;
}

static void write_old_files(void)
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(suffixes); i++) {
		FILE *file = fopen(path_of(suffixes[i]), "w");

		assert_non_null(file);
		fputs(OLD, file);
		assert_int_equal(fclose(file), 0);
	}
}

static bool is_old(const char *suffix)
{
	char text[sizeof(OLD) + 1] = {0};
	FILE *file = fopen(path_of(suffix), "r");

	if (!file)
		return false;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return strcmp(text, OLD) == 0;
}

static void expect_no_file(const char *suffix)
{
	if (access(path_of(suffix), F_OK) == 0 || errno != ENOENT)
		fail_msg("%s is there", path_of(suffix));
}

static void expect_no_files(void)
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(suffixes); i++)
		expect_no_file(suffixes[i]);
}

static struct process *launch_alone(const char *options)
{
	return launch("apps/plx-ping -l 0@%u --huge none --provider shm %s --out %s", client_cpu,
		      options, results);
}

/* A client with messages in flight. */
static struct process *launch_running(const struct server *server, const char *options)
{
	struct process *client = launch_ping(server, "shm", " --out %s %s", results, options);

	expect_out(server->process, "%s", connected_over("shm"));
	nap_ms(500);
	return client;
}

static struct server serve_kind(bool one_way)
{
	return serve("apps/plx-ping", "shm",
		     one_way ? "--listen 127.0.0.1:0 --sink" : "--listen 127.0.0.1:0");
}

RESULTS_TEST(a_failed_run_removes_files_of_an_earlier_run)
{
	static char too_much_memory[96];
	/* Nothing listens there. */
	const char *const options[] = {
		"-- --connect 127.0.0.1:1",
		"-- --connect 127.0.0.1:1 --one-way",
		"-- --connect 127.0.0.1:1 --rate 100",
		too_much_memory,
	};
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES) * 99 / 100;

	snprintf(too_much_memory, sizeof(too_much_memory),
		 "--numa strict --socket-mem %" PRIu64 " -- --connect 127.0.0.1:1",
		 pages * (uint64_t)sysconf(_SC_PAGESIZE) >> 20);

	for (size_t i = 0; i < PLX_ARRAY_LEN(options); i++) {
		write_old_files();
		expect_status(launch_alone(options[i]), 1);
		expect_no_files();
	}
}

RESULTS_TEST(a_killed_run_removes_files_of_an_earlier_run)
{
	struct server server = serve_kind(false);
	struct process *client;

	write_old_files();
	client = launch_running(&server, "--duration 60s");
	process_signal(client, SIGKILL);
	process_wait(client, LIMIT_MS);
	expect_no_files();
	end_server(&server);
}

/* Next to one-way figures, round-trip figures would look like part of them. */
RESULTS_TEST(a_one_way_run_leaves_only_its_own_file)
{
	struct server server = serve_kind(true);

	write_old_files();
	expect_status(launch_ping(&server, "shm", " --one-way --out %s --count 100", results), 0);
	expect_in_results("\"one_way\": true");
	expect_no_file("hgrm");
	expect_no_file("csv");
	end_server(&server);
}

RESULTS_TEST(command_line_that_starts_no_run_touches_no_file)
{
	static const struct {
		const char *options;
		int status;
	} rows[] = {
		{"--dry-run -- --connect 127.0.0.1:1", 0},
		{"-- --connect 127.0.0.1:1 --count 0", 2},
		{"-- --connect 127.0.0.1:1 --arrival poisson", 2},
		{"-- --help", 0},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		write_old_files();
		expect_status(launch_alone(rows[i].options), rows[i].status);
		for (size_t k = 0; k < PLX_ARRAY_LEN(suffixes); k++)
			assert_true(is_old(suffixes[k]));
	}
}

RESULTS_TEST(a_file_that_cannot_be_removed_is_reported_before_the_run)
{
	struct process *client;

	assert_int_equal(mkdir(path_of("json"), 0700), 0);
	client = launch_alone("-- --connect 127.0.0.1:1");
	expect_failure(client, 1,
		       "plx-ping: cannot remove %s of an earlier run: ", path_of("json"));
}

/* A user set it up to get the results. */
RESULTS_TEST(a_symbolic_link_is_written_through)
{
	struct server server = serve_kind(false);
	char target[64];

	snprintf(target, sizeof(target), "%s/elsewhere", results);
	assert_int_equal(symlink(target, path_of("json")), 0);
	expect_figures(launch_ping(&server, "shm", " --out %s --count 100", results));
	assert_int_equal(access(target, F_OK), 0);
	assert_int_equal(remove(target), 0);
	end_server(&server);
}

/* Files that --one-way does not write belong to an earlier run only next to the file that each run
 * writes. */
RESULTS_TEST(a_one_way_run_keeps_files_that_no_run_wrote)
{
	struct server server = serve_kind(true);

	write_old_files();
	assert_int_equal(remove(path_of("json")), 0);
	expect_status(launch_ping(&server, "shm", " --one-way --out %s --count 100", results), 0);
	assert_true(is_old("hgrm"));
	assert_true(is_old("csv"));
	end_server(&server);
}

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
		{"--one-way --duration 60s", SIGINT, " of 60.00 s: SIGINT\n",
		 "\"planned_ns\": 60000000000"},
		{"--one-way --count 1000000000", SIGTERM, " of 1000000000 messages: SIGTERM\n",
		 "\"planned_count\": 1000000000"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		bool one_way = strstr(rows[i].options, "--one-way");
		struct server server = serve_kind(one_way);
		struct process *client;
		char options[64];

		snprintf(options, sizeof(options), "--warmup 1 %s", rows[i].options);
		client = launch_running(&server, options);
		process_signal(client, rows[i].number);
		/* 3: on busy hosts round trips may not add up */
		if (expect_end(client, one_way ? 1u << 0 : 1u << 0 | 1u << 3) == 0)
			expect_in_results("\"valid\": true");
		expect_out(client, "INTERRUPTED after ");
		expect_out(client, "%s", rows[i].shown);
		expect_in_results("%s", rows[i].planned);
		expect_in_results("\"interrupted\": \"%s\"",
				  rows[i].number == SIGINT ? "SIGINT" : "SIGTERM");
		end_server(&server);
	}
}

RESULTS_TEST(a_signal_during_warm_up_reports_that_nothing_was_measured)
{
	static const char *const options[] = {
		"--warmup 1000000000",
		"--warmup 1000000000 --rate 1000",
		"--warmup 1000000000 --one-way",
		"--warmup 1000000000 --one-way --size 64K",
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(options); i++) {
		struct server server = serve_kind(strstr(options[i], "--one-way"));
		struct process *client;

		write_old_files();
		client = launch_running(&server, options[i]);
		process_signal(client, SIGINT);
		expect_failure(client, 3, "plx-ping: SIGINT came before anything was measured\n");
		assert_string_equal(process_out(client), "");
		expect_no_files();
		end_server(&server);
	}
}

/* The same for messages that a stalled server has not answered: the percentiles would miss them. */
RESULTS_TEST(a_signal_does_not_hide_losses)
{
	struct server server = serve_kind(false);
	struct process *client = launch_running(&server, "--warmup 1 --rate 1000 --duration 60s");

	process_signal(server.process, SIGSTOP);
	nap_ms(250); /* too short to count as dead */
	process_signal(client, SIGINT);
	expect_status(client, 3);
	expect_in_results("\"valid\": false");
	expect_in_results("\"interrupted\": \"SIGINT\"");
	process_signal(server.process, SIGCONT);
	end_server(&server);
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
