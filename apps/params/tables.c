/* SPDX-License-Identifier: BSD-3-Clause */
#include "tables.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION_ID 0x504c5850 /* "PLXP" */
#define VERSION        1

enum statement { BEGIN, COMMIT, ROLLBACK, PUT, REMOVE, NOTE, STATEMENT_COUNT };

static const char *const statements[] = {
	[BEGIN] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
	[ROLLBACK] = "ROLLBACK",
	[PUT] = "INSERT INTO params (name, id, revision, type, value, unit, min, max, alarm_low, "
		"alarm_high, latch, alarm) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
		"?12) "
		"ON CONFLICT (name) DO UPDATE SET id = ?2, revision = ?3, type = ?4, value = ?5, "
		"unit = ?6, "
		"min = ?7, max = ?8, alarm_low = ?9, alarm_high = ?10, latch = ?11, alarm = ?12",
	[REMOVE] = "DELETE FROM params WHERE name = ?1",
	[NOTE] = "UPDATE counters SET value = max(value, ?2) WHERE name = ?1",
};

struct tables {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *ready[STATEMENT_COUNT];
};

static int fail(const struct tables *tables, int error, const char *what)
{
	return plx_fail(error, "%s: %s: %s", tables->path, what, sqlite3_errmsg(tables->db));
}

static int run(struct tables *tables, const char *sql)
{
	return sqlite3_exec(tables->db, sql, NULL, NULL, NULL) == SQLITE_OK
		     ? 0
		     : fail(tables, EIO, "it cannot be used");
}

