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

/* One number or range at *at; moves *at past it. */
static bool parse_range(const char **at, struct plx_cpuset *cpus)
{
	char *end;
	unsigned long first, last;

	if (!isdigit((unsigned char)**at))
		return false;
	first = last = strtoul(*at, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return false;
		last = strtoul(end + 1, &end, 10);
	}
	if (first > last || last >= PLX_CPU_MAX)
		return false;
	for (unsigned long cpu = first; cpu <= last; cpu++)
		plx_cpuset_add(cpus, (unsigned)cpu);
	*at = end;
	return true;
}

bool info_parse_cpulist(const char *text, struct plx_cpuset *cpus_out)
{
	const struct plx_cpuset none = {0};

	*cpus_out = none;
	while (parse_range(&text, cpus_out)) {
		if (*text == '\0')
			return true;
		if (*text++ != ',')
			break;
	}
	*cpus_out = none;
	return false;
}

/* Whether `name` stands at `at` as a separate word, followed by its separator; *value_out follows
 * that. */
static bool names_value(const char *text, const char *at, size_t name_len, const char **value_out)
{
	if (at != text && !isspace((unsigned char)at[-1]))
		return false;
	at += name_len;
	while (*at == ' ' || *at == '\t')
		at++;
	if (*at != ':' && *at != '=')
		return false;
	*value_out = at + 1 + strspn(at + 1, " \t");
	return true;
}

bool info_find_value(const char *text, const char *name, bool blank_ends, char *out, size_t size)
{
	size_t name_len = strlen(name);
	const char *value = NULL;

	out[0] = '\0';
	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
		if (names_value(text, at, name_len, &value))
			break;
	}
	if (!value)
		return false;
	snprintf(out, size, "%.*s", (int)strcspn(value, blank_ends ? " \t\n" : "\n"), value);
	return true;
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
