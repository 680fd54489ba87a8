/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder below /tmp for a test. One that stands for "/" is a fake host. */
#ifndef FOLDER_H
#define FOLDER_H

#include "plx_test.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FOLDER_BYTES 32

static inline void folder_make(char folder[FOLDER_BYTES])
{
	snprintf(folder, FOLDER_BYTES, "/tmp/plx-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
}

static inline int folder_remove_one(const char *path, const struct stat *sb, int flag,
				    struct FTW *at)
{
	return remove(path);
}

/** Remove it with its contents. */
static inline int folder_remove(const char *folder)
{
	return nftw(folder, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/** Write a file there; name starts with a slash; missing folders are created. */
static inline void folder_put(const char *folder, const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", folder, name);
	for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

#endif