/* Return: the number that a PRAGMA says; -1 it cannot be asked. */
static int64_t ask(struct tables *tables, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t value = -1;

	if (sqlite3_prepare_v2(tables->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return -1;
	if (sqlite3_step(statement) == SQLITE_ROW)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

/* Opening ----------------------------------------------------------------------------------------
 */

static int make_tables(struct tables *tables)
{
	char sql[2048];

	snprintf(sql, sizeof(sql),
		 "BEGIN IMMEDIATE;"
		 "PRAGMA application_id = %d; PRAGMA user_version = %d;"
		 "CREATE TABLE params (name TEXT PRIMARY KEY NOT NULL, id INTEGER UNIQUE NOT NULL, "
		 "revision INTEGER NOT NULL, type TEXT NOT NULL, value NOT NULL, unit TEXT NOT "
		 "NULL, "
		 "min, max, alarm_low, alarm_high, latch INTEGER NOT NULL, alarm TEXT NOT NULL) "
		 "WITHOUT ROWID;"
		 "CREATE TABLE counters (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) "
		 "WITHOUT ROWID;"
		 "INSERT INTO counters VALUES ('revision', 0), ('id', 0);"
		 "COMMIT",
		 APPLICATION_ID, VERSION);
	return run(tables, sql);
}

/* Nothing is changed before it is known to be a store, or empty. */
static int check_file(struct tables *tables)
{
	int64_t objects = ask(tables, "SELECT count(*) FROM sqlite_schema");
	int64_t id = ask(tables, "PRAGMA application_id");
	int64_t version = ask(tables, "PRAGMA user_version");

	if (objects < 0 && sqlite3_errcode(tables->db) == SQLITE_BUSY)
		return plx_fail(EBUSY, "%s: another process has it", tables->path);
	if (objects < 0)
		return fail(tables, EINVAL, "it is no store of plx-params");
	if (objects == 0 && id == 0)
		return make_tables(tables);
	if (id != APPLICATION_ID)
		return plx_fail(EINVAL,
				"%s: it is an SQLite file of something else than plx-params",
				tables->path);
	if (version != VERSION)
		return plx_fail(EINVAL,
				"%s: a store of version %" PRId64 "; this plx-params reads %d",
				tables->path, version, VERSION);
	return 0;
}

static int prepare_all(struct tables *tables)
{
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		if (sqlite3_prepare_v3(tables->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
				       &tables->ready[i], NULL) != SQLITE_OK)
			return fail(tables, EINVAL, "its tables are not those of a store");
	}
	return 0;
}

/* Of one process alone: two that write would not know of each other's changes. A commit is on the
 * disk when it returns. */
static const char *const settings =
	"PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";

int tables_open(const char *path, struct tables **tables_out)
{
	struct tables *tables = calloc(1, sizeof(*tables));
	int rc;

	if (!tables)
		return plx_fail(ENOMEM, "out of memory");
	tables->path = strdup(path);
	if (!tables->path) {
		free(tables);
		return plx_fail(ENOMEM, "out of memory");
	}
	rc = sqlite3_open_v2(path, &tables->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
	if (rc != SQLITE_OK)
		rc = fail(tables, EIO, "it cannot be opened");
	rc = rc ? rc : check_file(tables);
	rc = rc ? rc : run(tables, settings);
	rc = rc ? rc : prepare_all(tables);
	if (rc) {
		tables_close(tables);
		return rc;
	}
	*tables_out = tables;
	return 0;
}

void tables_close(struct tables *tables)
{
	if (!tables)
		return;
	for (int i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(tables->ready[i]);
	sqlite3_close(tables->db);
	free(tables->path);
	free(tables);
}

/* Loading ----------------------------------------------------------------------------------------
 */

static int index_of(const char *const *names, const unsigned char *text)
{
	for (int i = 0; text && names[i]; i++) {
		if (strcmp(names[i], (const char *)text) == 0)
			return i;
	}
	return -1;
}

/* Return: NULL, or what is wrong. */
static const char *read_value(sqlite3_stmt *row, int column, enum param_type type,
			      struct param_value *out)
{
	int stored = sqlite3_column_type(row, column);

	*out = (struct param_value){.type = type};
	if (type == PARAM_TEXT && stored == SQLITE_TEXT) {
		out->text.bytes = (const char *)sqlite3_column_text(row, column);
		out->text.length = (uint32_t)sqlite3_column_bytes(row, column);
	} else if (type == PARAM_REAL && (stored == SQLITE_FLOAT || stored == SQLITE_INTEGER)) {
		out->real = sqlite3_column_double(row, column);
	} else if ((type == PARAM_INT || type == PARAM_BOOL) && stored == SQLITE_INTEGER) {
		out->integer = sqlite3_column_int64(row, column);
	} else {
		return "a value is not of its type";
	}
	return param_value_check(out);
}

static const char *read_kind(sqlite3_stmt *row, struct param_kind *kind)
{
	const char *wrong = NULL;

	kind->type = (enum param_type)(index_of(param_types, sqlite3_column_text(row, 3)) + 1);
	snprintf(kind->unit, sizeof(kind->unit), "%s", (const char *)sqlite3_column_text(row, 5));
	for (int i = 0; i < LIMIT_COUNT && !wrong; i++) {
		kind->has[i] = sqlite3_column_type(row, 6 + i) != SQLITE_NULL;
		if (kind->has[i])
			wrong = read_value(row, 6 + i, kind->type, &kind->limit[i]);
	}
	kind->latch = sqlite3_column_int(row, 10) != 0;
	return wrong ? wrong : param_kind_check(kind);
}

static const char *read_row(sqlite3_stmt *row, struct param *param)
{
	int alarm = index_of(param_alarms, sqlite3_column_text(row, 11));
	const char *wrong;

	*param = (struct param){
		.name = (const char *)sqlite3_column_text(row, 0),
		.name_length = (uint32_t)sqlite3_column_bytes(row, 0),
		.id = (uint32_t)sqlite3_column_int64(row, 1),
		.revision = (uint64_t)sqlite3_column_int64(row, 2),
		.alarm = (enum param_alarm)alarm,
	};
	wrong = param_name_check(param->name, param->name_length);
	if (!wrong && (alarm < 0 || param->id == 0))
		wrong = "its alarm or id is none";
	wrong = wrong ? wrong : read_kind(row, &param->kind);
	return wrong ? wrong : read_value(row, 4, param->kind.type, &param->value);
}

static int load_rows(struct tables *tables, struct store *store, sqlite3_stmt *row)
{
	int step;

	while ((step = sqlite3_step(row)) == SQLITE_ROW) {
		struct param param;
		const char *wrong = read_row(row, &param);
		int rc;

		if (wrong)
			return plx_fail(EINVAL, "%s: parameter '%.*s': %s; mend it with sqlite3",
					tables->path, (int)param.name_length, param.name, wrong);
		rc = store_restore(store, &param);
		if (rc)
			return rc;
		store_set_revision(store, param.revision, param.id);
	}
	return step == SQLITE_DONE ? 0 : fail(tables, EIO, "it cannot be read");
}

int tables_load(struct tables *tables, struct store *store)
{
	sqlite3_stmt *row;
	int rc;

	if (sqlite3_prepare_v2(tables->db,
			       "SELECT name, id, revision, type, value, unit, min, max, alarm_low, "
			       "alarm_high, latch, alarm FROM params ORDER BY name",
			       -1, &row, NULL) != SQLITE_OK)
		return fail(tables, EINVAL, "its tables are not those of a store");
	rc = load_rows(tables, store, row);
	sqlite3_finalize(row);
	if (rc)
		return rc;
	store_set_revision(
		store, (uint64_t)ask(tables, "SELECT value FROM counters WHERE name = 'revision'"),
		(uint32_t)ask(tables, "SELECT value FROM counters WHERE name = 'id'"));
	return 0;
}

/* Writing ----------------------------------------------------------------------------------------
 */

static int step(struct tables *tables, enum statement which)
{
	sqlite3_stmt *statement = tables->ready[which];
	int rc = sqlite3_step(statement);

	if (rc != SQLITE_DONE)
		rc = fail(tables, EIO, "it cannot be written");
	else
		rc = 0;
	sqlite3_reset(statement);
	return rc;
}

static void bind_value(sqlite3_stmt *statement, int at, const struct param_value *value)
{
	if (value->type == PARAM_REAL)
		sqlite3_bind_double(statement, at, value->real);
	else if (value->type == PARAM_TEXT)
		sqlite3_bind_text(statement, at, value->text.bytes, (int)value->text.length,
				  SQLITE_STATIC);
	else
		sqlite3_bind_int64(statement, at, value->integer);
}

static void bind_name(sqlite3_stmt *statement, const struct param *param)
{
	sqlite3_bind_text(statement, 1, param->name, (int)param->name_length, SQLITE_STATIC);
}

/* What was removed is not numbered anew. */
static int note(struct tables *tables, const char *name, uint64_t value)
{
	sqlite3_bind_text(tables->ready[NOTE], 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(tables->ready[NOTE], 2, (int64_t)value);
	return step(tables, NOTE);
}

int tables_begin(struct tables *tables)
{
	return step(tables, BEGIN);
}

int tables_put(struct tables *tables, const struct param *param)
{
	sqlite3_stmt *put = tables->ready[PUT];

	bind_name(put, param);
	sqlite3_bind_int64(put, 2, param->id);
	sqlite3_bind_int64(put, 3, (int64_t)param->revision);
	sqlite3_bind_text(put, 4, param_types[param->kind.type - 1], -1, SQLITE_STATIC);
	bind_value(put, 5, &param->value);
	sqlite3_bind_text(put, 6, param->kind.unit, -1, SQLITE_STATIC);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (param->kind.has[i])
			bind_value(put, 7 + i, &param->kind.limit[i]);
		else
			sqlite3_bind_null(put, 7 + i);
	}
	sqlite3_bind_int(put, 11, param->kind.latch);
	sqlite3_bind_text(put, 12, param_alarms[param->alarm], -1, SQLITE_STATIC);
	return step(tables, PUT);
}

int tables_remove(struct tables *tables, const struct param *param)
{
	int rc;

	bind_name(tables->ready[REMOVE], param);
	rc = step(tables, REMOVE);
	rc = rc ? rc : note(tables, "revision", param->revision);
	return rc ? rc : note(tables, "id", param->id);
}

int tables_commit(struct tables *tables)
{
	return step(tables, COMMIT);
}

void tables_roll_back(struct tables *tables)
{
	sqlite3_step(tables->ready[ROLLBACK]);
	sqlite3_reset(tables->ready[ROLLBACK]);
}
