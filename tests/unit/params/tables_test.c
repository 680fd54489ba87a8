/* SPDX-License-Identifier: BSD-3-Clause */
/* The file: committed changes are found again, others are not, and files that are no store are not
 * modified. */
#include "store_file.h"

#include "tables_priv.h"

#include <sqlite3.h>
#include <sys/stat.h>

#define ID (UINT64_C(3) << 32) /* exceeds 32 bits */

static struct param number(int64_t value)
{
	struct param param = {
		.name = "a/b",
		.name_length = 3,
		.id = ID,
		.revision = (uint64_t)value + 10,
		.kind = {.type = PARAM_INT, .unit = "mm", .latch = true},
		.value = {PARAM_INT, .integer = value},
		.alarm = {ALARM_LATCHED, -LEVEL_ALARM, 77},
	};

	param.kind.has[LIMIT_ALARM_LOW] = param.kind.has[LIMIT_HYSTERESIS] = true;
	param.kind.limit[LIMIT_HYSTERESIS] = (struct param_value){PARAM_INT, .integer = 2};
	param.kind.limit[LIMIT_ALARM_LOW] = (struct param_value){PARAM_INT, .integer = -4};
	return param;
}

static struct tables *open_it(void)
{
	struct tables *tables;

	assert_works(tables_open(path, &tables));
	return tables;
}

static struct tables *reopen(struct tables *tables)
{
	tables_close(tables);
	return open_it();
}

static void put(struct tables *tables, int64_t value, bool commits)
{
	struct param param = number(value);

	assert_int_equal(tables_begin(tables), 0);
	assert_int_equal(tables_put(tables, &param), 0);
	if (commits)
		assert_int_equal(tables_end(tables, 0), 0);
}

static void assert_taken(const char *by_path)
{
	struct tables *other;

	assert_fails(tables_open(by_path, &other), -EBUSY,
		     "another process has it; end that one, or give another file");
}

/* A file with that value. */
static void write_file(int64_t value)
{
	struct tables *tables = open_it();

	put(tables, value, true);
	tables_close(tables);
}

static struct numbers given; /* as loaded */

static struct store *load(void)
{
	struct tables *tables = open_it();
	struct store *store;

	assert_int_equal(store_create(&store), 0);
	assert_works(tables_load(tables, store, &given));
	tables_close(tables);
	return store;
}

TEST(committed_changes_are_loaded)
{
	struct tables *tables = open_it();

	put(tables, 1, true);
	put(tables, 2, true);
	put(tables, 3, false);
	assert_int_equal(tables_end(tables, -EIO), -EIO);
	tables_close(tables);
	struct store *store = load();
	assert_int_equal(store_count(store), 1);
	assert_int_equal(given.revision, 12);
	const struct param *param = store_find(store, "a/b", 3);
	assert_int_equal(param->value.integer, 2);
	assert_int_equal(param->id, ID);
	assert_int_equal(param->alarm.state, ALARM_LATCHED);
	assert_int_equal(param->alarm.level, -LEVEL_ALARM);
	assert_int_equal(param->alarm.since_ns, 77);
	assert_int_equal(param->kind.limit[LIMIT_HYSTERESIS].integer, 2);
	assert_true(param->kind.latch && param->kind.has[LIMIT_ALARM_LOW]);
	assert_false(param->kind.has[LIMIT_MIN]);
	assert_int_equal(param->kind.limit[LIMIT_ALARM_LOW].integer, -4);
	assert_string_equal(param->kind.unit, "mm");
	store_destroy(store);
}

/* Even before anything is written: an existing file is locked when opened, against readers too. */
TEST(only_one_process_may_open_the_file)
{
	sqlite3 *reader;

	write_file(1);
	struct tables *tables = open_it();
	assert_taken(path);
	assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "SELECT * FROM params", NULL, NULL, NULL),
			 SQLITE_BUSY);
	sqlite3_close(reader);
	put(tables, 2, true);
	tables_close(reopen(tables));
}

/* at: appended to the path. */
static const char *path_and(const char *at)
{
	static char names[4][80];
	static unsigned next;
	char *name = names[next++ % 4];

	snprintf(name, sizeof(names[0]), "%s%s", path, at);
	return name;
}

