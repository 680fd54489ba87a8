/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_test.h"

#include <stdio.h>
#include <unistd.h>

#define OPTION "--log-level"

PLX_LOG_COMPONENT(mu, "mu");
PLX_LOG_COMPONENT(alpha, "alpha");
PLX_LOG_COMPONENT(zeta, "zeta");
PLX_LOG_COMPONENT(beta, "beta");

static struct {
	unsigned count;
	char component[32], line[4096];
} heard;

static void hear(enum plx_log_level level, const char *component, const char *line, void *arg)
{
	assert_ptr_equal(arg, &heard);
	heard.count++;
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

/* The first test: no sink was set. */
PLX_TEST(the_log_goes_to_standard_error_by_default)
{
	char out[2048];

	assert_string_equal(write_to_stderr("low on credit", out, sizeof(out)),
			    "alpha: warning: low on credit\n");
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

TEST(a_level_can_be_set_for_one_component_or_all)
{
	static const char *const names[] = {"error", "warning", "notice", "info", "debug"};

	plx_log(&alpha, PLX_LOG_INFO, "below the default, notice");
	assert_int_equal(plx_log_configure(OPTION, "alpha:debug"), 0);
	plx_log(&alpha, PLX_LOG_DEBUG, "alpha's");
	plx_log(&beta, PLX_LOG_INFO, "beta's");
	assert_int_equal(heard.count, 1);
	assert_string_equal(heard.component, "alpha");
	for (unsigned i = 0; i < PLX_ARRAY_LEN(names); i++) {
		char digit[2] = {(char)('0' + i), '\0'};

		assert_int_equal(plx_log_configure(OPTION, names[i]), 0);
		assert_int_equal(alpha.level, i);
		assert_int_equal(beta.level, i);
		alpha.level = beta.level = PLX_LOG_NOTICE;
		assert_int_equal(plx_log_configure(OPTION, digit), 0);
		assert_int_equal(alpha.level, i);
	}
}

TEST(errors_list_the_levels_and_the_components)
{
	static const char *const bad_levels[] = {"loud", "5", "-1", "", "alpha:", "01", "debugx"};
	static const char *const bad_components[] = {"gamma:debug", "alph:debug", ":debug"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(bad_levels); i++)
		assert_fails(plx_log_configure(OPTION, bad_levels[i]), -EINVAL,
			     ": unknown level; give error, warning, notice, info, debug or 0 to 4");
	for (size_t i = 0; i < PLX_ARRAY_LEN(bad_components); i++) {
		assert_fails(plx_log_configure(OPTION, bad_components[i]), -EINVAL, OPTION " ");
		assert_error_has("; there are: alpha, beta, mu, zeta"); /* by name */
	}
	assert_int_equal(alpha.level, PLX_LOG_NOTICE);
}

static unsigned passed_of(struct plx_log_limit *limit, unsigned tries, uint64_t now_ns)
{
	unsigned passed = 0;

	while (tries--)
		passed += plx_log_allowed(limit, now_ns);
	return passed;
}

TEST(ten_messages_per_second_pass_or_as_many_as_the_burst)
{
	struct plx_log_limit limit = {0}, two = {.burst = 2};

	assert_int_equal(passed_of(&limit, 25, 5 * PLX_NS_PER_S), 10);
	assert_int_equal(passed_of(&limit, 1, 6 * PLX_NS_PER_S - 1), 0);
	assert_int_equal(passed_of(&limit, 25, 6 * PLX_NS_PER_S), 10);
	assert_int_equal(limit.suppressed, 31);
	assert_int_equal(passed_of(&two, 5, 0), 2);
}

PLX_TEST_MAIN()
