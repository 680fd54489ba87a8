/* SPDX-License-Identifier: BSD-3-Clause */
#include "app_priv.h"

#include <stdarg.h>
#include <unistd.h>

#define LINE_BYTES 1024

/* Relaxed: a number that nothing hangs on; lcores say lines, and the main one looks. */
static _Atomic int failure;

void plx_app_say(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;
	int rc;

	va_start(args, format);
	int len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (len < 0)
		return;
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len] = '\n';
	fflush(stdout);
	rc = plx_write_or_drop(STDOUT_FILENO, line, (size_t)len + 1);
	if (rc && rc != -EAGAIN && rc != -EPIPE)
		atomic_store_explicit(&failure, -rc, memory_order_relaxed);
}

int app_say_failure(void)
{
	return atomic_exchange_explicit(&failure, 0, memory_order_relaxed);
}
