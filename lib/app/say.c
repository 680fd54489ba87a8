/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_app.h"

#include <stdarg.h>
#include <unistd.h>

#define LINE_BYTES 1024

void plx_app_say(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	int len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (len < 0)
		return;
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len] = '\n';
	fflush(stdout);
	plx_write_or_drop(STDOUT_FILENO, line, (size_t)len + 1);
}
