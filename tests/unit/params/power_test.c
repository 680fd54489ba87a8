/* SPDX-License-Identifier: BSD-3-Clause */
/* SQLite's disk, simulated in memory. It fails at any step, or the power is cut there; then each
 * unsynced sector is as before or as written. Everything reported as committed is there. */
#include "int_param.h"
#include "plx_test.h"

#include "tables.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#define FILES_MAX     4
#define FILE_BYTES    (256u << 10)
#define SECTOR_BYTES  512
#define STEPS_MAX     400
#define LIVES         2  /* the file is closed in between, which rewrites it */
#define COMMITS       10 /* in each */
#define SEEDS_PER_CUT 3

/* A file as programs see it, and as it is guaranteed on the disk. */
struct image {
	char name[64];   /* "": none */
	bool is_durable; /* its directory entry is on the disk */
	size_t bytes, synced_bytes;
	uint8_t now[FILE_BYTES], synced[FILE_BYTES];
};

struct open_file {
	sqlite3_file base; /* must be first */
	struct image *image;
};

enum fault { FAILS_ONCE, POWER_IS_CUT };

static char store_name[32]; /* of this process, because a path is claimed */

static struct {
	struct image images[FILES_MAX];
	uint32_t steps; /* writes, syncs, truncations, deletions so far */
	uint32_t fails_at;
	enum fault fault;
} disk;

/* Return: whether the disk accepts it. */
static bool take_step(void)
{
	disk.steps++;
	return disk.steps < disk.fails_at ||
	       (disk.fault == FAILS_ONCE && disk.steps > disk.fails_at);
}

static struct image *find(const char *name, bool makes)
{
	struct image *empty = NULL;

	for (unsigned i = 0; i < FILES_MAX; i++) {
		if (strcmp(disk.images[i].name, name) == 0)
			return &disk.images[i];
		if (!disk.images[i].name[0])
			empty = &disk.images[i];
	}
	if (!makes)
		return NULL;
	assert_non_null(empty);
	snprintf(empty->name, sizeof(empty->name), "%s", name);
	return empty;
}

static struct image *image_of(sqlite3_file *file)
{
	return ((struct open_file *)file)->image;
}

/* There is nothing to close, and it has no traits. */
static int file_nothing(sqlite3_file *file)
{
	return 0;
}

static int file_read(sqlite3_file *file, void *out, int length, sqlite3_int64 offset)
{
	const struct image *image = image_of(file);
	size_t there = (size_t)offset < image->bytes ? image->bytes - (size_t)offset : 0;

	memset(out, 0, (size_t)length);
	if (there > (size_t)length)
		there = (size_t)length;
	memcpy(out, image->now + offset, there);
	return there == (size_t)length ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *data, int length, sqlite3_int64 offset)
{
	struct image *image = image_of(file);
	size_t end = (size_t)offset + (size_t)length;

	if (!take_step())
		return SQLITE_FULL;
	assert_in_range(end, 0, FILE_BYTES);
	memcpy(image->now + offset, data, (size_t)length);
	if (end > image->bytes)
		image->bytes = end;
	return SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	if (!take_step())
		return SQLITE_IOERR_TRUNCATE;
	image_of(file)->bytes = (size_t)size;
	return SQLITE_OK;
}

static int file_sync(sqlite3_file *file, int flags)
{
	struct image *image = image_of(file);

	if (!take_step())
		return SQLITE_IOERR_FSYNC;
	memcpy(image->synced, image->now, image->bytes);
	image->synced_bytes = image->bytes;
	image->is_durable = true;
	return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size_out)
{
	*size_out = (sqlite3_int64)image_of(file)->bytes;
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *file, int level)
{
	return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *file, int *out)
{
	*out = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *file)
{
	return SECTOR_BYTES;
}

