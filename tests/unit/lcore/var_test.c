/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"

static struct plx_lcore_var create(size_t size_bytes, size_t align_bytes)
{
	struct plx_lcore_var var = {0};

	assert_works(plx_lcore_var_create(size_bytes, align_bytes, &var));
	assert_int_not_equal(var.offset, 0);
	return var;
}

static int write_mine(void *arg)
{
	int *mine = plx_lcore_var_mine(*(struct plx_lcore_var *)arg);

	*mine += (int)plx_lcore_id() + 1;
	return *mine;
}

TWO_LCORES(each_lcore_has_a_private_copy)
{
	struct plx_lcore_var var = create(sizeof(int), 0); /* after init too */

	assert_int_equal(write_mine(&var), 1);
	assert_int_equal(run_on(10, write_mine, &var), 11);
	assert_int_equal(run_on(10, write_mine, &var), 22);
	assert_int_equal(*(int *)plx_lcore_var_of(var, 0), 1);
	assert_int_equal(*(int *)plx_lcore_var_of(var, 10), 22);
	assert_ptr_equal(plx_lcore_var_of(var, 0), plx_lcore_var_mine(var));
	assert_null(plx_lcore_var_of(var, 7));
	assert_null(plx_lcore_var_of(var, PLX_LCORE_NONE));
}

PLX_TEST(copies_are_zero_after_every_init)
{
	struct plx_lcore_var var = create(sizeof(int), 0); /* before init */

	for (unsigned i = 0; i < 2; i++) {
		lcores_up(2);
		assert_int_equal(*(int *)plx_lcore_var_of(var, 10), 0);
		assert_int_equal(write_mine(&var), 1);
		assert_int_equal(run_on(10, write_mine, &var), 11);
		lcores_down();
		assert_null(plx_lcore_var_of(var, 0));
	}
}

TWO_LCORES(copies_are_aligned_and_apart)
{
	uintptr_t end = 0;

	for (size_t align = 1, size = 1; align <= 64; align *= 2, size += 5) {
		struct plx_lcore_var var = create(size, align);
		uintptr_t at = (uintptr_t)plx_lcore_var_of(var, 10);

		assert_int_equal(at % align, 0);
		assert_true(at >= end);
		end = at + size;
	}
}

TWO_LCORES(bad_sizes_and_alignments_are_refused)
{
	struct plx_lcore_var var = {77};

	assert_fails(plx_lcore_var_create(0, 0, &var), -EINVAL,
		     "0 bytes aligned to 8: give at least 1, and a power of two up to 64");
	assert_int_equal(plx_lcore_var_create(8, 3, &var), -EINVAL);
	assert_fails(plx_lcore_var_create(8, 128, &var), -EINVAL, "8 bytes aligned to 128");
	assert_fails(plx_lcore_var_create(PLX_LCORE_VAR_BYTES, 0, &var), -ENOMEM,
		     "of 32768 are taken; keep a pointer");
	assert_int_equal(plx_lcore_var_create(SIZE_MAX, 0, &var), -ENOMEM);
	assert_int_equal(var.offset, 77);
}

/* The last one, because memory is never returned. */
TWO_LCORES(variables_use_all_bytes)
{
	struct plx_lcore_var var, last = {0};
	unsigned count = 0;

	while (plx_lcore_var_create(64, 64, &var) == 0) {
		last = var;
		count++;
	}
	assert_true(count > PLX_LCORE_VAR_BYTES / 64 / 2);
	assert_int_equal(last.offset, PLX_LCORE_VAR_BYTES - 64);
	assert_error_has("64 bytes: 32768 of 32768 are taken");
	assert_int_equal(plx_lcore_var_create(1, 1, &var), -ENOMEM);
	memset(plx_lcore_var_mine(last), 0xff, 64);
	assert_int_equal(plx_loop_turn(), 0);
}

PLX_TEST_MAIN()
