/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol of plx-params on any bytes: accepted values lie within the input, are valid, and
 * survive writing and reading again. */
#include "fuzz.h"
#include "wire.h"

static bool is_within(const void *at, size_t length, const uint8_t *data, size_t size)
{
	const uint8_t *bytes = at;

	return bytes >= data && bytes + length <= data + size;
}

static void check_param(const struct param *param, const uint8_t *data, size_t size)
{
	must(is_within(param->name, param->name_length, data, size));
	must(!param_name_check(param->name, param->name_length));
	must(!param_kind_check(&param->kind));
	must(!param_value_check(&param->value));
	if (param->kind.type == PARAM_TEXT)
		must(is_within(param->value.text.bytes, param->value.text.length, data, size));
}

static void check_record(const uint8_t *data, size_t size)
{
	uint8_t again[WIRE_RECORD_MAX];
	struct param param, back;
	size_t length;

	if (record_read(data, size, &param))
		return;
	check_param(&param, data, size);
	length = record_write(&param, again);
	must(length == size && memcmp(again, data, size) == 0);
	must(!record_read(again, length, &back) && back.removed == param.removed);
	must(back.id == param.id && back.revision == param.revision);
	must(!param_alarm_check(&param.alarm) && back.alarm.state == param.alarm.state &&
	     back.alarm.level == param.alarm.level && back.alarm.since_ns == param.alarm.since_ns);
	must(memcmp(back.name, param.name, param.name_length) == 0);
}

/* Each order has one encoding, so writing gives the same bytes. The service refuses longer ones. */
static void check_same(const uint8_t *again, size_t length, const uint8_t *data, size_t size)
{
	must(length == size && memcmp(again, data, size) == 0);
}

static void check_orders(const uint8_t *data, size_t size)
{
	static uint8_t again[WIRE_ORDER_MAX + 2 * UINT16_MAX];
	struct list_order list;
	struct order order;

	if (!list_read(data, size, &list)) {
		must(is_within(list.prefix, list.prefix_length, data, size));
		must(is_within(list.after, list.after_length, data, size));
		if (size <= sizeof(again))
			check_same(again, list_write(&list, again), data, size);
	}
	if (!order_read(data, size, &order)) {
		check_param(&order.param, data, size);
		check_same(again, order_write(&order, again), data, size);
	}
}

static void check_page(const uint8_t *data, size_t size)
{
	struct list_place place = {.length = 0};
	const char *wrong;
	struct param param;
	size_t offset;
	bool more;

	if (page_read(data, size, &place, &more, &offset))
		return;
	must(place.length <= sizeof(place.name) && !more == !place.length);
	while (page_next(data, size, &offset, &param, &wrong)) {
		check_param(&param, data, size);
		must(offset <= size);
	}
	must(wrong ? wrong[0] != '\0' : offset == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_record(data, size);
	check_orders(data, size);
	check_page(data, size);
	return 0;
}
