/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing the file. */
#include "tables_priv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPLICATION_ID 0x504c5850 /* "PLXP" */
#define VERSION        2

#define VALUES         "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17"

static const char *const statements[] = {
	[BEGIN] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
	[ROLLBACK] = "ROLLBACK",
	[PUT] = "INSERT INTO params (name, " COLUMNS ") VALUES (?1, " VALUES ") "
		"ON CONFLICT (name) DO UPDATE SET (" COLUMNS ") = (" VALUES ")",
	[REMOVE] = "DELETE FROM params WHERE name = ?1",
	[LOAD] = tables_select_all,
	[MARK] = "UPDATE counters SET value = iif(name = 'revision', ?1, ?2)",
};

static int fail_busy(const struct tables *tables)
{
	return plx_fail(EBUSY, "%s: another process has it; end that one, or give another file",
			tables->path);
}

int tables_fail(const struct tables *tables, int error, const char *what)
{
	if ((sqlite3_errcode(tables->db) & 0xff) == SQLITE_BUSY)
		return fail_busy(tables);
	return plx_fail(error, "%s: %s: %s", tables->path, what, sqlite3_errmsg(tables->db));
}

/* SQLite only reports that it cannot open the file, so look for the reason. */
static int fail_to_open(const struct tables *tables, int error, const char *what)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t length = readlink(tables->path, target, sizeof(target));
	const char *folder;
	struct stat there;

	if (stat(tables->path, &there) == 0 && S_ISDIR(there.st_mode))
		return plx_fail(EISDIR, "%s: it is a folder; give a file, such as one in it",
				tables->path);
	if (length >= 0 && stat(tables->path, &there) != 0)
		return plx_fail(ENOENT,
				"%s: it is a symbolic link to %.*s: %s; make that, or give another "
				"file",
				tables->path, (int)length, target, strerror(errno));
	snprintf(path, sizeof(path), "%s", tables->path);
	folder = dirname(path);
	if (stat(folder, &there) != 0 && errno == ENOENT)
		return plx_fail(ENOENT,
				"%s: folder %s does not exist; make it, or give another file",
				tables->path, folder);
	if (stat(folder, &there) == 0 && !S_ISDIR(there.st_mode))
		return plx_fail(ENOTDIR, "%s: %s is no folder; give another file", tables->path,
				folder);
	if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
		return plx_fail(EROFS,
				"%s: folder %s cannot be written, where SQLite has files "
				"next to that one; let this user write it, or give another file",
				tables->path, folder);
	return tables_fail(tables, error, what);
}

static int run(struct tables *tables, const char *sql)
{
	return sqlite3_exec(tables->db, sql, NULL, NULL, NULL) == SQLITE_OK
		     ? 0
		     : tables_fail(tables, EIO, "it cannot be used");
}

int64_t tables_ask(const struct tables *tables, const char *sql)
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

static int make_tables(struct tables *tables)
{
	char sql[2048];

	snprintf(sql, sizeof(sql),
		 "BEGIN IMMEDIATE;"
		 "PRAGMA application_id = %d; PRAGMA user_version = %d;"
		 "CREATE TABLE params (name TEXT PRIMARY KEY NOT NULL, id INTEGER UNIQUE NOT NULL, "
		 "revision INTEGER NOT NULL, type TEXT NOT NULL, value NOT NULL, unit TEXT NOT "
		 "NULL, latch INTEGER NOT NULL, alarm TEXT NOT NULL, level INTEGER NOT NULL, since "
		 "INTEGER NOT NULL, min, max, alarm_low, alarm_high, warn_low, warn_high, "
		 "hysteresis) "
		 "WITHOUT ROWID;"
		 "CREATE TABLE counters (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) "
		 "WITHOUT ROWID;"
		 "INSERT INTO counters VALUES ('revision', 0), ('id', 0);"
		 "COMMIT",
		 APPLICATION_ID, VERSION);
	return run(tables, sql);
}

/* Change nothing until the file is known to be a store, or empty. */
static int check_file(struct tables *tables)
{
	int64_t objects = tables_ask(tables, "SELECT count(*) FROM sqlite_schema");
	int code = sqlite3_errcode(tables->db) & 0xff;
	int64_t id, version;

	/* The log must be created before anything can be read. */
	if (objects < 0 && (code == SQLITE_READONLY || code == SQLITE_CANTOPEN))
		return fail_to_open(tables, EROFS, "SQLite cannot create files next to it");
	if (objects < 0)
		return tables_fail(tables, EINVAL, "it is no store of plx-params");
	id = tables_ask(tables, "PRAGMA application_id");
	version = tables_ask(tables, "PRAGMA user_version");
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

/* SQLite uses the mode that it can, without an error: another one for a file without a disk. */
static int write_ahead(struct tables *tables)
{
	int rc = run(tables, "PRAGMA journal_mode = WAL");

	if (rc || tables_ask(tables, "SELECT journal_mode = 'wal' FROM pragma_journal_mode") == 1)
		return rc;
	return plx_fail(EINVAL,
			"%s: SQLite does not write ahead for it, so that nothing would last; give "
			"the path of a file",
			tables->path);
}

static int prepare_all(struct tables *tables)
{
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		if (sqlite3_prepare_v3(tables->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
				       &tables->ready[i], NULL) != SQLITE_OK)
			return tables_fail(tables, EINVAL, "its tables are not those of a store");
	}
	return 0;
}

