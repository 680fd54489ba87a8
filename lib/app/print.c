/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing what somebody else has written. */
#include "plx_app.h"

#include <stdio.h>
#include <string.h>

void plx_app_put_text(FILE *out, const void *text, size_t length, const char *plain)
{
	const char *bytes = text;

	for (size_t at = 0; at < length;) {
		char one[PLX_PRINTABLE_BYTES];

		at += plx_printable_next(bytes + at, length - at, plain, one);
		fputs(one, out);
	}
}

int plx_app_flush(void)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return plx_fail(EIO, "standard output: %s",
			errno ? strerror(errno) : "not all of it could be written");
}
