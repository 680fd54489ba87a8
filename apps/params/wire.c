/* SPDX-License-Identifier: BSD-3-Clause */
/* Records, pages of them, and requests. */
#include "wire.h"

#include "bytes.h"

#define RECORD_BYTES 48
/* One flag per limit, and: */
#define FLAG_LATCH   (1u << LIMIT_COUNT)
#define FLAG_REMOVED (2u << LIMIT_COUNT)
#define FLAGS        ((4u << LIMIT_COUNT) - 1)

/* Parts --------------------------------------------------------------------------------------- */

/* An integer and a real share their place, and so their bits. */
static void put_number(uint8_t *out, const struct param_value *value)
{
	put64(out, value->type == PARAM_TEXT ? 0 : (uint64_t)value->integer);
}

static struct param_value get_number(const uint8_t *in, enum param_type type)
{
	return (struct param_value){.type = type, .integer = (int64_t)get64(in)};
}

static uint8_t *put_bytes(uint8_t *out, const void *bytes, size_t length)
{
	if (length)
		memcpy(out, bytes, length);
	return out + length;
}

/** Fields that must be zero may get a meaning later. */
static bool is_zero(const uint8_t *in, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (in[i])
			return false;
	}
	return true;
}

/* Records ------------------------------------------------------------------------------------- */

size_t record_write(const struct param *param, uint8_t *out)
{
	const struct param_kind *kind = &param->kind;
	uint32_t text = kind->type == PARAM_TEXT ? param->value.text.length : 0;
	size_t unit = strlen(kind->unit);
	uint32_t flags = (kind->latch ? FLAG_LATCH : 0) | (param->removed ? FLAG_REMOVED : 0);
	uint8_t *at = out + RECORD_BYTES;

	memset(out, 0, RECORD_BYTES);
	put64(out, param->revision);
	put64(out + 8, param->id);
	put64(out + 16, param->alarm.since_ns);
	out[24] = (uint8_t)kind->type;
	out[25] = (uint8_t)param->alarm.state;
	out[26] = (uint8_t)param->alarm.level;
	out[27] = (uint8_t)unit;
	put16(out + 28, param->name_length);
	put16(out + 30, text);
	put_number(out + 40, &param->value);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (!kind->has[i])
			continue;
		flags |= 1u << i;
		put_number(at, &kind->limit[i]);
		at += 8;
	}
	put16(out + 32, flags);
	at = put_bytes(at, kind->unit, unit);
	at = put_bytes(at, param->name, param->name_length);
	at = put_bytes(at, text ? param->value.text.bytes : "", text);
	return (size_t)(at - out);
}

static size_t read_limits(const uint8_t *in, uint32_t flags, struct param_kind *kind)
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

const char *record_read(const uint8_t *in, size_t length, struct param *out)
{
	size_t unit, name, text, limits;
	const uint8_t *at = in + RECORD_BYTES;
	const char *wrong;
	uint32_t flags;

	if (length < RECORD_BYTES)
		return "a record is cut off";
	*out = (struct param){
		.revision = get64(in),
		.id = get64(in + 8),
		.alarm = {in[25], (int8_t)in[26], get64(in + 16)},
	};
	unit = in[27];
	name = get16(in + 28);
	text = get16(in + 30);
	flags = get16(in + 32);
	limits = 8 * (size_t)__builtin_popcount(flags & ((1u << LIMIT_COUNT) - 1));
	if ((flags & ~FLAGS) || !is_zero(in + 34, 6))
		return "a record has flags that nobody knows";
	if (length != RECORD_BYTES + limits + unit + name + text)
		return "the parts of a record are not its length";
	out->kind.type = in[24];
	out->kind.latch = flags & FLAG_LATCH;
	at += read_limits(at, flags, &out->kind);
	wrong = param_kind_set_unit(&out->kind, at, unit);
	if (wrong)
		return wrong;
	out->name = (const char *)at + unit;
	out->name_length = (uint32_t)name;
	out->value = get_number(in + 40, out->kind.type);
	if (out->kind.type == PARAM_TEXT) {
		out->value.text.bytes = out->name + name;
		out->value.text.length = (uint32_t)text;
		if (!is_zero(in + 40, 8))
			return "a text has a number";
	} else if (text) {
		return "a number has a text";
	}
	out->removed = flags & FLAG_REMOVED;
	return param_check(out);
}

