/* SPDX-License-Identifier: BSD-3-Clause */
/* The path of the file: one process claims it, and the opened file must stay there. */
#include "base_internal.h"
#include "tables_priv.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A claim ----------------------------------------------------------------------------------------
 */

/* FNV-1a: a socket's name is shorter than a file's may be. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return hash;
}

/* The name of a file in a directory, independent of the path to the directory. sun_path[0] stays 0:
 * the name is abstract. Return: the address's length; 0 no such directory. */
static socklen_t make_address(const char *path, struct sockaddr_un *address_out)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	char full[PATH_MAX], folder[PATH_MAX];
	const char *slash;
	struct stat there;
	int length;

	/* As SQLite does: follow symbolic links, even to a file that does not exist. */
	if ((vfs->xFullPathname(vfs, path, sizeof(full), full) & 0xff) != SQLITE_OK)
		return 0;
	tables_folder_of(full, folder);
	if (stat(folder, &there) != 0)
		return 0;
	slash = strrchr(full, '/');
	*address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(address_out->sun_path + 1, sizeof(address_out->sun_path) - 1,
			  "pollux/params/%jx.%jx/%jx", (uintmax_t)there.st_dev,
			  (uintmax_t)there.st_ino, (uintmax_t)hash_of(slash ? slash + 1 : full));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Return: 0; -EADDRINUSE another socket has the name; -errno, also in claim. */
static int bind_claim(struct tables *tables, const struct sockaddr_un *address, socklen_t length)
{
	tables->claim = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (tables->claim >= 0 &&
	    bind(tables->claim, (const struct sockaddr *)address, length) == 0)
		return 0;
	return -errno;
}

/* Any user can bind any abstract name, and must not block a service with it. If the kernel does not
 * report the user, the claim counts. */
static int pass_over(struct tables *tables, const struct sockaddr_un *address, socklen_t length)
{
	uid_t user;
	int rc = plx_unix_owner(address, length, &user);

	assert(tables->claim >= 0); /* the name was in use */
	if (rc == -ESRCH && bind(tables->claim, (const struct sockaddr *)address, length) == 0)
		return 0; /* the owner has just exited */
	if (rc != -ESRCH && (rc || user == 0 || plx_is_this_user(user)))
		return tables_fail_busy(tables);
	close(tables->claim);
	tables->claim = -1;
	if (rc)
		plx_log(params_log, PLX_LOG_WARNING,
			"%s: its path is not claimed: an unknown user holds the name of the claim; "
			"do not move the file while this process runs",
			tables->path);
	else
		plx_log(params_log, PLX_LOG_WARNING,
			"%s: its path is not claimed: user %u holds the name of the claim; do not "
			"move the file while this process runs",
			tables->path, (unsigned)user);
	return 0;
}

/* SQLite locks the file, which may be moved; a socket's name stays, and ends with the process in
 * every case. */
int tables_claim_path(struct tables *tables)
{
	struct sockaddr_un address;
	socklen_t length = make_address(tables->path, &address);
	int rc;

	if (!length)
		return 0; /* opening it reports the error */
	rc = bind_claim(tables, &address, length);
	if (rc == -EADDRINUSE)
		return pass_over(tables, &address, length);
	return rc ? plx_fail(-rc, "%s: its path cannot be claimed: %s", tables->path, strerror(-rc))
		  : 0;
}

/* The files --------------------------------------------------------------------------------------
 */

static const char *log_path(const struct tables *tables)
{
	return sqlite3_filename_wal(sqlite3_db_filename(tables->db, "main"));
}

void tables_note_log(struct tables *tables)
{
	struct stat there;

	tables->has_log = stat(log_path(tables), &there) == 0;
	if (tables->has_log) {
		tables->log_device = there.st_dev;
		tables->log_inode = there.st_ino;
	}
}

static bool has_log_moved(const struct tables *tables)
{
	struct stat there;

	return tables->has_log &&
	       (stat(log_path(tables), &there) != 0 || there.st_dev != tables->log_device ||
		there.st_ino != tables->log_inode);
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

	if (!tables->has_log)
		return;
	sqlite3_wal_checkpoint_v2(tables->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	if (has_log_moved(tables))
		sqlite3_file_control(tables->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps);
}
