/* SPDX-License-Identifier: BSD-3-Clause */
#include "base_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_LINE_BYTES 1024
#define TIME_BYTES     64

static const char *const level_names[] = {"error", "warning", "notice", "info", "debug"};

static struct plx_log_component *components;
static plx_log_sink log_sink = plx_log_to_stderr;
static void *log_sink_arg;

void plx_log_register(struct plx_log_component *component)
{
	struct plx_log_component **at = &components;

	/* Keep the list sorted by name. */
	while (*at && strcmp((*at)->name, component->name) < 0)
		at = &(*at)->next;
	component->next = *at;
	*at = component;
}

void plx_log_set_sink(plx_log_sink sink, void *arg)
{
	log_sink = sink;
	log_sink_arg = arg;
}

/* "2026-11-26T04:30:16.123Z". Computed by hand: gmtime_r(3) reads files on first use and takes a
 * lock, which a forked child may find held. Days to date: Howard Hinnant, "chrono-Compatible
 * Low-Level Date Algorithms", civil_from_days, for years from 1970. */
static void format_time(const struct timespec *time, char *out, size_t size)
{
	uint64_t s = (uint64_t)time->tv_sec, day = s / 86400 + 719468; /* since 0000-03-01 */
	uint64_t era = day / 146097, of_era = day % 146097;
	uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = (unsigned)(of_era - (365 * year + year / 4 - year / 100));
	unsigned march = (5 * of_year + 2) / 153; /* 0: March */
	unsigned month = march < 10 ? march + 3 : march - 9;

	snprintf(out, size, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 (unsigned)(year + era * 400 + (month <= 2)), month,
		 of_year - (153 * march + 2) / 5 + 1, (unsigned)(s / 3600 % 24),
		 (unsigned)(s / 60 % 60), (unsigned)(s % 60),
		 (unsigned)((uint64_t)time->tv_nsec / PLX_NS_PER_MS));
}

void plx_log_to_stderr(enum plx_log_level level, const char *component, const char *line, void *arg)
{
	char out[LOG_LINE_BYTES + 96], when[TIME_BYTES];
	struct timespec now;
	int len;

	clock_gettime(CLOCK_REALTIME, &now);
	format_time(&now, when, sizeof(when));
	len = snprintf(out, sizeof(out), "%s %s: %s: %s\n", when, component, level_names[level],
		       line);
	if (len > (int)sizeof(out) - 1)
		len = (int)sizeof(out) - 1;
	plx_write_or_drop(STDERR_FILENO, out, (size_t)len); /* a failed write cannot be reported */
}

void plx_log_write(enum plx_log_level level, const struct plx_log_component *component,
		   const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	va_list args;

	if (!log_sink)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_sink(level, component->name, line, log_sink_arg);
}

static int level_from_text(const char *text)
{
	for (int i = 0; i < (int)PLX_ARRAY_LEN(level_names); i++) {
		bool is_number = text[0] == '0' + i && text[1] == '\0';

		if (is_number || strcmp(text, level_names[i]) == 0)
			return i;
	}
	return -1;
}

int plx_log_configure(const char *option, const char *text)
{
	const char *colon = strchr(text, ':');
	size_t name_len = colon ? (size_t)(colon - text) : 0;
	int level = level_from_text(colon ? colon + 1 : text);
	char known[256] = "";
	bool found = !colon;

	if (level < 0)
		return plx_fail(EINVAL,
				"%s %s: unknown level; give error, warning, notice, info, debug or "
				"0 to 4, or component:level",
				option, text);
	for (struct plx_log_component *c = components; c; c = c->next) {
		if (colon && (strlen(c->name) != name_len || strncmp(c->name, text, name_len)))
			continue;
		c->level = (enum plx_log_level)level;
		found = true;
	}
	if (found)
		return 0;
	for (const struct plx_log_component *c = components; c; c = c->next)
		plx_list_add(known, sizeof(known), c->name);
	return plx_fail(EINVAL, "%s %s: unknown component '%.*s'; there are: %s", option, text,
			(int)name_len, text, known);
}

bool plx_log_allowed(struct plx_log_limit *limit, uint64_t now_ns)
{
	uint64_t second = now_ns / PLX_NS_PER_S;

	if (second != limit->second) {
		limit->second = second;
		limit->used = 0;
	}
	if (limit->used >= (limit->burst ? limit->burst : 10)) {
		limit->suppressed++;
		return false;
	}
	limit->used++;
	return true;
}
