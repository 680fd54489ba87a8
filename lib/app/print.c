/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing what somebody else has written. */
#include "app_priv.h"

#include <stdio_ext.h>
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

const char *plx_app_stream_error(int err)
{
	switch (err) {
	case 0:
		return "not all of it could be written";
	case EBADF: /* see plx_hold_stdio */
		return "it is closed";
	case EPIPE:
		return "nobody reads it any more";
	default:
		return strerror(err);
	}
}

int plx_app_flush(void)
{
	int said = app_say_failure(), err;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout) && !said)
		return 0;
	err = said ? said : errno;
	/* Told once, and not tried again by exit(3). */
	__fpurge(stdout);
	clearerr(stdout);
	return plx_fail(EIO, "standard output: %s", plx_app_stream_error(err));
}
