/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures log lines for tests. */
#ifndef LOG_CAPTURE_H
#define LOG_CAPTURE_H

#include "plx_base.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* other lcores log too */
static char log_text[8192];

static void log_keep(enum plx_log_level level, const char *component, const char *line, void *arg)
{
	pthread_mutex_lock(&log_lock);
	size_t used = strlen(log_text);
	snprintf(log_text + used, sizeof(log_text) - used, "%s:%d: %s\n", component, (int)level,
		 line);
	pthread_mutex_unlock(&log_lock);
}

static inline void log_capture(void)
{
	log_text[0] = '\0';
	plx_log_set_sink(log_keep, NULL);
}

static inline unsigned log_count(const char *part)
{
	unsigned count = 0;

	pthread_mutex_lock(&log_lock);
	for (const char *at = strstr(log_text, part); at; at = strstr(at + 1, part))
		count++;
	pthread_mutex_unlock(&log_lock);
	return count;
}

#endif
