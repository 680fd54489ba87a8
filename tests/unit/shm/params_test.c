/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters from the environment. A process reads them once, so each case is a separate process,
 * which prints the log followed by the values read. */
#include "plx_test.h"
#include "shm.h"

#include <grp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char self[4096];

struct outcome {
	struct shm_params params;
	char log[8192];
};

static void print_params(void)
{
	prov_begin(&shm_kind, false);
	printf("params %u %llu %llu %d %d %u\n", shm_params.ring_bytes,
	       (unsigned long long)shm_params.inline_max, (unsigned long long)shm_params.copy_max,
	       shm_params.cma, shm_params.has_group, shm_params.group);
}

static void parse_params(const char *line, struct shm_params *params)
{
	unsigned long long inline_max, copy_max;
	int cma, has_group;

	assert_int_equal(sscanf(line, "params %u %llu %llu %d %d %u", &params->ring_bytes,
				&inline_max, &copy_max, &cma, &has_group, &params->group),
			 6);
	params->inline_max = inline_max;
	params->copy_max = copy_max;
	params->cma = cma;
	params->has_group = has_group;
}

static struct outcome read_outcome(FILE *output)
{
	struct outcome outcome = {.log = ""};
	bool found = false;
	char line[1024];

	assert_non_null(output);
	while (fgets(line, sizeof(line), output)) {
		if (strncmp(line, "params ", 7) == 0) {
			parse_params(line, &outcome.params);
			found = true;
		} else if (strlen(outcome.log) + strlen(line) < sizeof(outcome.log)) {
			strcat(outcome.log, line);
		}
	}
	assert_true(found);
	return outcome;
}

/* setting: NAME=value, or "". */
static struct outcome run(const char *setting)
{
	struct outcome outcome;
	int ends[2], status;
	FILE *output;
	pid_t child;

	assert_return_code(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		if (*setting)
			putenv(strdup(setting));
		print_params();
		fflush(stdout);
		_exit(0);
	}
	close(ends[1]);
	output = fdopen(ends[0], "r");
	outcome = read_outcome(output);
	fclose(output);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return outcome;
}

static struct outcome run_with(const char *name, const char *value)
{
	char setting[256];

	snprintf(setting, sizeof(setting), "FI_PLX_SHM_%s=%s", name, value);
	return run(setting);
}

static void expect_log(const struct outcome *outcome, const char *part)
{
	if (!strstr(outcome->log, part))
		fail_msg("the log '%s' lacks '%s'", outcome->log, part);
}

PLX_TEST(defaults_are_used_without_a_log_message)
{
	struct outcome outcome = run("");

	assert_int_equal(outcome.params.ring_bytes, SHM_RING_BYTES);
	assert_int_equal(outcome.params.inline_max, 16384);
	assert_int_equal(outcome.params.copy_max, 16 << 20);
	assert_true(outcome.params.cma);
	assert_false(outcome.params.has_group);
	assert_string_equal(outcome.log, "");
}

PLX_TEST(ring_bytes_are_a_number_with_or_without_unit)
{
	assert_int_equal(run_with("RING_BYTES", "65536").params.ring_bytes, 65536);
	assert_int_equal(run_with("RING_BYTES", "512k").params.ring_bytes, 512 << 10);
	assert_int_equal(run_with("RING_BYTES", "64M").params.ring_bytes, 64 << 20);
}

PLX_TEST(bad_ring_bytes_are_refused)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "not a size"},
		{"100000", "100000 is not a power of two"},
		{"32k", "out of range; give 64K to 64M"},
		{"128m", "out of range"},
		{"-65536", "out of range"},
		{"+65536", "not a size"},
		{"64kb", "not a size"},
		{"k", "not a size"},
		{"ten", "not a size"},
		{"18014398509481985024k", "out of range"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		struct outcome outcome = run_with("RING_BYTES", bad[i].text);

		assert_int_equal(outcome.params.ring_bytes, SHM_RING_BYTES);
		expect_log(&outcome, "FI_PLX_SHM_RING_BYTES");
		expect_log(&outcome, bad[i].why);
		expect_log(&outcome, "; 262144 is used");
	}
}

