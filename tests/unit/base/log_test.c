/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define OPTION "--log-level"

PLX_LOG_COMPONENT(mu, "mu");
PLX_LOG_COMPONENT(alpha, "alpha");
PLX_LOG_COMPONENT(zeta, "zeta");
PLX_LOG_COMPONENT(beta, "beta");

static struct {
	unsigned count;
	enum plx_log_level level;
	char component[32], line[4096];
} heard;

static void hear(enum plx_log_level level, const char *component, const char *line, void *arg)
{
	assert_ptr_equal(arg, &heard);
	heard.count++;
	heard.level = level;
	snprintf(heard.component, sizeof(heard.component), "%s", component);
	snprintf(heard.line, sizeof(heard.line), "%s", line);
}

static int set_up(void **state)
{
	memset(&heard, 0, sizeof(heard));
	alpha.level = beta.level = PLX_LOG_NOTICE;
	plx_log_set_sink(hear, &heard);
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, set_up, NULL)

TEST(a_message_reaches_the_sink_whole)
{
	plx_log(&alpha, PLX_LOG_WARNING, "%u of %s", 3, "four");
	assert_int_equal(heard.count, 1);
	assert_int_equal(heard.level, PLX_LOG_WARNING);
	assert_string_equal(heard.component, "alpha");
	assert_string_equal(heard.line, "3 of four");
}

TEST(messages_without_a_sink_are_dropped)
{
	plx_log_set_sink(NULL, NULL);
	plx_log(&alpha, PLX_LOG_ERROR, "nobody hears this");
	assert_int_equal(heard.count, 0);
}

