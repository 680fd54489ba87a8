/* SPDX-License-Identifier: BSD-3-Clause */
/* A store's file in a temporary folder, which must be empty without it at the end. */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include "plx_test.h"

#include <stdio.h>
#include <unistd.h>

static char folder[32], path[64];

static inline int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/plx-params-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/store.db", folder);
	return 0;
}

static inline int remove_folder(void **state)
{
	static const char *const ends[] = {"",     "-wal",     "-shm", "-journal",
					   ".old", ".old-wal", ".link"};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(ends); i++) {
		char name[80];

		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
	return rmdir(folder);
}

#define TEST(name) PLX_TEST_WITH(name, make_folder, remove_folder)

#endif
