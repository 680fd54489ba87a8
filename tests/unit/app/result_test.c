/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_app.h"
#include "plx_test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRINTED_MAX 65536

struct fixture {
	struct plx_hist rtt;
	struct plx_hist service;
	struct plx_result result;
	char dir[64];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	*state = f;
	assert_int_equal(plx_hist_init(&f->rtt, PLX_NS_PER_S, 3), 0);
	assert_int_equal(plx_hist_init(&f->service, PLX_NS_PER_S, 3), 0);
	f->result = (struct plx_result){
		.name = "tcp-poll",
		.provider = "net",
		.idle = "poll",
		.size_bytes = 64,
		.clock_drift_ppm = 0.25,
		.rtt_ns = &f->rtt,
	};
	snprintf(f->dir, sizeof(f->dir), "/tmp/plx_result_XXXXXX");
	return mkdtemp(f->dir) ? 0 : -1;
}

static void remove_in(const char *dir, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {
		"tcp-poll.json",     "tcp-poll.hgrm",    "tcp-poll.csv", "a/b/tcp-poll.json",
		"a/b/tcp-poll.hgrm", "a/b/tcp-poll.csv", "a/b",          "a"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(names); i++)
		remove_in(f->dir, names[i]);
	assert_int_equal(rmdir(f->dir), 0);
	plx_hist_fini(&f->rtt);
	plx_hist_fini(&f->service);
	free(f);
	return 0;
}

/* count round trips from 6000 ns, one nanosecond more every 100, and one of 300 us. */
static void fill(struct fixture *f, uint64_t count)
{
	for (uint64_t i = 0; i + 1 < count; i++)
		plx_hist_record(&f->rtt, 6000 + i / 100);
	plx_hist_record(&f->rtt, 300000);
	f->result.elapsed_ns = (uint64_t)f->rtt.sum;
}

static json_t *written_json(struct fixture *f, const char *below)
{
	char dir[128], path[256];
	json_error_t error;

	snprintf(dir, sizeof(dir), "%s%s", f->dir, below);
	assert_int_equal(plx_result_write(&f->result, dir), 0);
	snprintf(path, sizeof(path), "%s/tcp-poll.json", dir);
	json_t *object = json_load_file(path, 0, &error);
	if (!object)
		fail_msg("%s: %s", path, error.text);
	return object;
}

static json_int_t integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_msg("key %s is no integer", key);
	return json_integer_value(value);
}

#define RESULT_TEST(name) PLX_TEST_WITH(name, setup, teardown)

RESULT_TEST(json_tells_everything_of_a_closed_loop)
{
	struct fixture *f = *state;

	fill(f, 100000);
	json_t *object = written_json(f, "/a/b");
	assert_string_equal(json_string_value(json_object_get(object, "name")), "tcp-poll");
	assert_string_equal(json_string_value(json_object_get(object, "provider")), "net");
	assert_string_equal(json_string_value(json_object_get(object, "idle")), "poll");
	assert_int_equal(integer(object, "size_bytes"), 64);
	assert_int_equal(integer(object, "count"), 100000);
	assert_int_equal(integer(object, "min_ns"), 6000);
	assert_int_equal(integer(object, "p50_ns"), plx_hist_quantile(&f->rtt, 0.5));
	assert_int_equal(integer(object, "p90_ns"), plx_hist_quantile(&f->rtt, 0.9));
	assert_int_equal(integer(object, "p99_ns"), plx_hist_quantile(&f->rtt, 0.99));
	assert_int_equal(integer(object, "p99_9_ns"), plx_hist_quantile(&f->rtt, 0.999));
	assert_int_equal(integer(object, "p99_99_ns"), plx_hist_quantile(&f->rtt, 0.9999));
	assert_int_equal(integer(object, "max_ns"), 300000);
	assert_int_equal(integer(object, "elapsed_ns"), f->result.elapsed_ns);
	assert_int_equal(integer(object, "lost"), 0);
	assert_true(json_real_value(json_object_get(object, "mean_ns")) > 6490);
	assert_true(json_real_value(json_object_get(object, "mean_ns")) < 6510);
	assert_true(json_real_value(json_object_get(object, "clock_drift_ppm")) == 0.25);
	assert_true(json_is_true(json_object_get(object, "valid")));
	assert_true(json_is_null(json_object_get(object, "interrupted")));
	assert_null(json_object_get(object, "planned_count"));
	assert_null(json_object_get(object, "note"));
	assert_null(json_object_get(object, "rate"));
	assert_null(json_object_get(object, "service_p50_ns"));
	json_decref(object);
}

