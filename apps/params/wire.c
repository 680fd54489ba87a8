/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include <endian.h>
#include <string.h>

#define RECORD_BYTES 32
#define FLAG_LATCH   0x10
#define FLAG_REMOVED 0x20
#define FLAGS        0x3f

static void put16(uint8_t *out, uint32_t value)
{
	uint16_t little = htole16((uint16_t)value);

	memcpy(out, &little, sizeof(little));
}

static void put32(uint8_t *out, uint32_t value)
{
	uint32_t little = htole32(value);

	memcpy(out, &little, sizeof(little));
}

static void put64(uint8_t *out, uint64_t value)
{
	uint64_t little = htole64(value);

	memcpy(out, &little, sizeof(little));
}

static uint32_t get16(const uint8_t *in)
{
	uint16_t little;

	memcpy(&little, in, sizeof(little));
	return le16toh(little);
}

static uint32_t get32(const uint8_t *in)
{
	uint32_t little;

	memcpy(&little, in, sizeof(little));
	return le32toh(little);
}

static uint64_t get64(const uint8_t *in)
{
	uint64_t little;

	memcpy(&little, in, sizeof(little));
	return le64toh(little);
}

static void put_number(uint8_t *out, const struct param_value *value)
{
	uint64_t bits = 0;

	if (value->type == PARAM_REAL)
		memcpy(&bits, &value->real, sizeof(bits));
	else if (value->type != PARAM_TEXT)
		bits = (uint64_t)value->integer;
	put64(out, bits);
}

static struct param_value get_number(const uint8_t *in, enum param_type type)
{
	struct param_value value = {.type = type};
	uint64_t bits = get64(in);

	if (type == PARAM_REAL)
		memcpy(&value.real, &bits, sizeof(bits));
	else
		value.integer = (int64_t)bits;
	return value;
}

static uint8_t *put_bytes(uint8_t *out, const void *bytes, size_t length)
{
	if (length)
		memcpy(out, bytes, length);
	return out + length;
}

/* Records ----------------------------------------------------------------------------------------
 */

size_t record_write(const struct param *param, bool removed, uint8_t *out)
{
	const struct param_kind *kind = &param->kind;
	uint32_t text = kind->type == PARAM_TEXT ? param->value.text.length : 0;
	size_t unit = strlen(kind->unit);
	uint8_t flags = (kind->latch ? FLAG_LATCH : 0) | (removed ? FLAG_REMOVED : 0);
	uint8_t *at = out + RECORD_BYTES;

	memset(out, 0, RECORD_BYTES);
	put64(out, param->revision);
	put32(out + 8, param->id);
	out[12] = (uint8_t)kind->type;
	out[13] = (uint8_t)param->alarm;
	out[15] = (uint8_t)unit;
	put16(out + 16, param->name_length);
	put16(out + 18, text);
	put_number(out + 24, &param->value);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (!kind->has[i])
			continue;
		flags |= (uint8_t)(1 << i);
		put_number(at, &kind->limit[i]);
		at += 8;
	}
	out[14] = flags;
	at = put_bytes(at, kind->unit, unit);
	at = put_bytes(at, param->name, param->name_length);
	at = put_bytes(at, text ? param->value.text.bytes : "", text);
	return (size_t)(at - out);
}

static size_t read_limits(const uint8_t *in, uint8_t flags, struct param_kind *kind)
{
	size_t used = 0;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		kind->has[i] = flags & 1 << i;
		if (!kind->has[i])
			continue;
		kind->limit[i] = get_number(in + used, kind->type);
		used += 8;
	}
	return used;
}

static const char *check_record(const struct param *param)
{
	const char *wrong = param_name_check(param->name, param->name_length);

	wrong = wrong ? wrong : param_kind_check(&param->kind);
	return wrong ? wrong : param_value_check(&param->value);
}

const char *record_read(const uint8_t *in, size_t length, struct param *out, bool *removed_out)
{
	size_t unit, name, text, limits;
	const uint8_t *at = in + RECORD_BYTES;
	const char *wrong;
	uint8_t flags;

	if (length < RECORD_BYTES)
		return "a record is cut off";
	*out = (struct param){.revision = get64(in), .id = get32(in + 8)};
	flags = in[14];
	unit = in[15];
	name = get16(in + 16);
	text = get16(in + 18);
	limits = 8 * (size_t)__builtin_popcount(flags & ((1u << LIMIT_COUNT) - 1));
	if ((flags & ~FLAGS) || in[13] >= ALARM_COUNT)
		return "a record has flags or an alarm that nobody knows";
	if (length != RECORD_BYTES + limits + unit + name + text)
		return "the parts of a record are not its length";
	out->kind.type = in[12];
	out->kind.latch = flags & FLAG_LATCH;
	out->alarm = in[13];
	at += read_limits(at, flags, &out->kind);
	wrong = param_kind_set_unit(&out->kind, at, unit);
	if (wrong)
		return wrong;
	out->name = (const char *)at + unit;
	out->name_length = (uint32_t)name;
	out->value = get_number(in + 24, out->kind.type);
	if (out->kind.type == PARAM_TEXT) {
		out->value.text.bytes = out->name + name;
		out->value.text.length = (uint32_t)text;
	} else if (text) {
		return "a number has a text";
	}
	*removed_out = flags & FLAG_REMOVED;
	return check_record(out);
}

/* Orders -----------------------------------------------------------------------------------------
 */