PLX_TEST(inline_max_may_be_a_quarter_of_the_ring)
{
	struct outcome most = run_with("INLINE_MAX", "65472");
	struct outcome more = run_with("INLINE_MAX", "65473");

	assert_int_equal(most.params.inline_max, 65472);
	assert_string_equal(most.log, "");
	assert_int_equal(more.params.inline_max, 16384);
	expect_log(&more, "FI_PLX_SHM_INLINE_MAX 65473: out of range; give 4K to 65472; 16384 is "
			  "used");
}

PLX_TEST(inline_max_is_at_least_the_inject_size)
{
	assert_int_equal(run_with("INLINE_MAX", "4k").params.inline_max, SHM_INJECT_MAX);
	assert_int_equal(run_with("INLINE_MAX", "4095").params.inline_max, 16384);
}

PLX_TEST(inline_max_follows_a_small_ring)
{
	struct outcome outcome = run_with("RING_BYTES", "64k");

	assert_int_equal(outcome.params.inline_max, 16384 - 64);
	assert_string_equal(outcome.log, "");
}

PLX_TEST(copy_max_is_a_number_of_bytes)
{
	struct outcome bad = run_with("COPY_MAX", "lots");

	assert_int_equal(run_with("COPY_MAX", "0").params.copy_max, 0);
	assert_int_equal(run_with("COPY_MAX", "100000").params.copy_max, 100000);
	assert_int_equal(run_with("COPY_MAX", "1M").params.copy_max, 1 << 20);
	assert_int_equal(run_with("COPY_MAX", "0100k").params.copy_max, 100 << 10);
	assert_int_equal(bad.params.copy_max, 16 << 20);
	expect_log(&bad, "FI_PLX_SHM_COPY_MAX lots: not a size; give bytes, or a unit after the "
			 "number: 64, 4K, 1M, 2G; 16777216 is used");
}

PLX_TEST(cma_is_yes_or_no)
{
	struct outcome bad = run_with("CMA", "maybe");

	assert_false(run_with("CMA", "no").params.cma);
	assert_true(run_with("CMA", "1").params.cma);
	assert_true(bad.params.cma);
	expect_log(&bad, "FI_PLX_SHM_CMA is refused, yes is used; give yes or no");
}

PLX_TEST(group_is_a_number_or_a_name)
{
	struct outcome number = run_with("GROUP", "4711");
	struct group *known;
	struct outcome name;

	assert_true(number.params.has_group);
	assert_int_equal(number.params.group, 4711);
	known = getgrent();
	while (known && known->gr_gid == 0)
		known = getgrent();
	if (!known)
		skip();
	name = run_with("GROUP", known->gr_name);
	assert_true(name.params.has_group);
	assert_int_equal(name.params.group, known->gr_gid);
	endgrent();
}

PLX_TEST(an_unknown_group_admits_no_other_user)
{
	static const char *const bad[] = {"no-such-group", "", "-1", "4294967295", "12x"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(bad); i++) {
		struct outcome outcome = run_with("GROUP", bad[i]);

		assert_false(outcome.params.has_group);
		expect_log(&outcome, "is refused, only the same user may connect");
	}
}

/* The log settings apply even if this is the first call into libfabric. */
PLX_TEST(the_first_libfabric_call_of_a_process_reads_the_parameters)
{
	char line[sizeof(self) + 64];
	struct outcome outcome;
	FILE *output;

	skip_if_emulated(); /* it starts itself */
	snprintf(line, sizeof(line), "FI_PLX_SHM_RING_BYTES=1 '%s' print 2>&1", self);
	output = popen(line, "r");
	outcome = read_outcome(output);
	assert_int_equal(pclose(output), 0);
	assert_int_equal(outcome.params.ring_bytes, SHM_RING_BYTES);
	expect_log(&outcome, "FI_PLX_SHM_RING_BYTES 1: out of range");
}

/* libfabric's start takes long: do it once, not in each process. */
static void start_libfabric(void)
{
	struct fi_param *params;
	int count;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_PROV", SHM_NAME, 1);
	if (fi_getparams(&params, &count) == 0 && params)
		fi_freeparams(params);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		print_params();
		return 0;
	}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	start_libfabric();
	return plx_test_run("shm/params", NULL, NULL);
}