RESULT_TEST(json_of_a_run_that_was_cut_short_says_by_what)
{
	struct fixture *f = *state;

	fill(f, 1000);
	f->result.interrupted = "SIGINT";
	f->result.planned_ns = 5 * PLX_NS_PER_S;
	json_t *object = written_json(f, "");
	assert_string_equal(json_string_value(json_object_get(object, "interrupted")), "SIGINT");
	assert_int_equal(integer(object, "planned_ns"), 5000000000);
	assert_true(json_is_true(json_object_get(object, "valid")));
	json_decref(object);

	f->result.failed = true;
	f->result.planned_count = 7;
	object = written_json(f, "");
	assert_int_equal(integer(object, "planned_count"), 7);
	assert_true(json_is_false(json_object_get(object, "valid")));
	assert_null(json_object_get(object, "note"));
	json_decref(object);
}

RESULT_TEST(json_has_the_keys_of_the_program_too)
{
	struct fixture *f = *state;

	fill(f, 1000);
	f->result.more = json_pack("{s:s}", "provider_choice", "asked");
	json_t *object = written_json(f, "");
	assert_string_equal(json_string_value(json_object_get(object, "provider_choice")), "asked");
	assert_string_equal(json_string_value(json_object_get(object, "name")), "tcp-poll");
	json_decref(object);
	json_decref(f->result.more);
}

RESULT_TEST(closed_loops_with_gaps_may_take_time_between_trips)
{
	struct fixture *f = *state;

	fill(f, 1000);
	f->result.elapsed_ns *= 10;
	assert_int_equal(plx_result_check(&f->result), -ERANGE);
	f->result.has_gaps = true;
	assert_int_equal(plx_result_check(&f->result), 0);
}

RESULT_TEST(json_tells_everything_of_an_open_loop)
{
	struct fixture *f = *state;

	fill(f, 10000);
	for (int i = 0; i < 10000; i++)
		plx_hist_record(&f->service, 5000);
	f->result.service_ns = &f->service;
	f->result.rate = 10000;
	f->result.arrival = "poisson";
	f->result.seed = 77;
	f->result.elapsed_ns = PLX_NS_PER_S;
	f->result.scheduled_ns = f->result.sending_ns = 9999 * (PLX_NS_PER_S / 10000);
	json_t *object = written_json(f, "");
	assert_true(json_real_value(json_object_get(object, "rate")) == 10000);
	assert_true(json_real_value(json_object_get(object, "achieved_rate")) == 10000);
	assert_string_equal(json_string_value(json_object_get(object, "arrival")), "poisson");
	assert_int_equal(integer(object, "seed"), 77);
	assert_in_range(integer(object, "service_p50_ns"), 5000, 5005);
	assert_in_range(integer(object, "service_p99_ns"), 5000, 5005);
	assert_true(json_is_true(json_object_get(object, "valid")));
	json_decref(object);
}

RESULT_TEST(json_has_null_where_samples_are_too_few)
{
	struct fixture *f = *state;

	fill(f, 1000);
	json_t *object = written_json(f, "");
	integer(object, "p99_ns");
	assert_true(json_is_null(json_object_get(object, "p99_9_ns")));
	assert_true(json_is_null(json_object_get(object, "p99_99_ns")));
	json_decref(object);
}

RESULT_TEST(json_of_an_invalid_run_says_why)
{
	struct fixture *f = *state;

	fill(f, 1000);
	f->result.elapsed_ns *= 2;
	json_t *object = written_json(f, "");
	assert_true(json_is_false(json_object_get(object, "valid")));
	assert_non_null(strstr(json_string_value(json_object_get(object, "note")),
			       "mean x count is -50.0 % from the elapsed"));
	json_decref(object);
}

RESULT_TEST(json_of_an_empty_run_has_no_times)
{
	struct fixture *f = *state;

	json_t *object = written_json(f, "");
	assert_int_equal(integer(object, "count"), 0);
	assert_true(json_is_null(json_object_get(object, "min_ns")));
	assert_true(json_is_null(json_object_get(object, "p50_ns")));
	assert_true(json_is_null(json_object_get(object, "max_ns")));
	assert_true(json_is_null(json_object_get(object, "mean_ns")));
	assert_true(json_is_false(json_object_get(object, "valid")));
	json_decref(object);
}

RESULT_TEST(percentiles_of_too_few_samples_are_not_shown)
{
	struct fixture *f = *state;
	char text[32];

	assert_string_equal(plx_result_quantile(&f->rtt, 0.5, text, sizeof(text)), "n/a");
	fill(f, 19);
	assert_string_equal(plx_result_quantile(&f->rtt, 0.5, text, sizeof(text)), "n/a");
	fill(f, 1);
	assert_string_not_equal(plx_result_quantile(&f->rtt, 0.5, text, sizeof(text)), "n/a");
	assert_string_equal(plx_result_quantile(&f->rtt, 0.99, text, sizeof(text)), "n/a");
}

