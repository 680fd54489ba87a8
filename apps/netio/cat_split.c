/* SPDX-License-Identifier: BSD-3-Clause */
#include "cat.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES 65536

static struct {
	uint8_t *bytes;
	size_t room, begin, end;
	size_t seen; /* no newline before this */
	uint64_t line;
	bool at_end;
} split;

void *cat_split_room(size_t *room_out)
{
	size_t wanted = cat_conf.encoding == CAT_RAW ? cat_conf.block_bytes : READ_BYTES;

	if (split.begin) {
		memmove(split.bytes, split.bytes + split.begin, split.end - split.begin);
		split.end -= split.begin;
		split.seen -= split.begin;
		split.begin = 0;
	}
	if (split.room - split.end < wanted) {
		size_t room = 2 * split.room > wanted ? 2 * split.room : wanted;
		uint8_t *bytes = realloc(split.bytes, room);

		if (!bytes) {
			plx_fail(ENOMEM, "out of memory for %zu bytes of input", room);
			return NULL;
		}
		split.bytes = bytes;
		split.room = room;
	}
	*room_out = wanted;
	return split.bytes + split.end;
}

void cat_split_took(size_t len)
{
	split.end += len;
	split.at_end = len == 0;
}

/* Hex ----------------------------------------------------------------------------------------- */

static int digit_of(uint8_t c)
{
	return !isxdigit(c) ? -1 : isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The character at c as text; it may be unprintable. */
static const char *text_of(uint8_t c, char out[8])
{
	snprintf(out, 8, isprint(c) ? "'%c'" : "\\x%02x", c);
	return out;
}

static enum cat_split bad_digit(size_t at, uint8_t c, const char *why)
{
	char text[8];

	plx_fail(EINVAL, "line %" PRIu64 ", column %zu: %s %s", split.line, at + 1,
		 text_of(c, text), why);
	return CAT_SPLIT_BAD;
}

/* In place: there are fewer bytes than digits. Return: CAT_SPLIT_MESSAGE; CAT_SPLIT_BAD. */
static enum cat_split decode(uint8_t *line, size_t *len)
{
	size_t out = 0, digits = 0, first = 0;

	for (size_t i = 0; i < *len; i++) {
		int digit = digit_of(line[i]);

		if (digit < 0 && !is_blank(line[i]))
			return bad_digit(i, line[i],
					 "is no hex digit; give pairs of 0-9, a-f and A-F, and "
					 "blanks between them");
		if (digit < 0 && digits % 2)
			break;
		if (digit < 0)
			continue;
		if (digits++ % 2) {
			line[out] = (uint8_t)(line[out] << 4 | digit);
			out++;
		} else {
			first = i;
			line[out] = (uint8_t)digit;
		}
	}
	if (digits % 2)
		return bad_digit(first, line[first], "stands alone; give two digits for each byte");
	*len = out;
	return CAT_SPLIT_MESSAGE;
}

/* Messages ------------------------------------------------------------------------------------ */

static enum cat_split too_long(void)
{
	plx_fail(EINVAL, "line %" PRIu64 ": longer than 16 MiB; give shorter lines, or -e raw",
		 split.line + 1);
	return CAT_SPLIT_BAD;
}

/* Take the line from begin to end; the stream continues at next. */
static enum cat_split take_line(size_t end, size_t next, const uint8_t **data_out, size_t *len_out)
{
	uint8_t *line = split.bytes + split.begin;

	*len_out = end - split.begin;
	if (*len_out > CAT_MESSAGE_MAX)
		return too_long();
	split.begin = split.seen = next;
	split.line++;
	*data_out = line;
	return cat_conf.encoding == CAT_HEX ? decode(line, len_out) : CAT_SPLIT_MESSAGE;
}

static enum cat_split next_line(const uint8_t **data_out, size_t *len_out)
{
	uint8_t *newline = memchr(split.bytes + split.seen, '\n', split.end - split.seen);

	if (newline) {
		size_t end = (size_t)(newline - split.bytes);

		return take_line(end, end + 1, data_out, len_out);
	}
	split.seen = split.end;
	if (split.end - split.begin > CAT_MESSAGE_MAX)
		return too_long();
	return split.at_end ? take_line(split.end, split.end, data_out, len_out) : CAT_SPLIT_MORE;
}

enum cat_split cat_split_next(const uint8_t **data_out, size_t *len_out)
{
	size_t left = split.end - split.begin;

	if (left == 0)
		return split.at_end ? CAT_SPLIT_END : CAT_SPLIT_MORE;
	if (cat_conf.encoding != CAT_RAW)
		return next_line(data_out, len_out);
	*data_out = split.bytes + split.begin;
	*len_out = left < cat_conf.block_bytes ? left : cat_conf.block_bytes;
	split.begin += *len_out;
	split.seen = split.begin;
	return CAT_SPLIT_MESSAGE;
}

void cat_split_fini(void)
{
	free(split.bytes);
}
