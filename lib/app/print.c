/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing what somebody else has written. */
#include "plx_app.h"

#include <stdio.h>
#include <string.h>

static bool is_plain_ascii(uint8_t byte, const char *plain)
{
	return (byte >= ' ' && byte < 0x7f && byte != '\\') || (byte && strchr(plain, byte));
}

/* Return: bytes of the character of UTF-8 that is there, of those beyond the control characters of
 * both sets, C0 and C1; 0: there is none. RFC 3629, 4. */
static size_t utf8_bytes(const uint8_t *data, size_t length)
{
	static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
	size_t bytes = data[0] >= 0xf0 ? 4 : data[0] >= 0xe0 ? 3 : data[0] >= 0xc2 ? 2 : 0;
	uint32_t point;

	if (bytes == 0 || bytes > length || data[0] > 0xf4)
		return 0;
	point = data[0] & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++) {
		if ((data[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (data[i] & 0x3f);
	}
	if (point < least[bytes] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	return bytes;
}

void plx_app_put_text(FILE *out, const void *text, size_t length, const char *plain)
{
	const uint8_t *bytes = text;
	size_t whole;

	for (size_t i = 0; i < length; i += whole) {
		whole = is_plain_ascii(bytes[i], plain) ? 1 : utf8_bytes(bytes + i, length - i);
		if (whole) {
			fwrite(bytes + i, 1, whole, out);
			continue;
		}
		whole = 1;
		if (bytes[i] == '\\')
			fputs("\\\\", out);
		else
			fprintf(out, "\\x%02x", bytes[i]);
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
