/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows: reading them into a store, and writing. Tools may have edited them, so everything is
 * checked: a row that could not be written back unchanged would block all writing later. */
#include "tables_priv.h"

#include <string.h>

/* Greater revisions and ids were never given. */
#define NUMBER_MAX "4611686018427387903"

/* What the checks of parameters do not see: SQLite keeps any type in any column, and converts it
 * when it is read. A BLOB name differs from the TEXT of the same bytes, which is what is written.
 * plx-params's own table cannot have one id twice; one copied by a tool can. */
/* clang-format off */
#define IS_NUMBER(column, min) \
	"(typeof(" column ") = 'integer' AND " column " BETWEEN " min " AND " NUMBER_MAX ")"
#define IS_OF_TYPE(column) \
	"CASE type WHEN 'text' THEN typeof(" column ") = 'text'" \
	" WHEN 'real' THEN typeof(" column ") IN ('real', 'integer')" \
	" ELSE typeof(" column ") = 'integer' END"
#define IS_LIMIT(column) "(" column " IS NULL OR " IS_OF_TYPE(column) ")"
#define IF(condition, wrong) " WHEN " condition " THEN '" wrong "'"

const char tables_select_all[] =
	"SELECT name, " COLUMNS ", CASE"
	IF("typeof(name) != 'text'", "its name is no text")
	IF("NOT " IS_NUMBER("id", "1"), "its id is no whole number from 1 to " NUMBER_MAX)
	IF("count(*) OVER (PARTITION BY id) > 1", "its id is another one''s too")
	IF("NOT " IS_NUMBER("revision", "0"), "its revision is no number that was counted")
	IF("typeof(unit) != 'text'", "its unit is no text")
	IF("NOT (" IS_OF_TYPE("value") " AND " IS_LIMIT("min") " AND " IS_LIMIT("max")
	   " AND " IS_LIMIT("alarm_low") " AND " IS_LIMIT("alarm_high") " AND " IS_LIMIT("warn_low")
	   " AND " IS_LIMIT("warn_high") " AND " IS_LIMIT("hysteresis") ")",
	   "a value is not of its type")
	IF("latch IS NOT 0 AND latch IS NOT 1", "its latch is neither 0 nor 1")
	IF("typeof(level) != 'integer' OR level NOT BETWEEN -2 AND 2", "its alarm is none that there is")
	IF("(alarm = 'none') != (level = 0)", "its alarm is not of its level")
	IF("typeof(since) != 'integer' OR since < 0", "its alarm has no time")
	" END FROM params ORDER BY name";
/* clang-format on */

/* One row ------------------------------------------------------------------------------------- */

/* Return: -1: unknown. */
static int index_of(const char *const *names, const unsigned char *text)
{
	for (int i = 0; text && names[i]; i++) {
		if (strcmp(names[i], (const char *)text) == 0)
			return i;
	}
	return -1;
}

static struct param_value value_of(sqlite3_stmt *row, int column, enum param_type type)
{
	struct param_value value = {.type = type};

	if (type == PARAM_TEXT) {
		value.text.bytes = (const char *)sqlite3_column_text(row, column);
		value.text.length = (uint32_t)sqlite3_column_bytes(row, column);
	} else if (type == PARAM_REAL) {
		value.real = sqlite3_column_double(row, column);
	} else {
		value.integer = sqlite3_column_int64(row, column);
	}
	return value;
}

static const char *read_kind(sqlite3_stmt *row, struct param_kind *kind)
{
	kind->type = (enum param_type)(index_of(param_types, sqlite3_column_text(row, TYPE)) + 1);
	kind->latch = sqlite3_column_int(row, LATCH);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		kind->has[i] = sqlite3_column_type(row, LIMITS + i) != SQLITE_NULL;
		if (kind->has[i])
			kind->limit[i] = value_of(row, LIMITS + i, kind->type);
	}
	return param_kind_set_unit(kind, sqlite3_column_text(row, UNIT),
				   (size_t)sqlite3_column_bytes(row, UNIT));
}

/* The value and the limits may have been edited, so the alarm is recomputed from them.
 * Return: NULL, or what is wrong. */
static const char *read_row(sqlite3_stmt *row, struct param *param)
{
	const char *wrong = (const char *)sqlite3_column_text(row, WRONG);
	int alarm = index_of(param_alarms, sqlite3_column_text(row, ALARM)); /* if not wrong */

	*param = (struct param){
		.name = (const char *)sqlite3_column_text(row, NAME),
		.name_length = (uint32_t)sqlite3_column_bytes(row, NAME),
		.id = (uint64_t)sqlite3_column_int64(row, ID),
		.revision = (uint64_t)sqlite3_column_int64(row, REVISION),
		.alarm = {alarm < 0 ? ALARM_NONE : (enum alarm_state)alarm,
			  sqlite3_column_int(row, LEVEL),
			  (uint64_t)sqlite3_column_int64(row, SINCE)},
	};
	wrong = wrong ? wrong : read_kind(row, &param->kind);
	param->value = value_of(row, VALUE, param->kind.type);
	wrong = wrong ? wrong : param_check(param);
	if (!wrong && param_value_beyond(&param->kind, &param->value) != 0)
		wrong = plx_error();
	if (!wrong)
		param->alarm = param_alarm_next(&param->kind, param->alarm, &param->value,
						param_now_ns());
	return wrong;
}

