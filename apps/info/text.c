/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of /proc and /sys, and parsing their texts. */
#include "info.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 512

static bool read_path(char *out, size_t size, const char *path)
{
	FILE *file = fopen(path, "re");
	size_t used;

	out[0] = '\0';
	if (!file)
		return false;
	used = fread(out, 1, size - 1, file);
	bool whole = !ferror(file) && (used < size - 1 || fgetc(file) == EOF);
	fclose(file);
	while (used > 0 && isspace((unsigned char)out[used - 1]))
		used--;
	out[whole ? used : 0] = '\0';
	return whole;
}

bool info_read(char *out, size_t size, const char *format, ...)
{
	char path[PATH_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return read_path(out, size, path);
}

void info_read_command(const char *root, pid_t pid, char *out, size_t size)
{
	char name[32];

	info_read(name, sizeof(name), "%s/proc/%d/comm", root, (int)pid);
	plx_printable(name, out, size);
}

uint64_t info_read_number(uint64_t fallback, const char *format, ...)
{
	char path[PATH_BYTES], text[64], *end;
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (!read_path(text, sizeof(text), path))
		return fallback;
	uint64_t value = strtoull(text, &end, 10);
	return end == text ? fallback : value;
}

glob_t info_glob(const char *format, ...)
{
	char pattern[PATH_BYTES];
	glob_t paths = {0};
	va_list args;

	va_start(args, format);
	vsnprintf(pattern, sizeof(pattern), format, args);
	va_end(args);
	glob(pattern, GLOB_NOSORT, NULL, &paths);
	return paths;
}

int info_id_of(const char *path)
{
	return atoi(strrchr(path, '/') + 1);
}

bool info_parse_cpulist(const char *text, struct plx_cpuset *cpus_out)
{
	struct plx_cpuset cpus = {0};
	unsigned first, last;
	int used;

	*cpus_out = cpus;
	while (isdigit((unsigned char)*text)) {
		if (sscanf(text, "%u%n-%u%n", &first, &used, &last, &used) == 1)
			last = first;
		if (first > last || last >= PLX_CPU_MAX)
			return false;
		for (unsigned cpu = first; cpu <= last; cpu++)
			plx_cpuset_add(&cpus, cpu);
		text += used;
		if (*text == '\0') {
			*cpus_out = cpus;
			return true;
		}
		if (*text++ != ',')
			return false;
	}
	return false;
}

bool info_find_value(const char *text, const char *name, bool blank_ends, char *out, size_t size)
{
	out[0] = '\0';
	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
		const char *value = at + strlen(name);

		value += strspn(value, " \t");
		if ((at != text && !isspace((unsigned char)at[-1])) ||
		    (*value != ':' && *value != '='))
			continue; /* part of another word */
		value += 1 + strspn(value + 1, " \t");
		snprintf(out, size, "%.*s", (int)strcspn(value, blank_ends ? " \t\n" : "\n"),
			 value);
		return true;
	}
	return false;
}

uint64_t info_find_bytes(const char *text, const char *name)
{
	char value[64];

	if (!info_find_value(text, name, false, value, sizeof(value)))
		return 0;
	return strtoull(value, NULL, 10) * 1024;
}

const char *info_state_word(const char *state)
{
	const char *colon = strstr(state, ": ");

	return colon ? colon + 2 : state;
}
