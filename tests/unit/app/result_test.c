/* SPDX-License-Identifier: BSD-3-Clause */
#include "app.h"
#include "folder.h"
#include "json_has.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

static struct plx_hist rtt, service;
static struct plx_result result;
static char dir[FOLDER_BYTES];

static int setup(void **state)
{
	assert_works(plx_hist_init(&rtt, PLX_NS_PER_S, 3));
	assert_works(plx_hist_init(&service, PLX_NS_PER_S, 3));
	result = (struct plx_result){
		.name = "tcp-poll",
		.provider = "net",
		.idle = "poll",
		.size_bytes = 64,
		.clock_drift_ppm = 0.25,
		.rtt_ns = &rtt,
	};
	folder_make(dir);
	return 0;
}

static int teardown(void **state)
{
	plx_hist_fini(&rtt);
	plx_hist_fini(&service);
	return folder_remove(dir);
}

/* count round trips from 6000 ns, one nanosecond more every 100, and one of 300 us. */
static void fill(uint64_t count)
{
	for (uint64_t i = 0; i + 1 < count; i++)
		plx_hist_record(&rtt, 6000 + i / 100);
	plx_hist_record(&rtt, 300000);
	result.elapsed_ns = (uint64_t)rtt.sum;
}

/* Write the result to that folder below dir, and read its JSON. */
static json_t *written_json(const char *below)
{
	char folder[64], path[96];
	json_error_t error;

	snprintf(folder, sizeof(folder), "%s%s", dir, below);
	assert_works(plx_result_write(&result, folder));
	snprintf(path, sizeof(path), "%s/tcp-poll.json", folder);
	json_t *object = json_load_file(path, 0, &error);
	if (!object)
		fail_msg("%s: %s", path, error.text);
	return object;
}

#define ASSERT_WRITES(...)                            \
	do {                                          \
		json_t *object = written_json("");    \
		assert_json_has(object, __VA_ARGS__); \
		json_decref(object);                  \
	} while (0)

#define RESULT_TEST(name) PLX_TEST_WITH(name, setup, teardown)

RESULT_TEST(json_has_all_figures_of_a_closed_loop)
{
	static const char *const absent[] = {"planned_count", "note", "rate", "service_p50_ns"};

	fill(100000);
	json_t *object = written_json("/a/b");
	assert_json_has(object,
			"{'name': 'tcp-poll', 'provider': 'net', 'idle': 'poll', 'size_bytes': 64, "
			"'count': 100000, 'lost': 0, 'min_ns': 6000, 'max_ns': 300000, "
			"'clock_drift_ppm': 0.25, 'valid': true, 'interrupted': null, "
			"'elapsed_ns': %" PRIu64 ", 'p50_ns': %" PRIu64 ", 'p90_ns': %" PRIu64
			", 'p99_ns': %" PRIu64 ", 'p99_9_ns': %" PRIu64 ", 'p99_99_ns': %" PRIu64
			"}",
			result.elapsed_ns, plx_hist_quantile(&rtt, 0.5),
			plx_hist_quantile(&rtt, 0.9), plx_hist_quantile(&rtt, 0.99),
			plx_hist_quantile(&rtt, 0.999), plx_hist_quantile(&rtt, 0.9999));
	assert_true(fabs(json_real_value(json_object_get(object, "mean_ns")) - 6500) < 10);
	for (size_t i = 0; i < PLX_ARRAY_LEN(absent); i++)
		assert_null(json_object_get(object, absent[i]));
	json_decref(object);
}

RESULT_TEST(json_of_an_interrupted_run_has_the_cause_and_the_keys_of_the_program)
{
	fill(1000); /* too few samples for some quantiles */
	result.interrupted = "SIGINT";
	result.planned_ns = 5 * PLX_NS_PER_S;
	ASSERT_WRITES("{'interrupted': 'SIGINT', 'planned_ns': 5000000000, 'valid': true}");

	result.planned_count = 7;
	result.failed = true;
	result.more = json_pack("{s:s}", "provider_choice", "asked");
	json_t *object = written_json("");
	assert_json_has(object, "{'planned_count': 7, 'valid': false, 'provider_choice': 'asked', "
				"'p99_9_ns': null, 'p99_99_ns': null}");
	assert_null(json_object_get(object, "note"));
	json_decref(object);
	json_decref(result.more);
}

RESULT_TEST(an_empty_run_has_no_times_and_says_why)
{
	static const char why[] = "no round trip was completed";

	json_t *object = written_json("");
	assert_json_has(object,
			"{'count': 0, 'min_ns': null, 'p50_ns': null, 'max_ns': null, "
			"'mean_ns': null, 'valid': false, 'note': '%s'}",
			why);
	json_decref(object);
	assert_fails(plx_result_check(&result), -ERANGE, why);
}

