/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing into the file. */
#include "tables_priv.h"

#include <errno.h>

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
	sqlite3_bind_text(statement, 1, param->name, (int)param->name_length, SQLITE_STATIC);
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
	sqlite3_bind_int64(put, 2, (int64_t)param->id);
	sqlite3_bind_int64(put, 3, (int64_t)param->revision);
	sqlite3_bind_text(put, 4, param_types[param->kind.type - 1], -1, SQLITE_STATIC);
	bind_value(put, 5, &param->value);
	sqlite3_bind_text(put, 6, param->kind.unit, -1, SQLITE_STATIC);
	sqlite3_bind_int(put, 7, param->kind.latch);
	sqlite3_bind_text(put, 8, param_alarms[param->alarm.state], -1, SQLITE_STATIC);
	sqlite3_bind_int(put, 9, param->alarm.level);
	sqlite3_bind_int64(put, 10, (int64_t)param->alarm.since_ns);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (param->kind.has[i])
			bind_value(put, 11 + i, &param->kind.limit[i]);
		else
			sqlite3_bind_null(put, 11 + i);
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
