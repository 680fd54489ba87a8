/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading directories of /proc and /sys, one name at a time. */
#include "info.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

#define PATH_BYTES 512

DIR *info_open_dir(const char *format, ...)
{
	char path[PATH_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return opendir(path);
}

void info_close_dir(DIR *dir)
{
	if (dir)
		closedir(dir);
}

const char *info_next_name(DIR *dir)
{
	struct dirent *entry = dir ? readdir(dir) : NULL;

	while (entry && entry->d_name[0] == '.')
		entry = readdir(dir);
	return entry ? entry->d_name : NULL;
}

int info_next_number(DIR *dir)
{
	const char *name;

	while ((name = info_next_name(dir))) {
		char *end;
		long number = strtol(name, &end, 10);

		if (*end == '\0' && number > 0 && number <= INT_MAX)
			return (int)number;
	}
	return 0;
}