static int open_file(struct tables *tables)
{
	if (sqlite3_open_v2(tables->path, &tables->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
			    NULL) != SQLITE_OK)
		return fail_to_open(tables, EIO, "it cannot be opened");
	/* SQLite silently opens a file without write permission read-only. */
	if (sqlite3_db_readonly(tables->db, "main") == 1)
		return plx_fail(EROFS,
				"%s: it can be read, not written; let this user write it and its "
				"folder, or give another file",
				tables->path);
	return 0;
}

/* The log ------------------------------------------------------------------------------------- */

/* SQLite locks the file. It does not lock the log, finds it by name, and would apply it to any file
 * that gets the name, so this process locks it too. Some file systems cannot lock.
 * Return: 0, with -1 if there is no log; -EBUSY another process has it. */
static int lock_log(const struct tables *tables, const char *path, int *log_out)
{
	*log_out = open(path, O_RDWR | O_CLOEXEC); /* NFS locks only what may be written */
	if (*log_out < 0 || flock(*log_out, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	return fail_busy(tables);
}

/* As SQLite does, follow symbolic links, even to a file that does not exist. */
static int check_log(const struct tables *tables)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	char full[PATH_MAX], path[PATH_MAX + 4];
	int log, rc;

	if ((vfs->xFullPathname(vfs, tables->path, PATH_MAX, full) & 0xff) != SQLITE_OK)
		return 0; /* opening it reports the error */
	snprintf(path, sizeof(path), "%s-wal", full);
	rc = lock_log(tables, path, &log);
	if (log >= 0)
		close(log);
	return rc;
}

static const char *log_path(const struct tables *tables)
{
	return sqlite3_filename_wal(sqlite3_db_filename(tables->db, "main"));
}

static bool has_log_moved(const struct tables *tables)
{
	struct stat ours, there;

	return tables->log >= 0 &&
	       (stat(log_path(tables), &there) != 0 || fstat(tables->log, &ours) != 0 ||
		there.st_dev != ours.st_dev || there.st_ino != ours.st_ino);
}

int tables_check_path(const struct tables *tables)
{
	int has_moved = 0;

	sqlite3_file_control(tables->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
	if (!has_moved && !has_log_moved(tables))
		return 0;
	return plx_fail(ESTALE, "%s%s: it was moved, removed or replaced while this process had it",
			tables->path, has_moved ? "" : "-wal");
}

/* SQLite keeps the log of a moved file at the old path, and would apply it to the next file there.
 * It also removes a log by name, even if another log has that name by now. */
static void end_log(struct tables *tables)
{
	int keeps = 1;

	if (tables->log < 0)
		return;
	sqlite3_wal_checkpoint_v2(tables->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	if (has_log_moved(tables))
		sqlite3_file_control(tables->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps);
}

/* All together -------------------------------------------------------------------------------- */

/* Request the lock before reading: SQLite takes it then and keeps it. Two writing processes would
 * not see each other's changes. A commit is on the disk when it returns. */
static int open_all(struct tables *tables)
{
	int rc = check_log(tables);

	rc = rc ? rc : open_file(tables);
	rc = rc ? rc : run(tables, "PRAGMA locking_mode = EXCLUSIVE");
	rc = rc ? rc : check_file(tables);
	rc = rc ? rc : write_ahead(tables);
	rc = rc ? rc : run(tables, "PRAGMA synchronous = FULL");
	rc = rc ? rc : prepare_all(tables);
	rc = rc ? rc : run(tables, "BEGIN IMMEDIATE; COMMIT"); /* opens the log */
	return rc ? rc : lock_log(tables, log_path(tables), &tables->log);
}

int tables_open(const char *path, struct tables **tables_out)
{
	struct tables *tables = calloc(1, sizeof(*tables));
	int rc;

	if (!tables)
		return plx_fail(ENOMEM, "out of memory");
	tables->log = -1;
	tables->path = path;
	rc = open_all(tables);
	if (rc)
		tables_close(tables);
	else
		*tables_out = tables;
	return rc;
}

void tables_close(struct tables *tables)
{
	if (!tables)
		return;
	for (int i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(tables->ready[i]);
	end_log(tables);
	sqlite3_close(tables->db);
	if (tables->log >= 0)
		close(tables->log);
	free(tables);
}
