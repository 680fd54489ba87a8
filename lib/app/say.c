/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_app.h"

#include <stdarg.h>

void plx_app_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stdout, format, args);
	va_end(args);
	fputc('\n', stdout);
	fflush(stdout);
}
