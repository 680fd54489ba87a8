/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of the file and its log, which must stay there. SQLite locks the file. It does not lock
 * the log, finds it by name, and would apply it to any file that gets the name, so this process
 * locks it too. */
#include "tables_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Return: 0; -EBUSY another process has it. Some file systems cannot lock: 0. */
static int lock(const struct tables *tables, int log)
{
	if (flock(log, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	return tables_fail_busy(tables);
}

/* As SQLite does, follow symbolic links, even to a file that does not exist. */
int tables_check_log(const struct tables *tables)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	char full[PATH_MAX], path[PATH_MAX + 4];
	int log, rc;

	if ((vfs->xFullPathname(vfs, tables->path, PATH_MAX, full) & 0xff) != SQLITE_OK)
		return 0; /* opening it reports the error */
	snprintf(path, sizeof(path), "%s-wal", full);
	log = open(path, O_RDWR | O_CLOEXEC); /* NFS locks only what may be written */
	if (log < 0)
		return 0;
	rc = lock(tables, log);
	close(log);
	return rc;
}

static const char *log_path(const struct tables *tables)
{
	return sqlite3_filename_wal(sqlite3_db_filename(tables->db, "main"));
}

int tables_lock_log(struct tables *tables)
{
	tables->log = open(log_path(tables), O_RDWR | O_CLOEXEC);
	return tables->log < 0 ? 0 : lock(tables, tables->log);
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
void tables_end_log(struct tables *tables)
{
	int keeps = 1;

	if (tables->log < 0)
		return;
	sqlite3_wal_checkpoint_v2(tables->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	if (has_log_moved(tables))
		sqlite3_file_control(tables->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps);
}
