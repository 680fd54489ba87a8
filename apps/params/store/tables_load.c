/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the file into a store. Tools may have edited it, so everything is checked: a row that
 * could not be written back unchanged would block all writing later. */
#include "tables_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char select_all[] = "SELECT name, " COLUMNS " FROM params ORDER BY name";

static int index_of(const char *const *names, const unsigned char *text)
{
	for (int i = 0; text && names[i]; i++) {
		if (strcmp(names[i], (const char *)text) == 0)
			return i;
	}
	return -1;
}

static bool is_within(sqlite3_stmt *row, int column, int64_t min, int64_t max)
{
	int64_t value = sqlite3_column_int64(row, column);

	return sqlite3_column_type(row, column) == SQLITE_INTEGER && value >= min && value <= max;
}

/* One row ----------------------------------------------------------------------------------------
 */

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

static const char *read_unit(sqlite3_stmt *row, struct param_kind *kind)
{
	if (sqlite3_column_type(row, UNIT) != SQLITE_TEXT)
		return "its unit is no text";
	return param_kind_set_unit(kind, sqlite3_column_text(row, UNIT),
				   (size_t)sqlite3_column_bytes(row, UNIT));
}

static const char *read_kind(sqlite3_stmt *row, struct param_kind *kind)
{
	const char *wrong = read_unit(row, kind);

	kind->type = (enum param_type)(index_of(param_types, sqlite3_column_text(row, TYPE)) + 1);
	for (int i = 0; i < LIMIT_COUNT && !wrong; i++) {
		kind->has[i] = sqlite3_column_type(row, LIMITS + i) != SQLITE_NULL;
		if (kind->has[i])
			wrong = read_value(row, LIMITS + i, kind->type, &kind->limit[i]);
	}
	if (!is_within(row, LATCH, 0, 1))
		return "its latch is neither 0 nor 1";
	kind->latch = sqlite3_column_int(row, LATCH);
	return wrong ? wrong : param_kind_check(kind);
}

/* A BLOB name differs from the TEXT of the same bytes, which is what is written. Check the type
 * first, because reading it as text converts it. */
static const char *read_name(sqlite3_stmt *row, struct param *param)
{
	int stored = sqlite3_column_type(row, NAME);

	param->name = (const char *)sqlite3_column_text(row, NAME);
	param->name_length = (uint32_t)sqlite3_column_bytes(row, NAME);
	return stored == SQLITE_TEXT ? param_name_check(param->name, param->name_length)
				     : "its name is no text";
}

static const char *read_numbers(sqlite3_stmt *row, struct param *param)
{
	if (!is_within(row, ID, 1, TABLES_NUMBER_MAX))
		return "its id is no whole number from 1 to 4611686018427387903";
	if (!is_within(row, REVISION, 0, TABLES_NUMBER_MAX))
		return "its revision is no number that was counted";
	param->id = (uint64_t)sqlite3_column_int64(row, ID);
	param->revision = (uint64_t)sqlite3_column_int64(row, REVISION);
	return NULL;
}

/* The value and the limits may have been edited, so the alarm is recomputed from them. */
static const char *read_alarm(sqlite3_stmt *row, struct param *param)
{
	int alarm = index_of(param_alarms, sqlite3_column_text(row, ALARM));

	if (alarm < 0 || !is_within(row, LEVEL, -LEVEL_ALARM, LEVEL_ALARM))
		return "its alarm is none that there is";
	if (!is_within(row, SINCE, 0, INT64_MAX))
		return "its alarm has no time";
	param->alarm = (struct param_alarm){
		.state = (enum alarm_state)alarm,
		.level = sqlite3_column_int(row, LEVEL),
		.since_ns = (uint64_t)sqlite3_column_int64(row, SINCE),
	};
	if (param_alarm_check(&param->alarm) != NULL)
		return "its alarm is not of its level";
	param->alarm = param_alarm_next(&param->kind, param->alarm, &param->value, param_now_ns());
	return NULL;
}

