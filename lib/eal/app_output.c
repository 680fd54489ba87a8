/* SPDX-License-Identifier: BSD-3-Clause */
/* Program output: unbuffered lines, and detection of write errors. */
#include "option_words.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

/* errno of a line that could not be written; 0: none, or it had no reader. Relaxed: no other data
 * depends on it. Lcores write it, the main lcore reads it. */
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

const char *plx_app_printable(const char *from, char *out, size_t size)
{
	size_t length = strlen(from);
	char one[PLX_PRINTABLE_BYTES];
	struct plx_text text = {.out = out, .size = size};

	out[0] = '\0';
	for (size_t at = 0; at < length;) {
		at += plx_printable_next(from + at, length - at, "\\", one);
		plx_text_add(&text, "%s", one);
	}
	return out;
}

const char *plx_app_stream_error(int err)
{
	return err == 0     ? "not all of it could be written"
	     : err == EBADF ? "it is closed" /* see plx_hold_stdio */
	     : err == EPIPE ? "nobody reads it"
			    : strerror(err);
}

int plx_app_flush(void)
{
	int said = atomic_exchange_explicit(&failure, 0, memory_order_relaxed), err;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout) && !said)
		return 0;
	err = said ? said : errno;
	/* Reported once, and not retried by exit(3). */
	__fpurge(stdout);
	clearerr(stdout);
	return plx_fail(EIO, "standard output: %s", plx_app_stream_error(err));
}
