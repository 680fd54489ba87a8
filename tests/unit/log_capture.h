/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines kept for a test to look at. */
#ifndef LOG_CAPTURE_H
#define LOG_CAPTURE_H

#include "plx_base.h"

#include <stdio.h>
#include <string.h>

static char log_text[8192];

static void log_keep(enum plx_log_level level, const char *component, const char *line, void *arg)
{
	size_t used = strlen(log_text);

	snprintf(log_text + used, sizeof(log_text) - used, "%s:%d: %s\n", component, (int)level,
		 line);
}

static inline void log_capture(void)
{
	log_text[0] = '\0';
	plx_log_set_sink(log_keep, NULL);
}

static inline unsigned log_count(const char *part)
{
	unsigned count = 0;

	for (const char *at = strstr(log_text, part); at; at = strstr(at + 1, part))
		count++;
	return count;
}

#endif
