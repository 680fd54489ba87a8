/* SPDX-License-Identifier: BSD-3-Clause */
#include "plx_base.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ERROR_TEXT_BYTES 1024

static __thread char error_text[ERROR_TEXT_BYTES];

const char *plx_error(void)
{
	return error_text;
}

int plx_fail(int err, const char *format, ...)
{
	/* An argument may be plx_error() itself, so format into a separate buffer. */
	char text[ERROR_TEXT_BYTES];
	va_list args;

	assert(err > 0);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(error_text, text, sizeof(text));
	return -err;
}

int plx_fail_in(int err, const char *format, ...)
{
	char text[ERROR_TEXT_BYTES];
	va_list args;

	va_start(args, format);
	bool fits = vsnprintf(text, sizeof(text), format, args) < (int)sizeof(text);
	va_end(args);
	return fits ? plx_fail(-err, "%s%s", text, error_text) : err;
}
