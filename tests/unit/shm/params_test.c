/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters from the environment. A process reads them once; here each case is a new start. */
#include "log_capture.h"
#include "plx_test.h"
#include "shm.h"

#include <grp.h>

static const struct shm_params defaults = {
	.ring_bytes = SHM_RING_BYTES, .inline_max = 16384, .copy_max = 16 << 20, .cma = true};

static void start_with(const char *name, const char *value)
{
	char variable[64];

	snprintf(variable, sizeof(variable), "FI_PLX_SHM_%s", name);
	assert_int_equal(setenv(variable, value, 1), 0);
	shm_params = defaults;
	*shm_kind.has_begun = false;
	log_capture();
	prov_begin(&shm_kind, false);
	unsetenv(variable);
}

/* log: in addition to the name of the variable; NULL: nothing is logged. */
static void expect(const char *name, const char *value, const struct shm_params *expected,
		   const char *log)
{
	start_with(name, value);
	print_message("%s=%s: %s\n", name, value, log_text);
	assert_int_equal(shm_params.ring_bytes, expected->ring_bytes);
	assert_int_equal(shm_params.inline_max, expected->inline_max);
	assert_int_equal(shm_params.copy_max, expected->copy_max);
	assert_int_equal(shm_params.cma, expected->cma);
	assert_int_equal(shm_params.has_group, expected->has_group);
	assert_int_equal(shm_params.group, expected->group);
	assert_int_equal(log_count(name) > 0, log != NULL);
	assert_true(!log || log_count(log) == 1);
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
		{"CMA", "no", GIVES(cma, false)},
		{"CMA", "1", GIVES(cma, true)},
	};
	struct shm_params expected = defaults;
	struct group *known = getgrent();

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		expected = defaults;
		memcpy((char *)&expected + rows[i].offset, &rows[i].expected, rows[i].bytes);
		expect(rows[i].name, rows[i].value, &expected, NULL);
	}
	expected = defaults;
	expected.ring_bytes = 65536;
	expected.inline_max = 65536 / 4 - 64; /* it follows a small ring */
	expect("RING_BYTES", "65536", &expected, NULL);
	expected = defaults;
	expected.has_group = true;
	expected.group = 4711;
	expect("GROUP", "4711", &expected, NULL);
	while (known && known->gr_gid == 0)
		known = getgrent();
	if (!known)
		return;
	expected.group = known->gr_gid;
	expect("GROUP", known->gr_name, &expected, NULL);
	endgrent();
}

PLX_TEST(invalid_settings_are_refused_with_the_reason_and_the_default)
{
	static const struct {
		const char *name, *value, *log;
	} rows[] = {
		{"RING_BYTES", "100000", "100000 is not a power of two"},
		{"RING_BYTES", "32k", "out of range; give 64K to 64M"},
		{"RING_BYTES", "128m", "out of range"},
		{"RING_BYTES", "ten", "; 262144 is used"},
		{"INLINE_MAX", "65473", "65473: out of range; give 4K to 65472; 16384 is used"},
		{"INLINE_MAX", "4095", "out of range"},
		{"COPY_MAX", "lots",
		 "lots: not a size; give bytes, or a unit after the number: 64, 4K, 1M, 2G; "
		 "16777216 is used"},
		{"CMA", "maybe", " is refused, yes is used; give yes or no"},
		{"GROUP", "no-such-group", "is refused, only the same user may connect"},
		{"GROUP", "4294967295", "is refused, only the same user may connect"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		expect(rows[i].name, rows[i].value, &defaults, rows[i].log);
}

/* The log settings apply even if this is the first call into libfabric. */
PLX_TEST(the_log_of_libfabric_is_used_if_it_is_on)
{
	setenv("FI_LOG_LEVEL", "warn", 1);
	start_with("RING_BYTES", "1");
	assert_int_equal(shm_params.ring_bytes, SHM_RING_BYTES);
	assert_int_equal(log_count("RING_BYTES"), 0);
}

PLX_TEST_MAIN()