static const char *path_of(const char *suffix)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/tcp-poll.%s", dir, suffix);
	return path;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

/* The n-th line of that file. Valid until the next call. */
static const char *line_of(const char *suffix, unsigned n)
{
	static char line[256];
	FILE *file = fopen(path_of(suffix), "r");

	assert_non_null(file);
	while (n--)
		assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	return line;
}

RESULT_TEST(histogram_files_are_next_to_the_json_file)
{
	fill(100);
	assert_works(plx_result_write(&result, dir));
	assert_has(line_of("hgrm", 1), "1/(1-Percentile)");
	assert_has(line_of("hgrm", 3), " 6.003 0.000000000000 "); /* microseconds */
	assert_string_equal(line_of("csv", 1), "low,high,count\n");
	assert_string_equal(line_of("csv", 2), "6000,6003,99\n");
}

RESULT_TEST(a_directory_or_name_that_cannot_be_used_is_reported)
{
	fill(100);
	assert_fails(plx_result_write(&result, "/dev/null/x"), -ENOTDIR,
		     "cannot make directory /dev/null/x: Not a directory");
	result.name = "../x";
	assert_fails(plx_result_write(&result, dir), -EINVAL,
		     "result name '../x': give one without '/'");
}

RESULT_TEST(a_closed_loop_accounts_for_97_percent_of_its_time)
{
	fill(1000);
	uint64_t in_trips = result.elapsed_ns;
	result.elapsed_ns = in_trips * 1000 / 971;
	assert_int_equal(plx_result_check(&result), 0);
	result.elapsed_ns = in_trips * 1000 / 969;
	assert_fails(plx_result_check(&result), -ERANGE, "-3.1 % from the elapsed");
	result.elapsed_ns = in_trips * 1000 / 1031;
	assert_fails(plx_result_check(&result), -ERANGE, "+3.1 % from the elapsed");
	result.has_gaps = true; /* between the trips */
	assert_works(plx_result_check(&result));
	result.lost = 3;
	assert_fails(plx_result_check(&result), -ERANGE, "3 requests had no answer");
}

RESULT_TEST(an_open_loop_reaches_its_rate)
{
	fill(1000);
	result.rate = 1000;
	result.scheduled_ns = 999 * PLX_NS_PER_MS; /* between the first and the last of 1000 */
	result.sending_ns = result.scheduled_ns + PLX_NS_PER_MS;
	assert_int_equal(plx_result_check(&result), 0);
	result.sending_ns = result.scheduled_ns + 3 * PLX_NS_PER_MS;
	assert_fails(plx_result_check(&result), -ERANGE,
		     "achieved 997 of 1000 scheduled requests per second");
	/* A Poisson schedule has randomly more or fewer arrivals than its rate. */
	result.rate = 1100;
	result.scheduled_ns = result.sending_ns = PLX_NS_PER_S;
	assert_works(plx_result_check(&result));
}

/* One way ------------------------------------------------------------------------------------ */

static void fill_one_way(void)
{
	result.one_way = true;
	result.count = 500;
	result.size_bytes = 1 << 20;
	result.elapsed_ns = PLX_NS_PER_S / 4;
	result.again = 7;
}

RESULT_TEST(json_of_a_one_way_run_has_rates)
{
	fill_one_way();
	json_t *object = written_json("");
	assert_json_has(object, "{'one_way': true, 'count': 500, 'messages_per_s': 2000.0, "
				"'bytes_per_s': 2097152000.0, 'again': 7, 'valid': true, "
				"'size_bytes': 1048576, 'elapsed_ns': 250000000}");
	assert_null(json_object_get(object, "p50_ns"));
	assert_null(json_object_get(object, "lost"));
	json_decref(object);
	result.count = 0;
	assert_fails(plx_result_check(&result), -ERANGE, "no message was measured");
}

/* Files of an earlier run -------------------------------------------------------------------- */

static bool exists(const char *suffix)
{
	return access(path_of(suffix), F_OK) == 0;
}

RESULT_TEST(files_of_an_earlier_run_are_removed)
{
	fill(100);
	assert_works(plx_result_write(&result, dir));
	assert_true(exists("json") && exists("hgrm") && exists("csv"));
	assert_fails(plx_app_write_hgrm(dir, &service), -EISDIR, "cannot write");
	assert_works(plx_result_forget("tcp-poll", dir, false));
	assert_false(exists("json") || exists("hgrm") || exists("csv"));
	/* A user set up a symbolic link to get the results. */
	assert_int_equal(symlink("elsewhere", path_of("json")), 0);
	assert_works(plx_result_forget("tcp-poll", dir, false));
	assert_works(plx_result_write(&result, dir));
	assert_true(exists("json"));
}

