/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters from the environment. A process reads them once, so each case is a separate process,
 * which writes them to standard output and logs to standard error. */
#include "plx_test.h"
#include "shm.h"

#include <grp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct shm_params defaults = {
	.ring_bytes = SHM_RING_BYTES, .inline_max = 16384, .copy_max = 16 << 20, .cma = true};

static char log_text[8192]; /* of the last process */

static int write_params(void)
{
	prov_begin(&shm_kind, false);
	return write(STDOUT_FILENO, &shm_params, sizeof(shm_params)) != sizeof(shm_params);
}

/* name: without its prefix; NULL: nothing is set. is_started: as another program. */
static struct shm_params run(const char *name, const char *value, bool is_started)
{
	struct shm_params params;
	int ends[2], log = memfd_create("log", MFD_CLOEXEC), status;
	char variable[64];
	pid_t child;

	assert_return_code(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
		snprintf(variable, sizeof(variable), "FI_PLX_SHM_%s", name ? name : "");
		if (name)
			setenv(variable, value, 1);
		if (is_started)
			execl("/proc/self/exe", "params", "write", NULL);
		_exit(write_params());
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &params, sizeof(params)), sizeof(params));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	memset(log_text, 0, sizeof(log_text));
	assert_true(pread(log, log_text, sizeof(log_text) - 1, 0) >= 0);
	close(ends[0]);
	close(log);
	return params;
}

static void expect_log(const char *part)
{
	if (!strstr(log_text, part))
		fail_msg("the log '%s' lacks '%s'", log_text, part);
}

/* log: in addition to the name of the variable; NULL: nothing is logged. */
static void expect_of(const char *name, const char *value, const struct shm_params *expected,
		      const char *log)
{
	struct shm_params params = run(name, value, false);

	print_message("%s=%s\n", name ? name : "", value);
	assert_int_equal(params.ring_bytes, expected->ring_bytes);
	assert_int_equal(params.inline_max, expected->inline_max);
	assert_int_equal(params.copy_max, expected->copy_max);
	assert_int_equal(params.cma, expected->cma);
	assert_int_equal(params.has_group, expected->has_group);
	if (expected->has_group)
		assert_int_equal(params.group, expected->group);
	if (log) {
		expect_log(name);
		expect_log(log);
	} else {
		assert_string_equal(log_text, "");
	}
}

/* The default, except for one member. */
#define GIVES(member, value) \
	offsetof(struct shm_params, member), sizeof(((struct shm_params *)0)->member), (value)

PLX_TEST(valid_settings_are_used_without_a_log_message)
{
	static const struct {
		const char *name, *value;
		size_t offset, bytes;
		uint64_t expected;
	} rows[] = {
		{"RING_BYTES", "512k", GIVES(ring_bytes, 512 << 10)},
		{"RING_BYTES", "64M", GIVES(ring_bytes, 64 << 20)},
		/* At least the inject size, at most a quarter of the ring. */
		{"INLINE_MAX", "65472", GIVES(inline_max, 65472)},
		{"INLINE_MAX", "4k", GIVES(inline_max, SHM_INJECT_MAX)},
		{"COPY_MAX", "0", GIVES(copy_max, 0)},
		{"COPY_MAX", "100000", GIVES(copy_max, 100000)},
		{"COPY_MAX", "1M", GIVES(copy_max, 1 << 20)},
		{"COPY_MAX", "0100k", GIVES(copy_max, 100 << 10)},
		{"CMA", "no", GIVES(cma, false)},
		{"CMA", "1", GIVES(cma, true)},
	};
	struct shm_params expected = defaults;
	struct group *known = getgrent();

	expect_of(NULL, "", &defaults, NULL);
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		expected = defaults;
		memcpy((char *)&expected + rows[i].offset, &rows[i].expected, rows[i].bytes);
		expect_of(rows[i].name, rows[i].value, &expected, NULL);
	}
	expected = defaults;
	expected.ring_bytes = 65536;
	expected.inline_max = 65536 / 4 - 64; /* it follows a small ring */
	expect_of("RING_BYTES", "65536", &expected, NULL);
	expected = defaults;
	expected.has_group = true;
	expected.group = 4711;
	expect_of("GROUP", "4711", &expected, NULL);
	while (known && known->gr_gid == 0)
		known = getgrent();
	if (!known)
		return;
	expected.group = known->gr_gid;
	expect_of("GROUP", known->gr_name, &expected, NULL);
	endgrent();
}

PLX_TEST(invalid_settings_are_refused_with_the_reason_and_the_default)
{
	static const struct {
		const char *name, *value, *log;
	} rows[] = {
		{"RING_BYTES", "", "not a size"},
		{"RING_BYTES", "100000", "100000 is not a power of two"},
		{"RING_BYTES", "32k", "out of range; give 64K to 64M"},
		{"RING_BYTES", "128m", "out of range"},
		{"RING_BYTES", "-65536", "out of range"},
		{"RING_BYTES", "+65536", "not a size"},
		{"RING_BYTES", "64kb", "not a size"},
		{"RING_BYTES", "k", "not a size"},
		{"RING_BYTES", "ten", "; 262144 is used"},
		{"RING_BYTES", "18014398509481985024k", "out of range"},
		{"INLINE_MAX", "65473", "65473: out of range; give 4K to 65472; 16384 is used"},
		{"INLINE_MAX", "4095", "out of range"},
		{"COPY_MAX", "lots",
		 "lots: not a size; give bytes, or a unit after the number: 64, 4K, 1M, 2G; "
		 "16777216 is used"},
		{"CMA", "maybe", " is refused, yes is used; give yes or no"},
		{"GROUP", "no-such-group", "is refused, only the same user may connect"},
		{"GROUP", "", "is refused, only the same user may connect"},
		{"GROUP", "-1", "is refused, only the same user may connect"},
		{"GROUP", "4294967295", "is refused, only the same user may connect"},
		{"GROUP", "12x", "is refused, only the same user may connect"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		expect_of(rows[i].name, rows[i].value, &defaults, rows[i].log);
}

/* The log settings apply even if this is the first call into libfabric. */
PLX_TEST(the_first_libfabric_call_of_a_process_reads_the_parameters)
{
	skip_if_emulated(); /* it starts itself */
	assert_int_equal(run("RING_BYTES", "1", true).ring_bytes, SHM_RING_BYTES);
	expect_log("FI_PLX_SHM_RING_BYTES 1: out of range");
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
	if (argc > 1)
		return write_params();
	start_libfabric();
	return plx_test_run("shm/params", NULL, NULL);
}
