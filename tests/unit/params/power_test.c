/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk that fails at each step in turn, or whose power is cut there: everything reported as
 * committed is found at the next start. */
#include "disk.h"
#include "int_param.h"

#include "tables.h"

#define STEPS_MAX     400
#define LIVES         2  /* the file is closed in between, which rewrites it */
#define COMMITS       10 /* in each */
#define SEEDS_PER_CUT 3

/* Return: whether the file accepted the value. */
static bool commit(struct tables *tables, int64_t value)
{
	struct param param = int_param("a", 1, (uint64_t)value, value);

	return tables_begin(tables) == 0 && tables_end(tables, tables_put(tables, &param)) == 0;
}

/* Return: the value found at a start; 0: none. */
static int64_t find_value(void)
{
	struct numbers given;
	struct tables *tables;
	struct store *store;

	if (tables_open(disk_path, &tables) != 0)
		fail_msg("%u steps: %s", disk.fails_at, plx_error());
	assert_int_equal(store_create(&store), 0);
	if (tables_load(tables, store, &given) != 0)
		fail_msg("%u steps: %s", disk.fails_at, plx_error());
	const struct param *param = store_find(store, "a", 1);
	int64_t value = param ? param->value.integer : 0;
	store_destroy(store);
	tables_close(tables);
	return value;
}

/* Return: the last value reported as written. */
static int64_t live(void)
{
	int64_t reported = 0;

	for (int64_t life = 0; life < LIVES; life++) {
		struct tables *tables;

		if (tables_open(disk_path, &tables) != 0 && tables_open(disk_path, &tables) != 0)
			continue;
		for (int64_t i = life * COMMITS + 1; i <= (life + 1) * COMMITS; i++) {
			if (commit(tables, i) || commit(tables, i)) /* as the journal does */
				reported = i;
		}
		tables_close(tables);
	}
	return reported;
}

/* Return: whether there was such a step. */
static bool fail_at(uint32_t step, enum fault fault)
{
	disk_clear();
	disk.fails_at = step;
	disk.fault = fault;
	int64_t reported = live();
	bool failed = disk.steps >= step;
	if (fault == FAULT_POWER_CUT)
		disk_lose_power();
	int64_t found = find_value();
	if (found < reported)
		fail_msg("step %u: %lld was reported as written, %lld is on the disk", step,
			 (long long)reported, (long long)found);
	if (fault == FAULT_ONE_STEP)
		assert_int_equal(reported, LIVES * COMMITS); /* it works again by then */
	return failed;
}

PLX_TEST(reported_changes_survive_a_power_cut)
{
	bool failed = true;

	for (uint32_t step = 1; failed; step++) {
		for (unsigned seed = 0; seed < SEEDS_PER_CUT; seed++) {
			srand(step * SEEDS_PER_CUT + seed);
			failed = fail_at(step, FAULT_POWER_CUT);
		}
		assert_in_range(step, 0, STEPS_MAX);
	}
}

PLX_TEST(a_failed_write_loses_no_reported_change)
{
	for (uint32_t step = 1; fail_at(step, FAULT_ONE_STEP); step++)
		assert_in_range(step, 0, STEPS_MAX);
}

PLX_FIXTURE(down, 0)

PLX_TEST_MAIN_WITH(disk_init, down)
