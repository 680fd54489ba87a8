/* SPDX-License-Identifier: BSD-3-Clause */
/* Make untrusted text safe to print and to write into JSON; text that grows. */
#include "base_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_plain_ascii(uint8_t byte, const char *plain)
{
	return (byte >= ' ' && byte < 0x7f && byte != '\\') || (byte && strchr(plain, byte));
}

/* Return the length of the UTF-8 character at `data`, excluding control characters (C0 and C1); 0
 * if there is none (RFC 3629, section 4). */
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

size_t plx_printable_next(const void *text, size_t length, const char *plain,
			  char out[PLX_PRINTABLE_BYTES])
{
	const uint8_t *bytes = text;
	size_t whole = is_plain_ascii(bytes[0], plain) ? 1 : utf8_bytes(bytes, length);

	if (whole) {
		memcpy(out, bytes, whole);
		out[whole] = '\0';
		return whole;
	}
	if (bytes[0] == '\\')
		memcpy(out, "\\\\", 3);
	else
		snprintf(out, PLX_PRINTABLE_BYTES, "\\x%02x", bytes[0]);
	return 1;
}

const char *plx_printable(const char *text, char *out, size_t size)
{
	size_t length = strlen(text), used = 0;

	for (size_t at = 0; at < length;) {
		char one[PLX_PRINTABLE_BYTES];
		size_t taken = plx_printable_next(text + at, length - at, "", one);
		size_t bytes = strlen(one);

		if (used + bytes >= size)
			break;
		memcpy(out + used, one, bytes);
		used += bytes;
		at += taken;
	}
	out[used] = '\0';
	return out;
}

void plx_list_add(char *out, size_t size, const char *item)
{
	size_t used = strlen(out);

	snprintf(out + used, size - used, "%s%s", used ? ", " : "", item);
}

void plx_text_add(struct plx_text *text, const char *format, ...)
{
	va_list args;

	if (text->used >= text->size)
		return;
	va_start(args, format);
	int n = vsnprintf(text->out + text->used, text->size - text->used, format, args);
	va_end(args);
	text->used += n > 0 ? (size_t)n : 0;
}