RESULT_TEST(histogram_files_lie_beside)
{
	struct fixture *f = *state;
	char path[128], text[256] = "";

	fill(f, 100);
	assert_int_equal(plx_result_write(&f->result, f->dir), 0);
	snprintf(path, sizeof(path), "%s/tcp-poll.hgrm", f->dir);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_non_null(strstr(text, "1/(1-Percentile)"));
	assert_non_null(fgets(text, sizeof(text), file));
	assert_non_null(fgets(text, sizeof(text), file));
	assert_non_null(strstr(text, " 6.003 0.000000000000 ")); /* microseconds */
	fclose(file);

	snprintf(path, sizeof(path), "%s/tcp-poll.csv", f->dir);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_string_equal(text, "low,high,count\n");
	assert_non_null(fgets(text, sizeof(text), file));
	assert_string_equal(text, "6000,6003,99\n");
	fclose(file);
}

RESULT_TEST(a_directory_that_cannot_be_is_named)
{
	struct fixture *f = *state;

	fill(f, 100);
	assert_fails(plx_result_write(&f->result, "/dev/null/x"), -ENOTDIR,
		     "cannot make directory /dev/null/x: Not a directory");
	assert_true(plx_result_write(&f->result, "/dev/null") < 0);
	assert_error_has("/dev/null");
}

RESULT_TEST(a_name_with_a_slash_is_refused)
{
	struct fixture *f = *state;

	fill(f, 100);
	f->result.name = "../x";
	assert_fails(plx_result_write(&f->result, f->dir), -EINVAL,
		     "result name '../x': give one without '/'");
}

RESULT_TEST(a_closed_loop_may_take_50_ns_between_its_trips)
{
	struct fixture *f = *state;

	for (int i = 0; i < 1000; i++)
		plx_hist_record(&f->rtt, 500);
	f->result.elapsed_ns = (uint64_t)f->rtt.sum + 49 * 1000;
	assert_int_equal(plx_result_check(&f->result), 0);
	f->result.elapsed_ns = (uint64_t)f->rtt.sum + 51 * 1000;
	assert_int_equal(plx_result_check(&f->result), -ERANGE);
}

RESULT_TEST(a_closed_loop_accounts_for_97_percent_of_its_time)
{
	struct fixture *f = *state;

	fill(f, 1000);
	uint64_t in_trips = f->result.elapsed_ns;
	f->result.elapsed_ns = in_trips * 1000 / 971;
	assert_int_equal(plx_result_check(&f->result), 0);
	f->result.elapsed_ns = in_trips * 1000 / 969;
	assert_fails(plx_result_check(&f->result), -ERANGE, "-3.1 % from the elapsed");
	f->result.elapsed_ns = in_trips * 1000 / 1031;
	assert_fails(plx_result_check(&f->result), -ERANGE, "+3.1 % from the elapsed");
	f->result.elapsed_ns = 0;
	assert_int_equal(plx_result_check(&f->result), -ERANGE);
}

RESULT_TEST(an_open_loop_reaches_its_rate)
{
	struct fixture *f = *state;

	fill(f, 1000);
	f->result.rate = 1000;
	f->result.scheduled_ns = 999 * PLX_NS_PER_MS; /* between the first and the last of 1000 */
	f->result.sending_ns = f->result.scheduled_ns + PLX_NS_PER_MS;
	assert_int_equal(plx_result_check(&f->result), 0);
	f->result.sending_ns = f->result.scheduled_ns + 3 * PLX_NS_PER_MS;
	assert_fails(plx_result_check(&f->result), -ERANGE,
		     "achieved 997 of 1000 scheduled requests per second");
}

/* A Poisson schedule has randomly more or fewer arrivals than its rate. */
RESULT_TEST(an_open_loop_is_held_against_its_own_schedule)
{
	struct fixture *f = *state;

	fill(f, 1000);
	f->result.rate = 1100;
	f->result.scheduled_ns = f->result.sending_ns = PLX_NS_PER_S;
	assert_int_equal(plx_result_check(&f->result), 0);
}

RESULT_TEST(verified_closed_loops_may_take_time_between_trips)
{
	struct fixture *f = *state;

	fill(f, 1000);
	f->result.elapsed_ns *= 2;
	assert_int_equal(plx_result_check(&f->result), -ERANGE);
	f->result.verified = true;
	assert_int_equal(plx_result_check(&f->result), 0);
}

