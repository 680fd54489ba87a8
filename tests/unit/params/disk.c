/* SPDX-License-Identifier: BSD-3-Clause */
#include "disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX    4
#define FILE_BYTES   (16u << 20)
#define SECTOR_BYTES 512

/* A file as programs see it, and as it is guaranteed on the disk. */
struct image {
	char name[64];   /* "": none */
	bool is_durable; /* its directory entry is on the disk */
	size_t bytes, synced_bytes, bytes_max;
	uint8_t now[FILE_BYTES], synced[FILE_BYTES];
};

struct open_file {
	sqlite3_file base; /* must be first */
	struct image *image;
};

struct disk disk;
char disk_path[32];
static struct image images[FILES_MAX];

/* Return: SQLITE_OK, or the error of a disk that does not accept the step. */
static int take_step(int error)
{
	uint32_t step = ++disk.steps;

	if (disk.fault == FAULT_NONE || step < disk.fails_at ||
	    (disk.fault == FAULT_ONE_STEP && step > disk.fails_at))
		return SQLITE_OK;
	disk.failures++;
	return disk.fault == FAULT_DAMAGED ? SQLITE_CORRUPT : error;
}

static void clear_image(struct image *image)
{
	memset(image->now, 0, image->bytes_max);
	memset(image->synced, 0, image->bytes_max);
	image->name[0] = '\0';
	image->is_durable = false;
	image->bytes = image->synced_bytes = image->bytes_max = 0;
}

static struct image *find(const char *name, bool makes)
{
	struct image *empty = NULL;

	for (unsigned i = 0; i < FILES_MAX; i++) {
		if (strcmp(images[i].name, name) == 0)
			return &images[i];
		if (!images[i].name[0])
			empty = &images[i];
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
	int rc = take_step(SQLITE_FULL);

	if (rc)
		return rc;
	assert_in_range(end, 0, FILE_BYTES);
	memcpy(image->now + offset, data, (size_t)length);
	if (end > image->bytes)
		image->bytes = end;
	if (end > image->bytes_max)
		image->bytes_max = end;
	return SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	int rc = take_step(SQLITE_IOERR_TRUNCATE);

	if (rc == SQLITE_OK)
		image_of(file)->bytes = (size_t)size;
	return rc;
}

static int file_sync(sqlite3_file *file, int flags)
{
	struct image *image = image_of(file);
	int rc = take_step(SQLITE_IOERR_FSYNC);

	if (disk.slow_ns)
		nanosleep(&(struct timespec){0, disk.slow_ns}, NULL);
	if (rc)
		return rc;
	memcpy(image->synced, image->now, image->bytes);
	image->synced_bytes = image->bytes;
	image->is_durable = true;
	disk.syncs++;
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
	if (op != SQLITE_FCNTL_HAS_MOVED)
		return SQLITE_NOTFOUND;
	*(int *)arg = disk.is_moved;
	return SQLITE_OK;
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

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
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

static int delete_file(sqlite3_vfs *vfs, const char *name, int syncs_folder)
{
	struct image *image = find(name, false);
	int rc = image ? take_step(SQLITE_IOERR_DELETE) : SQLITE_IOERR_DELETE_NOENT;

	if (rc == SQLITE_OK)
		clear_image(image);
	return rc;
}

static int look_for_file(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
	*out = find(name, false) != NULL;
	return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
	snprintf(out, (size_t)size, "%s", name);
	return SQLITE_OK;
}

/* Time and random numbers are the system's. */
int disk_init(void **state)
{
	static sqlite3_vfs vfs;

	if (!vfs.zName) {
		vfs = *sqlite3_vfs_find(NULL);
		vfs.iVersion = 1;
		vfs.zName = "disk";
		vfs.szOsFile = sizeof(struct open_file);
		vfs.xOpen = open_file;
		vfs.xDelete = delete_file;
		vfs.xAccess = look_for_file;
		vfs.xFullPathname = full_path;
	}
	snprintf(disk_path, sizeof(disk_path), "store-%d.db", (int)getpid());
	disk_clear();
	return sqlite3_vfs_register(&vfs, 1);
}

void disk_clear(void)
{
	for (unsigned i = 0; i < FILES_MAX; i++)
		clear_image(&images[i]);
	memset(&disk, 0, sizeof(disk));
}

void disk_set_fault(enum fault fault)
{
	disk.fails_at = disk.steps + 1;
	disk.fault = fault;
}

/* Each unsynced sector may have been written or not. */
static void lose_some(struct image *image)
{
	size_t bytes = rand() % 2 ? image->bytes : image->synced_bytes;

	if (!image->is_durable && rand() % 2) {
		clear_image(image);
		return;
	}
	for (size_t at = 0; at < image->bytes_max; at += SECTOR_BYTES) {
		if (rand() % 2)
			memcpy(image->now + at, image->synced + at, SECTOR_BYTES);
	}
	if (bytes < image->bytes_max)
		memset(image->now + bytes, 0, image->bytes_max - bytes);
	memcpy(image->synced, image->now, image->bytes_max);
	image->bytes = image->synced_bytes = bytes;
}

void disk_lose_power(void)
{
	for (unsigned i = 0; i < FILES_MAX; i++)
		lose_some(&images[i]);
	disk.fault = FAULT_NONE;
}
