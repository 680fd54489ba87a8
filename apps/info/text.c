/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of /proc and /sys, and lists. */
#include "info.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

glob_t info_glob(const char *format, ...)
{
	char pattern[512];
	glob_t paths = {0};
	va_list args;

	va_start(args, format);
	vsnprintf(pattern, sizeof(pattern), format, args);
	va_end(args);
	glob(pattern, GLOB_NOSORT, NULL, &paths);
	return paths;
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

	info_find_value(text, name, false, value, sizeof(value));
	return strtoull(value, NULL, 10) * 1024;
}

const char *info_state_word(const char *state)
{
	const char *colon = strstr(state, ": ");

	return colon ? colon + 2 : state;
}

void info_add_word(char *list, size_t size, const char *separator, const char *word)
{
	size_t used = strlen(list), len = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ' ') && (at[len] == *separator || at[len] == '\0'))
			return;
	if (used >= 3 && strcmp(list + used - 3, "...") == 0)
		return;
	if (used + 2 * strlen(separator) + len + sizeof("...") > size)
		word = "...";
	snprintf(list + used, size - used, "%s%s", used ? separator : "", word);
}