size_t set_write(const struct set_order *order, uint8_t *out)
{
	bool is_text = !order->is_typed || order->value.type == PARAM_TEXT;
	uint8_t *at = out + WIRE_SET_BYTES;

	memset(out, 0, WIRE_SET_BYTES);
	out[0] = order->flags;
	out[1] = order->is_typed ? (uint8_t)order->value.type : 0;
	put16(out + 2, order->name_length);
	put64(out + 8, order->expected);
	if (!is_text)
		put_number(out + 16, &order->value);
	at = put_bytes(at, order->name, order->name_length);
	if (is_text)
		at = put_bytes(at, order->value.text.bytes, order->value.text.length);
	return (size_t)(at - out);
}

const char *set_read(const uint8_t *in, size_t length, struct set_order *out)
{
	size_t name, rest;
	bool is_text;

	if (length < WIRE_SET_BYTES)
		return "the order is cut off";
	name = get16(in + 2);
	rest = length - WIRE_SET_BYTES;
	if (name > rest)
		return "the name is longer than the order";
	if (in[0] & ~(WIRE_DURABLE | WIRE_EXPECT) || in[1] > PARAM_TEXT)
		return "the order has flags or a type that nobody knows";
	is_text = in[1] == 0 || in[1] == PARAM_TEXT;
	if (!is_text && rest != name)
		return "there is something behind the name";
	*out = (struct set_order){
		.flags = in[0],
		.expected = get64(in + 8),
		.name = (const char *)in + WIRE_SET_BYTES,
		.name_length = (uint32_t)name,
		.is_typed = in[1] != 0,
	};
	if (!is_text) {
		out->value = get_number(in + 16, in[1]);
	} else {
		out->value.type = PARAM_TEXT;
		out->value.text.bytes = out->name + name;
		out->value.text.length = (uint32_t)(rest - name);
	}
	return param_value_check(&out->value);
}

size_t list_write(const struct list_order *order, uint8_t *out)
{
	uint8_t *at = out + WIRE_LIST_BYTES;

	out[0] = order->flags;
	out[1] = 0;
	put16(out + 2, order->prefix_length);
	at = put_bytes(at, order->prefix, order->prefix_length);
	at = put_bytes(at, order->after, order->after_length);
	return (size_t)(at - out);
}

const char *list_read(const uint8_t *in, size_t length, struct list_order *out)
{
	size_t prefix;

	if (length < WIRE_LIST_BYTES)
		return "the order is cut off";
	prefix = get16(in + 2);
	if (prefix > length - WIRE_LIST_BYTES)
		return "the prefix is longer than the order";
	if (in[0] & ~WIRE_ALARMS)
		return "the order has flags that nobody knows";
	*out = (struct list_order){
		.flags = in[0],
		.prefix = (const char *)in + WIRE_LIST_BYTES,
		.prefix_length = (uint32_t)prefix,
		.after = (const char *)in + WIRE_LIST_BYTES + prefix,
		.after_length = (uint32_t)(length - WIRE_LIST_BYTES - prefix),
	};
	return NULL;
}

/* Pages ------------------------------------------------------------------------------------------
 */

#define PAGE_HEAD (WIRE_PAGE_BYTES + PARAM_NAME_MAX)

void page_begin(struct page *page, uint8_t *bytes)
{
	*page = (struct page){bytes, PAGE_HEAD};
}

bool page_add(struct page *page, const struct param *param)
{
	size_t length;

	if (page->used + 2 + WIRE_RECORD_MAX > WIRE_PAGE_MAX)
		return false;
	length = record_write(param, false, page->bytes + page->used + 2);
	put16(page->bytes + page->used, (uint32_t)length);
	page->used += 2 + length;
	return true;
}

struct iovec page_end(struct page *page, const struct param *after)
{
	uint32_t name = after ? after->name_length : 0;
	uint8_t *begin = page->bytes + PARAM_NAME_MAX - name;

	memset(begin, 0, WIRE_PAGE_BYTES);
	begin[0] = after != NULL;
	put16(begin + 2, name);
	put_bytes(begin + WIRE_PAGE_BYTES, after ? after->name : "", name);
	return (struct iovec){begin, page->used - (size_t)(begin - page->bytes)};
}

const char *page_read(const uint8_t *in, size_t length, bool *more_out, const char **after_out,
		      uint32_t *after_length_out, size_t *offset_out)
{
	uint32_t name;

	if (length < WIRE_PAGE_BYTES)
		return "a page is cut off";
	name = get16(in + 2);
	if (name > length - WIRE_PAGE_BYTES || name > PARAM_NAME_MAX)
		return "a page's name is longer than the page";
	if (in[0] > 1 || (in[0] && name == 0))
		return "a page does not say where to go on";
	*more_out = in[0];
	*after_out = (const char *)in + WIRE_PAGE_BYTES;
	*after_length_out = name;
	*offset_out = WIRE_PAGE_BYTES + name;
	return NULL;
}

bool page_next(const uint8_t *in, size_t length, size_t *offset, struct param *out,
	       const char **wrong_out)
{
	size_t left = length - *offset, record;
	bool removed;

	*wrong_out = NULL;
	if (left == 0)
		return false;
	record = left < 2 ? left : get16(in + *offset);
	if (left < 2 || record > left - 2) {
		*wrong_out = "a record is longer than its page";
		return false;
	}
	*wrong_out = record_read(in + *offset + 2, record, out, &removed);
	*offset += 2 + record;
	return !*wrong_out;
}