TEST(a_long_line_is_truncated)
{
	char text[3000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	plx_log(&alpha, PLX_LOG_ERROR, "%s", text);
	assert_int_equal(heard.count, 1);
	assert_int_equal(strlen(heard.line), 1023);
}

/* The format of `line` from component alpha on standard error, after its time. */
static const char *write_to_stderr(const char *line, char *out, size_t size)
{
	int saved = dup(STDERR_FILENO), ends[2];

	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	plx_log(&alpha, PLX_LOG_WARNING, "%s", line);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	ssize_t n = read(ends[0], out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	return strchr(out, ' ') ? strchr(out, ' ') + 1 : out;
}

TEST(a_line_on_standard_error_has_component_level_and_text)
{
	char out[2048], text[1024];

	plx_log_set_sink(plx_log_to_stderr, NULL);
	assert_string_equal(write_to_stderr("low on credit", out, sizeof(out)),
			    "alpha: warning: low on credit\n");

	memset(text, 'x', sizeof(text) - 1); /* the longest line passed to a sink */
	text[sizeof(text) - 1] = '\0';
	const char *said = write_to_stderr(text, out, sizeof(out));
	assert_int_equal(strlen(said), strlen("alpha: warning: \n") + sizeof(text) - 1);
	assert_int_equal(said[strlen(said) - 1], '\n');
}

PLX_TEST(the_log_goes_to_standard_error_by_default)
{
	char out[2048];

	/* Runs first, before a sink is set. */
	assert_string_equal(write_to_stderr("low on credit", out, sizeof(out)),
			    "alpha: warning: low on credit\n");
}

TEST(a_line_begins_with_the_time_in_utc)
{
	time_t before = time(NULL), said;
	char out[2048], *end;
	struct tm parts = {0};
	struct timespec after;

	plx_log_set_sink(plx_log_to_stderr, NULL);
	setenv("TZ", "Asia/Kolkata", 1); /* no part of it */
	tzset();
	write_to_stderr("low on credit", out, sizeof(out));
	unsetenv("TZ");
	tzset();
	end = strptime(out, "%Y-%m-%dT%H:%M:%S", &parts);
	assert_non_null(end);
	assert_int_equal(strspn(end + 1, "0123456789"), 3);
	assert_memory_equal(end + 4, "Z alpha", strlen("Z alpha"));
	said = timegm(&parts);
	clock_gettime(CLOCK_REALTIME, &after); /* time(2) may lag a tick */
	assert_in_range(said, before, after.tv_sec);
}

TEST(the_default_level_is_notice)
{
	plx_log(&alpha, PLX_LOG_NOTICE, "passes");
	plx_log(&alpha, PLX_LOG_INFO, "does not");
	assert_int_equal(heard.count, 1);
	assert_string_equal(heard.line, "passes");
}

static int expensive_calls;

static int expensive(void)
{
	return ++expensive_calls;
}

TEST(arguments_of_a_dropped_message_are_not_evaluated)
{
	plx_log(&alpha, PLX_LOG_DEBUG, "%d", expensive());
	assert_int_equal(expensive_calls, 0);
	plx_log(&alpha, PLX_LOG_ERROR, "%d", expensive());
	assert_int_equal(expensive_calls, 1);
}

TEST(a_level_can_be_set_for_one_component)
{
	assert_int_equal(plx_log_configure(OPTION, "alpha:debug"), 0);
	plx_log(&alpha, PLX_LOG_DEBUG, "alpha's");
	plx_log(&beta, PLX_LOG_INFO, "beta's");
	assert_int_equal(heard.count, 1);
	assert_string_equal(heard.component, "alpha");
	assert_int_equal(beta.level, PLX_LOG_NOTICE);

	assert_int_equal(plx_log_configure(OPTION, "alpha:error"), 0);
	plx_log(&alpha, PLX_LOG_WARNING, "no more");
	assert_int_equal(heard.count, 1);
}

TEST(a_level_can_be_set_for_all_components)
{
	static const char *const names[] = {"error", "warning", "notice", "info", "debug"};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(names); i++) {
		char digit[2] = {(char)('0' + i), '\0'};

		assert_int_equal(plx_log_configure(OPTION, names[i]), 0);
		assert_int_equal(alpha.level, i);
		assert_int_equal(beta.level, i);
		alpha.level = beta.level = PLX_LOG_NOTICE;
		assert_int_equal(plx_log_configure(OPTION, digit), 0);
		assert_int_equal(alpha.level, i);
		assert_int_equal(beta.level, i);
	}
}

TEST(the_error_for_a_bad_level_lists_the_levels)
{
	static const char *const bad[] = {"loud", "5",     "-1",     "",    "alpha:",
					  "01",   "Debug", "debugx", "deb", "alpha:beta:debug"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		char start[64];

		assert_int_equal(plx_log_configure(OPTION, bad[i]), -EINVAL);
		snprintf(start, sizeof(start), OPTION " %s: unknown level; give ", bad[i]);
		assert_error_has(start);
		assert_error_has("error, warning, notice, info, debug or 0 to 4");
	}
	assert_int_equal(alpha.level, PLX_LOG_NOTICE);
	assert_int_equal(beta.level, PLX_LOG_NOTICE);
}

TEST(the_error_for_a_bad_component_lists_the_components)
{
	static const char *const bad[] = {"gamma", "alph", "alphab", ""};

	for (size_t i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		char text[64], part[128];

		snprintf(text, sizeof(text), "%s:debug", bad[i]);
		assert_int_equal(plx_log_configure(OPTION, text), -EINVAL);
		snprintf(part, sizeof(part),
			 OPTION " %s: unknown component '%s'; there are: ", text, bad[i]);
		assert_error_has(part);
		assert_error_has("alpha, beta, mu, zeta"); /* by name */
	}
	assert_int_equal(alpha.level, PLX_LOG_NOTICE);
	assert_int_equal(beta.level, PLX_LOG_NOTICE);
}

static unsigned passed_of(struct plx_log_limit *limit, unsigned tries, uint64_t now_ns)
{
	unsigned passed = 0;

	while (tries--)
		passed += plx_log_allowed(limit, now_ns);
	return passed;
}

TEST(ten_messages_per_second_pass_by_default)
{
	struct plx_log_limit limit = {0};

	assert_int_equal(passed_of(&limit, 25, 5 * PLX_NS_PER_S), 10);
	assert_int_equal(limit.suppressed, 15);
	assert_int_equal(passed_of(&limit, 1, 6 * PLX_NS_PER_S - 1), 0);
	assert_int_equal(passed_of(&limit, 25, 6 * PLX_NS_PER_S), 10);
	assert_int_equal(limit.suppressed, 31);
}

TEST(the_burst_sets_the_number_of_messages_that_pass)
{
	struct plx_log_limit limit = {.burst = 2};

	assert_int_equal(passed_of(&limit, 5, 0), 2);
	assert_int_equal(passed_of(&limit, 5, 100 * PLX_NS_PER_S), 2);
	assert_int_equal(limit.suppressed, 6);
}

PLX_TEST_MAIN()