/* Pages --------------------------------------------------------------------------------------- */

bool page_add(struct page *page, const struct param *param)
{
	size_t length;

	if (page->used + 2 + WIRE_RECORD_MAX + PARAM_NAME_MAX > WIRE_PAGE_MAX)
		return false;
	length = record_write(param, page->bytes + page->used + 2);
	put16(page->bytes + page->used, (uint32_t)length);
	page->used += 2 + length;
	return true;
}

size_t page_end(struct page *page, const struct param *after)
{
	uint32_t name = after ? after->name_length : 0;
	uint8_t *records = page->bytes + WIRE_PAGE_BYTES;

	memmove(records + name, records, page->used - WIRE_PAGE_BYTES);
	memset(page->bytes, 0, WIRE_PAGE_BYTES);
	page->bytes[0] = after != NULL;
	put16(page->bytes + 2, name);
	put_bytes(records, after ? after->name : "", name);
	return page->used + name;
}

const char *page_read(const uint8_t *in, size_t length, struct list_place *place, bool *more_out,
		      size_t *offset_out)
{
	const char *after = (const char *)in + WIRE_PAGE_BYTES;
	uint32_t name;

	if (length < WIRE_PAGE_BYTES)
		return "a page is cut off";
	name = get16(in + 2);
	if (name > length - WIRE_PAGE_BYTES || name > PARAM_NAME_MAX)
		return "a page's name is longer than the page";
	if (in[0] > 1 || in[0] != (name != 0))
		return "a page does not say where to continue";
	if (in[1] || !is_zero(in + 4, 4))
		return "a page has flags that nobody knows";
	/* Otherwise a service could keep its client listing forever. */
	if (in[0] && param_name_order(after, name, place->name, place->length) <= 0)
		return "a page does not start after the previous one";
	*more_out = in[0];
	memcpy(place->name, after, name);
	place->length = name;
	*offset_out = WIRE_PAGE_BYTES + name;
	return NULL;
}

bool page_next(const uint8_t *in, size_t length, size_t *offset, struct param *out,
	       const char **wrong_out)
{
	size_t left = length - *offset, record;

	*wrong_out = NULL;
	if (left == 0)
		return false;
	record = left < 2 ? left : get16(in + *offset);
	if (left < 2 || record > left - 2) {
		*wrong_out = "a record is longer than its page";
		return false;
	}
	*wrong_out = record_read(in + *offset + 2, record, out);
	*offset += 2 + record;
	return !*wrong_out;
}

/* Requests ------------------------------------------------------------------------------------ */

size_t order_write(const struct order *order, uint8_t *out)
{
	memset(out, 0, WIRE_ORDER_BYTES);
	out[0] = order->flags;
	put64(out + 8, order->expected);
	return WIRE_ORDER_BYTES + record_write(&order->param, out + WIRE_ORDER_BYTES);
}

const char *order_read(const uint8_t *in, size_t length, struct order *out)
{
	const char *wrong;

	if (length < WIRE_ORDER_BYTES)
		return "the order is cut off";
	if (in[0] & ~(WIRE_DURABLE | WIRE_EXPECT) || !is_zero(in + 1, 7))
		return "the order has flags that nobody knows";
	out->flags = in[0];
	out->expected = get64(in + 8);
	if (out->expected && !(out->flags & WIRE_EXPECT))
		return "the order has a revision, and does not expect it";
	wrong = record_read(in + WIRE_ORDER_BYTES, length - WIRE_ORDER_BYTES, &out->param);
	if (wrong)
		return wrong;
	return out->param.removed ? "the parameter of an order is removed" : NULL;
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
	if (in[0] & ~WIRE_ALARMS || in[1])
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
