/* SPDX-License-Identifier: BSD-3-Clause */
/* The file: what was committed is there again, what was not is not, and what is no store is left
 * alone. */
#include "plx_test.h"

#include "tables.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/plx-params-XXXXXX";
static char path[64];

static int start(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/plx-params-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/store.db", folder);
	return 0;
}

static int stop(void **state)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(ends); i++) {
		char name[80];

		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
	return rmdir(folder);
}

static struct param number(int64_t value)
{
	struct param param = {
		.name = "a/b",
		.name_length = 3,
		.id = 3,
		.revision = (uint64_t)value + 10,
		.kind = {.type = PARAM_INT, .unit = "mm", .latch = true},
		.value = {PARAM_INT, .integer = value},
		.alarm = ALARM_LATCHED,
	};

	param.kind.has[LIMIT_ALARM_LOW] = true;
	param.kind.limit[LIMIT_ALARM_LOW] = (struct param_value){PARAM_INT, .integer = -4};
	return param;
}

static struct tables *open_it(void)
{
	struct tables *tables;

	if (tables_open(path, &tables) != 0)
		fail_msg("%s", plx_error());
	return tables;
}

static void put(struct tables *tables, int64_t value, bool commits)
{
	struct param param = number(value);

	assert_int_equal(tables_begin(tables), 0);
	assert_int_equal(tables_put(tables, &param), 0);
	if (commits)
		assert_int_equal(tables_commit(tables), 0);
}

static struct store *load(void)
{
	struct tables *tables = open_it();
	struct store *store;

	assert_int_equal(store_create(&store), 0);
	if (tables_load(tables, store) != 0)
		fail_msg("%s", plx_error());
	tables_close(tables);
	return store;
}

static void what_was_committed_is_there_again(void **state)
{
	struct tables *tables = open_it();
	struct store *store;
	const struct param *param;

	put(tables, 1, true);
	put(tables, 2, true);
	put(tables, 3, false);
	tables_roll_back(tables);
	tables_close(tables);
	store = load();
	assert_int_equal(store_count(store), 1);
	assert_int_equal(store_revision(store), 12);
	param = store_find(store, "a/b", 3);
	assert_int_equal(param->value.integer, 2);
	assert_int_equal(param->id, 3);
	assert_int_equal(param->alarm, ALARM_LATCHED);
	assert_true(param->kind.latch && param->kind.has[LIMIT_ALARM_LOW]);
	assert_false(param->kind.has[LIMIT_MIN]);
	assert_int_equal(param->kind.limit[LIMIT_ALARM_LOW].integer, -4);
	assert_string_equal(param->kind.unit, "mm");
	store_destroy(store);
}

/* A process that is killed in the middle of its work, at any point of it: what it has said to be
 * committed is there. */
static void a_process_that_is_killed(void **state)
{
	for (int round = 0; round < 8; round++) {
		int64_t said = 0, now;
		int ends[2];
		struct store *store;
		pid_t child;

		assert_int_equal(pipe(ends), 0);
		child = fork();
		if (child == 0) {
			struct tables *tables = open_it();

			for (int64_t i = 1;; i++) {
				put(tables, i, true);
				if (write(ends[1], &i, sizeof(i)) != sizeof(i))
					_exit(1);
			}
		}
		close(ends[1]);
		for (int i = 0; i < 20 + 7 * round; i++)
			assert_int_equal(read(ends[0], &said, sizeof(said)), sizeof(said));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		while (read(ends[0], &now, sizeof(now)) == sizeof(now))
			said = now;
		close(ends[0]);
		store = load();
		assert_in_range(store_find(store, "a/b", 3)->value.integer, said, said + 1);
		store_destroy(store);
	}
}

static void what_was_removed_is_not_numbered_anew(void **state)
{
	struct tables *tables = open_it();
	struct param param = number(5);
	struct param_kind kind = {.type = PARAM_INT};
	struct param_value value = {PARAM_INT, .integer = 0};
	const struct param *made;
	struct store *store;

	put(tables, 5, true);
	param.revision = 99;
	assert_int_equal(tables_begin(tables), 0);
	assert_int_equal(tables_remove(tables, &param), 0);
	assert_int_equal(tables_commit(tables), 0);
	tables_close(tables);
	store = load();
	assert_int_equal(store_count(store), 0);
	assert_int_equal(store_define(store, "new", 3, &kind, &value, &made), 0);
	assert_int_equal(made->revision, 100);
	assert_int_equal(made->id, 4);
	store_destroy(store);
}

static void another_process_has_it(void **state)
{
	struct tables *tables = open_it(), *other;

	put(tables, 1, true);
	assert_int_equal(tables_open(path, &other), -EBUSY);
	assert_error_has("another process has it");
	tables_close(tables);
}

static void do_in_it(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void files_of_something_else(void **state)
{
	struct tables *tables;

	do_in_it("CREATE TABLE photos (name TEXT)");
	assert_int_equal(tables_open(path, &tables), -EINVAL);
	assert_error_has("something else than plx-params");
	do_in_it("INSERT INTO photos VALUES ('still there')");
	do_in_it("PRAGMA application_id = 0x504c5850; PRAGMA user_version = 2");
	assert_int_equal(tables_open(path, &tables), -EINVAL);
	assert_error_has("version 2; this plx-params reads 1");
}

static void rows_that_make_no_sense(void **state)
{
	static const char *const rows[] = {
		"UPDATE params SET value = 'x'",     "UPDATE params SET type = 'complex'",
		"UPDATE params SET alarm = 'loud'",  "UPDATE params SET name = 'a//b'",
		"UPDATE params SET alarm_low = 'x'", "UPDATE params SET id = 0",
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct tables *tables = open_it();
		struct store *store;

		put(tables, 1, true);
		tables_close(tables);
		do_in_it(rows[i]);
		tables = open_it();
		assert_int_equal(store_create(&store), 0);
		assert_int_equal(tables_load(tables, store), -EINVAL);
		assert_error_has("mend it with sqlite3");
		store_destroy(store);
		tables_close(tables);
		do_in_it("DELETE FROM params");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_committed_is_there_again),
		TEST(a_process_that_is_killed),
		TEST(what_was_removed_is_not_numbered_anew),
		TEST(another_process_has_it),
		TEST(files_of_something_else),
		TEST(rows_that_make_no_sense),
	};

	return cmocka_run_group_tests_name("params_tables", tests, NULL, NULL);
}