/* Version 1: no shared memory between processes, which an exclusively locked file does not need. */
static const sqlite3_io_methods file_methods = {
	.iVersion = 1,
	.xClose = file_nothing,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_is_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_nothing,
};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
		     int *flags_out)
{
	struct open_file *opened = (struct open_file *)file;

	opened->base.pMethods = NULL;
	opened->image = find(name, flags & SQLITE_OPEN_CREATE);
	if (!opened->image)
		return SQLITE_CANTOPEN;
	opened->base.pMethods = &file_methods;
	if (flags_out)
		*flags_out = flags;
	return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int syncs_folder)
{
	struct image *image = find(name, false);

	if (!image)
		return SQLITE_IOERR_DELETE_NOENT;
	if (!take_step())
		return SQLITE_IOERR_DELETE;
	memset(image, 0, sizeof(*image));
	return SQLITE_OK;
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
	*out = find(name, false) != NULL;
	return SQLITE_OK;
}

static int disk_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
	snprintf(out, (size_t)size, "%s", name);
	return SQLITE_OK;
}

/* Time and random numbers are the system's. */
static sqlite3_vfs make_disk(void)
{
	sqlite3_vfs vfs = *sqlite3_vfs_find(NULL);

	vfs.iVersion = 1;
	vfs.zName = "power";
	vfs.szOsFile = sizeof(struct open_file);
	vfs.xOpen = disk_open;
	vfs.xDelete = disk_delete;
	vfs.xAccess = disk_access;
	vfs.xFullPathname = disk_path;
	return vfs;
}

/* Each unsynced sector may have been written or not. */
static void lose_power(void)
{
	for (unsigned i = 0; i < FILES_MAX; i++) {
		struct image *image = &disk.images[i];
		size_t bytes = rand() % 2 ? image->bytes : image->synced_bytes;

		if (!image->is_durable && rand() % 2) {
			memset(image, 0, sizeof(*image));
			continue;
		}
		for (size_t at = 0; at < FILE_BYTES; at += SECTOR_BYTES) {
			if (rand() % 2)
				memcpy(image->now + at, image->synced + at, SECTOR_BYTES);
		}
		memset(image->now + bytes, 0, FILE_BYTES - bytes);
		memcpy(image->synced, image->now, FILE_BYTES);
		image->bytes = image->synced_bytes = bytes;
	}
	disk.fails_at = UINT32_MAX;
}

/* Return: whether the file accepted the value. */
static bool commit(struct tables *tables, int64_t value)
{
	struct param param = int_param("a", 1, (uint64_t)value, value);

	if (tables_begin(tables) != 0)
		return false;
	if (tables_put(tables, &param) == 0 && tables_commit(tables) == 0)
		return true;
	tables_roll_back(tables);
	return false;
}

/* Return: the value found at a start; 0: none. */
static int64_t find_value(void)
{
	struct tables *tables;
	struct store *store;

	if (tables_open(store_name, &tables) != 0)
		fail_msg("%u steps: %s", disk.fails_at, plx_error());
	assert_int_equal(store_create(&store), 0);
	if (tables_load(tables, store) != 0)
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

		if (tables_open(store_name, &tables) != 0 && tables_open(store_name, &tables) != 0)
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
	memset(&disk, 0, sizeof(disk));
	disk.fails_at = step;
	disk.fault = fault;
	int64_t reported = live();
	bool failed = disk.steps >= step;
	if (fault == POWER_IS_CUT)
		lose_power();
	int64_t found = find_value();
	if (found < reported)
		fail_msg("step %u: %lld was reported as written, %lld is on the disk", step,
			 (long long)reported, (long long)found);
	if (fault == FAILS_ONCE)
		assert_int_equal(reported, LIVES * COMMITS); /* it works again by then */
	return failed;
}

PLX_TEST(reported_changes_survive_a_power_cut)
{
	bool failed = true;

	for (uint32_t step = 1; failed; step++) {
		for (unsigned seed = 0; seed < SEEDS_PER_CUT; seed++) {
			srand(step * SEEDS_PER_CUT + seed);
			failed = fail_at(step, POWER_IS_CUT);
		}
		assert_in_range(step, 0, STEPS_MAX);
	}
}

PLX_TEST(a_failed_write_loses_no_reported_change)
{
	for (uint32_t step = 1; fail_at(step, FAILS_ONCE); step++)
		assert_in_range(step, 0, STEPS_MAX);
}

int main(void)
{
	sqlite3_vfs vfs = make_disk();

	snprintf(store_name, sizeof(store_name), "store-%d.db", (int)getpid());
	assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
	return plx_test_run("params_power", NULL, NULL);
}