static const char *read_row(sqlite3_stmt *row, struct param *param)
{
	const char *wrong;

	*param = (struct param){0};
	wrong = read_name(row, param);
	wrong = wrong ? wrong : read_numbers(row, param);
	wrong = wrong ? wrong : read_kind(row, &param->kind);
	wrong = wrong ? wrong : read_value(row, VALUE, param->kind.type, &param->value);
	if (!wrong && param_value_beyond(&param->kind, &param->value) != 0)
		wrong = plx_error();
	return wrong ? wrong : read_alarm(row, param);
}

/* All rows
 * --------------------------------------------------------------------------------------- */

static int prepare(struct tables *tables, const char *sql, sqlite3_stmt **row_out)
{
	return sqlite3_prepare_v2(tables->db, sql, -1, row_out, NULL) == SQLITE_OK
		     ? 0
		     : tables_fail(tables, EINVAL, "its tables are not those of a store");
}

static int fail_row(const struct tables *tables, const char *name, int length, const char *wrong)
{
	return plx_fail(EINVAL, "%s: parameter '%.*s': %s; mend it with sqlite3", tables->path,
			length, name ? name : "", wrong);
}

static int load_rows(struct tables *tables, struct store *store, sqlite3_stmt *row)
{
	int step;

	while ((step = sqlite3_step(row)) == SQLITE_ROW) {
		struct param param;
		const char *wrong = read_row(row, &param);
		int rc;

		if (wrong)
			return fail_row(tables, param.name, (int)param.name_length, wrong);
		rc = store_restore(store, &param);
		if (rc)
			return rc;
		store_set_revision(store, param.revision, param.id);
	}
	return step == SQLITE_DONE ? 0 : tables_fail(tables, EIO, "it cannot be read");
}

static int load_params(struct tables *tables, struct store *store)
{
	sqlite3_stmt *row;
	int rc = prepare(tables, select_all, &row);

	if (rc)
		return rc;
	rc = load_rows(tables, store, row);
	sqlite3_finalize(row);
	return rc;
}

/* plx-params's own table cannot contain this; one copied by a tool can. */
static int check_ids(struct tables *tables)
{
	sqlite3_stmt *row;
	int rc = prepare(tables, "SELECT name FROM params GROUP BY id HAVING count(*) > 1", &row);

	if (rc)
		return rc;
	if (sqlite3_step(row) == SQLITE_ROW)
		rc = fail_row(tables, (const char *)sqlite3_column_text(row, 0),
			      sqlite3_column_bytes(row, 0), "its id is another one's too");
	sqlite3_finalize(row);
	return rc;
}

static int load_counter(struct tables *tables, const char *name, int64_t max, int64_t *value_out)
{
	sqlite3_stmt *row;
	int rc = prepare(tables, "SELECT value FROM counters WHERE name = ?1", &row);

	if (rc)
		return rc;
	sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
	if (sqlite3_step(row) == SQLITE_ROW && is_within(row, 0, 0, max))
		*value_out = sqlite3_column_int64(row, 0);
	else
		rc = plx_fail(EINVAL,
			      "%s: table counters: '%s' is no whole number from 0 to %" PRId64
			      "; mend it with sqlite3",
			      tables->path, name, max);
	sqlite3_finalize(row);
	return rc;
}

int tables_load(struct tables *tables, struct store *store)
{
	int64_t revision = 0, id = 0;
	int rc = load_counter(tables, "revision", TABLES_NUMBER_MAX, &revision);

	rc = rc ? rc : load_counter(tables, "id", TABLES_NUMBER_MAX, &id);
	rc = rc ? rc : check_ids(tables);
	rc = rc ? rc : load_params(tables, store);
	if (rc == 0)
		store_set_revision(store, (uint64_t)revision, (uint64_t)id);
	return rc;
}