/* The file or its log. */
static void move_away(const char *at)
{
	assert_int_equal(rename(path_and(at), path_and(*at ? ".old-wal" : ".old")), 0);
}

static void write_text(const char *at)
{
	FILE *file = fopen(path_and(at), "w");

	assert_int_equal(fputs("somebody else's", file) > 0, 1);
	assert_int_equal(fclose(file), 0);
}

static void move_and_replace(const char *at)
{
	move_away(at);
	write_text(at);
}

static void remove_it(const char *at)
{
	assert_int_equal(unlink(path_and(at)), 0);
}

/* All is in the file, no log at the path is applied to the next one, and a foreign log is kept. */
static void check_files_after(void (*change)(const char *), const char *file)
{
	bool is_others = change == move_and_replace && *file;
	struct stat log = {0};

	stat(path_and("-wal"), &log);
	assert_int_equal(log.st_size != 0, is_others);
	if (change != move_away)
		return;
	if (!*file)
		assert_int_equal(rename(path_and(".old"), path), 0);
	struct store *store = load();
	assert_int_equal(store_find(store, "a/b", 3)->value.integer, 2);
	store_destroy(store);
}

TEST(changes_to_a_moved_file_are_reported_as_failed)
{
	static void (*const changes[])(const char *) = {move_away, move_and_replace, remove_it};
	static const char *const files[] = {"", "-wal"};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(changes) * PLX_ARRAY_LEN(files); i++) {
		struct tables *tables = open_it();
		const char *file = files[i % 2];

		put(tables, 1, true);
		changes[i / 2](file);
		put(tables, 2, false);
		assert_fails(tables_end(tables, 0), -ESTALE,
			     *file ? "store.db-wal: it was moved" : "store.db: it was moved");
		assert_taken(path);
		tables_close(tables);
		check_files_after(changes[i / 2], file);
		remove_folder(NULL);
		make_folder(NULL);
	}
}

/* By any path that leads to it, while its log is there. */
TEST(a_path_belongs_to_one_process_even_without_a_file)
{
	struct tables *tables;
	char around[96];

	assert_int_equal(symlink("store.db", path_and(".link")), 0);
	assert_int_equal(tables_open(path_and(".link"), &tables), 0);
	move_away("");
	snprintf(around, sizeof(around), "%s/./store.db", folder);
	assert_taken(path);
	assert_taken(around);
	assert_taken(path_and(".link"));
	assert_int_equal(access(path, F_OK), -1); /* nothing was created */
	tables_close(reopen(tables));
}