RESULT_TEST(a_lost_request_makes_a_run_invalid)
{
	struct fixture *f = *state;

	fill(f, 1000);
	f->result.lost = 3;
	assert_fails(plx_result_check(&f->result), -ERANGE, "3 requests had no answer");
}

RESULT_TEST(a_run_without_round_trips_is_invalid)
{
	struct fixture *f = *state;

	assert_fails(plx_result_check(&f->result), -ERANGE, "no round trip was completed");
}

/* Printing --------------------------------------------------------------------------------- */

static char *printed(const struct fixture *f, unsigned columns)
{
	char *text = calloc(1, PRINTED_MAX);
	FILE *file = fmemopen(text, PRINTED_MAX, "w");

	assert_non_null(file);
	plx_result_print(&f->result, file, columns);
	fclose(file);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static size_t widest_line(const char *text)
{
	size_t widest = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");

		widest = length > widest ? length : widest;
		text += length + (text[length] == '\n');
	}
	return widest;
}

RESULT_TEST(header_says_full_round_trips)
{
	struct fixture *f = *state;

	fill(f, 200000);
	char *text = printed(f, 100);
	assert_has(text, "tcp-poll: 200000 full round trips of 64 B");
	assert_has(text, "provider net, idle poll");
	assert_has(text, "round trip, us        min      p50      p90      p99    p99.9   p99.99"
			 "      max\n");
	assert_has(text, "    6.00     7.00     7.80     7.98     8.00     8.00    300.0\n");
	assert_null(strstr(text, "NOT VALID"));
	free(text);
}

RESULT_TEST(too_few_samples_print_as_not_available)
{
	struct fixture *f = *state;

	fill(f, 1000);
	char *text = printed(f, 80);
	assert_has(text, "    6.01      n/a      n/a    300.0\n");
	free(text);
}

RESULT_TEST(bars_fit_the_width_and_fill_it)
{
	struct fixture *f = *state;

	fill(f, 200000);
	for (unsigned width = 80; width <= 200; width += 40) {
		char *text = printed(f, width);
		assert_int_equal(widest_line(text), width);
		free(text);
	}
	char *text = printed(f, 0); /* not a terminal: 80 */
	assert_int_equal(widest_line(text), 80);
	free(text);
}

/* Shares are printed with three decimals: they add up to 100 within rounding. */
RESULT_TEST(rows_hold_every_round_trip_once)
{
	struct fixture *f = *state;
	double sum = 0;
	unsigned rows = 0;

	fill(f, 50000);
	plx_hist_record(&f->rtt, 5 * PLX_NS_PER_S); /* above the histogram's highest */
	char *text = printed(f, 80);
	for (const char *at = strchr(text, '%'); at; at = strchr(at + 1, '%')) {
		if (at[1] != ' ' || at[2] != '|')
			continue;
		sum += strtod(at - 8, NULL);
		rows++;
	}
	assert_true(sum > 99.98 && sum < 100.02);
	assert_in_range(rows, 8, 22);
	assert_has(text, "  0.002% |.\n");
	free(text);
}

RESULT_TEST(equal_values_make_one_row)
{
	struct fixture *f = *state;

	for (int i = 0; i < 100; i++)
		plx_hist_record(&f->rtt, 7000);
	f->result.elapsed_ns = 700000;
	char *text = printed(f, 80);
	assert_has(text, "100.000% |####");
	free(text);
}

RESULT_TEST(zero_and_empty_are_printable)
{
	struct fixture *f = *state;

	char *text = printed(f, 80);
	assert_has(text, "NOT VALID: no round trip was completed");
	free(text);
	plx_hist_record(&f->rtt, 0);
	text = printed(f, 80);
	assert_has(text, "100.000% |####");
	free(text);
}

RESULT_TEST(an_open_loop_shows_both_times_and_what_is_wrong)
{
	struct fixture *f = *state;

	fill(f, 1000);
	for (int i = 0; i < 1000; i++)
		plx_hist_record(&f->service, 5000);
	f->result.service_ns = &f->service;
	f->result.rate = 2000;
	f->result.arrival = "poisson";
	f->result.elapsed_ns = PLX_NS_PER_S;
	f->result.scheduled_ns = 999 * PLX_NS_PER_MS / 2;
	f->result.sending_ns = 999 * PLX_NS_PER_MS;
	char *text = printed(f, 80);
	assert_has(text, "open loop at 2000/s (poisson)");
	assert_has(text, "NOT VALID: achieved 1000 of 2000 scheduled requests per second");
	assert_has(text, "  from intended      6.00");
	assert_has(text, "  from sent          5.00");
	free(text);
}

PLX_TEST_MAIN()