/* Next to one-way figures, round-trip figures would look like part of them; alone they belong to no
 * run. */
RESULT_TEST(a_one_way_run_removes_files_that_it_does_not_write_next_to_its_own)
{
	fill(100);
	assert_works(plx_result_write(&result, dir));
	assert_works(plx_result_forget("tcp-poll", dir, true));
	assert_false(exists("json") || exists("hgrm") || exists("csv"));

	assert_works(plx_result_write(&result, dir));
	assert_int_equal(remove(path_of("json")), 0);
	assert_works(plx_result_forget("tcp-poll", dir, true));
	assert_true(exists("hgrm") && exists("csv"));

	fill_one_way();
	assert_int_equal(remove(path_of("csv")), 0);
	assert_works(plx_result_write(&result, dir));
	assert_true(exists("json") && !exists("csv"));
}

RESULT_TEST(a_file_that_cannot_be_removed_is_reported)
{
	assert_int_equal(mkdir(path_of("json"), 0700), 0);
	assert_true(plx_result_forget("tcp-poll", dir, false) < 0);
	assert_error_has("cannot remove ");
	assert_error_has("tcp-poll.json of an earlier run: ");
}

RESULT_TEST(a_file_is_checked_without_a_trace)
{
	fill(100);
	assert_works(plx_app_check_file("--json", NULL));
	assert_works(plx_app_check_file("--json", path_of("json")));
	assert_false(exists("json"));
	assert_works(plx_result_write(&result, dir));
	assert_works(plx_app_check_file("--json", path_of("json")));
	assert_true(exists("json"));
	assert_fails(plx_app_check_file("--json", "/nonexistent/x"), -EINVAL,
		     "--json /nonexistent/x: cannot be written: No such file");
	assert_fails(plx_app_check_file("--json", "/"), -EINVAL, "Is a directory");
}

/* Text --------------------------------------------------------------------------------------- */

/* Valid until the next call. */
static const char *printed(unsigned columns)
{
	static char text[65536];
	FILE *file = fmemopen(text, sizeof(text), "w");

	assert_non_null(file);
	plx_result_print(&result, file, columns);
	fclose(file);
	return text;
}

RESULT_TEST(closed_loops_and_one_way_runs_are_printed)
{
	const char *text;

	fill(200000);
	text = printed(100);
	assert_has(text, "tcp-poll: 200000 full round trips of 64 B");
	assert_has(text, "provider net, idle poll");
	assert_has(text, "round trip, us        min      p50      p90      p99    p99.9   p99.99"
			 "      max\n");
	assert_has(text, "    6.00     7.00     7.80     7.98     8.00     8.00    300.0\n");
	assert_null(strstr(text, "NOT VALID"));

	fill_one_way();
	text = printed(100);
	assert_has(text, "tcp-poll: 500 messages of 1048576 B one way in 0.25 s, provider net");
	assert_has(text, "message rate  2000 messages/s, 500000.0 ns each");
	assert_has(text, "bandwidth     2097.2 MB/s = 1.953 GiB/s = 16.78 Gbit/s");
	assert_has(text, "no room       7 times");
}

RESULT_TEST(an_open_loop_has_both_times_and_its_schedule)
{
	fill(10000);
	for (int i = 0; i < 10000; i++)
		plx_hist_record(&service, 5000);
	result.service_ns = &service;
	result.rate = 10000;
	result.arrival = "poisson";
	result.seed = 77;
	result.elapsed_ns = PLX_NS_PER_S;
	result.scheduled_ns = result.sending_ns = 9999 * (PLX_NS_PER_S / 10000);
	ASSERT_WRITES("{'rate': 10000.0, 'achieved_rate': 10000.0, 'arrival': 'poisson', "
		      "'seed': 77, 'valid': true, 'service_p50_ns': %" PRIu64
		      ", 'service_p99_ns': %" PRIu64 "}",
		      plx_hist_quantile(&service, 0.5), plx_hist_quantile(&service, 0.99));

	result.sending_ns *= 2;
	const char *text = printed(80);
	assert_has(text, "open loop at 10000/s (poisson)");
	assert_has(text, "NOT VALID: achieved 5000 of 10000 scheduled requests per second");
	assert_has(text, "  from intended      6.00");
	assert_has(text, "  from sent          5.00");
}

PLX_TEST_MAIN()