static void do_in_it(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

TEST(files_of_other_programs_are_refused)
{
	struct tables *tables;

	do_in_it("CREATE TABLE photos (name TEXT)");
	assert_fails(tables_open(path, &tables), -EINVAL, "something else than plx-params");
	do_in_it("INSERT INTO photos VALUES ('still there')");
	do_in_it("PRAGMA application_id = 0x504c5850; PRAGMA user_version = 1");
	assert_fails(tables_open(path, &tables), -EINVAL, "version 1; this plx-params reads 2");
	remove_it("");
	write_text("");
	assert_fails(tables_open(path, &tables), -EINVAL,
		     "it is no store of plx-params: file is not a database");
}

/* Root may write everything, so another user tries. Return: as tables_open. */
static int open_as_another(mode_t folder_mode, mode_t mode)
{
	struct tables *tables;
	bool is_root = geteuid() == 0;

	assert_int_equal(chmod(path, mode), 0);
	assert_int_equal(chmod(folder, folder_mode), 0);
	assert_int_equal(is_root ? seteuid(65534) : 0, 0);
	int rc = tables_open(path, &tables);
	assert_int_equal(is_root ? seteuid(0) : 0, 0);
	assert_int_equal(chmod(folder, 0755), 0);
	return rc;
}

TEST(files_that_cannot_be_written_are_not_opened)
{
	struct tables *tables;

	write_file(1);
	assert_fails(open_as_another(0755, 0444), -EROFS,
		     "store.db: it can be read, not written; let this user write it");
	assert_fails(open_as_another(0555, 0666), -EROFS,
		     " cannot be written, where SQLite has files next to that one; let this "
		     "user write it, or give another file");
	assert_fails(tables_open(":memory:", &tables), -EINVAL,
		     ":memory:: SQLite does not write ahead for it");
}

TEST(paths_that_are_no_files_are_refused)
{
	struct tables *tables;
	char below[96];

	assert_fails(tables_open(folder, &tables), -EISDIR, ": it is a folder; give a file");
	snprintf(below, sizeof(below), "%s/none/store.db", folder);
	assert_fails(tables_open(below, &tables), -ENOENT,
		     "/none does not exist; make it, or give another file");
	assert_fails(tables_open("/dev/null/store.db", &tables), -ENOTDIR,
		     "/dev/null/store.db: /dev/null is no folder; give another file");
	snprintf(below, sizeof(below), "%s/link", folder);
	assert_int_equal(symlink("/none/here/store.db", below), 0);
	assert_fails(tables_open(below, &tables), -ENOENT,
		     "/link: it is a symbolic link to /none/here/store.db: No such file");
	unlink(below);
}

/* Load a file in which "a/b" is 1, after this edit. Return: as tables_load. */
static int load_edited(const char *edit)
{
	struct store *store;

	write_file(1);
	do_in_it(edit);
	struct tables *tables = open_it();
	assert_int_equal(store_create(&store), 0);
	int rc = tables_load(tables, store, &given);
	store_destroy(store);
	tables_close(tables);
	do_in_it("DELETE FROM params; REPLACE INTO counters VALUES ('revision', 0), ('id', 0)");
	return rc;
}

TEST(invalid_rows_are_refused)
{
	static const struct {
		const char *edit, *wrong;
	} edits[] = {
		{"value = 'x'", "a value is not of its type"},
		{"alarm = 'loud'", "its alarm is none that there is"},
		{"name = 'a//b'", "empty segment"},
		{"name = CAST('a/b' AS BLOB)", "its name is no text"},
		{"id = 0", "its id is no whole number"},
		{"id = 9223372036854775807",
		 "its id is no whole number from 1 to 4611686018427387903"},
		{"level = 0", "its alarm is not of its level"},
		{"since = 'today'", "its alarm has no time"},
		{"hysteresis = -1", "the hysteresis is negative"},
		{"revision = 9223372036854775807", "its revision is no number that was counted"},
		{"unit = 'm' || char(27)", "a unit has control characters"},
		{"unit = x'41'", "its unit is no text"},
		{"latch = 2", "its latch is neither 0 nor 1"},
		{"min = 2, alarm_low = 3", "1 is below 2 mm, the least"},
		{"max = 0", "1 is above 0 mm, the most"},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(edits); i++) {
		char sql[256];

		snprintf(sql, sizeof(sql), "UPDATE params SET %s", edits[i].edit);
		if (load_edited(sql) != -EINVAL)
			fail_msg("%s: it was loaded", sql);
		assert_error_has("parameter 'a");
		assert_error_has(edits[i].wrong);
		assert_error_has("mend it with sqlite3");
	}
	assert_int_equal(load_edited("UPDATE params SET value = 2"), 0);
}

TEST(invalid_counters_are_refused)
{
	static const char *const edits[] = {
		"DELETE FROM counters WHERE name = 'id'",
		"UPDATE counters SET value = -1",
		"UPDATE counters SET value = 9223372036854775807 WHERE name = 'revision'",
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(edits); i++) {
		assert_fails(load_edited(edits[i]), -EINVAL, "table counters: '");
		assert_error_has("mend it with sqlite3");
	}
}

static enum alarm_state alarm_after(const char *edit)
{
	write_file(1);
	do_in_it(edit);
	struct store *store = load();
	enum alarm_state alarm = store_find(store, "a/b", 3)->alarm.state;
	store_destroy(store);
	return alarm;
}

TEST(alarms_are_recomputed_for_edited_values)
{
	assert_int_equal(alarm_after("UPDATE params SET value = -5, alarm = 'none', level = 0"),
			 ALARM_ACTIVE);
	assert_int_equal(alarm_after("UPDATE params SET value = -5, alarm = 'acknowledged'"),
			 ALARM_ACKNOWLEDGED);
	assert_int_equal(alarm_after("UPDATE params SET alarm = 'active'"), ALARM_LATCHED);
	assert_int_equal(alarm_after("UPDATE params SET alarm = 'active', latch = 0"), ALARM_NONE);
}

PLX_TEST_MAIN()
