/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process holds: to see that nothing is left behind. */
#ifndef PROV_TEST_COUNT_H
#define PROV_TEST_COUNT_H

#include "plx_test.h"

#include <dirent.h>
#include <stdio.h>

/* Of memory that came from a memfd. */
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

static inline int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

#endif