/* All rows ------------------------------------------------------------------------------------ */

static int load_row(const struct tables *tables, sqlite3_stmt *row, struct store *store,
		    struct numbers *given)
{
	struct param param;
	const char *wrong = read_row(row, &param);

	if (!wrong && store_find(store, param.name, param.name_length))
		wrong = "its name is another one's too";
	if (wrong)
		return plx_fail(EINVAL, "%s: parameter '%.*s': %s; mend it with sqlite3",
				tables->path, (int)param.name_length, param.name ? param.name : "",
				wrong);
	if (!store_put(store, &param))
		return -ENOMEM;
	if (param.revision > given->revision)
		given->revision = param.revision;
	if (param.id > given->id)
		given->id = param.id;
	return 0;
}

static int load_params(struct tables *tables, struct store *store, struct numbers *given)
{
	sqlite3_stmt *row = tables->ready[LOAD];
	int step, rc = 0;

	while ((step = sqlite3_step(row)) == SQLITE_ROW && rc == 0)
		rc = load_row(tables, row, store, given);
	if (rc == 0 && step != SQLITE_DONE)
		rc = tables_fail(tables, EIO, "it cannot be read");
	sqlite3_reset(row);
	return rc;
}

#define COUNTER(name) \
	"SELECT value FROM counters WHERE name = '" name "' AND " IS_NUMBER("value", "0")

int tables_load(struct tables *tables, struct store *store, struct numbers *given_out)
{
	int64_t revision = tables_ask(tables, COUNTER("revision"));
	int64_t id = tables_ask(tables, COUNTER("id"));

	if (revision < 0 || id < 0)
		return plx_fail(EINVAL,
				"%s: table counters: '%s' is no whole number from 0 to " NUMBER_MAX
				"; mend it with sqlite3",
				tables->path, revision < 0 ? "revision" : "id");
	*given_out = (struct numbers){(uint64_t)revision, (uint64_t)id};
	return load_params(tables, store, given_out);
}

/* Writing ------------------------------------------------------------------------------------- */

/* A full disk may have room later. A record that the table rejects will be rejected again, and a
 * damaged file accepts nothing. */
static int fail_step(const struct tables *tables, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
		return tables_fail(tables, EINVAL, "it does not take that");
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return tables_fail(tables, EUCLEAN, "it is damaged");
	default:
		return tables_fail(tables, EIO, "it cannot be written");
	}
}

static int step(struct tables *tables, enum statement which)
{
	sqlite3_stmt *statement = tables->ready[which];
	int rc = sqlite3_step(statement);

	rc = rc == SQLITE_DONE ? 0 : fail_step(tables, rc);
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
	sqlite3_bind_text(statement, NAME + 1, param->name, (int)param->name_length, SQLITE_STATIC);
}

int tables_begin(struct tables *tables)
{
	return step(tables, BEGIN);
}

int tables_put(struct tables *tables, const struct param *param)
{
	sqlite3_stmt *put = tables->ready[PUT];

	if (param->removed) {
		bind_name(tables->ready[REMOVE], param);
		return step(tables, REMOVE);
	}
	bind_name(put, param);
	sqlite3_bind_int64(put, ID + 1, (int64_t)param->id);
	sqlite3_bind_int64(put, REVISION + 1, (int64_t)param->revision);
	sqlite3_bind_text(put, TYPE + 1, param_types[param->kind.type - 1], -1, SQLITE_STATIC);
	bind_value(put, VALUE + 1, &param->value);
	sqlite3_bind_text(put, UNIT + 1, param->kind.unit, -1, SQLITE_STATIC);
	sqlite3_bind_int(put, LATCH + 1, param->kind.latch);
	sqlite3_bind_text(put, ALARM + 1, param_alarms[param->alarm.state], -1, SQLITE_STATIC);
	sqlite3_bind_int(put, LEVEL + 1, param->alarm.level);
	sqlite3_bind_int64(put, SINCE + 1, (int64_t)param->alarm.since_ns);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (param->kind.has[i])
			bind_value(put, LIMITS + 1 + i, &param->kind.limit[i]);
		else
			sqlite3_bind_null(put, LIMITS + 1 + i);
	}
	return step(tables, PUT);
}

int tables_mark(struct tables *tables, const struct numbers *given)
{
	sqlite3_bind_int64(tables->ready[MARK], 1, (int64_t)given->revision);
	sqlite3_bind_int64(tables->ready[MARK], 2, (int64_t)given->id);
	return step(tables, MARK);
}

int tables_end(struct tables *tables, int rc)
{
	rc = rc ? rc : step(tables, COMMIT);
	if (rc == 0)
		return tables_check_path(tables);
	sqlite3_step(tables->ready[ROLLBACK]);
	sqlite3_reset(tables->ready[ROLLBACK]);
	return rc;
}
