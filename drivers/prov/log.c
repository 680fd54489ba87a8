/* SPDX-License-Identifier: BSD-3-Clause */
#include "prov.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define LOG_LINE_MAX 512

/* libfabric's log writes nothing until its first call has read FI_LOG_LEVEL. */
void prov_log(const struct fi_provider *provider, enum fi_log_level level, const char *format, ...)
{
	char line[LOG_LINE_MAX];
	int saved_errno = errno;
	va_list args;

	if (!fi_log_enabled(provider, level, FI_LOG_CORE))
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fi_log(provider, level, FI_LOG_CORE, "prov_log", __LINE__, "%s\n", line);
	errno = saved_errno;
}
