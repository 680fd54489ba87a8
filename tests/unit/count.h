/* SPDX-License-Identifier: BSD-3-Clause */
/* Resources of a process, to detect leaks. */
#ifndef COUNT_H
#define COUNT_H

#include "plx_test.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

static inline int count_entries(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static inline int count_descriptors(void)
{
	return count_entries("/proc/self/fd");
}

static inline int count_threads(void)
{
	return count_entries("/proc/self/task");
}

/* Of memfd memory. */
static inline int count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, "/memfd:") != NULL;
	fclose(file);
	return count;
}

/* Of malloc(3), in use. What it keeps per thread counts too. */
static inline size_t count_heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Mapped memory, and its resident part. */
struct count_memory {
	size_t mapped_bytes, resident_bytes;
};

static inline struct count_memory count_memory(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped, resident;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%zu %zu", &mapped, &resident), 2);
	fclose(file);
	return (struct count_memory){mapped * page, resident * page};
}

#endif
