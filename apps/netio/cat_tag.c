/* SPDX-License-Identifier: BSD-3-Clause */
/* The tags of netio-cat: one, a range, or a mask. */
#include "cat.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOWED "decimal or, with 0x, hexadecimal, 0 to 0xffffffffffffffff"

/* Return: 0; -EINVAL not a number; -ERANGE more than 64 bits. */
static int read_number(const char *text, const char **end_out, uint64_t *out)
{
	int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
	const char *digits = base == 16 ? text + 2 : text;
	char *end;

	if (base == 16 ? !isxdigit((unsigned char)*digits) : !isdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	*out = strtoull(digits, &end, base);
	*end_out = end;
	return errno ? -ERANGE : 0;
}

static int check_range(const char *text, uint64_t first, uint64_t last,
		       struct netio_subscription *out)
{
	if (last < first)
		return plx_fail(EINVAL,
				"--tag %s: the range ends before it begins; give the "
				"lesser tag first",
				text);
	out->tag = first;
	out->last = last == first ? 0 : last;
	return 0;
}

/* NetIO has no empty mask; use the range of all tags instead. */
static int check_mask(const char *text, uint64_t bits, uint64_t mask,
		      struct netio_subscription *out)
{
	if (bits & ~mask)
		return plx_fail(EINVAL,
				"--tag %s: no tag can match, as the mask leaves out bits 0x%" PRIx64
				"; give 0x%" PRIx64 "/0x%" PRIx64,
				text, bits & ~mask, bits & mask, mask);
	if (mask == 0)
		return check_range(text, 0, UINT64_MAX, out);
	out->tag = bits;
	out->mask = mask;
	return 0;
}

static int parse(const char *text, struct netio_subscription *out)
{
	const char *at;
	uint64_t first = 0, second = 0;
	char kind;
	int rc;

	if (strcmp(text, "all") == 0)
		return check_range(text, 0, UINT64_MAX, out);
	rc = read_number(text, &at, &first);
	*out = (struct netio_subscription){.tag = first};
	if (rc == 0 && *at == '\0')
		return 0;
	kind = rc == 0 ? *at : '\0';
	if (kind == '-' || kind == '/')
		rc = read_number(at + 1, &at, &second);
	if (rc == -ERANGE)
		return plx_fail(EINVAL, "--tag %s: more than 64 bits; give " ALLOWED, text);
	if (rc || (kind != '-' && kind != '/') || *at)
		return plx_fail(EINVAL,
				"--tag %s: not a tag; give one as 7, a range as 7-9, a mask as "
				"0x10/0xf0, or all: " ALLOWED,
				text);
	return kind == '-' ? check_range(text, first, second, out)
			   : check_mask(text, first, second, out);
}

static bool is_same(const struct netio_subscription *one, const struct netio_subscription *other)
{
	return one->tag == other->tag && one->last == other->last && one->mask == other->mask;
}

static int add_tag(const char *text)
{
	struct netio_subscription *tag = &cat_conf.tags[cat_conf.tag_count];
	int rc = parse(text, tag);

	if (rc)
		return rc;
	if (cat_conf.mode != CAT_SUBSCRIBE && (tag->last || tag->mask))
		return plx_fail(EINVAL,
				"--tag %s: %s takes one tag; ranges, masks and all are "
				"for subscribe",
				text, cat_mode_names[cat_conf.mode]);
	if (cat_conf.at_once)
		tag->delivery = NETIO_DELIVERY_AT_ONCE;
	tag->policy = (enum netio_policy)cat_conf.policy;
	tag->backlog_bytes = cat_conf.backlog_bytes;
	for (unsigned i = 0; i < cat_conf.tag_count; i++)
		if (is_same(tag, &cat_conf.tags[i]))
			return plx_fail(EINVAL, "--tag %s: given twice; give it once", text);
	cat_conf.tag_count++;
	return 0;
}

int cat_take_tags(const struct plx_app_list *texts)
{
	const char *mode = cat_mode_names[cat_conf.mode];

	for (unsigned i = 0; i < texts->count; i++) {
		int rc = add_tag(texts->at[i]);

		if (rc)
			return rc;
	}
	if (cat_conf.mode == CAT_SUBSCRIBE && cat_conf.tag_count == 0)
		return plx_fail(EINVAL, "-t TAG is missing: what to subscribe to; for everything "
					"give -t all");
	if (cat_conf.mode != CAT_SUBSCRIBE && cat_conf.tag_count > 1)
		return plx_fail(EINVAL, "--tag %s: %s takes one; give it once", texts->at[1], mode);
	return 0;
}

const char *cat_tag_format(const struct netio_subscription *tag, char out[CAT_TAG_TEXT])
{
	if (tag->tag == 0 && tag->last == UINT64_MAX)
		snprintf(out, CAT_TAG_TEXT, "all tags");
	else if (tag->mask)
		snprintf(out, CAT_TAG_TEXT, "0x%" PRIx64 "/0x%" PRIx64, tag->tag, tag->mask);
	else if (tag->last)
		snprintf(out, CAT_TAG_TEXT, "0x%" PRIx64 "-0x%" PRIx64, tag->tag, tag->last);
	else
		snprintf(out, CAT_TAG_TEXT, "0x%" PRIx64, tag->tag);
	return out;
}
